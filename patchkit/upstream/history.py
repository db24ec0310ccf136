"""Histories of tracked branches, for looking back over them; kept apart from the store's bases.

    histories/<name>-<hash>.git   refs/patchkit/spans/<pin>/<hash> keeps the commit of a name
    named/<name>-<hash>/          what a name meant when the server was last asked: offline it
                                  still means that

They hold commits and trees, and of files what was looked at. A base's repository is shallow, whole,
and its packs are linked into checkouts: nothing of this would be welcome there.

Invariant: a commit that is here is here with its tree, all folders in it, and all commits before
it. git fetches nothing here by itself: files that are not here are asked for by their ids, in one
place (`HistoryRepository`).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from patchkit.disk.result_cache import recall_as, remember
from patchkit.errors import BadInputError, Problem, UsageError
from patchkit.gitcmd.first_parent import (
    Commit,
    Landing,
    Line,
    blobs_of,
    first_parents,
    landings,
    merge_base,
    missing_objects,
)
from patchkit.gitcmd.object_reader import ObjectReader
from patchkit.gitcmd.pins import (
    absent_blobs,
    make_partial,
    note_absent,
    read_base,
)
from patchkit.gitcmd.process import GitFailureError
from patchkit.gitcmd.remote import RemoteError, Trouble, abilities
from patchkit.gitcmd.repository import NOT_HERE, RefChange, Repository, init_repository
from patchkit.gitcmd.scratch import adopt
from patchkit.manifest.values import Component, GitPin, GitSource
from patchkit.model.names import COMMIT_ID, folder_name, readable_url
from patchkit.model.objects import Base, CommitId, TreeEntry, TreeId
from patchkit.model.progress import Progress, Silent
from patchkit.model.text import counted
from patchkit.model.tree import Tree
from patchkit.upstream.fetching import Fetching, about
from patchkit.upstream.git import (
    EVERYTHING,
    LATEST,
    NamedCommit,
    Refs,
    Server,
    fetch_objects,
    find_ref,
    from_first,
    has_come,
    is_short_id,
    list_refs,
    require_unmoved,
)
from patchkit.upstream.identity import upstream_key
from patchkit.upstream.store import Store

# Fetching: all commits with their trees, and single files when they are asked for. To say when a
# patch stopped fitting takes very few files. Trees that nobody looks at come as well: to leave them
# out saved 7 of 10 MB of Megatron-LM, once, and took every command questions for single trees.


def fetch_history(
    source: GitSource,
    tip: NamedCommit,
    pin: CommitId,
    target: Repository,
    fetching: Fetching,
    *,
    whole: bool,
) -> None:
    """Bring the history of the commits `tip` and `pin` into `target`, but for files.

    What `target` has is not asked for again. A `whole` one must not end where a shallow repository
    was cut off. On disk: packs in `target`, no ref.
    """

    def bring(server: Server) -> None:
        filters = abilities(server.stage, server.url, stop=server.stop).filters
        missing = missing_objects(target, (tip.commit, pin))
        lacking = [each for each in (tip.commit, pin) if each in missing]
        _bring_commits(server, tip, lacking, "--filter=blob:none" if filters else "")
        if whole and server.stage.ask("rev-list", "--quiet", tip.commit, no=NOT_HERE) is None:
            what = "is a shallow repository, which does not have the branch's whole history"
            raise RemoteError(Trouble.ABSENT, server.url, what)
        adopt(server.stage, target)

    from_first(source, target, fetching, bring)


def _bring_commits(
    server: Server, tip: NamedCommit, lacking: Collection[str], without: str
) -> None:
    """Bring commits with all before them, less what a filter says; "" for none."""
    if not lacking:
        return
    options = [without] if without else []
    remote = make_partial(server.stage, server.url) if without else None
    # a server that gives no commit by its id still gives the branch
    names: dict[str, str] = {tip.commit: tip.ref} if tip.ref else {}
    wanted = [f"+{names.get(each, each)}:refs/fetched/{each}" for each in lacking]
    try:
        server.fetch(wanted, *options, remote=remote)
    except RemoteError as error:
        if error.trouble is not Trouble.REFUSED:
            raise
        # a server that gives out branches only
        server.fetch(EVERYTHING, *options, remote=remote)
    stage = server.stage
    absent = [
        each for each in lacking if not has_come(stage, CommitId(each), f"refs/fetched/{each}")
    ]
    if absent:
        raise RemoteError(Trouble.ABSENT, server.url, f"does not have commit {absent[0]}")


_SPANS = "refs/patchkit/spans"
_OFFLINE = "run it without --offline; or name a commit that was fetched before: --to COMMIT"


class HistoryRepository(Repository, frozen=True, kw_only=True):
    """Where histories of a source are; files are brought when they are asked for.

    They are named before they are read, all at once.

    Invariant: no id is asked for twice. What came stays, and what no server has is noted or ends
    the command.
    """

    store: Store
    source: GitSource
    name: str  # of the component that asks
    progress: Progress
    _here: set[str] = field(default_factory=set)  # blobs that were asked for, and are here

    def bring(self, blobs: Iterable[str]) -> frozenset[str]:
        """Bring those of `blobs` that are not here; the ids of those that nobody gives."""
        wanted = frozenset(blobs) - self._here
        lacking = missing_objects(self, wanted)
        absent = lacking & absent_blobs(self) if lacking else lacking
        if lacking != absent:
            absent = self._fetch(lacking - absent) | absent
        self._here.update(wanted - absent)
        return absent

    def _fetch(self, blobs: frozenset[str]) -> frozenset[str]:
        """Bring blobs that are not here; those that nobody gives."""
        named = f"{counted(len(blobs), 'file')} of its history"
        self.store.require_network(self.name, f"the cache lacks {named}")

        def answer(server: Server) -> frozenset[str]:
            unknown = fetch_objects(server, lacking)
            adopt(server.stage, self)
            note_absent(self, unknown)
            return unknown

        with self.alone():
            lacking = missing_objects(self, blobs)
            if not lacking:
                return lacking
            self.progress.step(self.name, f"fetching {named}")
            fetching = self.store.fetching(self.name, self.progress)
            return from_first(self.source, self, fetching, answer)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """The only one to change the repository for as long; errors are about the component."""
        lock = f"history-{self.git_dir.stem}"
        with self.store.locked(lock, self.name, self.progress), about(self.name):
            yield


class History(Struct, frozen=True, dict=True):
    """The line of a tracked branch beyond a pin."""

    repository: HistoryRepository  # has its commits, and brings what else it needs
    ref: str  # what was asked for
    pin: CommitId
    tip: CommitId  # the commit that `ref` is
    pin_where: str = ""  # the manifest's line that names the pin
    _bases: dict[CommitId, Base] = {}  # those that were read

    @cached_property
    def fork(self) -> CommitId:
        """The newest commit that both pin and tip have: the pin, unless it is on another branch.

        BadInputError where there is none.
        """
        line = self._beyond_pin
        if line.commits and line.follows and line.start == self.pin:
            return self.pin  # an ancestor of the tip: git need not look for one
        fork = merge_base(self.repository, self.pin, self.tip)
        if fork is None:
            what = f"{self.ref} has no common ancestor with the pin {self.pin}"
            raise BadInputError(Problem(what, self.pin_where, "correct `track`, or `branch`"))
        return fork

    def base(self, commit: CommitId, reader: ObjectReader | None = None) -> Base:
        """A commit of the history as a base to build on; git is asked once for each.

        A `reader` of the history is asked before another git.
        """
        if commit not in self._bases:
            self._bases[commit] = read_base(self.repository, commit, reader)
        return self._bases[commit]

    @cached_property
    def line(self) -> Line:
        """The first-parent commits beyond the fork."""
        if self.fork == self.pin:
            return self._beyond_pin
        return first_parents(self.repository, self.fork, self.tip)

    @cached_property
    def _beyond_pin(self) -> Line:
        return first_parents(self.repository, self.pin, self.tip)

    def landings(self, paths: Collection[str]) -> tuple[Landing, ...]:
        """The commits of the line that change any of `paths`, oldest first."""
        return landings(self.repository, self.line, paths)


class ResolvedName(Struct, frozen=True):
    """What a name means at a component's upstream.

    `wanted` is the name, with LATEST replaced. `refs` is what the server has, None if nobody asked.
    """

    wanted: str
    named: NamedCommit  # the commit, and the ref that it came by
    refs: Refs | None = None


def find_commit(
    store: Store, component: Component, wanted: str, progress: Progress, *, doing: str = ""
) -> ResolvedName:
    """The commit that `wanted` is at the component's git source now: see `sources.refs.find_ref`.

    LATEST is what `track` names. Asks the network unless it is a full commit id; with the store
    offline it is what it was when last asked. UsageError if there is no such thing, or several;
    BadInputError where it is `track` that says so, or there is none. `doing` is shown as progress.
    """
    name, source = wanted, component.source
    assert isinstance(source, GitSource)
    if wanted == LATEST:
        name = component.track or ""
        if not name:
            what = f"{component.name} tracks no branch"
            hint = f"add `track: BRANCH` to {component.name}, or say --to REF"
            raise BadInputError(Problem(what, str(component.where), hint))
    if COMMIT_ID.fullmatch(name):
        return ResolvedName(name, NamedCommit("", CommitId(name)))
    if store.offline:
        last = _last_meaning(store, source, name)
        if last is None:
            lacking = f"what {name} is upstream now is not in the cache"
            store.require_network(component.name, lacking, _OFFLINE)
        else:
            return ResolvedName(name, last)
    progress.step(component.name, doing or f"asking {readable_url(source.url)}")
    with about(component.name):
        refs = list_refs(source, name, stop=store.stop)
    require_unmoved(refs, component)
    try:
        named = find_ref(refs, name, lambda short: known_commit(store, source, short))
    except UsageError as error:
        if wanted != LATEST:
            raise
        where = str(component.where)
        raise BadInputError(*(Problem(p.what, where, p.hint) for p in error.problems)) from error
    if _last_meaning(store, source, name) != named:
        remember(_meaning_path(store, source, name), to_builtins(named))
    return ResolvedName(name, named, refs)


def open_history(
    store: Store,
    component: Component,
    wanted: str,
    progress: Progress,
    *,
    beside: GitSource | None = None,
) -> History:
    """The history of `wanted` beyond the component's pin, brought up to date: see `find_commit`.

    With the store offline as it was when last asked. It is kept with that of `beside`, of which the
    source may be a fork. BadInputError for a component whose source has no history.
    """
    source, pin = component.source, component.pin
    if not isinstance(source, GitSource) or not isinstance(pin, GitPin):
        what = "comes from no git repository: there is no history to look at"
        raise BadInputError(Problem(what, component.name))
    repository = _repository(store, beside or source, component.name, progress)
    repository = replace(repository, source=source)
    said = component.track if wanted == LATEST else wanted
    doing = f"fetching the history of {said}"
    meaning = find_commit(store, component, wanted, progress, doing=doing)
    name, tip = meaning.wanted, meaning.named
    span = f"{_SPANS}/{pin.commit}/{_digest(name)}"  # the ref of this line
    here = False
    with suppress(GitFailureError):  # git cannot read it
        here = repository.exists and not missing_objects(repository, (tip.commit, pin.commit))
    if not here:
        store.require_network(component.name, f"the history of {name} is not in the cache")
        with repository.alone():
            progress.step(component.name, doing)
            if not repository.exists:
                init_repository(repository.git_dir)
            fetching = store.fetching(component.name, progress)
            fetch_history(source, tip, pin.commit, repository, fetching, whole=beside is not None)
            _keep_ref(repository, span, tip.commit)
    elif meaning.refs is not None and repository.ref(span) != tip.commit:
        with repository.alone():
            _keep_ref(repository, span, tip.commit)
    return History(repository, name, pin.commit, tip.commit, str(component.pin_where))


def known_commit(store: Store, source: GitSource, short: str) -> CommitId | None:
    """The only commit of the history that is here whose id begins so."""
    repository = _repository(store, source)
    return repository.commit(short) if repository.exists else None


def known_history(
    store: Store, source: GitSource, commit: CommitId, name: str, progress: Progress
) -> History | None:
    """The history up to a commit, if an earlier command brought it; component `name` asks."""
    repository = _repository(store, source, name, progress)
    if not repository.exists or repository.commit(commit) is None:
        return None
    return History(repository, commit, commit, commit)


def _repository(
    store: Store, source: GitSource, name: str = "", progress: Progress | None = None
) -> HistoryRepository:
    folder = store.cache / "histories" / f"{folder_name(upstream_key(source))}.git"
    told = progress or Silent()
    return HistoryRepository(folder, store=store, source=source, name=name, progress=told)


def _last_meaning(store: Store, source: GitSource, name: str) -> NamedCommit | None:
    """What a name meant when last asked, else the commit whose short id it is."""
    meant = recall_as(_meaning_path(store, source, name), NamedCommit)
    short = known_commit(store, source, name) if meant is None and is_short_id(name) else None
    return meant if short is None else NamedCommit("", short)


def _meaning_path(store: Store, source: GitSource, name: str) -> Path:
    folder = store.cache / "named" / folder_name(upstream_key(source))
    return folder / f"{_digest(name)}.json"


def _keep_ref(repository: Repository, name: str, commit: CommitId) -> None:
    repository.free_refs([name])
    repository.update_refs([RefChange(name, commit)], reason="patchkit: fetched")


def _digest(name: str) -> str:
    """A name of a branch, tag or pattern as one that any file and ref can have."""
    return hashlib.sha256(name.encode()).hexdigest()[:20]


# A history to walk along: its first-parent line, and the trees on it.


Row = TypeVar("Row")

#: So many files, or commits' versions of files, are in memory together.
_READ_AT_ONCE = 100


def in_pieces(rows: Sequence[Row]) -> list[Sequence[Row]]:
    """The rows, as many at a time as are read together."""
    return [rows[at : at + _READ_AT_ONCE] for at in range(0, len(rows), _READ_AT_ONCE)]


class VersionOnLine(Struct, frozen=True):
    """What a commit of the line leaves at a path: `entry` None, where it takes the file away."""

    commit: Commit
    entry: TreeEntry | None
    data: bytes | None  # None also where no server gives it


def first_with(
    versions: Sequence[VersionOnLine], holds: Callable[[VersionOnLine], bool]
) -> Commit | None:
    """The commit from whose version on something holds, by halving; None if not at the last one."""
    if not versions or not holds(versions[-1]):
        return None
    return versions[bisect_left(versions, True, key=holds)].commit


class HistoryReader(Struct, frozen=True):
    """A history, and what reads its objects."""

    history: History
    reader: ObjectReader  # reads the objects that are here

    def bring(self, blobs: Iterable[str]) -> None:
        """See HistoryRepository; the git that runs looks for new packs where it lacks an object."""
        self.history.repository.bring(blobs)

    def entries(self, commit: CommitId, paths: Collection[str]) -> dict[str, TreeEntry | None]:
        """What stands at paths in a commit, None for nothing; read by the git that runs anyway."""
        tree = Tree(self.reader, tree_of(self.reader, commit))
        return {path: tree.entry(path) for path in paths}

    def contents(self, entries: Iterable[TreeEntry | None]) -> Mapping[str, bytes]:
        """The contents of files by id, brought if need be; without those that nobody gives."""
        return next(self.read_batches([blobs_of(entries)]))

    def versions(self, paths: Collection[str]) -> Iterator[tuple[str, list[VersionOnLine]]]:
        """Each path with its versions along the line, oldest first; one walk for all of them."""
        found = self.history.landings(sorted(paths))
        self.bring(blobs_of(entry for each in found for entry in each.touches.values()))
        for path in sorted(paths):
            touches = [(each.commit, each.touches[path]) for each in found if path in each.touches]
            contents = self.contents(entry for _, entry in touches)
            yield (
                path,
                [VersionOnLine(c, e, contents.get(e.oid) if e else None) for c, e in touches],
            )

    def in_batches(self, entries: Iterable[TreeEntry | None]) -> Iterator[Mapping[str, bytes]]:
        """The contents of files by id, as many files at a time as are read together."""
        return self.read_batches(in_pieces(list(blobs_of(entries))))

    def read_batches(self, batches: Sequence[Collection[str]]) -> Iterator[Mapping[str, bytes]]:
        """The contents of each batch of ids; what all of them lack is brought at once."""
        brought = False
        for number, batch in enumerate(batches):
            found = self.reader.read_present(batch)
            if len(found) < len(batch) and not brought:
                self.bring(oid for each in batches[number:] for oid in each)
                found |= self.reader.read_present([oid for oid in batch if oid not in found])
                brought = True
            yield found


def tree_of(reader: ObjectReader, commit: CommitId) -> TreeId:
    """The id of a commit's tree."""
    return TreeId(reader.commit(commit)[5:45].decode("ascii"))
