"""What is searched for along a line: what becomes of each patch, what clashes, and what drifted
without a conflict.

Apart from `ops/drift.py`, which alone asks it: the engines behind it are loaded only where no
earlier run kept the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial

from msgspec.structs import replace

from patchkit.drift.describe import explain_clash, landed_of, tell
from patchkit.drift.drift_report import (
    BrokenContract,
    LineDrift,
    PatchDrift,
    Suspicion,
)
from patchkit.drift.forecast_cache import SeriesMemory
from patchkit.drift.silent_changes import (
    find_moved_targets,
    find_suspicions,
)
from patchkit.drift.trial import Trial
from patchkit.drift.walk import (
    Walker,
    WatchedSeries,
    bisect_history,
    ended,
    walk_history,
)
from patchkit.errors import BadInputError, PatchkitError, SurroundingsError
from patchkit.explain.explanation import PatchExplanation
from patchkit.extension import WatchedLine, silent_searches
from patchkit.extensions.python_guards.agreements import partners_of
from patchkit.extensions.python_guards.override_review import read_replacements
from patchkit.extensions.python_guards.replacements import Replacements
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.gitcmd.pins import absent_blobs
from patchkit.manifest.values import Component, Manifest, Overrides
from patchkit.model.finding import Finding, Severity
from patchkit.model.progress import Progress
from patchkit.ops.built_stack import built_stack
from patchkit.stack.build import SeriesPatch
from patchkit.stack.series import LoadedSeries
from patchkit.upstream.history import HistoryReader
from patchkit.upstream.store import Store


def judge_line(
    along: HistoryReader,
    loaded: LoadedSeries,
    memory: SeriesMemory,
    *,
    bisect: bool,
    note: Callable[[int, int], None],
) -> LineDrift:
    """What becomes of each patch from the fork to the tip, and what a bump to the tip comes to.

    On disk: what was found, in `memory`; the whole of it only if no file was missing, as then it
    follows from commits, series, recipes and resolutions.
    """
    history, patches = along.history, loaded.patches
    series = WatchedSeries(
        loaded.series_patches, memory.recipes, memory.remembered, verdicts=memory.verdicts()
    )
    walker = Walker(along, series, quick=True, sampled=not bisect, note=note)
    walk = bisect_history(walker) if bisect else walk_history(walker)
    forecasts = Trial(along, series, memory.trials()).carry_to(history.tip)
    if forecasts is not None:
        walk = ended(walker, walk, forecasts)
    whole = forecasts is not None
    told: list[PatchDrift] = []
    for number, each in enumerate(tell(history, walk, patches)):
        clash: PatchExplanation | None = None
        try:
            clash = _clash(each, number, walker, along, series.patches[number])
        except MissingObjectError:  # no server gives it, or it is gone from the cache
            whole = False
        forecast = forecasts[number] if forecasts is not None else None
        risk = each.risk if not bisect else None
        told.append(replace(each, explanation=clash, forecast=forecast, risk=risk))
    suspicions = _suspicions(along, series.patches)
    if suspicions is not None:
        told = [replace(each, suspicions=odd) for each, odd in zip(told, suspicions, strict=True)]
    start, tip = landed_of(history, [walk.start, walk.tip])
    found = LineDrift(history.fork, start, tip, walk.length, len(walk.touches), tuple(told))
    if whole and suspicions is not None and not absent_blobs(history.repository):
        memory.note_line(found, bisect=bisect)
    return found


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
    )


# Without a conflict: new code that patches should cover, replaced functions that upstream changed.


def find_silent_drift(
    line: WatchedLine, overriding: Sequence[tuple[Component, Overrides]]
) -> tuple[Finding, ...]:
    """Compare the tip with the pin; fetches components that replace code of this one, which are
    `overriding`, each with what it declares of that.
    """
    found: list[Finding] = []
    along, store, progress = line.along, line.store, line.progress
    name = line.component.name

    def look(
        what: str,
        search: Callable[[], Iterable[Finding]],
        trouble: type[PatchkitError] = SurroundingsError,
    ) -> None:
        try:
            found.extend(search())
        except (SurroundingsError, trouble) as error:
            words = f"not all of {name} could be looked at: {what}: {error.problems[0]}"
            found.append(Finding(Severity.NOTE, "unseen", words))

    for words, search in silent_searches().items():
        look(words, partial(search.find, line))
    for other, declared in overriding:

        def moved(other: Component = other, declared: Overrides = declared) -> Iterable[Finding]:
            calls = _calls(line.manifest, other, declared, store, progress)
            return find_moved_targets(along, other.name, declared, calls, store.cache)

        look(f"what {other.name} replaces", moved)
    between = partial(_contracts, line, along, store, progress)
    # where another component's patches do not apply, its own check says so
    look("calls between components", between, BadInputError)
    return tuple(found)


def _contracts(
    watched: WatchedLine, along: HistoryReader, store: Store, progress: Progress
) -> Iterable[Finding]:
    if watched.component.contracts is None:
        return ()
    from patchkit.extensions.python_guards.broken_calls import find_broken_contracts  # noqa: PLC0415

    name = watched.component.name
    with ExitStack() as stack:
        partners, given = partners_of(watched.manifest, store, progress, stack)
        broken = find_broken_contracts(along, name, partners, given, store.cache)
    return (_broken_call(each) for each in broken)


def _broken_call(contract: BrokenContract) -> Finding:
    place = contract.place
    where, code = f"{place.component}: {place.place}", "contract-upstream"
    about = f"{place.component} in {place.within}: {place.words}"
    return Finding(Severity.WARNING, code, place.words, where, by=contract.by, about=about)


def _calls(
    manifest: Manifest, other: Component, declared: Overrides, store: Store, progress: Progress
) -> Replacements:
    with built_stack(manifest, other, store, progress) as built:
        return read_replacements(declared, manifest.root, built.tree_at)
