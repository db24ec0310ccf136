"""A git upstream: which commit a name means there, and how to bring exactly the pinned one by the
cheapest way that the server allows.

First that commit alone (`--depth=1`). A server that hands out branches only gets asked for the
tracked branch, then for everything. A server whose repository is damaged gets asked for the tree,
then for the blobs that it still has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from patchkit.errors import BadInputError, Problem, SurroundingsError, UsageError
from patchkit.gitcmd.pins import (
    make_partial,
    missing_in_tree,
    note_absent,
)
from patchkit.gitcmd.remote import (
    Listener,
    RemoteError,
    Trouble,
    abilities,
    fetch,
    run_network,
)
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.scratch import adopt, staging
from patchkit.manifest.values import Component, GitPin, GitSource
from patchkit.model.names import COMMIT_ID, readable_url, short_id
from patchkit.model.objects import CommitId
from patchkit.model.progress import Stop
from patchkit.upstream.fetching import Fetching

# Names: the branches and tags of an upstream, and the one commit that a name means. `v1`,
# `heads/v1`, `refs/tags/v1`, `v*`, a commit id in full or abbreviated: every command asks here, so
# that no two of them take a name for different commits. One question to the server answers all of
# it; nothing is fetched.


#: Stands for what a component's `track` names; never a branch or tag of that name.
LATEST = "latest"

_HEADS, _TAGS = "refs/heads/", "refs/tags/"
_LISTED = (_HEADS, _TAGS)
# As reports show commits.
_SHORT_ID = re.compile(r"[0-9a-f]{7,39}")
_SHOWN = 4


_Answer = TypeVar("_Answer")


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


class NamedCommit(Struct, frozen=True):
    """What a name means: a commit, and the full name of its ref, "" if it was named by its id."""

    ref: str
    commit: CommitId

    @property
    def branch(self) -> str:
        """The short name of the branch; "" if it is none."""
        return self.ref.removeprefix(_HEADS) if self.ref.startswith(_HEADS) else ""

    @property
    def tag(self) -> str:
        """The short name of the tag; "" if it is none."""
        return self.ref.removeprefix(_TAGS) if _is_tag(self.ref) else ""


def list_refs(source: GitSource, wanted: str = "", *, stop: Stop | None = None) -> Refs:
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


def find_ref(
    refs: Refs, wanted: str, known: Callable[[str], str | None] | None = None
) -> NamedCommit:
    """What `wanted` names: a branch, a tag, a commit id, or the newest ref that a pattern matches.

    A pattern without a folder (`v*`) is one of tags. `known` gives the commit whose id begins so,
    if it is at hand. UsageError if there is none, with the names that come near; or if there are
    several at different commits (a branch and a tag, a tag that looks like a short id), with all.
    """
    if COMMIT_ID.fullmatch(wanted):
        return NamedCommit("", CommitId(wanted))
    if is_pattern(wanted):
        return _newest(refs, wanted)
    found = [
        NamedCommit(place, CommitId(refs.commits[place]))
        for place in _places(wanted)
        if place in refs.commits
    ]
    if is_short_id(wanted):
        commits = {oid for oid in refs.commits.values() if oid.startswith(wanted)}
        commits |= {oid for oid in [known(wanted) if known else None] if oid is not None}
        found += [NamedCommit("", CommitId(oid)) for oid in sorted(commits)]
    if not found:
        raise _missing(refs, wanted)
    if len({each.commit for each in found}) > 1:
        raise _ambiguous(refs, wanted, found)
    return found[0]


def require_unmoved(refs: Refs, component: Component) -> None:
    """BadInputError where the tag that stands where the pin does is at another commit by now."""
    pin = component.pin
    if not isinstance(pin, GitPin) or not pin.name:
        return
    tags = (refs.commits.get(each) for each in _places(pin.name) if _is_tag(each))
    moved = next((each for each in tags if each is not None), pin.commit)
    if pin.commit and moved != pin.commit:
        what = f"{pin.name} was moved: it is {moved} upstream, and {pin.commit} in the lock"
        hint = f"`patchkit bump {component.name} --to {moved}` goes there; or write {pin.commit}"
        raise BadInputError(Problem(what, str(component.pin_where), hint))


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


def _newest(refs: Refs, pattern: str) -> NamedCommit:
    placed = pattern if pattern.startswith("refs/") else f"refs/{pattern}"
    full = placed if placed.startswith(_LISTED) else _TAGS + pattern
    matching = [name for name in refs.commits if fnmatchcase(name, full)]
    if not matching:
        raise _missing(refs, pattern)
    name = max(matching, key=version_order)
    return NamedCommit(name, CommitId(refs.commits[name]))


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


def _ambiguous(refs: Refs, wanted: str, found: list[NamedCommit]) -> UsageError:
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
    hint = f"it has {', '.join(close)}" if close else "git ls-remote lists what there is"
    return UsageError(Problem(what, hint=hint))


def _near(refs: Refs, wanted: str) -> list[str]:
    """Names near `wanted`: those that hold it, newest first, or are spelt alike."""
    from difflib import get_close_matches  # noqa: PLC0415 (only where something is wrong)

    names = {name.removeprefix(_HEADS).removeprefix(_TAGS) for name in refs.commits}
    plain = wanted.replace("*", "").removeprefix(_HEADS).removeprefix(_TAGS).lower()
    holding = [name for name in names if plain and plain in name.lower()]
    if holding:
        return sorted(holding, key=version_order, reverse=True)[:_SHOWN]
    return get_close_matches(plain, sorted(names), n=_SHOWN, cutoff=0.5)


def _is_tag(name: str) -> bool:
    return name.startswith(_TAGS)


_NAMED_OBJECT = re.compile(
    r"(?:not our ref|unable to read|bad object|missing blob object) '?([0-9a-f]{40})"
)

#: Refspecs for all branches and tags, of a server that gives no commit by its id.
EVERYTHING = ("+refs/heads/*:refs/fetched/heads/*", "+refs/tags/*:refs/fetched/tags/*")


def fetch_commit(
    source: GitSource,
    commit: CommitId,
    target: Repository,
    fetching: Fetching,
    *,
    track: str | None,
) -> None:
    """Bring `commit` with its files into `target`, from the URL or the first mirror that has it.

    If all fail, the SurroundingsError has one problem for each. On disk: packs in `target`, no ref.
    """

    def keep(server: Server, absent: frozenset[str] = frozenset()) -> None:
        adopt(server.stage, target)
        note_absent(target, absent)

    def whole(server: Server) -> None:
        _bring(server, commit, track)
        keep(server)

    def salvaged(server: Server) -> None:
        fetching.step("fetching what a damaged upstream still has")
        keep(server, _salvage(server, commit))

    from_first(source, target, fetching, whole, salvaged)


class Server(Struct, frozen=True):
    """A URL to fetch from, into a throw-away repository."""

    url: str
    stage: Repository  # the throw-away repository
    listener: Listener | None
    stop: Stop | None

    def fetch(
        self,
        refspecs: Sequence[str],
        *options: str,
        remote: str | None = None,
        afresh: bool = False,
    ) -> None:
        """Fetch into `stage`; see gitcmd.remote.fetch."""
        fetch(
            self.stage,
            self.url,
            refspecs,
            options=options,
            remote=remote,
            afresh=afresh,
            listener=self.listener,
            stop=self.stop,
        )


def from_first(
    source: GitSource,
    target: Repository,
    fetching: Fetching,
    bring: Callable[[Server], _Answer],
    salvage: Callable[[Server], _Answer] | None = None,
) -> _Answer:
    """What `bring` answers for the URL or the first mirror that has it.

    Only when nobody has it whole, `salvage` is asked for those that are damaged. If all fail, the
    SurroundingsError has one problem for each.
    """
    problems: list[Problem] = []
    urls = [source.url, *source.mirrors]
    for way in (bring, *([salvage] if salvage else [])):
        damaged: list[str] = []
        for url in urls:
            with staging(target, fetching.scratch) as stage:
                try:
                    return way(Server(url, stage, fetching.listener, fetching.stop))
                except RemoteError as error:
                    problems += error.problems
                    if error.trouble is Trouble.DAMAGED:
                        damaged.append(url)
        urls = damaged
    raise SurroundingsError(*problems)


def fetch_objects(server: Server, ids: Collection[str]) -> frozenset[str]:
    """Bring blobs, and trees with all folders in them and no file; the ids that the server lacks.

    What is asked for by its id a filter does not leave out.
    """
    remote = make_partial(server.stage, server.url)
    absent: frozenset[str] = frozenset()
    while wanted := sorted(set(ids) - absent):
        try:
            server.fetch(wanted, "--filter=blob:none", remote=remote, afresh=True)
            break
        except RemoteError as error:
            # the server stops at the first that it does not have, and names it
            named = set(_NAMED_OBJECT.findall(error.said)).intersection(wanted)
            if error.trouble not in (Trouble.ABSENT, Trouble.DAMAGED) or not named:
                raise
            absent |= named
    return absent


def _bring(server: Server, commit: CommitId, track: str | None) -> None:
    """Bring the commit whole."""
    try:
        server.fetch([f"{commit}:refs/fetched/pin"], "--depth=1")
    except RemoteError as error:
        if error.trouble is not Trouble.REFUSED:
            raise _naming(error, server.url, commit) from error
        _whole_history(server, commit, track)
    if not has_come(server.stage, commit, "refs/fetched/pin"):
        raise _naming(RemoteError(Trouble.ABSENT, server.url, ""), server.url, commit)


def has_come(stage: Repository, commit: CommitId, ref: str) -> bool:
    """Whether a commit is here after a fetch to `ref`, which git writes once it has all of it."""
    return stage.ref(ref) == commit or stage.commit(commit) is not None


def _whole_history(server: Server, commit: CommitId, track: str | None) -> None:
    """For servers that give out branches only: the tracked one, and if it is not on it, all."""
    for branch in branches_named(track or ""):
        try:
            server.fetch([f"+{branch}:refs/fetched/track"], "--update-shallow")
        except RemoteError as error:
            if error.trouble is not Trouble.ABSENT:  # a tag, or a branch that is gone
                raise
        if server.stage.commit(commit) is not None:
            return
    server.fetch(EVERYTHING, "--update-shallow")


def _salvage(server: Server, commit: CommitId) -> frozenset[str]:
    """The tree first, then every blob that the server can still read; the ids of the others."""
    if not abilities(server.stage, server.url, stop=server.stop).by_id:
        _bring(server, commit, None)  # it does not give single objects, but all of them at once
        return frozenset()
    remote = make_partial(server.stage, server.url)
    pin = f"{commit}:refs/fetched/pin"
    try:
        server.fetch([pin], "--depth=1", "--filter=blob:none", remote=remote)
    except RemoteError as error:
        raise _naming(error, server.url, commit) from error
    return fetch_objects(server, missing_in_tree(server.stage, commit))


def _naming(error: RemoteError, url: str, commit: CommitId) -> RemoteError:
    """The same error, naming the commit where git does not."""
    if error.trouble is not Trouble.ABSENT:
        return error
    return RemoteError(Trouble.ABSENT, url, f"does not have commit {commit}", error.said)
