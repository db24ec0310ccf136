"""A walk along a tracked branch: what becomes of a series on every state of its files.

The walk looks at commits that touch the patches' files only, followed to where upstream moves them;
between two of them nothing can have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.disk.result_cache import ResultCache
from patchkit.drift.drift_report import HunkFault, PatchForecast
from patchkit.drift.follow import ScopeWatch, follow
from patchkit.drift.forecast import Forecaster, PatchVerdict
from patchkit.drift.judge import State, stands
from patchkit.drift.sample import ChangeGroup, FileVersion, thin_out, touches_of
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.first_parent import (
    Beginning,
    Commit,
    Files,
    blobs_of,
    describe_commits,
    entries_at,
    landed_with,
)
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Status
from patchkit.model.resolution import Resolution
from patchkit.stack.build import SeriesPatch, patch_changes, series_paths
from patchkit.stack.generated import PatchRecipe
from patchkit.upstream.history import READ_AT_ONCE, HistoryReader


class WatchedSeries(Struct, frozen=True):
    """A series to look along a branch for.

    `recipes` are by the patch's name, `remembered` resolutions of conflicts that the project keeps
    by their keys, `verdicts` what earlier runs found.
    """

    patches: Sequence[SeriesPatch]
    recipes: Mapping[str, PatchRecipe] = field(default_factory=dict)
    remembered: Mapping[str, Resolution] = field(default_factory=dict)
    verdicts: ResultCache = field(default_factory=ResultCache)


class TouchingCommit(Struct, frozen=True):
    """A commit of the line that changes files of patches.

    `position` counts the commits of the line from 1 (0 is where it starts); `parent` is the one
    before it.
    """

    position: int
    commit: Commit
    parent: CommitId
    paths: tuple[str, ...]  # those of patches that it changes


class Transition(Struct, frozen=True):
    """From the commit at `position` of the line on, the patch's state is this one.

    `inside` is the commit that did it: that one, or one that it merged; None where nobody asked.
    """

    position: int
    verdict: PatchVerdict  # the state from there on
    inside: Commit | None = None

    @property
    def status(self) -> Status:
        """What a bump would make of the patch."""
        return self.verdict.status

    @property
    def faults(self) -> tuple[HunkFault, ...]:
        """The hunks that do not apply as they are."""
        return self.verdict.faults


class Walk(Struct, frozen=True):
    """What a walk from `start` to `tip`, `length` commits, came upon.

    `at_pin` has each patch's state on the pin itself; `changes` has, for each patch, its state at
    position 0 and each other one after it, `absorbed` the hunks that upstream has at the tip.
    """

    start: CommitId
    tip: CommitId
    length: int
    touches: tuple[TouchingCommit, ...]  # commits that change files of patches, oldest first
    at_pin: tuple[Status, ...]
    changes: tuple[tuple[Transition, ...], ...]
    #: For each patch: hunks, with the commit since which upstream has them, None if it had before.
    absorbed: tuple[tuple[tuple[HunkFault, Transition | None], ...], ...]


class Walker:
    """A series on its way along a branch; `judge_all` goes to its end, `judge_at` anywhere.

    For `quick` see Forecaster. A `sampled` one carries to few versions of each file, which stand
    for the others: see `drift.sample`. `note` gets how many commits of the line are judged, of how
    many.
    """

    def __init__(
        self,
        along: HistoryReader,
        series: WatchedSeries,
        *,
        quick: bool,
        sampled: bool = True,
        note: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> None:
        self._note = note
        history, patches = along.history, series.patches
        changes = [change for patch in patches for change in patch_changes(patch)]
        paths = series_paths(patches)
        added = [str(c.new_path) for c in changes if c.old_path is None]
        at_pin = entries_at(history.repository, history.pin, paths)
        along.bring(blobs_of(at_pin.values()))
        self._along = along
        self._series = series
        self.route = follow(history, paths, added=added)
        along.bring(blobs_of(self.route.start.values()))
        self._paths = frozenset(paths)
        ends = history.pin, history.tip
        self._past = Between(history.repository, *ends, bring=along.bring, paths=paths)
        self._steps = {step.position: step.landing for step in self.route.steps}
        homes = (home for each in self.route.homes.values() for _, home in each)
        self.forecaster = Forecaster(
            along.reader,
            history.base(history.pin, along.reader),
            patches,
            self.route,
            recipes=series.recipes,
            verdicts=series.verdicts,
            remembered=series.remembered,
            watch=ScopeWatch(along, series.recipes, frozenset((*paths, *homes))),
            quick=quick,
        )
        self._touches = touches_of(self.route)
        if sampled:
            self._thin_out(quick=quick)
        self._begin()

    def judge_all(self) -> Iterator[tuple[int, tuple[PatchVerdict, ...]]]:
        """(position, what becomes of each patch from there on), for every state of the files."""
        self._begin()
        yield 0, self.forecaster.judge()
        rows = sorted(self._touches)
        batches = [rows[at : at + READ_AT_ONCE] for at in range(0, len(rows), READ_AT_ONCE)]
        wanted = [_versions([self._touches[position] for position in batch]) for batch in batches]
        for batch, contents in zip(batches, self._along.read_batches(wanted), strict=True):
            self.forecaster.supply(contents)
            for position in batch:
                self._take(position)
                yield position, self.forecaster.judge()
                self._note(position, len(self.route.line.commits))
        self.forecaster.supply({})
        self._series.verdicts.close()

    def judge_at(self, position: int) -> tuple[PatchVerdict, ...]:
        """What becomes of each patch at a position of the line; brings the files there."""
        self._go_to(position)
        self._along.bring(blobs_of(self.forecaster.state.values()))
        return self.forecaster.judge()

    def met_at(self, position: int, number: int) -> State:
        """What a patch meets at its paths at a position, were no earlier one in conflict."""
        self._go_to(position)
        return self.forecaster.met(number)

    def opened(self, position: int, number: int, kind: object) -> Commit | None:
        """The commit that brought a patch's kind of verdict: the one at a position, or of those
        that it merged.
        """
        step = self._steps.get(position)
        if step is None:
            return None
        self._go_to(position)
        around = dict(self.forecaster.state)

        def holds(files: Files) -> bool:
            self.forecaster.state.update({**around, **files})
            return self.forecaster.judge()[number].kind == kind

        paths = sorted(self.forecaster.paths)
        asked = Beginning(self._along.history.repository, paths, holds, self._along.bring)
        return asked.within(step)

    def standing(self, number: int, fault: HunkFault) -> Transition | None:
        """Since when upstream's own file has what a hunk makes; None where it had it before."""
        changes = patch_changes(self._series.patches[number])
        change = [e for e in changes if e.path == fault.path and e.line <= fault.line][-1]
        by = self._past.since((fault.path,), partial(stands, change, fault.hunk))
        return self.since([by], PatchVerdict(Status.ABSORBED))

    def since(self, names: Sequence[str], verdict: PatchVerdict) -> Transition | None:
        """The verdict from where the last of some commits, "ID subject", came to the line.

        None where one of them did not, or none changed a file of the patches there.
        """
        repository, line = self._along.history.repository, self.route.line
        begun: list[tuple[int, CommitId]] = []
        for name in names:
            commit = repository.commit(name.partition(" ")[0]) if name else None
            position = landed_with(repository, line, commit) if commit is not None else 0
            if commit is None or position not in self._steps:
                return None
            begun.append((position, commit))
        position, commit = max(begun)
        return Transition(position, verdict, describe_commits(repository, [commit])[commit])

    def _begin(self) -> None:
        state = self.forecaster.state
        state.clear()
        state.update(dict.fromkeys(self._paths))
        state.update(self.route.start)
        self.forecaster.past.position = 0

    def _thin_out(self, *, quick: bool) -> None:
        """Leave one of the versions of files that come to the same."""
        start = {**dict.fromkeys(self._paths), **self.route.start}
        self._along.bring(_versions(list(self._touches.values())))
        for group in self.forecaster.groups():
            self._begin()
            carry = None if quick else self.forecaster.of_group
            thin_out(self._touches, start, group, mark_all=self._marks, carry=carry)
        self.forecaster.supply({})
        if not self._series.recipes:  # these look at more than files of patches
            self._touches = {position: row for position, row in self._touches.items() if row}

    def _marks(
        self, group: ChangeGroup, versions: Sequence[FileVersion]
    ) -> Iterator[tuple[object, ...]]:
        batches = [versions[n : n + READ_AT_ONCE] for n in range(0, len(versions), READ_AT_ONCE)]
        wanted = [blobs_of(e for each in batch for e in each.state.values()) for batch in batches]
        for batch, contents in zip(batches, self._along.read_batches(wanted), strict=True):
            self.forecaster.supply(contents)
            for version in batch:
                yield self.forecaster.mark(group, version)

    def _take(self, position: int) -> None:
        self.forecaster.state.update(self._touches[position])
        self.forecaster.past.position = position

    def _go_to(self, position: int) -> None:
        self._begin()
        for step in self.route.steps:
            if step.position <= position:
                self.forecaster.state.update(step.landing.touches)
        self.forecaster.past.position = position


def walk_history(walker: Walker) -> Walk:
    """Judge every state between the fork and the tip."""
    changes: list[list[Transition]] = []
    for position, verdicts in walker.judge_all():
        if not changes:
            changes = [[Transition(0, verdict)] for verdict in verdicts]
            continue
        for known, verdict in zip(changes, verdicts, strict=True):
            if known[-1].verdict is not verdict and known[-1].verdict != verdict:
                known.append(Transition(position, verdict))
    return _walk(walker, changes)


def ended(walker: Walker, walk: Walk, forecasts: Sequence[PatchForecast]) -> Walk:
    """The walk with what carrying to the tip comes to as the state that it ends in.

    Where the walk, which looks at less, came to something else, that began with the same commit;
    an absorbed patch was so since the commits came that carrying names.
    """
    told = []
    for changes, forecast in zip(walk.changes, forecasts, strict=True):
        last, at = changes[-1].status, len(changes)
        while at and changes[at - 1].status is last:
            at -= 1
        status, names = forecast.status, forecast.waits_for
        ends = [
            replace(each, verdict=replace(each.verdict, status=status, waits_for=names))
            for each in changes[at:]
        ]
        by = forecast.absorbed_by if status is Status.ABSORBED and at else ()
        begun = walker.since(by, ends[-1].verdict) if by else None
        if begun is not None:
            ends, at = [begun], sum(each.position < begun.position for each in changes[:at])
        told.append((*changes[:at], *ends))
    return replace(walk, changes=tuple(told))


def _walk(walker: Walker, changes: Sequence[Sequence[Transition]]) -> Walk:
    line = walker.route.line
    touches = tuple(
        TouchingCommit(
            step.position, step.landing.commit, step.landing.parent, tuple(sorted(paths))
        )
        for step in walker.route.steps
        if (paths := step.landing.touches.keys() & walker.forecaster.paths)
    )
    told = tuple(tuple(_opened(walker, patch, row)) for patch, row in enumerate(changes))
    tip = line.commits[-1] if line.commits else line.start
    absorbed = tuple(
        tuple((fault, walker.standing(n, fault)) for fault in row[-1].faults if fault.absorbed)
        for n, row in enumerate(changes)
    )
    at_pin = walker.forecaster.at_pin
    return Walk(line.start, CommitId(tip), len(line.commits), touches, at_pin, told, absorbed)


def _opened(walker: Walker, patch: int, changes: Sequence[Transition]) -> Iterator[Transition]:
    """The changes, those to another kind of state with the commit that brought it."""
    kind = changes[0].verdict.kind
    for change in changes:
        if change.verdict.kind == kind:
            yield change
            continue
        kind = change.verdict.kind
        yield replace(change, inside=walker.opened(change.position, patch, kind))


def _versions(batch: Sequence[State]) -> dict[str, None]:
    """The blobs that commits bring, the versions of one file together: git unpacks them faster."""
    touches = [pair for each in batch for pair in each.items()]
    return blobs_of(entry for _, entry in sorted(touches, key=lambda pair: pair[0]))
