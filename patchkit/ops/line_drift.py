"""What is searched for along a line: what becomes of each patch, what clashes, and what drifted
without a conflict.

Apart from `ops/drift.py`, which alone asks it: the engines behind it are loaded only where no
earlier run kept the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from msgspec.structs import replace

from patchkit.drift.describe import explain_clash, landed_of, tell
from patchkit.drift.drift_report import (
    LineDrift,
    PatchDrift,
    PatchForecast,
    Suspicion,
)
from patchkit.drift.forecast_cache import SeriesMemory
from patchkit.drift.silent_changes import (
    find_suspicions,
)
from patchkit.drift.trial import Trial
from patchkit.drift.walk import (
    Walk,
    Walker,
    WatchedSeries,
    ended,
    walk_history,
)
from patchkit.errors import BadInputError, SurroundingsError
from patchkit.explain.explanation import PatchExplanation
from patchkit.extension import WatchedLine, silent_searches
from patchkit.gitcmd.object_reader import MissingObjectError, ObjectReader
from patchkit.gitcmd.pins import absent_blobs
from patchkit.gitcmd.workers import in_processes
from patchkit.model.finding import Finding, Landed, Severity
from patchkit.stack.build import SeriesPatch
from patchkit.stack.series import LoadedSeries
from patchkit.upstream.history import History, HistoryReader

#: What becomes of each patch at the tip; None where files for it cannot be fetched.
_Forecasts: TypeAlias = "tuple[PatchForecast, ...] | None"


def judge_line(
    along: HistoryReader,
    loaded: LoadedSeries,
    memory: SeriesMemory,
    *,
    helped: bool,
) -> LineDrift:
    """What becomes of each patch from the fork to the tip, and what a bump to the tip comes to.

    Where it is `helped` a worker finds out the latter, if the former takes long. On disk: what was
    found, in `memory`; the whole of it only if no file was missing, as then it follows from
    commits, series, recipes and resolutions.
    """
    history, patches = along.history, loaded.patches
    series = WatchedSeries(
        loaded.series_patches, memory.recipes, memory.remembered, verdicts=memory.verdicts()
    )
    repository = history.repository
    note = partial(repository.progress.advance, repository.name)
    walker = Walker(along, series, quick=True, note=note)
    walk, forecasts = _walked(walker, along, partial(forecast_tip, series.patches, memory), helped)
    whole = forecasts is not None
    told: list[PatchDrift] = []
    for number, each in enumerate(tell(history, walk, patches)):
        clash: PatchExplanation | None = None
        try:
            clash = _clash(each, number, walker, along, series.patches[number])
        except MissingObjectError:  # no server gives it, or it is gone from the cache
            whole = False
        told.append(replace(each, explanation=clash))
    if forecasts is not None:
        rows = zip(told, forecasts, commits_of_fates(history, forecasts), strict=True)
        told = [replace(each, forecast=forecast, fate_by=by) for each, forecast, by in rows]
    suspicions = _suspicions(along, series.patches)
    if suspicions is not None:
        told = [replace(each, suspicions=odd) for each, odd in zip(told, suspicions, strict=True)]
    line = walk.line.commits
    start, tip = landed_of(history, [walk.line.start, line[-1] if line else walk.line.start])
    found = LineDrift(history.fork, start, tip, len(line), walk.touching, tuple(told))
    if whole and suspicions is not None and not absent_blobs(history.repository):
        memory.note_line(found)
    return found


def _walked(
    walker: Walker, along: HistoryReader, carry: Callable[[History], _Forecasts], helped: bool
) -> tuple[Walk, _Forecasts]:
    """What is found along the line, and what `carry` finds of the tip."""
    history, walks = along.history, list[Walk]()
    progress, stop = history.repository.progress, history.repository.store.stop

    def walk_along() -> None:
        walks.append(walk_history(walker))
        along.reader.close()

    (forecasts,) = in_processes(
        carry, [history], progress=progress, stop=stop, first=walk_along, helped=helped
    )
    walk = walks[0] if forecasts is None else ended(walker, walks[0], forecasts)
    return walk, forecasts


def forecast_tip(
    patches: Sequence[SeriesPatch], memory: SeriesMemory, history: History
) -> _Forecasts:
    """What a bump to the tip comes to."""
    series = WatchedSeries(patches, memory.recipes, memory.remembered)
    with ObjectReader(history.repository) as reader:
        trial = Trial(HistoryReader(history, reader), series, memory.trials())
        return trial.carry_to(history.tip)


def commits_of_fates(
    history: History, forecasts: Sequence[PatchForecast]
) -> Sequence[Landed | None]:
    """The commit that the fate of each patch names, where it names one."""
    names = [forecast.fate.by if forecast.fate else "" for forecast in forecasts]
    found = {name: history.repository.commit(name.partition(" ")[0]) for name in {*names} - {""}}
    known = {name: commit for name, commit in found.items() if commit is not None}
    landed = dict(zip(known, landed_of(history, [*known.values()]), strict=True))
    return list(map(landed.get, names))


def _suspicions(
    along: HistoryReader, patches: Sequence[SeriesPatch]
) -> Sequence[tuple[Suspicion, ...]] | None:
    try:
        return find_suspicions(along.history, along.reader, patches)
    except MissingObjectError:  # a file that no server gives
        return None


def _clash(
    patch: PatchDrift, number: int, walker: Walker, along: HistoryReader, series_patch: SeriesPatch
) -> PatchExplanation | None:
    """What clashes at the commit since which the patch is in its state."""
    if not patch.is_broken:
        return None
    position = patch.intervals[-1].first if patch.since else len(walker.route.line.commits)
    return explain_clash(
        along.history,
        walker.forecaster,
        series_patch,
        commit=walker.route.commit(position),
        met=walker.met_at(position, number),
        renamed=walker.forecaster.past.renamed_by,
    )


# Without a conflict: new code that patches should cover, replaced functions that upstream changed.


def find_silent_drift(line: WatchedLine) -> tuple[Finding, ...]:
    """Compare the tip with the pin, by all that extensions look for."""
    found: list[Finding] = []
    for words, search in silent_searches().items():
        try:
            found.extend(search.find(line))
        except (BadInputError, SurroundingsError) as error:
            # where another component's patches do not apply, its own check says so
            what = f"not all of {line.component.name} could be looked at"
            found.append(Finding(Severity.NOTE, "unseen", f"{what}: {words}: {error.problems[0]}"))
    return tuple(found)
