"""What becomes of a series along a branch: the carry engine asked once for each state of its files.

What becomes of a change follows from what stands at its paths, and from what earlier patches leave
there. So its verdict is remembered by the ids of these blobs, and a branch of thousands of commits
costs as many merges as its files have versions. Rules there are none here: `carry_file` decides of
a file, `joined` of a patch, and what waits for an earlier patch is said as in `carry.cascade`.

A quick forecaster takes a change that applies as it is for that, and stops at the first conflict of
a patch: enough to say how a patch fares on each commit. What is said of one commit in full is
carried to, see `trial`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct

from patchkit.carry.carried import CarriedFile, CarryContext, doubted_as
from patchkit.carry.carry_file import carry_file
from patchkit.carry.cascade import Names, paths_of, supposed, waits
from patchkit.carry.engine import is_contained, joined
from patchkit.drift.drift_report import ExactVerdict, FileVerdict, HunkFault, PatchForecast
from patchkit.drift.fits import FITS, Fits, PatchLayer, layers_of, question
from patchkit.drift.follow import Route, RoutePast, ScopeWatch
from patchkit.drift.forecast_cache import Verdicts
from patchkit.drift.judge import State, few_tree, judge
from patchkit.drift.sample import ChangeGroup, ChangeNumber, FileVersion, alike, grouped
from patchkit.errors import BadInputError
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.merging.regions import Labels
from patchkit.model.objects import (
    EXECUTABLE_MODE,
    FILE_MODE,
    Base,
    TreeEntry,
    make_object,
)
from patchkit.model.outcome import Reason, Status
from patchkit.model.patch import FileChange
from patchkit.model.resolution import Resolution
from patchkit.model.tree import ObjectSource, Overlay
from patchkit.recipes.rule import Recipe
from patchkit.recipes.run import run_recipe
from patchkit.stack.build import SeriesPatch, build_stack

_REGULAR = (FILE_MODE, EXECUTABLE_MODE)
#: What stands at a path before a patch; or the patches that leave it open.
_Met = TreeEntry | Names | None


class PatchVerdict(Struct, frozen=True):
    """What became of a patch on a commit; `faults` are the hunks that do not apply as they are.

    Of a quick forecaster `conflicts` and `review` are not all. A WAITING one is `blocked` where an
    earlier patch is in conflict in a file of its own, not just elsewhere.
    """

    status: Status
    conflicts: tuple[str, ...] = ()
    review: tuple[str, ...] = ()
    waits_for: Names = ()  # the earlier patches in conflict for which it is WAITING
    faults: tuple[HunkFault, ...] = ()
    blocked: bool = False

    @property
    def kind(self) -> tuple[Status, bool]:
        """What tells states apart; not which hunks do not fit."""
        return self.status, self.blocked

    def forecast(self, name: str) -> PatchForecast:
        """The same of the patch with that name."""
        return PatchForecast(name, self.status, self.conflicts, self.review, self.waits_for)


class Forecaster:
    """A series on a state that moves on; `judge` says what would become of it there.

    A `quick` one takes a change that applies as it is for that, but for those that `thorough` names
    (patch, change; -1 for one made from a recipe), and stops at a patch's first conflict. What
    patches make of `kept` files can be asked for by `patched`.

    It is an ObjectSource: blobs that a walk read ahead, or that patches make, else upstream's own.
    """

    def __init__(
        self,
        source: ObjectSource,
        old_base: Base,
        patches: Sequence[SeriesPatch],
        route: Route,
        *,
        recipes: Mapping[str, Recipe],
        verdicts: Verdicts,
        remembered: Mapping[str, Resolution],
        watch: ScopeWatch,
        quick: bool,
        thorough: Collection[tuple[int, int]] = (),
        kept: Collection[str] = (),
    ) -> None:
        self._source = source
        self._made = verdicts.made
        self._loaded: Mapping[str, bytes] = {}
        self._known = verdicts
        self._quick = quick
        self._thorough = thorough
        self._remembered = remembered
        self._watch = watch
        self._runs: dict[tuple[int, str, str], str | None] = {}
        self._tries: Counter[tuple[int, int]] = Counter()
        stack = build_stack(source, old_base, patches)
        old = Overlay(source, stack.objects)
        self._old_blobs = Blobs(old)
        #: What becomes of each patch on the old base itself.
        self.at_pin = tuple(outcome.status for outcome in stack.outcomes)
        self._layers = layers_of(patches, stack, old, route, recipes)
        self._fits = Fits(self, self._layers, verdicts, kept)
        #: Where some patch may come to change a file.
        self.paths = self._fits.paths
        self._kept_paths = frozenset(kept)
        self._last: dict[int, tuple[int, frozenset[str], PatchVerdict, int]] = {}
        self._patches: dict[object, tuple[PatchVerdict, State]] = {}
        self._prefixes: dict[object, int] = {}
        #: What stands at each path now; moved on by whoever walks.
        self.state: dict[str, TreeEntry | None] = {}
        self.past = RoutePast(route, self.state)
        self._failed: list[int] = []
        self._there: dict[tuple[int, int], FileVerdict | Names] = {}
        self._open: set[str] = set()
        self._told: tuple[PatchVerdict, ...] = ()
        self._numbers = self._edited()
        self._standing: dict[str, tuple[Status, ...] | None] = {}
        self._folders: Sequence[object] = ()
        self._behind: set[str] = set()

    def supply(self, contents: Mapping[str, bytes]) -> None:
        """Take these blobs of the upstream as read; those of the last time are forgotten."""
        self._loaded = contents

    def read(self, oid: str, kind: str) -> bytes:
        """See ObjectSource."""
        known = self._loaded.get(oid)
        known = self._made.get(oid) if known is None else known
        return self._source.read(oid, kind) if known is None else known

    def read_many(self, oids: Collection[str], kind: str) -> Iterator[tuple[str, bytes]]:
        """See ObjectSource."""
        return ((oid, self.read(oid, kind)) for oid in oids)

    def judge(self, changed: Collection[str] | None = None) -> tuple[PatchVerdict, ...]:
        """What would become of each patch in the present state.

        `changed`: only these paths differ from the state judged last; None: any may.
        """
        if changed is None:
            self._last.clear()
        elif self._stands(changed):
            self._behind.update(changed)
            return self._told
        self._judge({*self._behind, *(changed or ())})
        for path in self._numbers if changed is None else changed:
            self._standing[path] = self._how(path)
        self._folders = self._homes()
        return self._told

    def _stands(self, changed: Collection[str]) -> bool:
        """Whether all verdicts stay, as each change applies to these files as it did before.

        Invariant: of a file that patches only edit, each of them where it stands, verdicts follow
        from how each edit applies to it, exactly or at other lines, and from nothing else of it, as
        long as all of them apply and none of these patches fails elsewhere.
        """
        ways = ((self._standing.get(path), path) for path in changed)
        same = all(way is not None and way == self._how(path) for way, path in ways)
        return same and self._folders == self._homes()

    def _how(self, path: str) -> tuple[Status, ...] | None:
        """How each edit of a file applies as it is; None if that does not decide of the file."""
        numbers = self._numbers.get(path)
        if numbers is None or any(number in self._failed for number, _ in numbers):
            return None
        return self._fits.standing(numbers, path, self.state.get(path))

    def _homes(self) -> Sequence[object]:
        """Where the files go that patches add: they follow their folders."""
        changes = (each for layer in self._layers for each in layer.changes)
        return [self._moved(each) for each in changes if each.old_path is None]

    def _edited(self) -> dict[str, Sequence[ChangeNumber]]:
        """The files that patches only edit, with the edits in order.

        None where a recipe makes a patch, as it looks at more; nor of a forecaster that is not
        quick, which weighs changes that apply as well.
        """
        if not self._quick or any(each.recipe is not None for each in self._layers):
            return {}
        return {
            path: group.numbers
            for group in self.groups()
            for path in (group.paths if len(group.paths) == 1 else ())
            if all(each.old_path == each.new_path for each in group.changes)
            and not any(number in self._thorough for number in group.numbers)
        }

    def _judge(self, changed: Collection[str]) -> None:
        self._failed, self._there, self._open, self._behind = [], {}, set(), set()
        told, before = list[PatchVerdict](), 0
        for number, layer in enumerate(self._layers):
            last = self._last.get(number)
            if last is None or last[0] != before or not last[1].isdisjoint(changed):
                verdict, after = self._judged(number, layer, before)
                if layer.is_steady:
                    self._last[number] = last = before, layer.related, verdict, after
            else:
                _, _, verdict, after = last
            if verdict.status.fails:
                self._failed.append(number)
            told.append(verdict)
            before = after
        self._told = tuple(told)

    def _judged(self, number: int, layer: PatchLayer, before: int) -> tuple[PatchVerdict, int]:
        """A patch's verdict, and the number of all up to it: see `_prefix`."""
        before = self._prefix(before, *map(self._moved, layer.changes))
        # all that the verdict follows from, but of a recipe, which looks at more
        key = number, before, *map(self.state.get, layer.related)
        known = self._patches.get(key) if layer.recipe is None else None
        if known is None:
            layer.left = {}
            known = self._patches[key] = self._patch(number, layer), layer.left
        verdict, layer.left = known
        return verdict, self._prefix(before, verdict.status.value, verdict.waits_for)

    def groups(self) -> tuple[ChangeGroup, ...]:
        """The changes whose files may be sampled: see `drift.sample`.

        Not those of patches that are taken as a whole or made by a recipe, of files that are
        `kept`, and not files that a patch adds, which follow their folder.
        """
        left_out = set(self._kept_paths)
        for layer in self._layers:
            if layer.is_whole or layer.recipe is not None:
                left_out |= layer.paths
        rows = [
            ((number, index), change, layer.places[index])
            for number, layer in enumerate(self._layers)
            for index, change in enumerate(layer.changes)
        ]
        adding = {number for number, change, _ in rows if change.old_path is None}
        return tuple(
            group
            for group in grouped(rows)
            if group.paths.isdisjoint(left_out) and adding.isdisjoint(group.numbers)
        )

    def is_generated(self, path: str, data: bytes) -> bool:
        """Whether a recipe makes something of a file with these contents."""
        recipes = (each.recipe for each in self._layers if each.recipe is not None)
        runs = (run_recipe(each, {path: data}) for each in recipes if each.covers(path))
        return any(run.fatal or run.changed for run in runs)

    def of_group(self, group: ChangeGroup, version: FileVersion) -> object:
        """What becomes of a group's changes on a version, with those before each and without."""
        self.state.update(version.state)
        self.past.position = version.position
        self._failed, self._there, self._open = [], {}, set()
        told: list[object] = []
        for together in (True, False)[: len(group.numbers)]:
            for layer in self._layers:
                layer.left = {}
            for number, index in group.numbers:
                try:
                    row = self._file(number, index, self._met_by(number, index))
                except MissingObjectError:  # a file that no server gives
                    told.append(version.position)
                    continue
                told.append(alike(row.status, review=row.review, paths=row.after))
                if together:
                    self._layers[number].left = {**self._layers[number].left, **row.after}
        return tuple(told)

    def met(self, number: int) -> dict[str, TreeEntry | None]:
        """What the patch would meet at its paths now, were no earlier one in conflict."""
        self.judge()
        layer = self._layers[number]
        self._failed = [each for each in self._failed if each < number]
        met = {path: self._ahead(path, number) for path in sorted(layer.paths)}
        return {
            path: self._met(path, number) if isinstance(each, tuple) else each
            for path, each in met.items()
        }

    def related(self, number: int) -> frozenset[str]:
        """The paths of which a patch's verdict depends."""
        layer = self._layers[number]
        return layer.related if layer.is_steady else self.paths

    def after(self, path: str) -> TreeEntry | None:
        """What stands at a path after the whole series, in the state that was judged last.

        A patch in conflict counts with what can be carried of it.
        """
        if self._behind:
            self._judge(self._behind)
        entry = self._ahead(path, len(self._layers))
        # a patch may leave it open: then as upstream has it
        return self.state.get(path) if isinstance(entry, tuple) else entry

    def patched(self, path: str) -> bytes | None:
        """The contents of what `after` tells; None for no file."""
        entry = self.after(path)
        if entry is None or entry.mode not in _REGULAR:
            return None
        return self.read(entry.oid, "blob")

    def _prefix(self, before: int, *news: object) -> int:
        """A number for what earlier patches came to and where their files went, one for each."""
        return self._prefixes.setdefault((before, *news), len(self._prefixes) + 1)

    def _patch(self, number: int, layer: PatchLayer) -> PatchVerdict:
        try:
            if layer.recipe is not None:
                return self._generated(number, layer, layer.recipe)
            if not layer.changes:
                return PatchVerdict(Status.EMPTY)
            return self._whole(number, layer) if layer.is_whole else self._by_file(number, layer)
        except MissingObjectError:  # a file that no server gives: not known
            path = layer.changes[0].path if layer.changes else layer.name
            return PatchVerdict(Status.CONFLICTED, (path,))

    # Changes file by file

    def _by_file(self, number: int, layer: PatchLayer) -> PatchVerdict:
        rows: list[FileVerdict] = []
        faults: list[HunkFault] = []
        todo = list(range(len(layer.changes)))
        if self._quick:
            todo = self._without_fitting(number, layer, rows, faults)
        for index in todo:
            row = self._file(number, index, self._met_by(number, index))
            if row.status in (Status.CONFLICTED, Status.MERGED) and self._failed:
                row = self._with_cause(number, index, row)
            rows.append(row)
            if self._quick and row.status is Status.CONFLICTED:
                break
        if any(row.status is Status.WAITING for row in rows):
            waiting = {row.path for row in rows if row.status is Status.WAITING}
            faults = [each for each in faults if each.path not in waiting]
        return self._settled(number, layer, rows, tuple(faults))

    def _without_fitting(
        self, number: int, layer: PatchLayer, rows: list[FileVerdict], faults: list[HunkFault]
    ) -> list[int]:
        """The changes that do not apply as they are, those first that tell soonest of a conflict.

        `rows` gets those that do, `faults` the hunks that do not.
        """
        left: list[int] = []
        for index, change in enumerate(layer.changes):
            if (number, index) in self._thorough:
                left.append(index)
                continue
            met = self._met_by(number, index)
            verdict, after = self._fits.exact(number, index, met)
            if verdict.status in FITS and not verdict.contained:
                rows.append(
                    FileVerdict(change.path, self._fits.as_old(number, index, verdict), after)
                )
            else:
                faults += verdict.faults
                left.append(index)

        def cost(index: int) -> tuple[bool, int]:
            # known ones cost nothing; files that change seldom give an answer that holds for long
            met = self._met_by(number, index)
            key = question(number, index, self._moved(layer.changes[index]), met)
            return self._known.file(key) is None, self._tries[number, index]

        return sorted(left, key=cost)

    def _settled(
        self,
        number: int,
        layer: PatchLayer,
        rows: Sequence[FileVerdict],
        faults: tuple[HunkFault, ...],
    ) -> PatchVerdict:
        """What a patch comes to by its files, as `carry.engine` puts it together."""
        status = joined(row.status for row in rows)
        conflicts = tuple(row.path for row in rows if row.status is Status.CONFLICTED)
        review = tuple(row.path for row in rows if row.review)
        if status.fails:
            names = dict.fromkeys(name for row in rows for name in row.waits_for)
            waits = tuple(names) if status is Status.WAITING else ()
            blocked = bool(waits) and not self._open.isdisjoint(layer.paths)
            return PatchVerdict(status, conflicts, review, waits, faults, blocked)
        layer.left = {path: entry for row in rows for path, entry in row.after.items()}
        fits = any(not row.after for row in rows)  # as it is: it does something
        if not fits and all(self._met(path, number) == e for path, e in layer.left.items()):
            return PatchVerdict(Status.ABSORBED, (), review, faults=faults)
        if any(row.status is Status.ABSORBED for row in rows):
            status = Status.MERGED
        return PatchVerdict(status, (), review, faults=faults if status not in FITS else ())

    def _with_cause(self, number: int, index: int, row: FileVerdict) -> FileVerdict:
        """A file that does not apply where earlier patches fail: for that reason, or by itself."""
        there = self._carried_ahead(number, index)
        if isinstance(there, tuple):
            return row.waiting(there) if row.status.fails else row
        if not waits(row.status, there.status):
            return row
        paths = self._layers[number].places[index]
        touching = [n for n in self._failed if not paths.isdisjoint(self._layers[n].paths)]
        return row.waiting(tuple(self._layers[n].name for n in touching or self._failed))

    def _carried_ahead(self, number: int, index: int) -> FileVerdict | Names:
        """A change on what earlier patches would leave if none were in conflict."""
        if (number, index) not in self._there:
            met: dict[str, TreeEntry | None] = {}
            answer: FileVerdict | Names | None = None
            for path in self._met_by(number, index):
                entry = self._ahead(path, number)
                if isinstance(entry, tuple):
                    answer = entry
                    break
                met[path] = entry
            if answer is None:
                answer = self._file(number, index, met)
            self._there[number, index] = answer
        return self._there[number, index]

    def _ahead(self, path: str, number: int) -> _Met:
        """What patch `number` would meet at a path if no earlier one were in conflict."""
        for at in range(number - 1, -1, -1):
            layer = self._layers[at]
            if path not in layer.paths and path not in layer.left:
                continue
            if at not in self._failed and (
                layer.is_whole or layer.recipe or not self._touched_by_failed(at)
            ):
                if path in layer.left:
                    return layer.left[path]
                continue
            if layer.is_whole or layer.recipe:
                return (layer.name,)
            for index, places in enumerate(layer.places):
                if path in places:
                    there = self._carried_ahead(at, index)
                    if isinstance(there, tuple):
                        return there
                    if there.status.fails:
                        self._open.add(path)
                    if path in there.after:
                        return there.after[path]
                    if there.status.fails:
                        return (layer.name,)
        return self.state.get(path)

    def _touched_by_failed(self, number: int) -> bool:
        paths = self._layers[number].paths
        earlier = (self._layers[n] for n in self._failed if n < number)
        return any(not paths.isdisjoint(each.paths) for each in earlier)

    def _met(self, path: str, number: int) -> TreeEntry | None:
        """What patch `number` meets at a path: the patches that fail are left out."""
        for layer in reversed(self._layers[:number]):
            if path in layer.left:
                return layer.left[path]
        return self.state.get(path)

    def _moved(self, change: FileChange) -> tuple[str | None, str | None]:
        """Where upstream took the file of a change, and the folder of one that it adds."""
        if change.old_path is None:
            return None, self.past.folder_renamed(str(change.new_path).rpartition("/")[0])
        there = self.state.get(change.old_path) is not None
        return (None if there else self.past.renamed(change.old_path)), None

    def _met_by(self, number: int, index: int) -> dict[str, TreeEntry | None]:
        """What stands at all paths that the verdict on a change depends on."""
        change = self._layers[number].changes[index]
        paths = set(paths_of(change))
        renamed, folder = self._moved(change)
        if folder is not None:
            paths.add(f"{folder}/{str(change.new_path).rpartition('/')[2]}")
        if renamed is not None:
            paths.add(renamed)
        return {path: self._met(path, number) for path in sorted(paths)}

    def _file(self, number: int, index: int, met: State) -> FileVerdict:
        """The carry engine's verdict on a change, by what it meets."""
        change = self._layers[number].changes[index]
        key = question(number, index, self._moved(change), met)
        known = self._known.file(key)
        if known is None:
            self._tries[number, index] += 1
            known = self._carried(number, index, met)
            self._known.note_file(key, known, keep=self._fits.may_keep(known.after))
        return known

    def _carried(self, number: int, index: int, met: State) -> FileVerdict:
        layer = self._layers[number]
        change = layer.changes[index]
        here = few_tree(self, met)
        if here is None or layer.after is None:
            return FileVerdict(change.path, Status.CONFLICTED)
        blobs = Blobs(self)
        exact = apply_changes(here, blobs, (change,))
        if any(clash.reason is Reason.UNSAFE for clash in exact.files[0].clashes):
            return FileVerdict(change.path, Status.CONFLICTED)
        context = CarryContext(
            *(layer.before, layer.after, here),
            *(self._old_blobs, blobs, self.past),
            careful=False,
            labels=Labels(),
            remembered=self._remembered,
        )
        try:
            file = carry_file(context, change, doubted_as(exact.files[0], layer.old[index]))
        except BadInputError:  # what is remembered comes to something else: for a person
            return FileVerdict(change.path, Status.CONFLICTED)
        if not file.carried:
            return FileVerdict(change.path, Status.CONFLICTED, self._supposed(file, blobs))
        after: dict[str, TreeEntry | None] = {}
        if file.leaves is not None:
            after[file.leaves] = None
        after[file.path] = file.entry
        if file.blob is not None:
            self._fits.keep([file.blob], after)
        told = file.outcome
        status = self._fits.as_old(number, index, told) if not told.review else told.status
        return FileVerdict(change.path, status, after, told.review)

    def _supposed(self, file: CarriedFile, blobs: Blobs) -> State:
        """What a file in conflict is taken for by patches that build on it."""
        if file.path not in self._fits.shared:
            return {}
        there = supposed(file, self._old_blobs, blobs)
        if there is None or there.blob is None:
            return {}
        self._made.note(there.blob.oid, there.blob.payload)
        return {there.path: there.entry}

    # Patches as a whole

    def _whole(self, number: int, layer: PatchLayer) -> PatchVerdict:
        """A patch that says nothing about the old base: it applies exactly, or not at all."""
        met = {path: self._met(path, number) for path in _paths(layer.changes)}
        here = few_tree(self, met)
        verdict, made = judge(self, met, layer.changes, trial=False)
        blobs = Blobs(self)
        elsewhere = verdict.status is not Status.UNCHANGED
        if elsewhere and here is not None and is_contained(here, blobs, layer.changes):
            return PatchVerdict(Status.ABSORBED)
        if made is None:
            paths = dict.fromkeys(fault.path for fault in verdict.faults)
            names = self._waits_as_whole(number, layer)
            if names:
                return PatchVerdict(Status.WAITING, waits_for=names)
            return PatchVerdict(Status.CONFLICTED, tuple(paths), faults=verdict.faults)
        layer.left = self._fits.kept(made)
        old = tuple(offset for each in layer.old for offset in each.offsets)
        same = layer.after is not None and verdict.offsets == old
        return PatchVerdict(Status.UNCHANGED if same else verdict.status)

    def _waits_as_whole(self, number: int, layer: PatchLayer) -> Names:
        """The earlier patches for which a patch fails that is taken as a whole."""
        if not self._failed:
            return ()
        met: dict[str, TreeEntry | None] = {}
        names: dict[str, None] = {}
        for path in sorted(_paths(layer.changes)):
            entry = self._ahead(path, number)
            if isinstance(entry, tuple):
                names.update(dict.fromkeys(entry))
            else:
                met[path] = entry
        if names:
            return tuple(names)
        if judge(self, met, layer.changes, trial=False)[1] is None:
            return ()
        touching = [n for n in self._failed if not layer.paths.isdisjoint(self._layers[n].paths)]
        return tuple(self._layers[n].name for n in touching or self._failed)

    def _generated(self, number: int, layer: PatchLayer, recipe: Recipe) -> PatchVerdict:
        """What its recipe makes of the files of the state, as `recipes.generating` puts it there.

        `watch` says what it makes of files that no patch touches.
        """
        met = {path: self._met(path, number) for path in _paths(layer.changes)}
        exact, made = ExactVerdict(Status.CONFLICTED), None
        if layer.changes:
            exact, made = self._fits.whole(number, met)
        if made is not None and self._quick and (number, -1) not in self._thorough:
            layer.left = made
            return PatchVerdict(exact.status)
        found = {path: self._met(path, number) for path in layer.looks_at}
        covered = {p: each for p, each in found.items() if each and each.mode in _REGULAR}
        runs = {p: self._run(number, recipe, p, each) for p, each in covered.items()}
        outside = self._watch.outside(layer.name, self.past.commit)
        fatal = tuple(path for path, entry in runs.items() if entry is None)
        changed = {p: e for p, e in runs.items() if e != self._met(p, number)}
        nothing = outside is Status.EMPTY and not changed
        if fatal or nothing or outside is Status.CONFLICTED:
            return PatchVerdict(Status.CONFLICTED, fatal or (layer.name,), faults=exact.faults)
        layer.left = changed
        if made is not None and outside is Status.EMPTY:
            as_it_is = {p: e for p, e in made.items() if e != self._met(p, number)}
            if as_it_is == changed:
                return PatchVerdict(exact.status)
        return PatchVerdict(Status.REGENERATED, faults=exact.faults)

    def _run(self, number: int, recipe: Recipe, path: str, entry: TreeEntry) -> TreeEntry | None:
        """What a recipe makes of a file; None if that must not be used."""
        key = number, path, entry.oid
        if key not in self._runs:
            run = run_recipe(recipe, {path: self.read(entry.oid, "blob")})
            blob = entry.oid
            if path in run.changed:
                made = make_object("blob", run.changed[path], entry.oid)
                self._made.note(made.oid, made.payload)
                blob = made.oid
            self._runs[key] = None if run.fatal else blob
        oid = self._runs[key]
        return TreeEntry(entry.mode, oid) if oid is not None else None


def _paths(changes: Sequence[FileChange]) -> frozenset[str]:
    return frozenset(path for change in changes for path in paths_of(change))
