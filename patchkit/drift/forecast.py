"""What moving the pin to the tip would do: the carry engine's word on each patch, ahead of time."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.carry import carry_stack
from patchkit.drift.along import Bring
from patchkit.drift.values import Forecast
from patchkit.explain.terrain import Terrain
from patchkit.gitcmd.objects import MissingObjectError, ObjectReader
from patchkit.histories import History
from patchkit.model.objects import SUBMODULE_MODE
from patchkit.model.outcome import PatchOutcome, Status
from patchkit.recipes.generating import Generator, load_generator
from patchkit.series import LoadedPatch


def forecast(
    history: History, reader: ObjectReader, patches: Sequence[LoadedPatch], bring: Bring
) -> tuple[Forecast | None, ...]:
    """What would become of each patch at the tip; None where files for it can't be had.

    `bring` is asked for what recipes look at.
    """
    generator = load_generator(patches)
    old, new = history.base(history.pin), history.base(history.tip)
    try:
        if generator.recipes:
            bring_scope(reader, new.tree, generator, bring)
        series = [patch.series_patch for patch in patches]
        outcomes = carry_stack(reader, old, new, series, generator).outcomes
    except MissingObjectError:
        return (None,) * len(patches)
    return tuple(map(_forecast, outcomes))


def _forecast(outcome: PatchOutcome) -> Forecast:
    files = outcome.files
    conflicts = tuple(each.path for each in files if each.status is Status.CONFLICTED)
    review = tuple(each.path for each in files if each.review)
    return Forecast(outcome.status, len(files), conflicts, review)


def bring_scope(reader: ObjectReader, tree: str, generator: Generator, bring: Bring) -> None:
    """Bring all files of a tree at which recipes look."""
    files = Terrain(reader, tree).files()
    bring(
        entry.oid
        for path, entry in files.items()
        if entry.mode != SUBMODULE_MODE
        and any(recipe.covers(path) for recipe in generator.recipes.values())
    )
    reader.close()  # a git that runs need not see new packs
