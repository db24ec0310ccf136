"""The branches and tags of a git upstream, and the one meaning of every name for them.

`v1`, `heads/v1`, `refs/tags/v1`, `v*`, a commit id in full or abbreviated: every command asks here,
so that no two of them take a name for different commits. One question to the server answers all of
it; nothing is fetched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from patchkit.errors import Problem, SurroundingsError, UsageError
from patchkit.gitcmd.remote import RemoteError, run_network
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.urls import readable_url
from patchkit.manifest.values import GitSource
from patchkit.model.names import COMMIT_ID, short_id
from patchkit.model.stop import Stop

#: Stands for what a component's `track` names; never a branch or tag of that name.
LATEST = "latest"

_HEADS, _TAGS = "refs/heads/", "refs/tags/"
_LISTED = (_HEADS, _TAGS)
# As reports show commits.
_SHORT_ID = re.compile(r"[0-9a-f]{7,39}")
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


class Named(Struct, frozen=True):
    """What a name means: a commit, and the full name of its ref, "" if it was named by its id."""

    ref: str
    commit: str

    @property
    def branch(self) -> str:
        """The short name of the branch; "" if it is none."""
        return self.ref.removeprefix(_HEADS) if self.ref.startswith(_HEADS) else ""

    @property
    def tag(self) -> str:
        """The short name of the tag; "" if it is none."""
        return self.ref.removeprefix(_TAGS) if _is_tag(self.ref) else ""


def list_refs(source: GitSource, stop: Stop | None = None, *, wanted: str = "") -> Refs:
    """Ask the URL, then the mirrors; SurroundingsError with a problem for each if none answers.

    Branches and tags; where `wanted` is a full name outside of both, that ref.
    """
    # no repository of ours is needed to ask, and none of the user's may steer the answer
    nowhere = Repository(Path(os.devnull))
    elsewhere = wanted.startswith("refs/") and not wanted.startswith(_LISTED)
    kinds, names = ([], [wanted]) if elsewhere else (["--heads", "--tags"], [])
    problems: list[Problem] = []
    for url in (source.url, *source.mirrors):
        asking = ["ls-remote", "--quiet", *kinds, "--end-of-options", url, *names]
        try:
            out = run_network(nowhere, asking, url=url, stop=stop)
        except RemoteError as error:
            problems += error.problems
        else:
            return Refs(url, _commits(out))
    raise SurroundingsError(*problems)


def find_ref(refs: Refs, wanted: str, known: Callable[[str], str | None] | None = None) -> Named:
    """What `wanted` names: a branch, a tag, a commit id, or the newest ref that a pattern matches.

    A pattern without a place (`v*`) is one of tags. `known` gives the commit whose id begins so, if
    it is at hand. UsageError if there is none, with the names that come near; or if there are
    several at different commits (a branch and a tag, a tag that looks like a short id), with all.
    """
    if COMMIT_ID.fullmatch(wanted):
        return Named("", wanted)
    if is_pattern(wanted):
        return _newest(refs, wanted)
    found = [
        Named(place, refs.commits[place]) for place in _places(wanted) if place in refs.commits
    ]
    if is_short_id(wanted):
        commits = {oid for oid in refs.commits.values() if oid.startswith(wanted)}
        commits |= {oid for oid in [known(wanted) if known else None] if oid is not None}
        found += [Named("", oid) for oid in sorted(commits)]
    if not found:
        raise _missing(refs, wanted)
    if len({each.commit for each in found}) > 1:
        raise _ambiguous(refs, wanted, found)
    return found[0]


def branches_named(wanted: str) -> tuple[str, ...]:
    """The full names of the branches that `wanted` can name; () for "", a pattern, a commit id."""
    if not wanted or is_pattern(wanted) or COMMIT_ID.fullmatch(wanted):
        return ()
    return tuple(place for place in _places(wanted) if place.startswith(_HEADS))


def is_short_id(wanted: str) -> bool:
    """Whether it has the form of an abbreviated commit id."""
    return _SHORT_ID.fullmatch(wanted) is not None


def is_pattern(wanted: str) -> bool:
    """Whether it has characters that no ref's name can have, and patterns do."""
    return any(mark in wanted for mark in "*?[")


def version_order(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """Orders tags by the numbers in them; one that is final comes after its candidates."""
    parts = re.findall(r"[0-9]{1,18}|[a-z]+", name.rpartition("/")[2].lower())
    numbers = [(int(part), "") if part.isdigit() else (-1, part) for part in parts if part != "v"]
    return not any(text in ("rc", "a", "b", "alpha", "beta", "dev") for _, text in numbers), numbers


def _places(name: str) -> list[str]:
    """The full names that a name can stand for, as git reads it; a branch comes first."""
    if name.startswith("refs/"):
        return [name]
    placed = [f"refs/{name}"] if name.startswith(("heads/", "tags/")) else []
    return [*placed, _HEADS + name, _TAGS + name]


def _newest(refs: Refs, pattern: str) -> Named:
    placed = pattern if pattern.startswith("refs/") else f"refs/{pattern}"
    full = placed if placed.startswith(_LISTED) else _TAGS + pattern
    matching = [name for name in refs.commits if fnmatchcase(name, full)]
    if not matching:
        raise _missing(refs, pattern)
    name = max(matching, key=version_order)
    return Named(name, refs.commits[name])


def _commits(listing: bytes) -> dict[str, str]:
    # a name may hold any character that str.splitlines takes for a line's end
    rows = listing.decode("utf-8", "surrogateescape").split("\n")
    listed = {name: oid for oid, mark, name in (row.partition("\t") for row in rows) if mark}
    # an annotated tag is an object of its own; NAME^{} is the commit that it stands for
    return {
        name: listed.get(name + "^{}", oid)
        for name, oid in listed.items()
        if not name.endswith("^{}")
    }


def _ambiguous(refs: Refs, wanted: str, found: list[Named]) -> UsageError:
    """Each candidate as it can be typed; of those at one commit the first."""
    each = {named.commit: named.ref or named.commit for named in reversed(found)}
    listed = " and ".join(
        f"{name} ({short_id(commit)})" if name != commit else f"commit {name}"
        for commit, name in reversed(each.items())
    )
    kinds = {(bool(named.branch), bool(named.tag)) for named in found}
    both = kinds == {(True, False), (False, True)}
    meaning = "both a branch and a tag" if both else "more than one thing"
    what = f"{wanted} is {meaning} of {readable_url(refs.url)}: {listed}"
    return UsageError(Problem(what, hint=f"say {' or '.join(reversed(each.values()))}"))


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
