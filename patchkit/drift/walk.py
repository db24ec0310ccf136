"""A walk along a tracked branch: what becomes of a series on every state of its files.

The walk looks at commits that touch the patches' files only, followed to where upstream moves them;
between two of them nothing can have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.disk.result_cache import ResultCache
from patchkit.drift.drift_report import HunkFault, PatchForecast
from patchkit.drift.follow import ScopeWatch, Step, follow
from patchkit.drift.forecast import Forecaster, PatchVerdict
from patchkit.drift.sample import ChangeGroup, FileVersion, State, thin_out
from patchkit.gitcmd.first_parent import (
    Beginning,
    Commit,
    Files,
    Line,
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
from patchkit.upstream.history import HistoryReader, in_pieces


class WatchedSeries(Struct, frozen=True):
    """A series to look along a branch for.

    `recipes` are by the patch's name, `remembered` resolutions of conflicts that the project keeps
    by their keys, `verdicts` what earlier runs found.
    """

    patches: Sequence[SeriesPatch]
    recipes: Mapping[str, PatchRecipe] = {}
    remembered: Mapping[str, Resolution] = {}
    verdicts: ResultCache = field(default_factory=ResultCache)


class Transition(Struct, frozen=True):
    """The state of a patch from the commit at `position` of the line on.

    `faults` are the hunks that do not fit there, `waits_for` the earlier patches that must be
    resolved first. `inside` is the commit that brought the state about: that one, or one that it
    merged; None if this was not looked up.
    """

    position: int
    status: Status
    faults: tuple[HunkFault, ...] = ()
    waits_for: tuple[str, ...] = ()
    inside: Commit | None = None


class Walk(Struct, frozen=True):
    """What a walk along `line` came upon.

    `steps` are the commits that change watched files, `touching` of which change files of patches.
    `at_pin` has each patch's state on the pin itself; `changes` has, for each patch, its state at
    position 0 and each other one after it.
    """

    line: Line
    steps: tuple[Step, ...]  # oldest first
    touching: int
    at_pin: tuple[Status, ...]
    changes: tuple[tuple[Transition, ...], ...]


class Walker:
    """A series on its way along a branch; `judge_all` goes to its end.

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
        #: What the commits leave at the paths that are watched.
        self._touches = {each.position: dict(each.landing.touches) for each in self.route.steps}
        if sampled:
            self._thin_out(quick=quick)
        self._begin()

    def judge_all(self) -> Iterator[tuple[int, tuple[PatchVerdict, ...]]]:
        """(position, what becomes of each patch from there on), for every state of the files."""
        self._begin()
        yield 0, self.forecaster.judge()
        rows = sorted(self._touches)
        batches = in_pieces(rows)
        wanted = [_versions([self._touches[position] for position in batch]) for batch in batches]
        for batch, contents in zip(batches, self._along.read_batches(wanted), strict=True):
            self.forecaster.supply(contents)
            for position in batch:
                self._take(position)
                yield position, self.forecaster.judge()
                self._note(position, len(self.route.line.commits))
        self.forecaster.supply({})
        self._series.verdicts.close()

    def met_at(self, position: int, number: int) -> State:
        """What a patch meets at its paths at a position, were no earlier one in conflict."""
        self._go_to(position)
        return self.forecaster.met(number)

    def opened(self, position: int, number: int, status: Status) -> Commit | None:
        """The commit that brought a patch into a state: the one at a position, or of those that it
        merged.
        """
        step = self._steps.get(position)
        if step is None:
            return None
        self._go_to(position)
        around = dict(self.forecaster.state)

        def holds(files: Files) -> bool:
            self.forecaster.state.update({**around, **files})
            return self.forecaster.status_of(number) is status

        paths = sorted(self.forecaster.paths_of(number))
        asked = Beginning(self._along.history.repository, paths, holds, self._along.bring)
        return asked.within(step)

    def since(self, names: Sequence[str]) -> Transition | None:
        """What upstream has since the last of some commits, "ID subject", came to the line.

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
        inside = describe_commits(repository, [commit])[commit]
        return Transition(position, Status.ABSORBED, inside=inside)

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
        batches = in_pieces(versions)
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
    verdicts: tuple[PatchVerdict, ...] = ()
    for position, verdicts in walker.judge_all():
        changes = changes or [[] for _ in verdicts]
        for known, verdict in zip(changes, verdicts, strict=True):
            if not known or known[-1].status is not verdict.status:
                known.append(Transition(position, verdict.status, verdict.faults))
            if known[-1].waits_for != verdict.forecast.waits_for:
                known[-1] = replace(known[-1], waits_for=verdict.forecast.waits_for)
    for number, (_, *later) in enumerate(changes):
        changes[number][1:] = [
            replace(each, inside=walker.opened(each.position, number, each.status))
            for each in later
        ]
    steps, paths = walker.route.steps, walker.forecaster.paths
    touching = sum(not paths.isdisjoint(step.landing.touches) for step in steps)
    told = tuple(map(tuple, changes))
    return Walk(walker.route.line, steps, touching, walker.forecaster.at_pin, told)


def ended(walker: Walker, walk: Walk, forecasts: Sequence[PatchForecast]) -> Walk:
    """The walk with what carrying to the tip comes to as the state that it ends in.

    Where the walk, which looks at less, came to something else, that began with the same commit;
    an absorbed patch was so since the commits came that carrying names.
    """
    rows = zip(walk.changes, forecasts, strict=True)
    return replace(walk, changes=tuple(_ended(walker, *row) for row in rows))


def _ended(
    walker: Walker, changes: Sequence[Transition], forecast: PatchForecast
) -> tuple[Transition, ...]:
    *before, end = changes
    by = forecast.absorbed_by if forecast.status is Status.ABSORBED and before else ()
    begun = walker.since(by) if by else None
    if begun is not None:
        end = replace(begun, faults=end.faults)
        before = [each for each in before if each.position < begun.position]
    if before and before[-1].status is forecast.status:
        end = before.pop()
    return *before, replace(end, status=forecast.status, waits_for=forecast.waits_for)


def _versions(batch: Sequence[State]) -> dict[str, None]:
    """The blobs that commits bring, the versions of one file together: git unpacks them faster."""
    touches = [pair for each in batch for pair in each.items()]
    return blobs_of(entry for _, entry in sorted(touches, key=lambda pair: pair[0]))
