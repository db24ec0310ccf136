"""A series as layers on the old base, and which of its changes apply to a state as they are.

The first question of a forecast, and a cheap one: each change is tried once on each version of its
file. What becomes of those that do not apply is `forecast`'s to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

from patchkit.carry.cascade import paths_of
from patchkit.carry.engine import names_a_path_twice
from patchkit.drift.drift_report import ExactVerdict
from patchkit.drift.follow import Route
from patchkit.drift.forecast_cache import Verdicts
from patchkit.drift.judge import ChangeResult, State, few_tree, judge
from patchkit.drift.sample import ChangeNumber
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.model.objects import GitObject, TreeEntry
from patchkit.model.outcome import FileResult, Status
from patchkit.model.patch import FileChange
from patchkit.model.tree import ObjectSource, Tree
from patchkit.recipes.rule import Recipe
from patchkit.stack.build import SeriesPatch, Stack, patch_changes

#: A patch that applies as it is.
FITS = (Status.UNCHANGED, Status.SHIFTED)

#: Whether changes apply as they are, and what they leave: None if they do not.
Applied: TypeAlias = tuple[ExactVerdict, State | None]


class PatchLayer(Struct):
    """A patch: its changes, and the old stack before and after it (None: not applying there).

    `old` has what each change comes to on the old base; `places` the paths at which each
    change may come to stand, `related` those and the ones of earlier patches that share some, and
    so on, `looks_at` the files that its recipe reads and some patch touches;
    `left` is what the patch leaves on the state of the moment.
    """

    name: str  # of the patch file
    changes: tuple[FileChange, ...]
    before: Tree
    after: Tree | None
    old: tuple[FileResult, ...]
    recipe: Recipe | None
    places: tuple[frozenset[str], ...] = ()
    paths: frozenset[str] = frozenset()
    related: frozenset[str] = frozenset()
    looks_at: tuple[str, ...] = ()
    left: State = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether it is taken as a whole: it applies exactly, or not at all."""
        return self.after is None or names_a_path_twice(self.changes)

    @property
    def is_steady(self) -> bool:
        """Whether no more than its related paths and earlier patches decides of it."""
        # a recipe looks at more files, and a file that is added follows its folder
        return self.recipe is None and all(each.old_path is not None for each in self.changes)


def layers_of(
    patches: Sequence[SeriesPatch],
    stack: Stack,
    source: ObjectSource,
    route: Route,
    recipes: Mapping[str, Recipe],
) -> list[PatchLayer]:
    """Each patch between the trees of the stack on the old base, which `source` has."""
    layers: list[PatchLayer] = []
    tree = Tree(source, stack.base.tree)
    for patch, outcome in zip(patches, stack.outcomes, strict=True):
        after = Tree(source, outcome.tree) if outcome.tree is not None else None
        recipe = recipes.get(patch.name)
        layer = PatchLayer(patch.name, patch_changes(patch), tree, after, outcome.files, recipe)
        layer.places = tuple(route.reached_from(paths_of(c)) for c in layer.changes)
        layer.paths = layer.related = frozenset[str]().union(*layer.places)
        for earlier in reversed(layers):
            if not layer.related.isdisjoint(earlier.paths):
                layer.related |= earlier.paths
        layers.append(layer)
        tree = after or tree
    touched = sorted(frozenset[str]().union(*(each.paths for each in layers)))
    for layer in layers:
        if layer.recipe is not None:
            layer.looks_at = tuple(filter(layer.recipe.covers, touched))
    return layers


class Fits:
    """Which changes of `layers` apply as they are to what they meet, as far as `source` has that.

    `kept` are paths of which the caller wants what patches make of them.
    """

    def __init__(
        self,
        source: ObjectSource,
        layers: Sequence[PatchLayer],
        verdicts: Verdicts,
        kept: Collection[str],
    ) -> None:
        self._source = source
        self._layers = layers
        self._verdicts = verdicts
        self._whole: dict[tuple[int, int, TreeEntry | None], Applied] = {}
        users = Counter(path for each in layers for path in each.paths)
        read = (path for each in layers for path in each.looks_at)
        #: Where some patch may come to change a file.
        self.paths = frozenset(users)
        #: Paths from which another patch, or the caller, may start.
        self.shared = frozenset(p for p, count in users.items() if count > 1).union(kept, read)

    def exact(self, number: int, index: int, met: State) -> tuple[ExactVerdict, State]:
        """Whether a change applies as it is, and what it leaves: nothing where nobody needs it."""
        key = question(number, index, ("exact", None), met)
        known = self._verdicts.exact(key)
        if known is None:
            trial = self.shared.isdisjoint(met)
            change = self._layers[number].changes[index]
            verdict, made = judge(self._source, met, (change,), trial=trial)
            known = verdict, self.kept(made)
            self._verdicts.note_exact(key, known, keep=trial)
        return known

    def as_old(self, number: int, index: int, told: FileResult | ExactVerdict) -> Status:
        """The status: offsets that the change has on the old base, too, are no news."""
        layer = self._layers[number]
        old = layer.old[index].offsets if index < len(layer.old) else ()
        same = told.status is Status.SHIFTED and told.offsets == old
        return Status.UNCHANGED if same else told.status

    def standing(
        self, numbers: Sequence[ChangeNumber], path: str, entry: TreeEntry | None
    ) -> tuple[Status, ...] | None:
        """How each of these changes applies to a file as it is, on what those before it leave.

        None where one does not, or does nothing.
        """
        told: list[Status] = []
        for number, index in numbers:
            try:
                verdict, after = self.exact(number, index, {path: entry})
            except MissingObjectError:  # a file that no server gives
                return None
            if verdict.status not in FITS or verdict.contained or after.get(path, ...) == entry:
                return None
            told.append(self.as_old(number, index, verdict))
            entry = after.get(path, entry)
        return tuple(told)

    def whole(self, number: int, met: State) -> Applied:
        """Whether all changes of a patch apply as they are, and what they leave.

        Where its files stay, each change is applied once to each version of its file.
        """
        changes = self._layers[number].changes
        paths = [change.new_path for change in changes if change.new_path is not None]
        stay = all(change.old_path == change.new_path for change in changes)
        if not stay or len(set(paths)) < len(paths) or few_tree(self._source, met) is None:
            verdict, made = judge(self._source, met, changes, trial=False)
            return verdict, self.kept(made) if made is not None else None
        rows = [self._alone(number, n, path, met[path]) for n, path in enumerate(paths)]
        if any(after is None for _, after in rows):
            faults = tuple(fault for verdict, _ in rows for fault in verdict.faults)
            return ExactVerdict(Status.CONFLICTED, faults=faults), None
        left = {path: entry for _, after in rows for path, entry in (after or {}).items()}
        shifted = any(verdict.status is not Status.UNCHANGED for verdict, _ in rows)
        offsets = tuple(offset for verdict, _ in rows for offset in verdict.offsets)
        return ExactVerdict(Status.SHIFTED if shifted else Status.UNCHANGED, offsets), left

    def _alone(self, number: int, index: int, path: str, entry: TreeEntry | None) -> Applied:
        key = number, index, entry
        if key not in self._whole:
            change = self._layers[number].changes[index]
            verdict, made = judge(self._source, {path: entry}, (change,), trial=False)
            self._whole[key] = verdict, self.kept(made) if made is not None else None
        return self._whole[key]

    # What is kept

    def kept(self, made: ChangeResult | None) -> State:
        """What changes leave, with the blobs that another patch may start from kept."""
        if made is None:
            return {}
        self.keep(made.blobs, made.after)
        return made.after

    def keep(self, blobs: Sequence[GitObject], after: State) -> None:
        """Keep what another patch may start from."""
        left = {e.oid for p, e in after.items() if e and (p in self.shared or p not in self.paths)}
        for blob in (each for each in blobs if each.oid in left):
            self._verdicts.made.note(blob.oid, blob.payload)

    def may_keep(self, after: State) -> bool:
        """Whether a verdict is good for another run, which has not the blobs that this one made."""
        return all(path in self.paths and path not in self.shared for path in after)


def question(number: int, index: int, places: tuple[str | None, str | None], met: State) -> str:
    """A change and all that its verdict depends on, as text that a file can hold."""
    state = ((path, f"{e.mode:o} {e.oid}" if e else "") for path, e in met.items())
    return repr((number, index, *places, *state))
