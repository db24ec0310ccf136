"""From a walk over a branch to how far each amount of hand work reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from patchkit.drift.along import Along, Bring
from patchkit.drift.telling import landed_of
from patchkit.drift.walking import with_contents
from patchkit.gitcmd.firstparent import entries_at
from patchkit.gitcmd.objects import ObjectReader
from patchkit.histories import History
from patchkit.model.objects import SUBMODULE_MODE, TreeEntry
from patchkit.model.resolution import Resolution
from patchkit.planning.following import Route, RoutePast, follow
from patchkit.planning.forecasting import Forecaster
from patchkit.planning.remembering import recall_verdicts, remember_verdicts
from patchkit.planning.values import PatchForecast, Reach, Stretch, effort_of, stays
from patchkit.recipes.values import Recipe
from patchkit.stack import SeriesPatch, patch_changes


def walk_stack(
    history: History,
    reader: ObjectReader,
    patches: Sequence[SeriesPatch],
    bring: Bring,
    *,
    recipes: Mapping[str, Recipe] | None = None,
    alone: Sequence[str] = (),
    memory: Path | None = None,
    remembered: Mapping[str, Resolution] | None = None,
) -> tuple[Route, tuple[Stretch, ...]]:
    """Forecast every state of the files between the fork and the tip.

    `recipes` make some of the patches anew, by their names. `alone` are further files to watch.
    `memory` is a file for verdicts, of this series on this pin, for the next time; `remembered` are
    resolutions of conflicts that the project keeps.
    """
    changes = [change for patch in patches for change in patch_changes(patch)]
    paths = sorted({p for c in changes for p in (c.old_path, c.new_path) if p is not None})
    added = [str(c.new_path) for c in changes if c.old_path is None]
    at_pin = entries_at(history.repository, history.pin, paths)
    _supply(reader, at_pin.values(), bring)
    known = recall_verdicts(memory) if memory is not None else {}
    base = history.base(history.pin)
    forecaster = Forecaster(
        reader, base, patches, recipes=recipes, known=known, remembered=remembered
    )
    route = follow(history, paths, bring, added=added, alone=alone)
    _supply(reader, route.start.values(), bring)
    forecaster.update({**dict.fromkeys(paths), **route.start})
    past = RoutePast(route, forecaster.state)
    found = [(0, forecaster.judge(past))]
    steps = iter(route.steps)
    landings = [step.landing for step in route.steps]
    along = Along(history, reader, bring)
    for landing in with_contents(along, forecaster, landings):
        past.position = next(steps).position
        forecaster.update(landing.touches)
        verdicts = forecaster.judge(past)
        if verdicts != found[-1][1]:
            found.append((past.position, verdicts))
    if memory is not None and forecaster.verdicts.keys() - known.keys():
        remember_verdicts(memory, forecaster.verdicts)
    return route, _stretches(found, len(route.line.commits))


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


def _supply(reader: ObjectReader, entries: Iterable[TreeEntry], bring: Bring) -> None:
    bring({entry.oid for entry in entries if entry.mode != SUBMODULE_MODE})
    reader.close()  # a git that runs need not see new packs
