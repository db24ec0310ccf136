"""What a bump would make of patches that do not apply: the carry engine's word on each state.

The engine carries part by part (see parts.py), from the pin to what stands at the part's paths, and
each such state is carried once, however many commits have it. Nobody asks for a patch that applies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchkit.carry import carry_stack
from patchkit.drift.along import Along
from patchkit.drift.judging import Carry, HunkFault, SeriesJudge, State, Verdicts
from patchkit.drift.parts import Part, names_a_path_twice, split_series
from patchkit.drift.scopes import ScopeWatch
from patchkit.gitcmd.objects import MissingObjectError
from patchkit.model.base import Base
from patchkit.model.fewfiles import few_files
from patchkit.model.objects import GitObject
from patchkit.model.outcome import PatchOutcome, Status
from patchkit.model.overlay import Overlay
from patchkit.model.tree import ObjectSource
from patchkit.recipes.generating import Generator
from patchkit.recipes.values import Recipe
from patchkit.stack import SeriesPatch, StackBuilder, build_stack, patch_changes

_DATE = "0 +0000"


def carry_of(
    judge: SeriesJudge,
    patches: Sequence[SeriesPatch],
    recipes: Mapping[str, Recipe],
    along: Along,
) -> Carry:
    """What carries the patches that do not apply; it begins when it is first asked.

    `recipes` are by the patch's name.
    """
    made: list[Carrier | None] = []

    def carry(commit: str, state: State, verdicts: Verdicts) -> Verdicts:
        if not made:
            made.append(_open(judge, patches, recipes, along))
        return made[0](commit, state, verdicts) if made[0] is not None else verdicts

    return carry


def _open(
    judge: SeriesJudge,
    patches: Sequence[SeriesPatch],
    recipes: Mapping[str, Recipe],
    along: Along,
) -> Carrier | None:
    """None if files of the pin can't be had."""
    state = along.entries(along.history.pin, judge.paths)
    contents = along.contents(state.values())
    kept = Overlay(judge, (GitObject("blob", oid, data) for oid, data in contents.items()))
    numbered = {n: recipes[each.name] for n, each in enumerate(patches) if each.name in recipes}
    watch = ScopeWatch(along, numbered, frozenset(judge.paths))
    try:
        return Carrier(kept, patches, Pinned(along.history.pin, state), numbered, watch)
    except MissingObjectError:
        return None


class Pinned(Struct, frozen=True):
    """The commit that the patches are made for, and what stands there at their paths."""

    commit: str
    state: State


class _Moment(Struct, frozen=True):
    """A commit, what stands at the paths there, and the patches that conflict so far."""

    commit: str
    state: State
    left_out: set[int]


class Carrier:
    """Carries a series from its pin to states of its files; see Carry.

    `watch` says what the recipes of `recipes` (by the place of their patch in the series) come to
    in files that no patch touches.
    """

    def __init__(
        self,
        source: ObjectSource,
        patches: Sequence[SeriesPatch],
        pinned: Pinned,
        recipes: Mapping[int, Recipe],
        watch: ScopeWatch,
    ) -> None:
        self._source = source
        self._pinned = pinned
        self._recipes = recipes
        self._watch = watch
        self._parts = split_series(patches, self._whole(patches), recipes)
        self._old = [self._old_base(part) for part in self._parts]
        self._memory: dict[tuple[object, ...], Mapping[int, Status]] = {}
        self._tries: Counter[int] = Counter()

    def __call__(self, commit: str, state: State, verdicts: Verdicts) -> Verdicts:
        """The verdicts, with what the engine makes of each patch that does not apply."""
        told = list(verdicts)
        at = _Moment(commit, state, set())
        for number, verdict in enumerate(verdicts):
            if verdict.status is Status.CONFLICTED:
                carried = self._carried(number, at, verdict.faults)
                told[number] = replace(verdict, carried=carried)
                if carried is Status.CONFLICTED:
                    at.left_out.add(number)
        return tuple(told)

    def _carried(self, number: int, at: _Moment, faults: Sequence[HunkFault]) -> Status:
        found: set[Status] = set()
        for part in self._in_order(number, at, faults):
            status = self._part(part, at)[number]
            if status is Status.CONFLICTED:
                return status
            found.add(status)
        recipe = self._recipes.get(number)
        if recipe is not None:
            found.add(self._watch.outside(number, at.commit))
        return _joined(found, generated=recipe is not None)

    def _in_order(self, number: int, at: _Moment, faults: Sequence[HunkFault]) -> Sequence[int]:
        """The parts of a patch, those first that tell soonest that it conflicts.

        One conflict is enough. Known ones cost nothing; then files that change seldom, so that the
        answer holds for long.
        """
        clashing = {fault.path for fault in faults}

        def cost(part: int) -> tuple[bool, bool, int]:
            known = self._key(part, at) in self._memory
            apart = clashing.isdisjoint(self._parts[part].paths)
            return not known, apart, self._tries[part]

        mine = [n for n, part in enumerate(self._parts) if number in part.patches]
        return sorted(mine, key=cost)

    def _key(self, part: int, at: _Moment) -> tuple[object, ...]:
        paths, patches = self._parts[part].paths, self._parts[part].patches
        met = tuple(at.state.get(path) for path in paths)
        return part, met, frozenset(at.left_out).intersection(patches)

    def _part(self, part: int, at: _Moment) -> Mapping[int, Status]:
        key = self._key(part, at)
        if key not in self._memory:
            self._tries[part] += 1
            self._memory[key] = self._try(part, at)
        return self._memory[key]

    def _try(self, number: int, at: _Moment) -> Mapping[int, Status]:
        part, (old, objects) = self._parts[number], self._old[number]
        made = [*objects]
        met = {path: at.state.get(path) for path in part.paths}
        new = Base(at.commit, _tree(self._source, met, made), _DATE)
        source = Overlay(self._source, made)
        making = _Making(part, at.left_out, self._recipes)
        try:
            report = carry_stack(source, old, new, list(part.patches.values()), making)
        except MissingObjectError:  # a file that no server gives
            return dict.fromkeys(part.patches, Status.CONFLICTED)
        statuses = (outcome.status for outcome in report.outcomes)
        return dict(zip(part.patches, statuses, strict=True))

    def _old_base(self, part: Part) -> tuple[Base, tuple[GitObject, ...]]:
        objects: list[GitObject] = []
        entries = {path: self._pinned.state.get(path) for path in part.paths}
        tree = _tree(self._source, entries, objects)
        return Base(self._pinned.commit, tree, _DATE), tuple(objects)

    def _whole(self, patches: Sequence[SeriesPatch]) -> set[int]:
        """The patches that the engine takes as a whole: those it cannot merge file by file."""
        objects: list[GitObject] = []
        tree = _tree(self._source, self._pinned.state, objects)
        source = Overlay(self._source, objects)
        base = Base(self._pinned.commit, tree, _DATE)
        stack = build_stack(source, base, patches, stop_at_conflict=False)
        return {
            number
            for number, (patch, outcome) in enumerate(zip(patches, stack.outcomes, strict=True))
            if not outcome.status.applies or names_a_path_twice(patch_changes(patch))
        }


class _Making(Struct, frozen=True):
    """See carry.Generate: runs recipes, and leaves out what conflicts in another part."""

    part: Part
    without: Collection[int]
    recipes: Mapping[int, Recipe]

    def __call__(self, builder: StackBuilder, patch: SeriesPatch) -> PatchOutcome | None:
        number = next(n for n, each in self.part.patches.items() if each is patch)
        if number in self.without:
            return PatchOutcome(patch.name, Status.CONFLICTED)
        recipe = self.recipes.get(number)
        if recipe is None:
            return None
        generator = Generator({patch.name: recipe})
        outcome = generator(builder, patch)
        run = generator.runs[patch.name]
        if not run.changed and not run.fatal:
            return PatchOutcome(patch.name, Status.EMPTY)  # it may have more to do elsewhere
        return outcome


def _joined(found: Iterable[Status], *, generated: bool) -> Status:
    """What a patch comes to whose parts come to these, none of them a conflict."""
    kinds = set(found) - {Status.EMPTY}
    if Status.CONFLICTED in kinds:
        return Status.CONFLICTED
    if generated:
        return Status.REGENERATED if kinds else Status.CONFLICTED
    return Status.ABSORBED if kinds == {Status.ABSORBED} else Status.MERGED


def _tree(source: ObjectSource, state: State, objects: list[GitObject]) -> str:
    """A tree of just these files; its own objects are appended."""
    return few_files(source, state).write(objects)
