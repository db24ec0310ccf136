"""The branches and tags of a git upstream: what a name means there now, and which comes near.

One question to the server answers all of it; nothing is fetched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from patchkit.errors import Problem, SurroundingsError, UsageError
from patchkit.gitcmd.remote import RemoteError, run_network
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.urls import readable_url
from patchkit.manifest.values import GitSource
from patchkit.model.stop import Stop

_HEADS, _TAGS = "refs/heads/", "refs/tags/"
_SHOWN = 4


class Refs(Struct, frozen=True):
    """What `url` has: full ref name -> commit; a tag's is the commit that it stands for."""

    url: str
    commits: Mapping[str, str]

    @property
    def tags(self) -> dict[str, str]:
        """Tag, by its short name -> commit."""
        found = self.commits.items()
        return {name.removeprefix(_TAGS): oid for name, oid in found if _is_tag(name)}

    def tag_at(self, commit: str) -> str:
        """The tag of highest version at a commit, "" if it has none."""
        tags = [name for name, oid in self.commits.items() if oid == commit and _is_tag(name)]
        return max(tags, key=version_order, default="").removeprefix(_TAGS)


def list_refs(source: GitSource, stop: Stop | None = None) -> Refs:
    """Ask the URL, then the mirrors; SurroundingsError with a problem for each if none answers."""
    # no repository of ours is needed to ask, and none of the user's may steer the answer
    nowhere = Repository(Path(os.devnull))
    problems: list[Problem] = []
    for url in (source.url, *source.mirrors):
        asking = ["ls-remote", "--quiet", "--heads", "--tags", "--end-of-options", url]
        try:
            out = run_network(nowhere, asking, url=url, stop=stop)
        except RemoteError as error:
            problems += error.problems
        else:
            return Refs(url, _commits(out))
    raise SurroundingsError(*problems)


def find_ref(refs: Refs, wanted: str) -> tuple[str, str]:
    """(full name, commit) of a branch, a tag, or the newest tag that a pattern with * matches.

    Raises UsageError, with the names that come near, if there is none, or a branch and a tag of
    that name that differ.
    """
    if "*" in wanted:
        return _newest(refs, wanted)
    places = [wanted] if wanted.startswith("refs/") else [_HEADS + wanted, _TAGS + wanted]
    found = [place for place in places if place in refs.commits]
    if not found:
        raise _missing(refs, wanted)
    if len({refs.commits[place] for place in found}) > 1:
        what = f"{wanted} is both a branch and a tag of {readable_url(refs.url)}"
        raise UsageError(Problem(what, hint=f"say {' or '.join(found)}"))
    return found[0], refs.commits[found[0]]


def version_order(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """Orders tags by the numbers in them; one that is final comes after its candidates."""
    parts = re.findall(r"[0-9]{1,18}|[a-z]+", name.rpartition("/")[2].lower())
    numbers = [(int(part), "") if part.isdigit() else (-1, part) for part in parts if part != "v"]
    return not any(text in ("rc", "a", "b", "alpha", "beta", "dev") for _, text in numbers), numbers


def _newest(refs: Refs, pattern: str) -> tuple[str, str]:
    full = _TAGS + pattern.removeprefix(_TAGS)
    matching = [name for name in refs.commits if fnmatchcase(name, full)]
    if not matching:
        raise _missing(refs, pattern)
    name = max(matching, key=version_order)
    return name, refs.commits[name]


def _commits(listing: bytes) -> dict[str, str]:
    rows = (line.split("\t", 1) for line in listing.decode("utf-8", "surrogateescape").splitlines())
    listed = {name: oid for oid, name in rows}
    # an annotated tag is an object of its own; NAME^{} is the commit that it stands for
    return {
        name: listed.get(name + "^{}", oid)
        for name, oid in listed.items()
        if not name.endswith("^{}")
    }


def _missing(refs: Refs, wanted: str) -> UsageError:
    what = f"{readable_url(refs.url)} has no branch or tag {wanted}"
    if re.fullmatch(r"[0-9a-f]{4,39}|[0-9a-f]{41,63}", wanted):
        return UsageError(Problem(what, hint="a commit id must be given in full: 40 digits"))
    close = _near(refs, wanted)
    hint = f"there are {', '.join(close)}" if close else "git ls-remote lists what there is"
    return UsageError(Problem(what, hint=hint))


def _near(refs: Refs, wanted: str) -> list[str]:
    """Names that have `wanted` in them, newest first, else names that are spelt alike."""
    from difflib import get_close_matches  # noqa: PLC0415 (only where something is wrong)

    names = {name.removeprefix(_HEADS).removeprefix(_TAGS) for name in refs.commits}
    plain = wanted.replace("*", "").removeprefix(_HEADS).removeprefix(_TAGS).lower()
    holding = [name for name in names if plain and plain in name.lower()]
    if holding:
        return sorted(holding, key=version_order, reverse=True)[:_SHOWN]
    return get_close_matches(plain, sorted(names), n=_SHOWN, cutoff=0.5)


def _is_tag(name: str) -> bool:
    return name.startswith(_TAGS)
