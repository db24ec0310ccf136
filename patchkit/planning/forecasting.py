"""What the carry engine makes of a series on one state of its files; asked once for each state.

What becomes of a file depends on what stands at its path there, and on what the earlier patches of
the series have left: so a verdict is remembered by their ids, and a branch of thousands of commits
costs as many merges as its files have versions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from patchkit.carry.engine import is_contained, names_a_path_twice
from patchkit.carry.files import carry_file
from patchkit.carry.ground import Ground
from patchkit.drift.supplied import SuppliedSource
from patchkit.errors import BadInputError
from patchkit.gitcmd.objects import MissingObjectError
from patchkit.model.apply import Blobs, apply_changes
from patchkit.model.merging.conflicts import Labels
from patchkit.model.objects import (
    EMPTY_TREE,
    EXECUTABLE_MODE,
    FILE_MODE,
    GitObject,
    TreeEntry,
    make_object,
)
from patchkit.model.outcome import FileOutcome, Reason, Status
from patchkit.model.overlay import Overlay
from patchkit.model.patch import FileChange
from patchkit.model.resolution import Resolution
from patchkit.model.tree import ObjectSource, ObstructedError, Tree
from patchkit.planning.following import RoutePast
from patchkit.planning.values import FileVerdict, PatchForecast
from patchkit.recipes.engine import run_recipe
from patchkit.recipes.values import Recipe
from patchkit.stack import Base, SeriesPatch, build_stack, patch_changes

_REGULAR = (FILE_MODE, EXECUTABLE_MODE)
_State = Mapping[str, TreeEntry | None]
_WEIGHT = (Status.CONFLICTED, Status.MERGED, Status.SHIFTED, Status.UNCHANGED, Status.ABSORBED)


class _Layer(Struct):
    """A patch: its changes, and the old stack before and after it (None: not applying there)."""

    name: str
    changes: tuple[FileChange, ...]
    before: Tree
    after: Tree | None
    strict: bool
    recipe: Recipe | None
    left: _State = field(default_factory=dict)


class Forecaster(SuppliedSource):
    """A series on a state that moves on; `judge` says what would become of it there."""

    def __init__(
        self,
        source: ObjectSource,
        old_base: Base,
        patches: Sequence[SeriesPatch],
        *,
        recipes: Mapping[str, Recipe] | None = None,
        known: Mapping[str, FileVerdict] | None = None,
        remembered: Mapping[str, Resolution] | None = None,
    ) -> None:
        super().__init__(source)
        self._memory: dict[str, FileVerdict] = dict(known or {})
        self._runs: dict[tuple[int, str, str], str | None] = {}
        self._remembered = remembered or {}
        stack = build_stack(source, old_base, patches, stop_at_conflict=False)
        old = Overlay(source, stack.objects)
        self._old_blobs = Blobs(old)
        self._layers = []
        tree = Tree(old, old_base.tree)
        for patch, outcome in zip(patches, stack.outcomes, strict=True):
            changes = patch_changes(patch)
            after = Tree(old, outcome.tree) if outcome.tree is not None else None
            strict = after is None or names_a_path_twice(changes)
            recipe = (recipes or {}).get(patch.name)
            self._layers.append(_Layer(patch.name, changes, tree, after, strict, recipe))
            tree = after or tree
        users = Counter(path for layer in self._layers for path in _paths(layer.changes))
        self._paths = frozenset(users)
        self._shared = {path for path, count in users.items() if count > 1}
        self._state: dict[str, TreeEntry | None] = {}

    @property
    def state(self) -> Mapping[str, TreeEntry | None]:
        """What stands at each path now; it moves on with `update`."""
        return self._state

    @property
    def verdicts(self) -> Mapping[str, FileVerdict]:
        """What may be given as `known` to the next forecaster of this series.

        Not that of files from whose contents a later patch starts: these are made again.
        """
        return {
            key: verdict
            for key, verdict in self._memory.items()
            if all(path in self._paths and path not in self._shared for path in verdict.after)
        }

    def update(self, touches: _State) -> None:
        """The state moves on; paths never named hold nothing."""
        self._state.update(touches)

    def judge(self, past: RoutePast) -> tuple[PatchForecast, ...]:
        """What would become of each patch in the present state."""
        return tuple(
            self._layer(number, layer, past)
            if layer.recipe is None
            else self._made_anew(number, layer, layer.recipe)
            for number, layer in enumerate(self._layers)
        )

    def _made_anew(self, number: int, layer: _Layer, recipe: Recipe) -> PatchForecast:
        """What its recipe makes of the files of the state, as `recipes.generating` puts it there.

        It may look at more files than these: see `trying`.
        """
        layer.left = {}
        try:
            runs = {path: self._run(number, recipe, path) for path in self._covered(number, recipe)}
            exact = self._exactly(number, layer)
        except MissingObjectError:  # a file that no server gives: nobody knows
            return PatchForecast(layer.name, Status.CONFLICTED, (_first_path(layer),))
        if fatal := tuple(path for path, entry in runs.items() if entry is None):
            return PatchForecast(layer.name, Status.CONFLICTED, fatal)
        made = {p: e for p, e in runs.items() if e != self._met(p, number)}
        layer.left = made
        if exact is not None and dict(exact.after) == made:
            return PatchForecast(layer.name, exact.status)
        return PatchForecast(layer.name, Status.REGENERATED)

    def _covered(self, number: int, recipe: Recipe) -> Iterator[str]:
        paths = self._state.keys() | {p for each in self._layers[:number] for p in each.left}
        for path in sorted(paths):
            entry = self._met(path, number)
            if entry is not None and entry.mode in _REGULAR and recipe.covers(path):
                yield path

    def _run(self, number: int, recipe: Recipe, path: str) -> TreeEntry | None:
        """What a recipe makes of a file; None if that must not be used."""
        entry = self._met(path, number)
        assert entry is not None
        key = number, path, entry.oid
        if key not in self._runs:
            run = run_recipe(recipe, {path: self.read(entry.oid, "blob")})
            blob = entry.oid
            if path in run.changed:
                made = make_object("blob", run.changed[path], entry.oid)
                self._made[made.oid] = made.payload
                blob = made.oid
            self._runs[key] = None if run.fatal else blob
        oid = self._runs[key]
        return TreeEntry(entry.mode, oid) if oid is not None else None

    def _exactly(self, number: int, layer: _Layer) -> FileVerdict | None:
        """What the patch as it is comes to, and only what changes then; None if it does not fit."""
        if not layer.changes:
            return None
        (verdict, *_) = self._strictly(number, layer)
        if verdict.status not in (Status.UNCHANGED, Status.SHIFTED):
            return None
        after = {p: e for p, e in verdict.after.items() if e != self._met(p, number)}
        return FileVerdict(verdict.path, verdict.status, False, after)

    def _layer(self, number: int, layer: _Layer, past: RoutePast) -> PatchForecast:
        layer.left = {}
        if not layer.changes:
            return PatchForecast(layer.name, Status.EMPTY)
        try:
            files = self._strictly(number, layer) if layer.strict else self._files(number, past)
        except MissingObjectError:  # a file that no server gives: nobody knows
            return PatchForecast(layer.name, Status.CONFLICTED, (layer.changes[0].path,))
        status = min((each.status for each in files), key=_WEIGHT.index)
        conflicts = tuple(each.path for each in files if each.status is Status.CONFLICTED)
        review = tuple(each.path for each in files if each.review)
        if status is Status.CONFLICTED:
            return PatchForecast(layer.name, status, conflicts, review)
        layer.left = {path: entry for each in files for path, entry in each.after.items()}
        if all(self._met(path, number) == entry for path, entry in layer.left.items()):
            return PatchForecast(layer.name, Status.ABSORBED, (), review)
        if any(each.status is Status.ABSORBED for each in files):
            status = Status.MERGED
        return PatchForecast(layer.name, status, (), review)

    def _files(self, number: int, past: RoutePast) -> list[FileVerdict]:
        layer = self._layers[number]
        return [self._file(number, index, past) for index in range(len(layer.changes))]

    def _file(self, number: int, index: int, past: RoutePast) -> FileVerdict:
        change = self._layers[number].changes[index]
        paths = {path for path in (change.old_path, change.new_path) if path is not None}
        renamed = folder = None
        if change.old_path is None:
            folder = past.folder_renamed(str(change.new_path).rpartition("/")[0])
            if folder is not None:
                paths.add(f"{folder}/{str(change.new_path).rpartition('/')[2]}")
        elif self._met(change.old_path, number) is None:
            renamed = past.renamed(change.old_path)
            if renamed is not None:
                paths.add(renamed)
        met = {path: self._met(path, number) for path in sorted(paths)}
        key = _key(number, index, (renamed, folder), met)
        if key not in self._memory:
            self._memory[key] = self._carried(number, change, met, past)
        return self._memory[key]

    def _carried(
        self, number: int, change: FileChange, met: _State, past: RoutePast
    ) -> FileVerdict:
        layer = self._layers[number]
        here = self._tree(met)
        if here is None or layer.after is None:
            return _conflict(change)
        blobs = Blobs(self)
        exact = apply_changes(here, blobs, (change,))
        if _is_unsafe(exact.files):
            return _conflict(change)
        trees = layer.before, layer.after, here
        ground = Ground(
            *trees, self._old_blobs, blobs, past, False, Labels(), remembered=self._remembered
        )
        try:
            file = carry_file(ground, change, exact.files[0])
        except BadInputError:  # what is remembered comes to something else: for a person
            return _conflict(change)
        if not file.carried:
            return _conflict(change)
        after: dict[str, TreeEntry | None] = {}
        if file.leaves is not None:
            after[file.leaves] = None
        after[file.path] = file.entry
        if file.blob is not None:
            self._keep([file.blob], after)
        return FileVerdict(change.path, file.outcome.status, file.outcome.review, after)

    def _strictly(self, number: int, layer: _Layer) -> list[FileVerdict]:
        """A patch that says nothing about the old base: it applies exactly, or not at all."""
        met = {path: self._met(path, number) for path in _paths(layer.changes)}
        here = self._tree(met)
        if here is None:
            return [_conflict(layer.changes[0])]
        blobs = Blobs(self)
        exact = apply_changes(here, blobs, layer.changes)
        elsewhere = exact.tree is None or any(f.status is Status.SHIFTED for f in exact.files)
        if elsewhere and is_contained(here, blobs, layer.changes):
            return [FileVerdict(layer.changes[0].path, Status.ABSORBED, False, {})]
        if exact.tree is None:
            return [
                _conflict(change)
                for change, file in zip(layer.changes, exact.files, strict=True)
                if file.clashes
            ] or [_conflict(layer.changes[0])]
        after = {path: exact.tree.entry(path) for path in met}
        self._keep(exact.blobs, after)
        status = Status.SHIFTED if elsewhere else Status.UNCHANGED
        return [FileVerdict(layer.changes[0].path, status, False, after)]

    def _met(self, path: str, number: int) -> TreeEntry | None:
        """What patch `number` meets at a path."""
        for layer in reversed(self._layers[:number]):
            if path in layer.left:
                return layer.left[path]
        return self._state.get(path)

    def _keep(self, blobs: Sequence[GitObject], after: _State) -> None:
        """Keep what another patch may start from."""
        shared = {e.oid for path, e in after.items() if e is not None and path in self._shared}
        moved = {e.oid for path, e in after.items() if e is not None and path not in self._paths}
        self._made.update((b.oid, b.payload) for b in blobs if b.oid in shared | moved)

    def _tree(self, state: _State) -> Tree | None:
        tree = Tree(self, EMPTY_TREE)
        try:
            for path, entry in state.items():
                tree = tree if entry is None else tree.put(path, entry)
        except ObstructedError:
            return None
        return tree


def _first_path(layer: _Layer) -> str:
    return layer.changes[0].path if layer.changes else layer.name


def _paths(changes: Sequence[FileChange]) -> set[str]:
    return {p for change in changes for p in (change.old_path, change.new_path) if p is not None}


def _is_unsafe(files: Sequence[FileOutcome]) -> bool:
    return any(clash.reason is Reason.UNSAFE for file in files for clash in file.clashes)


def _key(number: int, index: int, places: tuple[str | None, ...], met: _State) -> str:
    """A change and all that its verdict depends on, as text that a file can hold."""
    state = ((path, f"{e.mode:o} {e.oid}" if e else "") for path, e in met.items())
    return repr((number, index, *places, *state))


def _conflict(change: FileChange) -> FileVerdict:
    return FileVerdict(change.path, Status.CONFLICTED, False, {})
