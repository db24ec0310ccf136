"""Keep a walk and its forecasts, so that the next one only looks at what has landed since.

One small file for each series on each base. It is a shortcut and nothing more: a file that is
damaged, or does not agree with what the patches come to at its end, is as good as none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from patchkit.drift.judging import HunkFault, PatchVerdict
from patchkit.drift.values import Forecast
from patchkit.drift.walking import Change, Touch, Walk
from patchkit.gitcmd.firstparent import Commit
from patchkit.histories import History
from patchkit.memory import memory_path, recall, remember
from patchkit.model.outcome import Reason, Status
from patchkit.recipes.values import Recipe
from patchkit.series import LoadedPatch

#: Raise it when the same history and series could come to another walk, or another forecast.
_FORM = 3


def walk_path(
    cache: Path,
    history: History,
    patches: Sequence[LoadedPatch],
    recipes: Mapping[str, Recipe],
    *,
    every_state: bool,
) -> Path:
    """Where the walk of this series from this pin along this branch is kept.

    With `every_state` the one that has the carry engine's word on each state.
    """
    facts = _facts(history, patches, recipes)
    return memory_path(cache, "drift", [*facts, "carried"] if every_state else facts)


def recall_walk(path: Path) -> Walk | None:
    """The walk that was kept; None if there is none that can be believed."""
    try:
        return _walk(recall(path))
    except (ValueError, KeyError, TypeError):
        return None


def remember_walk(path: Path, walk: Walk) -> None:
    """Keep a walk."""
    remember(path, to_builtins(walk))


def forecast_path(
    cache: Path, history: History, patches: Sequence[LoadedPatch], recipes: Mapping[str, Recipe]
) -> Path:
    """Where is kept what a bump to this tip would make of the series."""
    facts = [*_facts(history, patches, recipes), history.tip]
    return memory_path(cache, "forecasts", facts)


def recall_forecasts(path: Path) -> tuple[Forecast | None, ...] | None:
    """The forecasts that were kept, one for each patch; None if none can be believed."""
    try:
        return tuple(_forecast(each) for each in recall(path))
    except (ValueError, KeyError, TypeError):
        return None


def remember_forecasts(path: Path, forecasts: Sequence[Forecast | None]) -> None:
    """Keep forecasts, if there are any: what was lacking may be here the next time."""
    if all(each is not None for each in forecasts):
        remember(path, [to_builtins(each) for each in forecasts if each is not None])


def _forecast(data: Mapping[str, Any]) -> Forecast:
    status, files = Status(data["status"]), int(data["files"])
    return Forecast(status, files, tuple(data["conflicts"]), tuple(data["review"]))


def _facts(
    history: History, patches: Sequence[LoadedPatch], recipes: Mapping[str, Recipe]
) -> list[Any]:
    series = [[each.name, each.sha256, each.strip, each.subdirectory] for each in patches]
    rules = {name: repr(recipe) for name, recipe in sorted(recipes.items())}
    line = [history.repository.git_dir.name, history.pin, history.fork, history.ref]
    return [_FORM, *line, series, rules]


def _walk(data: Mapping[str, Any]) -> Walk:
    return Walk(
        start=data["start"],
        tip=data["tip"],
        length=data["length"],
        touches=tuple(
            Touch(each["position"], Commit(**each["commit"]), each["parent"], tuple(each["paths"]))
            for each in data["touches"]
        ),
        at_pin=tuple(
            PatchVerdict(Status(each["status"]), _faults(each)) for each in data["at_pin"]
        ),
        changes=tuple(tuple(map(_change, patch)) for patch in data["changes"]),
    )


def _change(data: Mapping[str, Any]) -> Change:
    carried = Status(data["carried"]) if data["carried"] else None
    return Change(data["position"], Status(data["status"]), _faults(data), carried)


def _faults(data: Mapping[str, Any]) -> tuple[HunkFault, ...]:
    return tuple(HunkFault(**{**each, "reason": Reason(each["reason"])}) for each in data["faults"])
