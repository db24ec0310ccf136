"""What becomes of a series along a branch: the carry engine, asked of each state of its files.

What becomes of a change follows from what stands at its paths, so `carry_one` remembers it by the
ids of these blobs, and a branch of thousands of commits costs as many merges as its files have
versions. Everything else is the engine's own.

A quick forecaster takes a change that applies as it is for that, which is the verdict of `apply`,
and of a patch in conflict it carries no further file, unless another patch changes it as well. What
is said of one commit in full is carried to, see `trial`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from stat import S_ISREG
from typing import TypeAlias
from zlib import Z_BEST_SPEED, compress, decompress

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.carry.carried import CarriedFile, CarryContext, CarryOptions
from patchkit.carry.carry_file import carry_change
from patchkit.carry.cascade import Names, ResolvedStack, edited, paths_of, supposed
from patchkit.carry.engine import StackCarrier, is_contained, names_a_path_twice
from patchkit.disk.result_cache import ResultCache, read_as
from patchkit.drift.drift_report import HunkFault, PatchForecast, forecast_of
from patchkit.drift.follow import Route, RoutePast, ScopeWatch
from patchkit.drift.sample import ChangeGroup, FileVersion, State, alike, grouped
from patchkit.errors import BadInputError
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.merging.regions import Labels
from patchkit.model.objects import (
    Base,
    GitObject,
    TreeEntry,
    make_object,
)
from patchkit.model.outcome import FileResult, PatchResult, Reason, Status
from patchkit.model.patch import FileChange
from patchkit.model.resolution import Resolution
from patchkit.model.tree import FewFiles, ObjectSource, ObstructedError, Overlay, Tree
from patchkit.stack.build import SeriesPatch, Stack, StackBuilder, build_stack, patch_changes
from patchkit.stack.generated import PatchRecipe

#: A patch that applies as it is.
FITS = (Status.UNCHANGED, Status.SHIFTED)

#: A change that comes to this may come to something else once patches in conflict are resolved.
_MAY_WAIT = (Status.CONFLICTED, Status.MERGED)

#: Patch, path of its change, where upstream took that and its folder, what stands at its paths.
_Question: TypeAlias = tuple[
    int, str, tuple["str | None", "str | None"], tuple[tuple[str, "TreeEntry | None"], ...]
]

#: Files that stand for a while are asked for again and again: so many are held.
_STANDING = 16


class PatchVerdict(Struct, frozen=True):
    """What became of a patch on a commit; `faults` are the hunks that do not apply as they are."""

    forecast: PatchForecast
    faults: tuple[HunkFault, ...]

    @property
    def status(self) -> Status:
        """What a bump would make of it."""
        return self.forecast.status


class Forecaster(ObjectSource):
    """A series on a state that moves on; `judge` says what would become of it there.

    A `quick` one takes a change that applies as it is for that.

    It is a source of blobs that a walk read ahead, or that patches make, else of upstream's own.
    """

    def __init__(
        self,
        source: ObjectSource,
        old_base: Base,
        patches: Sequence[SeriesPatch],
        route: Route,
        *,
        recipes: Mapping[str, PatchRecipe],
        verdicts: ResultCache,
        remembered: Mapping[str, Resolution],
        watch: ScopeWatch,
        quick: bool,
    ) -> None:
        self._source, self._known, self._quick, self._watch = source, verdicts, quick, watch
        self._read = lru_cache(_STANDING)(self._unpacked)
        self._made: dict[str, bytes] = {}  # what patches make, compressed
        self._loaded: Mapping[str, bytes] = {}
        self._given = _Given(self)
        self._patches, self._recipes = patches, recipes
        self._old_base, self._stack = old_base, build_stack(source, old_base, patches)
        old = Overlay(source, self._stack.objects)
        self._old, self._old_blobs = old, Blobs(old)
        self._before = _trees(old, self._stack)
        #: What becomes of each patch on the old base itself.
        self.at_pin = tuple(outcome.status for outcome in self._stack.outcomes)
        self._changes = [patch_changes(patch) for patch in patches]
        self._numbers = {patch.name: number for number, patch in enumerate(patches)}
        self._route = route
        self._reached: dict[tuple[str | None, str | None], frozenset[str]] = {}
        places = [frozenset[str]().union(*map(self._places, each)) for each in self._changes]
        users = Counter(path for each in places for path in each)
        #: Where some patch may come to change a file.
        self.paths = frozenset(users)
        self._of_patch = places
        read = {path for path in users for each in recipes.values() if each.covers(path)}
        # paths from which a later patch or a recipe may start, for each patch
        self._needed = [frozenset(read).union(*places[n + 1 :]) for n in range(len(places))]
        #: What stands at each path now; moved on by whoever walks.
        self.state: dict[str, TreeEntry | None] = {}
        self.past = RoutePast(route, self.state)
        self._options = CarryOptions(
            self._generated, past=self.past, remembered=remembered, carry_one=self._carry_one
        )
        self._fits: dict[_Question, _Fit] = {}
        self._answers: dict[tuple[bool, _Question], CarriedFile] = {}
        self._runs: dict[tuple[str, str, str], str | None] = {}
        self._puts: dict[object, _Put] = {}
        self._stood = _Stood({})
        self._tries: Counter[tuple[int, str]] = Counter()
        self._asked: set[str] = set()  # paths where a patch in conflict is carried for others
        self._now = _Putting()

    def supply(self, contents: Mapping[str, bytes]) -> None:
        """Take these blobs of the upstream as read; those of the last time are forgotten."""
        self._loaded = contents

    def read(self, oid: str, kind: str) -> bytes:
        """See ObjectSource."""
        return self._loaded[oid] if oid in self._loaded else self._read(oid, kind)

    def _unpacked(self, oid: str, kind: str) -> bytes:
        made = self._made.get(oid)
        return self._source.read(oid, kind) if made is None else decompress(made)

    def judge(self) -> tuple[PatchVerdict, ...]:
        """What would become of each patch in the present state."""
        return self._judged(range(len(self._patches)), set())

    def status_of(self, number: int) -> Status:
        """What would become of one patch in the present state; the others are not looked at."""
        return self._judged(self._before_it(number)[0], set())[-1].status

    def paths_of(self, number: int) -> frozenset[str]:
        """The paths from which it follows what becomes of a patch."""
        return self._before_it(number)[1]

    def met(self, number: int) -> dict[str, TreeEntry | None]:
        """What the patch would meet at its paths now, were no earlier one in conflict."""
        self._judged(range(number), set(self._of_patch[number]))
        here, paths = self._stood.here, sorted(self._of_patch[number])
        # an earlier patch in conflict counts with what can be carried of it
        known = {**here, **(self._stood.there or {})}
        return {path: (here if path in self._stood.open else known).get(path) for path in paths}

    def _before_it(self, number: int) -> tuple[Sequence[int], frozenset[str]]:
        """A patch behind the earlier ones that it may meet, and the paths of all of these.

        It meets those that change its paths, and those that change theirs before them.
        """
        met, paths = [number], self._looks_at(number)
        for earlier in reversed(range(number)):
            theirs = self._looks_at(earlier)
            if not theirs.isdisjoint(paths):
                met.append(earlier)
                paths |= theirs
        return met[::-1], paths

    def _looks_at(self, number: int) -> frozenset[str]:
        """The paths at which a patch may do something: of one that a recipe makes, all."""
        is_made = self._patches[number].name in self._recipes
        return self.paths if is_made else self._of_patch[number]

    def _judged(self, numbers: Sequence[int], asked: set[str]) -> tuple[PatchVerdict, ...]:
        """What becomes of some patches, where they leave something known at paths `asked` for.

        What a patch in conflict leaves elsewhere is found out where a later one asks for it.
        """
        while True:
            self._stood, self._asked = _Stood(dict(self.state)), asked
            told: list[PatchVerdict] = []
            for number in numbers:
                put = self._put(number)
                if not put.asks.isdisjoint(self._stood.skipped):
                    break
                told.append(self._stood.take(put))
            else:
                return tuple(told)
            asked |= put.asks

    def _put(self, number: int) -> _Put:
        """What putting a patch onto what earlier ones leave comes to.

        That follows from what stands at its paths; of one that a recipe makes from what stands at
        all paths, and what the recipe makes of other files.
        """
        stood, changes = self._stood, self._changes[number]
        moved = [self._moved(change) for change in changes]
        pairs = zip(changes, moved, strict=True)
        homes = [_in_folder(folder, each) for each, (_, folder) in pairs if folder is not None]
        paths = (*self._of_patch[number], *homes)
        name, outside = self._patches[number].name, Status.EMPTY
        if name in self._recipes and not self._applies(number):
            paths = (*sorted(self.paths), *homes)
            outside = self._watch.outside(name, self.past.commit)
        key: list[object] = [number, *moved, outside, *map(stood.here.get, paths)]
        if stood.there is not None:
            key += [*stood.failed, *map(stood.there.get, paths), *map(stood.open.get, paths)]
        question = (*key, *(path in self._asked for path in paths))
        if question not in self._puts:
            self._puts[question] = self._found(number, paths)
        return self._puts[question]

    def _applies(self, number: int) -> bool:
        """Whether a quick look at a patch is enough: all of it applies as it is."""
        here = _few(self._given, self._stood.here)
        rows = (self._fit(number, change, here).status for change in self._changes[number])
        return self._quick and bool(self._changes[number]) and all(each in FITS for each in rows)

    def _found(self, number: int, paths: Collection[str]) -> _Put:
        """What putting a patch does to these paths: all that it may look at."""
        patch, old, changes = self._patches[number], self._stack.outcomes[number], self._changes
        self._now = now = _Putting()
        carrier = self._carrier(number, paths)
        whole = old.tree is None or names_a_path_twice(changes[number])
        plain = not whole and patch.name not in self._recipes
        now.failing = self._quick and plain and self._fails(number, carrier)
        outcome = carrier.put(patch, old)
        told, here, resolved = forecast_of(outcome), carrier.builder, carrier.resolved
        status = outcome.status
        faults: tuple[HunkFault, ...] = ()
        if whole:
            if status is Status.CONFLICTED:
                faults = faults_of(outcome.files)
        elif status not in FITS:
            waiting = {each.path for each in outcome.files if each.status is Status.WAITING}
            waiting = set() if now.failing else waiting
            rows = (now.applied[c.path] for c in changes[number] if c.path not in waiting)
            faults = tuple(fault for row in rows for fault in row.faults)
        # a patch that is in conflict by itself waits for none
        on_top = {} if now.failing else now.on_top
        asks = {path for path, file in on_top.items() if file.outcome.status in _MAY_WAIT}
        if not plain and status.fails:
            asks = {each.path for each in changes[number]}
        left = _Put(
            PatchVerdict(replace(told, files=()), faults),
            {path: here.tree.entry(path) for path in paths},
            asks=self._at(number, asks),
            skipped=frozenset(now.skipped),
        )
        if resolved is None:
            return left
        there = {path: resolved.tree.entry(path) for path in paths}
        open_paths = {path: resolved.open[path] for path in paths if path in resolved.open}
        return replace(left, there=there, open=open_paths, failed=tuple(resolved.failed))

    def _at(self, number: int, paths: Collection[str]) -> frozenset[str]:
        """Where the changes of a patch with these paths may come to stand."""
        changes = (each for each in self._changes[number] if each.path in paths)
        return frozenset[str]().union(*map(self._places, changes))

    def _carrier(self, number: int, paths: Iterable[str]) -> StackCarrier:
        """A carry that has put the patches before this one, onto a tree of these paths only."""
        stood = self._stood
        here, there = (
            FewFiles(self._given, {p: e for p in paths if (e := known.get(p)) is not None})
            for known in (stood.here, stood.there or {})
        )
        base = replace(self._old_base, commit=self.past.commit, tree=here.write([]))
        resolved = ResolvedStack(there, dict(stood.open), list(stood.failed))
        return StackCarrier(
            self._given,
            self._old,
            self._old_base.commit,
            self._options,
            StackBuilder(self._given, base, here),
            self._before[number],
            self._old_blobs,
            resolved=resolved if stood.there is not None else None,
        )

    def _fails(self, number: int, carrier: StackCarrier) -> bool:
        """Whether a patch is in conflict by itself: its changes are carried until one is.

        Those first that tell soonest: known ones, then files that change seldom.
        """
        here, resolved, old = carrier.builder.tree, carrier.resolved, self._stack.outcomes[number]
        context = self._context(number, here)
        rows: list[tuple[bool, int, FileChange, FileResult]] = []
        for change, before in zip(self._changes[number], old.files, strict=True):
            places = self._places(change)
            by_itself = resolved is None or (
                not resolved.open_at(places)
                and all(resolved.tree.entry(each) == here.entry(each) for each in places)
            )
            fit = self._now.applied[change.path] = self._fit(number, change, here)
            if by_itself and fit.status not in FITS:
                known = self._known_answer(number, context, change) is not None
                rows.append((not known, self._tries[number, change.path], change, before))
        rows.sort(key=lambda row: row[:2])
        asked = (self._answer(number, context, *row[2:]) for row in rows)
        return not all(each.carried for each in asked)

    def _places(self, change: FileChange) -> frozenset[str]:
        """The paths at which a change may come to stand."""
        key = change.old_path, change.new_path
        if key not in self._reached:
            self._reached[key] = self._route.reached_from(paths_of(change))
        return self._reached[key]

    # Single changes

    def _carry_one(
        self, patch: SeriesPatch, context: CarryContext, change: FileChange, before: FileResult
    ) -> CarriedFile:
        """What the carry engine makes of a change, by what stands at its paths."""
        number = self._numbers[patch.name]
        places = self._places(change)
        brief = self._quick and self._asked.isdisjoint(places)
        on_top = self._now.on_top.get(change.path)
        if brief and on_top is not None and on_top.outcome.status not in _MAY_WAIT:
            self._now.skipped |= places  # what is there without conflicts matters to nobody
            return on_top
        fit = self._fit(number, change, context.here)
        self._now.applied.setdefault(change.path, fit)
        file = fit.file
        if not (self._quick and fit.status in FITS):
            known = self._known_answer(number, context, change)
            if known is None and self._now.failing and brief:
                self._now.skipped |= places
                return CarriedFile(FileResult(change.path, Status.CONFLICTED), change.path)
            file = known or self._answer(number, context, change, before)
        self._now.on_top.setdefault(change.path, file)
        return file

    def _known_answer(
        self, number: int, context: CarryContext, change: FileChange
    ) -> CarriedFile | None:
        key = bool(context.remembered), self._question(number, change, context.here)
        if key not in self._answers:
            kept = self._known.known(_text(key))
            answer = read_as(kept, CarriedFile) if kept is not None else None
            if answer is None:
                return None
            self._answers[key] = answer
        return self._answers[key]

    def _answer(
        self, number: int, context: CarryContext, change: FileChange, before: FileResult
    ) -> CarriedFile:
        verdict = self._known_answer(number, context, change)
        if verdict is None:
            self._tries[number, change.path] += 1
            self._given.lacks = False
            verdict = self._carried(number, context, change, before)
            if not self._given.lacks:
                key = bool(context.remembered), self._question(number, change, context.here)
                self._answers[key] = verdict
                if self._needed[number].isdisjoint((verdict.path, verdict.leaves)):
                    self._known.note(_text(key), to_builtins(verdict))
        return verdict

    def _carried(
        self, number: int, context: CarryContext, change: FileChange, before: FileResult
    ) -> CarriedFile:
        blobs, needed = Blobs(self._given), self._needed[number]
        here = _few(self._given, self._met(change, context.here))
        context = replace(context, here=here, blobs=blobs, explains=False)
        try:
            file = carry_change(context, change, before)
        except BadInputError:  # what is remembered comes to something else: for a person
            file = CarriedFile(FileResult(change.path, Status.CONFLICTED), change.path)
        if self._given.lacks or any(c.reason is Reason.UNSAFE for c in file.outcome.clashes):
            file = CarriedFile(FileResult(change.path, Status.CONFLICTED), change.path)
        there: CarriedFile | None = None  # as later patches meet it
        if file.path in needed:
            there = file if file.carried else supposed(file, self._old_blobs, blobs)
        if there is not None and there.blob is not None:
            self._keep([there.blob])
        taken_for = there.entry if there is not None and not file.carried else None
        outcome = replace(file.outcome, clashes=(), reasons=(), upstream=None)
        path, entry, leaves = file.path, file.entry, file.leaves
        return CarriedFile(outcome, path, entry, leaves=leaves, taken_for=taken_for)

    def _fit(self, number: int, change: FileChange, here: Tree, trial: Blobs | None = None) -> _Fit:
        """What applying a change as it is comes to; of a `trial` no contents are kept."""
        key = self._question(number, change, here)
        verdict = self._fits.get(key)
        if verdict is None:
            self._given.lacks = False
            few, blobs = _few(self._given, self._met(change, here)), trial or Blobs(self._given)
            verdict, made = self._tried(change, few, blobs)
            needed = verdict.file.path in self._needed[number]
            self._keep(made if needed and trial is None else ())
            if not self._given.lacks and not (needed and trial):
                self._fits[key] = verdict
        return verdict

    def _tried(
        self, change: FileChange, here: Tree, blobs: Blobs
    ) -> tuple[_Fit, Sequence[GitObject]]:
        """What applying a change comes to, and the blobs that it makes.

        ABSORBED where what it makes is there already, in its place.
        """
        applied = apply_changes(here, blobs, (change,), terse=True)
        (outcome,) = applied.files
        if applied.tree is None:
            faults = faults_of(applied.files)
            return _Fit(CarriedFile(replace(outcome, clashes=()), change.path), faults), ()
        if outcome.status is Status.SHIFTED and is_contained(here, blobs, (change,)):
            outcome = replace(outcome, status=Status.ABSORBED)
        path = change.new_path if change.new_path is not None else change.path
        gone = change.old_path if change.old_path not in (None, path) else None
        left = gone if gone is not None and applied.tree.entry(gone) is None else None
        file = CarriedFile(outcome, path, applied.tree.entry(path), leaves=left)
        return _Fit(file), applied.blobs

    def _met(self, change: FileChange, here: Tree) -> State:
        """What stands at all paths that the verdict on a change depends on."""
        return dict(self._question(0, change, here)[-1])

    def _moved(self, change: FileChange) -> tuple[str | None, str | None]:
        """Where upstream took the file of a change, and the folder of one that it adds."""
        if change.old_path is None:
            return None, self.past.folder_renamed(str(change.new_path).rpartition("/")[0])
        there = self.state.get(change.old_path) is not None
        return (None if there else self.past.renamed(change.old_path)), None

    def _question(self, number: int, change: FileChange, here: Tree) -> _Question:
        """A change, and all that its verdict depends on."""
        renamed, folder = moved = self._moved(change)
        paths = {change.old_path, change.new_path, renamed} - {None}
        if folder is not None:
            paths.add(_in_folder(folder, change))
        met = tuple((path, here.entry(path)) for path in sorted(filter(None, paths)))
        return number, change.path, moved, met

    def _keep(self, blobs: Iterable[GitObject]) -> None:
        for blob in blobs:
            if blob.oid not in self._made:
                self._made[blob.oid] = compress(blob.payload, Z_BEST_SPEED)

    # Versions that stand for others

    def groups(self) -> tuple[ChangeGroup, ...]:
        """The changes whose files may be sampled: see `drift.sample`.

        Not those of patches that are taken as a whole or made by a recipe, and not files that a
        patch adds, which follow their folder.
        """
        left_out = set[str]()
        rows = [
            ((number, index), change, self._places(change))
            for number, changes in enumerate(self._changes)
            for index, change in enumerate(changes)
        ]
        for number, old in enumerate(self._stack.outcomes):
            whole = old.tree is None or names_a_path_twice(self._changes[number])
            if whole or self._patches[number].name in self._recipes:
                left_out |= self._of_patch[number]
        adding = {number for number, change, _ in rows if change.old_path is None}
        return tuple(
            group
            for group in grouped(rows)
            if group.paths.isdisjoint(left_out) and adding.isdisjoint(group.numbers)
        )

    def mark(self, group: ChangeGroup, version: FileVersion) -> tuple[object, ...]:
        """What tells apart versions of which none stands for the other.

        How each change applies as it is; of one that does not, which hunks are there in one piece.
        """
        self.state.update(version.state)
        self.past.position = version.position
        here: Tree = _few(self._given, version.state)
        blobs, lacks = Blobs(self._given), False
        mark: list[object] = []
        for path, entry in version.state.items():
            covered = entry is not None and any(e.covers(path) for e in self._recipes.values())
            alone = covered and entry and self._is_generated(path, blobs.contents(entry.oid))
            mark.append(entry if alone or entry is None else entry.mode)
        for (number, index), change in zip(group.numbers, group.changes, strict=True):
            verdict = self._fit(number, change, here, blobs)
            lacks |= self._given.lacks
            offsets = self._stack.outcomes[number].files[index].offsets
            mark.append(verdict.file.outcome.offsets == offsets)
            if verdict.status in FITS:
                here = edited(here, (verdict.file,))
                continue
            if self._quick:  # few are carried, see `_carry_one`: each stands for itself
                return (*version.state.items(),)
            entries = filter(None, version.state.values())
            texts = [blobs.contents(each.oid) for each in entries if S_ISREG(each.mode)]
            for hunk in change.hunks:
                for side in (b"".join(hunk.preimage), b"".join(hunk.postimage)):
                    mark += [side in text for text in texts]
        return (version.position,) if lacks else tuple(mark)

    def of_group(self, group: ChangeGroup, version: FileVersion) -> object:
        """What becomes of a group's changes on a version, with those before each and without."""
        self.state.update(version.state)
        self.past.position = version.position
        told: list[object] = []
        for together in (True, False)[: len(group.numbers)]:
            here: Tree = _few(self._given, version.state)
            for (number, index), change in zip(group.numbers, group.changes, strict=True):
                old = self._stack.outcomes[number].files[index]
                context = self._context(number, here)
                file = self._carry_one(self._patches[number], context, change, old)
                paths = filter(None, (file.path, file.leaves) if file.carried else ())
                told.append(alike(file.outcome.status, review=file.outcome.review, paths=[*paths]))
                if together and file.carried:
                    with suppress(ObstructedError):
                        here = edited(here, (file,))
        return tuple(told)

    def _context(self, number: int, here: Tree) -> CarryContext:
        before, after = self._before[number : number + 2]
        return CarryContext(
            *(before, after, here, self._old_blobs, Blobs(self._given), self.past),
            careful=False,
            labels=Labels(),
            remembered=self._options.remembered,
        )

    def _is_generated(self, path: str, data: bytes) -> bool:
        """Whether a recipe makes something of a file with these contents."""
        recipes = (each for each in self._recipes.values() if each.covers(path))
        runs = (each.run({path: data}) for each in recipes)
        return any(run.fatal or run.changed for run in runs)

    # Patches that recipes make

    def _generated(self, builder: StackBuilder, patch: SeriesPatch) -> PatchResult | None:
        """What its recipe makes of the files of the state; None for a patch that has none.

        `watch` says what it makes of files that no patch touches.
        """
        recipe = self._recipes.get(patch.name)
        if recipe is None:
            return None
        number, tree = self._numbers[patch.name], builder.tree
        rows = [self._fit(number, change, tree) for change in self._changes[number]]
        fits = bool(rows) and all(e.status in (*FITS, Status.ABSORBED) for e in rows)
        as_it_is = edited(tree, [each.file for each in rows]) if fits else None
        self._now.applied = {row.file.outcome.path: row for row in rows}
        outcomes = [each.file.outcome for each in rows]
        files = tuple(
            replace(each, status=Status.SHIFTED) if any(each.offsets) else each for each in outcomes
        )
        shifted = any(each.status is Status.SHIFTED for each in files)
        applying = Status.SHIFTED if shifted else Status.UNCHANGED
        if as_it_is is not None and self._quick:
            return builder.place(patch, as_it_is, (), applying, files)
        touched = {path: tree.entry(path) for path in sorted(self.paths) if recipe.covers(path)}
        covered = {path: e for path, e in touched.items() if e and S_ISREG(e.mode)}
        runs = {path: self._run(recipe, patch.name, path, e) for path, e in covered.items()}
        outside = self._watch.outside(patch.name, self.past.commit)
        fatal = [path for path, entry in runs.items() if entry is None]
        changed = {path: e for path, e in runs.items() if e is not None and e != covered[path]}
        nothing = outside is Status.EMPTY and not changed
        if fatal or nothing or outside is Status.CONFLICTED:
            failed = tuple(FileResult(path, Status.CONFLICTED) for path in fatal)
            return PatchResult(patch.name, Status.CONFLICTED, failed)
        for path, entry in changed.items():
            tree = tree.put(path, entry)
        if (
            as_it_is is not None
            and outside is Status.EMPTY
            and as_it_is.write([]) == tree.write([])
        ):
            return builder.place(patch, tree, (), applying, files)
        return builder.place(patch, tree, ())

    def _run(self, recipe: PatchRecipe, name: str, path: str, entry: TreeEntry) -> TreeEntry | None:
        """What a recipe makes of a file; None if that must not be used."""
        key = name, path, entry.oid
        if key not in self._runs:
            run = recipe.run({path: self._given.read(entry.oid, "blob")})
            blob = entry.oid
            if path in run.changed:
                made = make_object("blob", run.changed[path])
                self._keep([made])
                blob = made.oid
            self._runs[key] = None if run.fatal else blob
        oid = self._runs[key]
        return TreeEntry(entry.mode, oid) if oid is not None else None


class _Fit(Struct, frozen=True):
    """What applying a change as it is comes to, and the hunks that stop it."""

    file: CarriedFile  # without contents
    faults: tuple[HunkFault, ...] = ()

    @property
    def status(self) -> Status:
        """Its state."""
        return self.file.outcome.status


class _Putting(Struct):
    """What is known of the patch that is being put; its changes by their paths."""

    applied: dict[str, _Fit] = {}  # as it is, onto the stack so far
    on_top: dict[str, CarriedFile] = {}  # carried there
    skipped: set[str] = set()  # see _Put
    failing: bool = False  # whether it is known to be in conflict by itself


class _Put(Struct, frozen=True):
    """What putting a patch comes to, and what stands at its paths then; see ResolvedStack."""

    verdict: PatchVerdict
    here: State
    asks: frozenset[str]  # paths at which it matters what is there without conflicts
    skipped: frozenset[str]  # paths at which nobody has looked what is there without conflicts
    there: State | None = None  # were no patch in conflict; None while none is
    open: Mapping[str, Names] = {}
    failed: tuple[tuple[str, frozenset[str]], ...] = ()  # patches that failed so far


class _Stood(Struct):
    """What stands after some patches of the series; see ResolvedStack."""

    here: dict[str, TreeEntry | None]
    there: dict[str, TreeEntry | None] | None = None
    open: dict[str, Names] = {}
    failed: tuple[tuple[str, frozenset[str]], ...] = ()
    skipped: frozenset[str] = frozenset()  # paths at which `there` is not known

    def take(self, put: _Put) -> PatchVerdict:
        """Be one patch further; what becomes of it."""
        if put.there is not None:
            self.there = {**(self.here if self.there is None else self.there), **put.there}
        self.here.update(put.here)
        self.open.update(put.open)
        self.failed = put.failed
        self.skipped |= put.skipped
        return put.verdict


class _Given(ObjectSource):
    """A source in which a file that no server gives is empty, and noted in `lacks`."""

    def __init__(self, source: ObjectSource) -> None:
        self.source = source
        self.lacks = False  # whether one was asked for; whoever wants to know clears it before

    def read(self, oid: str, kind: str) -> bytes:
        """See ObjectSource."""
        try:
            return self.source.read(oid, kind)
        except MissingObjectError:
            self.lacks = True
            return b""


def faults_of(files: Sequence[FileResult]) -> tuple[HunkFault, ...]:
    """The hunks that stop changes, whose outcomes these are."""
    return tuple(
        HunkFault(clash.path, clash.hunk, clash.line, clash.reason)
        for outcome in files
        for clash in outcome.clashes
    )


def _trees(source: ObjectSource, stack: Stack) -> list[Tree]:
    """Where a stack is before each patch, and at its end."""
    trees = [Tree(source, stack.base.tree)]
    for outcome in stack.outcomes:
        trees.append(trees[-1] if outcome.tree is None else Tree(source, outcome.tree))
    return trees


def _few(source: ObjectSource, state: State) -> FewFiles:
    return FewFiles(source, {path: entry for path, entry in state.items() if entry is not None})


def _in_folder(folder: str, change: FileChange) -> str:
    """Where a file that a change adds comes to stand in another folder."""
    return f"{folder}/{str(change.new_path).rpartition('/')[2]}"


def _text(key: tuple[bool, _Question]) -> str:
    """A question as a file can hold it."""
    plain, (number, path, moved, met) = key
    state = ((each, f"{e.mode:o} {e.oid}" if e else "") for each, e in met)
    return repr((plain, number, path, *moved, *state))
