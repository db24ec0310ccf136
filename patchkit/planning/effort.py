"""From a walk over a branch to how far each amount of hand work reaches."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from patchkit.drift.describe import landed_of
from patchkit.drift.drift_report import PatchForecast
from patchkit.drift.follow import Route
from patchkit.drift.trial import Trial
from patchkit.drift.walk import Walker, WatchedSeries
from patchkit.planning.metadata import Metadata
from patchkit.planning.plan_report import Reach, Stretch, effort_of, stays
from patchkit.upstream.history import Along, History

# So many commits are carried to for one component; what is said of others is the forecast.
_MOST = 24


def walk_stack(
    along: Along, series: WatchedSeries, metadata: Metadata | None = None
) -> tuple[Route, tuple[Stretch, ...]]:
    """Forecast every state of the files between the fork and the tip; `metadata` sees them, too."""
    walker = Walker(along, series, quick=False)
    names = [patch.name for patch in series.patches]
    found: list[tuple[int, tuple[PatchForecast, ...]]] = []
    for position, verdicts in walker.judge_all():
        pairs = zip(names, verdicts, strict=True)
        patches = tuple(verdict.forecast(name) for name, verdict in pairs)
        if not found or patches != found[-1][1]:
            found.append((position, patches))
        if metadata is not None:
            metadata.note(position, walker.forecaster)
    return walker.route, _stretches(found, len(walker.route.line.commits))


def tried(stretches: Sequence[Stretch], route: Route, trial: Trial) -> tuple[Stretch, ...]:
    """The stretches, as carrying has those that reach farthest for some amount of work.

    And those behind each of them, which are said to take more.
    """
    told = list(stretches)
    for _ in range(_MOST):
        stretch = _to_try(told)
        if stretch is None:
            break
        patches = trial.carry_to(route.commit(stretch.last))
        told[told.index(stretch)] = _as_found(stretch, patches)
    return tuple(told)


def _to_try(stretches: Sequence[Stretch]) -> Stretch | None:
    """The next one to carry to, the newest first."""
    best = farthest(stretches)
    untried = [each for each in best if not each.tried]
    if not untried:
        ends = {each.last + 1 for each in best}
        untried = [each for each in stretches if each.first in ends and not each.tried]
    return untried[-1] if untried else None


def _as_found(stretch: Stretch, patches: tuple[PatchForecast, ...] | None) -> Stretch:
    if patches is None:
        return replace(stretch, tried=True)
    return replace(stretch, effort=effort_of(patches), patches=patches, tried=True)


def reaches(history: History, route: Route, stretches: Sequence[Stretch]) -> tuple[Reach, ...]:
    """How far each amount of work reaches, from the least to what the tip takes.

    An amount that reaches no farther than less work is left out.
    """
    best = farthest(stretches)
    length = len(route.line.commits)
    ids = (route.line.start, *route.line.commits)
    wanted = [ids[each.last] for each in best]
    wanted += [ids[min(each.last + 1, length)] for each in best]
    landed = landed_of(history, wanted)
    return tuple(
        Reach(
            grade=each.effort.grade,
            effort=each.effort,
            position=each.last,
            behind=length - each.last,
            commit=landed[number],
            stopped_by=landed[len(best) + number] if each.last < length else None,
            patches=tuple(patch for patch in each.patches if not stays(patch)),
            tried=each.tried,
        )
        for number, each in enumerate(best)
    )


def farthest(stretches: Sequence[Stretch]) -> list[Stretch]:
    """The stretch that reaches farthest for each amount of work, from the least."""
    best: list[Stretch] = []
    for stretch in sorted(stretches, key=lambda each: (each.effort.level, -each.last)):
        if not best or stretch.last > best[-1].last:
            best.append(stretch)
    return best


def _stretches(
    found: Sequence[tuple[int, tuple[PatchForecast, ...]]], length: int
) -> tuple[Stretch, ...]:
    firsts = [position for position, _ in found]
    lasts = [*(first - 1 for first in firsts[1:]), length]
    return tuple(
        Stretch(first, last, effort_of(patches), patches)
        for (first, patches), last in zip(found, lasts, strict=True)
    )
