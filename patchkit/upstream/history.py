"""Histories of tracked branches, for looking back over them; kept apart from the store's bases.

    histories/<name>-<hash>.git   refs/patchkit/named/<name> keeps what was fetched for a name
    named/<name>-<hash>/          what a name meant when the server was last asked: offline it
                                  still means that

They hold commits and trees, and of files what was looked at. A base's repository is shallow, whole,
and its packs are linked into checkouts: nothing of this would be welcome there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, field, to_builtins

from patchkit.disk.result_cache import recall_as, remember
from patchkit.errors import BadInputError, Problem, SurroundingsError, UsageError
from patchkit.gitcmd.first_parent import Landing, Line, merge_base, missing_objects, walk_line
from patchkit.gitcmd.object_reader import MissingObjectError, ObjectReader
from patchkit.gitcmd.pins import absent_blobs, make_partial, note_absent, read_base
from patchkit.gitcmd.process import GitFailureError
from patchkit.gitcmd.remote import RemoteError, Trouble, speaks_v2
from patchkit.gitcmd.repository import RefChange, Repository, init_repository
from patchkit.gitcmd.scratch import adopt, staging
from patchkit.manifest.values import Component, GitPin, GitSource
from patchkit.model.names import COMMIT_ID, folder_name, readable_url
from patchkit.model.objects import SUBMODULE_MODE, Base, CommitId, TreeEntry, TreeId
from patchkit.model.progress import Progress
from patchkit.model.tree import Tree
from patchkit.upstream.fetching import Fetching, about, upstream_key
from patchkit.upstream.git import (
    LATEST,
    NamedCommit,
    Refs,
    Server,
    fetch_some_blobs,
    find_ref,
    has_come,
    is_short_id,
    list_refs,
)
from patchkit.upstream.store import Store

# Fetching: commits and trees, and single blobs when they are asked for. To say when a patch stopped
# fitting takes every tree and very few files. So the branch comes without blobs where the server
# allows that, and what is then looked at is asked for by id, many at once.


Answer = TypeVar("Answer")

_ALL = ("+refs/heads/*:refs/fetched/heads/*", "+refs/tags/*:refs/fetched/tags/*")


def fetch_history(
    source: GitSource, tip: NamedCommit, pin: CommitId, target: Repository, fetching: Fetching
) -> None:
    """Bring the history of the commits `tip` and `pin` into `target`.

    What `target` has is not asked for again. On disk: packs in `target`, no ref.
    """

    def bring(server: Server) -> None:
        missing = missing_objects(target, (tip.commit, pin))
        lacking = [each for each in (tip.commit, pin) if each in missing]
        if lacking:
            _bring_commits(server, tip, lacking)
            adopt(server.stage, target)

    _from_first(source, target, fetching, bring)


def fetch_file_contents(
    source: GitSource, blobs: Collection[str], target: Repository, fetching: Fetching
) -> frozenset[str]:
    """Bring blobs of commits whose history is here; the ids of those that no server gives.

    On disk: packs in `target`, and a note of what can't be had.
    """

    def bring(server: Server) -> frozenset[str]:
        remote = make_partial(server.stage, server.url)
        absent = fetch_some_blobs(server, remote, blobs)
        adopt(server.stage, target)
        note_absent(target, absent)
        return absent

    return _from_first(source, target, fetching, bring)


def _from_first(
    source: GitSource,
    target: Repository,
    fetching: Fetching,
    bring: Callable[[Server], Answer],
) -> Answer:
    """What `bring` answers for the URL or the first mirror that has it."""
    problems: list[Problem] = []
    for url in (source.url, *source.mirrors):
        with staging(target, fetching.scratch) as stage:
            try:
                return bring(Server(url, stage, fetching.listener, fetching.stop))
            except RemoteError as error:
                problems += error.problems
    raise SurroundingsError(*problems)


def _bring_commits(server: Server, tip: NamedCommit, lacking: Collection[str]) -> None:
    whole = not speaks_v2(server.stage, server.url, stop=server.stop)
    options = [] if whole else ["--filter=blob:none"]
    remote = None if whole else make_partial(server.stage, server.url)
    # a server that gives no commit by its id still gives the branch
    names: dict[str, str] = {tip.commit: tip.ref} if tip.ref else {}
    wanted = [f"+{names.get(each, each)}:refs/fetched/{each}" for each in lacking]
    try:
        server.fetch(wanted, *options, remote=remote)
    except RemoteError as error:
        if error.trouble is not Trouble.REFUSED:
            raise
        server.fetch(_ALL, *options, remote=remote)  # a server that gives out branches only
    stage = server.stage
    absent = [
        each for each in lacking if not has_come(stage, CommitId(each), f"refs/fetched/{each}")
    ]
    if absent:
        raise RemoteError(Trouble.ABSENT, server.url, f"does not have commit {absent[0]}")


_NAMED = "refs/patchkit/named/"
_PINS = "refs/patchkit/pins/"
_OFFLINE = "run it without --offline; or name a commit that was fetched before: --to COMMIT"


class _Known(Struct):
    """What was found out about a history."""

    fork: CommitId | None = None  # see History
    line: Line | None = None
    bases: dict[CommitId, Base] = field(default_factory=dict)  # those that were read


class History(Struct, frozen=True):
    """The line of a tracked branch beyond a pin."""

    repository: Repository
    source: GitSource  # the component's, of the manifest
    ref: str  # what was asked for
    pin: CommitId
    tip: CommitId  # the commit that `ref` is
    pin_where: str = ""  # the manifest's line that names the pin
    _known: _Known = field(default_factory=_Known)

    @property
    def fork(self) -> CommitId:
        """The newest commit that both pin and tip have: the pin, unless it is on another branch.

        BadInputError where there is none.
        """
        if self._known.fork is None:
            self._known.fork = merge_base(self.repository, self.pin, self.tip)
        if self._known.fork is None:
            what = f"{self.ref} has no common ancestor with the pin {self.pin}"
            raise BadInputError(Problem(what, self.pin_where, "correct `track`"))
        return self._known.fork

    def base(self, commit: CommitId, reader: ObjectReader | None = None) -> Base:
        """A commit of the history as a base to build on; git is asked once for each.

        A `reader` of the history is asked before another git.
        """
        bases = self._known.bases
        if commit not in bases:
            bases[commit] = read_base(self.repository, commit, reader)
        return bases[commit]

    def line(self) -> Line:
        """The first-parent commits beyond the fork; git is asked once."""
        if self._known.line is None:
            self.landings(())
        assert self._known.line is not None
        return self._known.line

    def landings(self, paths: Collection[str]) -> tuple[Landing, ...]:
        """The commits of the line that change any of `paths`, oldest first."""
        known = self._known
        line, found = walk_line(self.repository, known.fork or self.pin, self.tip, paths)
        if known.fork is None and line.commits and line.follows and line.start == self.pin:
            known.fork = self.pin  # an ancestor of the tip: git need not look for one
        elif known.fork is None and self.fork != self.pin:
            line, found = walk_line(self.repository, self.fork, self.tip, paths)
        known.line = line
        return found


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
        refs = list_refs(source, store.stop, wanted=name)
    try:
        named = find_ref(refs, name, lambda short: known_commit(store, source, short))
    except UsageError as error:
        if wanted != LATEST:
            raise
        where = str(component.where)
        problems = (Problem(f"track: {p.what}", where, p.hint) for p in error.problems)
        raise BadInputError(*problems) from error
    if _last_meaning(store, source, name) != named:
        remember(_meaning_path(store, source, name), to_builtins(named))
    return ResolvedName(name, named, refs)


def open_history(store: Store, component: Component, wanted: str, progress: Progress) -> History:
    """The history of `wanted` beyond the component's pin, brought up to date: see `find_commit`.

    With the store offline as it was when last asked. BadInputError for a component
    whose source has no history.
    """
    source, pin = component.source, component.pin
    if not isinstance(source, GitSource) or not isinstance(pin, GitPin):
        what = "comes from no git repository: there is no history to look at"
        raise BadInputError(Problem(what, component.name))
    repository = _repository(store, source)
    said = component.track if wanted == LATEST else wanted
    doing = f"fetching the history of {said}"
    meaning = find_commit(store, component, wanted, progress, doing=doing)
    name, tip = meaning.wanted, meaning.named
    if not _is_whole(repository, tip.commit, pin.commit):
        store.require_network(component.name, f"the history of {name} is not in the cache")
        with (
            store.locked(f"history-{repository.git_dir.stem}", component.name, progress),
            about(component.name),
        ):
            progress.step(component.name, doing)
            init_repository(repository.git_dir)
            fetching = store.fetching(component.name, progress)
            fetch_history(source, tip, pin.commit, repository, fetching)
            kept = {_tip_ref(name): tip.commit} if meaning.refs is not None else {}
            _keep_refs(repository, {**kept, _PINS + pin.commit: pin.commit})
    if meaning.refs is not None and repository.ref(_tip_ref(name)) != tip.commit:
        with store.locked(f"history-{repository.git_dir.stem}", component.name, progress):
            _keep_refs(repository, {_tip_ref(name): tip.commit})
    return History(repository, source, name, pin.commit, tip.commit, str(component.pin_where))


def known_commit(store: Store, source: GitSource, short: str) -> CommitId | None:
    """The only commit of the history that is here whose id begins so."""
    repository = _repository(store, source)
    return repository.commit(short) if repository.exists else None


def known_history(store: Store, source: GitSource, commit: CommitId) -> History | None:
    """The history up to a commit, if an earlier command brought it."""
    repository = _repository(store, source)
    if not repository.exists or repository.commit(commit) is None:
        return None
    return History(repository, source, commit, commit, commit)


def bring_blobs(
    store: Store, component: Component, history: History, blobs: Iterable[str], progress: Progress
) -> frozenset[str]:
    """Bring those of `blobs` that are not here, all at once; the ids of those that nobody gives."""
    repository = history.repository
    lacking = missing_objects(repository, blobs)
    absent = lacking & absent_blobs(repository)
    if lacking == absent:
        return absent
    store.require_network(component.name, f"{len(lacking - absent)} files are not in the cache")
    with (
        store.locked(f"history-{repository.git_dir.stem}", component.name, progress),
        about(component.name),
    ):
        lacking = missing_objects(repository, lacking) - absent
        if lacking:
            progress.step(component.name, f"fetching {len(lacking)} versions of files")
            fetching = store.fetching(component.name, progress)
            absent |= fetch_file_contents(history.source, sorted(lacking), repository, fetching)
    return absent


def _repository(store: Store, source: GitSource) -> Repository:
    return Repository(store.cache / "histories" / f"{folder_name(upstream_key(source))}.git")


def _is_whole(repository: Repository, tip: CommitId, pin: CommitId) -> bool:
    """Whether tip and pin are here; what is here is here with all that came before it."""
    kept = repository.ref(_PINS + pin) if repository.exists else None
    try:
        return kept is not None and not missing_objects(repository, (kept, tip))
    except GitFailureError:  # git cannot read it
        return False


def _last_meaning(store: Store, source: GitSource, name: str) -> NamedCommit | None:
    """What a name meant when last asked, else the commit whose short id it is."""
    meant = recall_as(_meaning_path(store, source, name), NamedCommit)
    short = known_commit(store, source, name) if meant is None and is_short_id(name) else None
    return meant if short is None else NamedCommit("", short)


def _meaning_path(store: Store, source: GitSource, name: str) -> Path:
    folder = store.cache / "named" / folder_name(upstream_key(source))
    return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:20]}.json"


def _keep_refs(repository: Repository, refs: Mapping[str, CommitId]) -> None:
    repository.free_refs(refs)
    changes = [RefChange(name, commit) for name, commit in refs.items()]
    repository.update_refs(changes, reason="patchkit: fetched")


def _tip_ref(name: str) -> str:
    """The ref of ours that keeps the history of a branch, tag or pattern as the user writes it."""
    plain = all(char.isalnum() or char in "-_." for char in name) and ".." not in name
    safe = plain and name[:1] not in ("", ".", "-") and not name.endswith((".", ".lock"))
    return _NAMED + (name if safe else hashlib.sha256(name.encode()).hexdigest()[:20])


# A history to walk along: its first-parent line, the trees on it, and how missing blobs are
# brought.


#: Brings the blobs that are about to be read.
Bring = Callable[[Iterable[str]], None]


class HistoryReader(Struct, frozen=True):
    """A history, what reads its objects, and what brings files that are not here."""

    history: History
    reader: ObjectReader  # reads the objects that are here
    bring: Bring

    def entries(self, commit: CommitId, paths: Collection[str]) -> dict[str, TreeEntry | None]:
        """What stands at paths in a commit, None for nothing; read by the git that runs anyway."""
        tree = Tree(self.reader, tree_of(self.reader, commit))
        return {path: tree.entry(path) for path in paths}

    def has(self, commit: CommitId) -> bool:
        """Whether a commit is here."""
        try:
            self.reader.commit(commit)
        except MissingObjectError:
            return False
        return True

    def contents(self, entries: Iterable[TreeEntry | None]) -> Mapping[str, bytes]:
        """The contents of files by id, brought if need be; without those that nobody gives."""
        wanted = blobs_of(entries)
        found = self.reader.read_present(wanted)
        lacking = wanted.keys() - found.keys()
        if lacking:
            self.bring(lacking)
            self.reader.close()  # the running git need not see new packs
            found |= self.reader.read_present(lacking)
        return found

    def in_batches(
        self, entries: Iterable[TreeEntry | None], size: int
    ) -> Iterator[Mapping[str, bytes]]:
        """The same, so many files at a time; what is not here is brought all at once."""
        wanted, brought = list(blobs_of(entries)), False
        for at in range(0, len(wanted), size):
            batch = wanted[at : at + size]
            found = self.reader.read_present(batch)
            if len(found) < len(batch) and not brought:
                self.bring(wanted[at:])
                self.reader.close()  # the running git need not see new packs
                found, brought = self.reader.read_present(batch), True
            yield found


def blobs_of(entries: Iterable[TreeEntry | None]) -> dict[str, None]:
    """The ids of files, in order, each once; of submodules none."""
    return dict.fromkeys(e.oid for e in entries if e is not None and e.mode != SUBMODULE_MODE)


def tree_of(reader: ObjectReader, commit: CommitId) -> TreeId:
    """The id of a commit's tree."""
    return TreeId(reader.commit(commit)[5:45].decode("ascii"))
