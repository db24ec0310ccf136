"""What recipes come to in files that no patch touches, commit by commit.

A recipe looks at many files; of most commits it need not look at any, as none that it covers
changes. What it makes of a file follows from the file's name and contents.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct, field

from patchkit.gitcmd.first_parent import Landing, landings
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.gitcmd.trees import TreeView
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE, TreeEntry
from patchkit.model.outcome import Status
from patchkit.recipes.rule import Recipe
from patchkit.recipes.run import run_recipe
from patchkit.upstream.history import HistoryReader, tree_of

_REGULAR = (FILE_MODE, EXECUTABLE_MODE)


class ScopeWatch(Struct):
    """The files in the scopes of `recipes` (by their patch's name) outside of `paths`.

    It looks at nothing before it is asked; asked about commits in the order of the line it looks
    at a whole tree only once.
    """

    along: HistoryReader
    recipes: Mapping[str, Recipe]
    paths: Collection[str]
    _files: dict[str, TreeEntry] = field(default_factory=dict)
    _ahead: list[Landing] = field(default_factory=list)
    _order: Mapping[str, int] = field(default_factory=dict)
    _at: str = ""
    _known: dict[tuple[str, str, str], Status] = field(default_factory=dict)

    def outside(self, name: str, commit: str) -> Status:
        """REGENERATED where the recipe changes a file, CONFLICTED where it may not, or EMPTY."""
        self._move_to(commit)
        recipe = self.recipes[name]
        covered = [(path, e.oid) for path, e in self._files.items() if recipe.covers(path)]
        try:
            found = {self._file(name, path, oid) for path, oid in covered}
        except MissingObjectError:  # a file that no server gives
            return Status.CONFLICTED
        order = (Status.CONFLICTED, Status.REGENERATED)
        return next((status for status in order if status in found), Status.EMPTY)

    def _file(self, name: str, path: str, oid: str) -> Status:
        key = (name, path, oid)
        if key not in self._known:
            run = run_recipe(self.recipes[name], {path: self.along.reader.blob(oid)})
            made = Status.REGENERATED if run.changed else Status.EMPTY
            self._known[key] = Status.CONFLICTED if run.fatal else made
        return self._known[key]

    def _move_to(self, commit: str) -> None:
        if self._at not in self._order or self._order.get(commit, -1) < self._order[self._at]:
            self._begin(commit)
        while self._ahead and self._order[self._ahead[0].commit.id] <= self._order.get(commit, -1):
            self._take(self._ahead.pop(0))
        self._at = commit

    def _begin(self, commit: str) -> None:
        """Look at a whole commit, and at how the scopes change from there to the tip."""
        history = self.along.history
        line = history.line()
        self._order = {each: place for place, each in enumerate((line.start, *line.commits))}
        tree = tree_of(self.along.reader, commit)
        self._files = self._covered(TreeView(self.along.reader, tree).files())
        self._ahead = []
        if commit in self._order:
            folders = _folders(self.recipes.values())
            found = landings(history.repository, commit, history.tip, folders)
            self._ahead = [each for each in found if any(map(self._is_watched, each.touches))]
        versions = [e for each in self._ahead for e in self._covered(each.touches).values()]
        self.along.bring(entry.oid for entry in (*self._files.values(), *versions))
        self.along.reader.close()  # a git that runs need not see new packs

    def _covered(self, entries: Mapping[str, TreeEntry | None]) -> dict[str, TreeEntry]:
        return {
            path: entry
            for path, entry in entries.items()
            if entry is not None and entry.mode in _REGULAR and self._is_watched(path)
        }

    def _is_watched(self, path: str) -> bool:
        return path not in self.paths and any(r.covers(path) for r in self.recipes.values())

    def _take(self, landing: Landing) -> None:
        for path in landing.touches:
            self._files.pop(path, None)
        self._files |= self._covered(landing.touches)


def _folders(recipes: Collection[Recipe]) -> Sequence[str]:
    """Folders below which all files are that recipes look at; "." for the whole tree."""
    globs = {g for recipe in recipes for rule in recipe.all_rules for g in rule.scope.files}
    heads = {_fixed(glob) for glob in globs}
    return ["."] if "" in heads else sorted(heads)


def _fixed(glob: str) -> str:
    """What a glob begins with, up to its first folder that is not fixed."""
    kept: list[str] = []
    for part in glob.split("/"):
        if any(char in part for char in "*?[{"):
            break
        kept.append(part)
    return "/".join(kept)
