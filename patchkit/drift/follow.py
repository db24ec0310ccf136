"""The files that matter along a branch: those that patches touch, followed to where upstream moves
them, and those that recipes look at.

Between two commits that touch none of them nothing can change for the patches. A file that goes is
looked for among those that the same commit adds; where it went is watched from then on, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from stat import S_ISREG

from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry.carried import Past
from patchkit.gitcmd.commit_history import common_home, moved_blobs, renames_in
from patchkit.gitcmd.first_parent import (
    Entries,
    Files,
    Landing,
    Line,
    entries_at,
    first_parents,
    landings,
)
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import TreeView
from patchkit.model.objects import CommitId, TreeEntry
from patchkit.model.outcome import Status
from patchkit.stack.generated import PatchRecipe
from patchkit.upstream.history import History, HistoryReader, tree_of

# So many renames of one file are followed.
_ROUNDS = 6
# Files that stand for the folder that they are in.
_NEIGHBOURS = 20


class Step(Struct, frozen=True):
    """A commit of the line that changes watched files; positions count from 1."""

    position: int
    landing: Landing  # the commit, with what it changed


class Route(Struct, frozen=True):
    """What a branch does to some paths; `start` is their state before its first commit.

    `homes` says for a path where its file went, with the position of the commit that moved it.
    `folders` maps folders into which patches add files to a few files that are in there.
    """

    repository: Repository
    line: Line
    start: Entries
    steps: tuple[Step, ...]
    homes: Mapping[str, tuple[tuple[int, str], ...]]
    folders: Mapping[str, tuple[str, ...]]

    def commit(self, position: int) -> CommitId:
        """The commit at a position: 0 is where the line starts."""
        return self.line.commits[position - 1] if position else self.line.start

    def reached_from(self, paths: Iterable[str]) -> frozenset[str]:
        """Paths, and all to which upstream takes their files."""
        todo = list(paths)
        seen = set(todo)
        while todo:
            homes = {home for _, home in self.homes.get(todo.pop(), ())} - seen
            seen |= homes
            todo += homes
        return frozenset(seen)


def follow(history: History, paths: Collection[str], *, added: Iterable[str]) -> Route:
    """Follow `paths` from the fork to the tip; `added` are paths that patches add."""
    folders = _folders(history, added)
    neighbours = {path for files in folders.values() for path in files}
    watched = {*paths, *neighbours}
    found = history.landings(sorted(watched))
    line = history.line
    start = dict(entries_at(history.repository, line.start, sorted(watched)))
    places = {commit: number for number, commit in enumerate(line.commits, 1)}
    follower = _Follower(history, line, places)
    fresh = follower.gone_before(watched, start) | follower.take(found)
    for _ in range(_ROUNDS):
        fresh -= watched
        if not fresh:
            break
        start.update(entries_at(history.repository, line.start, sorted(fresh)))
        watched |= fresh
        fresh = follower.take(history.landings(sorted(fresh)))
    return Route(history.repository, line, start, follower.steps(), follower.homes(), folders)


class RoutePast(Past):
    """What a route knows of upstream's past, as the carry engine asks for it, for one state.

    It knows renames; the rest is for reasons, which a forecast does not show, for files that are
    not followed (what was split counts as gone), and for changes that upstream had once and went on
    from (they count as conflicts). Trials of whole patches ask all of it.
    """

    def __init__(self, route: Route, state: Files) -> None:
        self.route, self.state = route, state
        self.position = 0  # on the line: 0 is its start

    @property
    def commit(self) -> CommitId:
        """The commit of this state."""
        return self.route.commit(self.position)

    def renamed(self, path: str) -> str | None:
        """See `carry.Past`: where the file is in this state, None if it was not renamed."""
        found = self.renamed_by(path)
        return found[1] if found is not None else None

    def renamed_by(self, path: str) -> tuple[CommitId, str] | None:
        """The commit that last renamed a file that is gone, and where the file is."""
        at = path
        for _ in range(_ROUNDS):
            homes = [home for home in self.route.homes.get(at, ()) if home[0] <= self.position]
            if not homes:
                return None
            since, at = homes[-1]
            if self.state.get(at) is not None:
                return self.route.commit(since), at
        return None

    def folder_renamed(self, folder: str) -> str | None:
        """See `carry.Past`: where most of the folder's files went, if nothing is left there."""
        files = self.route.folders.get(folder, ())
        if not files or any(self.state.get(path) is not None for path in files):
            return None
        if self.route.repository.resolve(f"{self.commit}:{folder}") is not None:
            return None  # other files are in there
        return common_home(filter(None, map(self.renamed, files)))


class _Follower(Struct):
    history: History
    line: Line
    places: Mapping[CommitId, int]  # where each commit is on the line, from 1
    _landings: dict[int, Landing] = {}
    _homes: dict[str, list[tuple[int, str]]] = {}

    def gone_before(self, paths: Collection[str], start: Entries) -> set[str]:
        """Where files of the pin are that the start of the line does not have; it may be another
        commit.
        """
        history = self.history
        if history.pin == self.line.start:
            return set()
        at_pin = entries_at(history.repository, history.pin, sorted(paths))
        gone = [path for path in at_pin if path not in start]
        return self._moved([_Gone(0, history.pin, self.line.start, gone)])

    def take(self, found: Iterable[Landing]) -> set[str]:
        """Note commits with what they change; the paths to which files of them went."""
        taken: list[_Gone] = []
        for landing in found:
            position = self.places.get(landing.id)
            if position is None:
                continue
            self._note(position, landing)
            gone = [p for p, entry in landing.touches.items() if entry is None]
            taken.append(_Gone(position, landing.parent, landing.id, gone))
        return self._moved(taken)

    def steps(self) -> tuple[Step, ...]:
        """Every commit that changes a watched file, in order."""
        return tuple(
            Step(position, self._landings[position]) for position in sorted(self._landings)
        )

    def homes(self) -> dict[str, tuple[tuple[int, str], ...]]:
        """See Route."""
        return {path: tuple(sorted(found)) for path, found in self._homes.items()}

    def _note(self, position: int, landing: Landing) -> None:
        known = self._landings.get(position)
        touches = {**known.touches, **landing.touches} if known is not None else landing.touches
        self._landings[position] = replace(landing, touches=touches)

    def _moved(self, taken: Iterable[_Gone]) -> set[str]:
        """Note where files went that are gone; these places."""
        repository = self.history.repository
        some = [each for each in taken if each.paths]
        repository.bring(
            blob for each in some for blob in moved_blobs(repository, each.before, each.commit)
        )
        fresh = set[str]()
        for each in some:
            renames = renames_in(repository, each.before, each.commit)
            for path in renames.keys() & each.paths:
                self._homes.setdefault(path, []).append((each.position, renames[path]))
                fresh.add(renames[path])
        return fresh


class _Gone(Struct, frozen=True):
    """The files that a commit takes away."""

    position: int  # of the commit on the line
    before: CommitId  # the one before it, or the pin
    commit: CommitId
    paths: Sequence[str]


def _folders(history: History, added: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Folders of the pin into which files are added, each with some files in it."""
    found: dict[str, tuple[str, ...]] = {}
    for folder in sorted({path.rpartition("/")[0] for path in added} - {""}):
        files = entries_at(history.repository, history.pin, [f"{folder}/"])
        found[folder] = tuple(sorted(files)[:_NEIGHBOURS])
    return found


# What recipes come to in files that no patch touches, commit by commit.
#
# A recipe looks at many files; of most commits it need not look at any, as none that it covers
# changes. What it makes of a file follows from the file's name and contents.


class ScopeWatch(Struct):
    """The files in the scopes of `recipes` (by their patch's name) outside of `paths`.

    It looks at nothing before it is asked; asked about commits in the order of the line it looks
    at a whole tree only once, and at each file when it changes.
    """

    along: HistoryReader  # reads the commits of the line
    recipes: Mapping[str, PatchRecipe]
    paths: Collection[str]
    _files: dict[str, TreeEntry] = {}
    _ahead: list[Landing] = []
    _order: Mapping[str, int] = {}
    _at: CommitId = CommitId("")
    _known: dict[tuple[str, str, str], Status] = {}
    #: Recipe -> path -> what it makes of the file; the files that changed since are not in it.
    _told: dict[str, dict[str, Status]] = {}

    def outside(self, name: str, commit: CommitId) -> Status:
        """REGENERATED where the recipe changes a file, CONFLICTED where it may not, or EMPTY."""
        self._move_to(commit)
        told, recipe = self._told.setdefault(name, {}), self.recipes[name]
        fresh = self._files.keys() - told.keys()
        told.update(dict.fromkeys(fresh, Status.EMPTY))
        self._look_at(name, {path: self._files[path] for path in fresh if recipe.covers(path)})
        found = set(told.values())
        order = (Status.CONFLICTED, Status.REGENERATED)
        return next((status for status in order if status in found), Status.EMPTY)

    def _look_at(self, name: str, files: Mapping[str, TreeEntry]) -> None:
        """Note what a recipe makes of files; of one that no server gives that it may not."""
        keys = {path: (name, path, entry.oid) for path, entry in files.items()}
        lacking: dict[str, list[str]] = {}
        for path, key in keys.items():
            if key not in self._known:
                lacking.setdefault(files[path].oid, []).append(path)
        entries = [files[paths[0]] for paths in lacking.values()]
        for contents in self.along.in_batches(entries):
            for oid, data in contents.items():
                for path in lacking[oid]:
                    self._known[keys[path]] = self._made_of(name, path, data)
        rows = {path: self._known.get(key, Status.CONFLICTED) for path, key in keys.items()}
        self._told[name].update(rows)

    def _made_of(self, name: str, path: str, data: bytes) -> Status:
        run = self.recipes[name].run({path: data})
        if run.fatal:
            return Status.CONFLICTED
        return Status.REGENERATED if run.changed else Status.EMPTY

    def _move_to(self, commit: CommitId) -> None:
        if self._at not in self._order or self._order.get(commit, -1) < self._order[self._at]:
            self._begin(commit)
        while self._ahead and self._order[self._ahead[0].commit.id] <= self._order.get(commit, -1):
            self._take(self._ahead.pop(0))
        self._at = commit

    def _begin(self, commit: CommitId) -> None:
        """Look at a whole commit, and at how the scopes change from there to the tip."""
        history = self.along.history
        line = history.line
        self._order = {each: place for place, each in enumerate((line.start, *line.commits))}
        tree = tree_of(self.along.reader, commit)
        self._files = self._covered(TreeView(self.along.reader, tree).files())
        self._told = {}
        self._ahead = []
        if commit in self._order:
            folders = _folders_named_by(self.recipes.values())
            ahead = first_parents(history.repository, commit, history.tip)
            found = landings(history.repository, ahead, folders)
            self._ahead = [each for each in found if any(map(self._is_watched, each.touches))]
        versions = [e for each in self._ahead for e in self._covered(each.touches).values()]
        self.along.bring(entry.oid for entry in (*self._files.values(), *versions))

    def _covered(self, entries: Files) -> dict[str, TreeEntry]:
        return {
            path: entry
            for path, entry in entries.items()
            if entry is not None and S_ISREG(entry.mode) and self._is_watched(path)
        }

    def _is_watched(self, path: str) -> bool:
        return path not in self.paths and any(r.covers(path) for r in self.recipes.values())

    def _take(self, landing: Landing) -> None:
        for path in landing.touches:
            self._files.pop(path, None)
            for told in self._told.values():
                told.pop(path, None)
        self._files |= self._covered(landing.touches)


def _folders_named_by(recipes: Collection[PatchRecipe]) -> Sequence[str]:
    """Folders below which all files are that recipes look at; "." for the whole tree."""
    heads = {_fixed(glob) for recipe in recipes for glob in recipe.globs}
    return ["."] if "" in heads else sorted(heads)


def _fixed(glob: str) -> str:
    """What a glob begins with, up to its first folder that is not fixed."""
    kept: list[str] = []
    for part in glob.split("/"):
        if any(char in part for char in "*?[{"):
            break
        kept.append(part)
    return "/".join(kept)
