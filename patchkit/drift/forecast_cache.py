"""Keep what became of files, so that the next drift or plan only looks at versions that are new.

One small file for each series on each pin, one for what carrying to single commits came to, and one
for each walk to a tip. A shortcut and nothing more: one that is damaged, or that another version of
the engine wrote, is as good as none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

import patchkit.carry
import patchkit.drift
import patchkit.explain
import patchkit.model
import patchkit.model.merging
from patchkit.disk.result_cache import memory_path, read_as, recall, remember
from patchkit.drift.drift_report import FileVerdict, PatchForecast
from patchkit.drift.judge import ExactVerdict, State
from patchkit.model.objects import CommitId, TreeEntry
from patchkit.model.resolution import Resolution
from patchkit.recipes.rule import Recipe
from patchkit.stack.series import LoadedPatch
from patchkit.upstream.history import History

# Raise it when the same files could come to another verdict.
_FORM = 2

_Exact: Any = tuple[ExactVerdict, dict[str, TreeEntry | None]]


class Verdicts:
    """What became of changes, by keys that have all that it follows from; without a path in memory
    only.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        kept = recall(path) if path is not None else None
        self._rows: dict[str, Any] = kept if isinstance(kept, dict) else {}
        self._files: dict[str, FileVerdict] = {}
        self._exact: dict[str, tuple[ExactVerdict, State]] = {}
        self._news = False
        #: Whether an earlier run kept any.
        self.are_kept = bool(self._rows)

    def file(self, key: str) -> FileVerdict | None:
        """The carry engine's verdict on a change."""
        if key not in self._files and key in self._rows:
            found = read_as(self._rows[key], FileVerdict)
            if found is not None:
                self._files[key] = found
        return self._files.get(key)

    def exact(self, key: str) -> tuple[ExactVerdict, State] | None:
        """Whether a change applies as it is, and what it leaves."""
        if key not in self._exact and key in self._rows:
            found = read_as(self._rows[key], _Exact)
            if found is not None:
                self._exact[key] = found
        return self._exact.get(key)

    def note_file(self, key: str, verdict: FileVerdict, *, keep: bool) -> None:
        """Remember a verdict; for another run, too, where `keep`."""
        self._files[key] = verdict
        self._note(key, verdict, keep=keep)

    def note_exact(self, key: str, verdict: tuple[ExactVerdict, State], *, keep: bool) -> None:
        """Remember a verdict; for another run, too, where `keep`."""
        self._exact[key] = verdict
        self._note(key, verdict, keep=keep)

    def close(self) -> None:
        """Write what is new."""
        if self._news and self._path is not None:
            remember(self._path, self._rows)
            self._news = False

    def _note(self, key: str, verdict: object, *, keep: bool) -> None:
        if keep and self._path is not None:
            self._rows[key] = msgspec.to_builtins(verdict)
            self._news = True


class Trials:
    """What carrying a series to single commits came to, by commit."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        kept = recall(path) if path is not None else None
        self._rows: dict[str, Any] = kept if isinstance(kept, dict) else {}

    def known(self, commit: CommitId) -> tuple[PatchForecast, ...] | None:
        """What became of each patch there; None if nothing is kept."""
        row = self._rows.get(commit)
        return read_as(row, tuple[PatchForecast, ...]) if row is not None else None

    def note(self, commit: CommitId, forecasts: Sequence[PatchForecast]) -> None:
        """Keep what became of each patch."""
        self._rows[commit] = msgspec.to_builtins(tuple(forecasts))
        if self._path is not None:
            remember(self._path, self._rows)


def open_verdicts(
    folder: Path,
    history: History,
    patches: Sequence[LoadedPatch],
    remembered: Mapping[str, Resolution],
) -> Verdicts:
    """The verdicts on this series from this pin; `folder` is the cache."""
    return Verdicts(memory_path(folder, "verdicts", _facts(history, patches, remembered)))


def open_trials(
    folder: Path,
    history: History,
    patches: Sequence[LoadedPatch],
    recipes: Mapping[str, Recipe],
    remembered: Mapping[str, Resolution],
) -> Trials:
    """What carrying this series from this pin came to; `folder` is the cache."""
    facts = [*_facts(history, patches, remembered), _rules(recipes)]
    return Trials(memory_path(folder, "trials", facts))


def walk_path(
    folder: Path,
    history: History,
    patches: Sequence[LoadedPatch],
    recipes: Mapping[str, Recipe],
    remembered: Mapping[str, Resolution],
    *,
    bisect: bool,
) -> Path:
    """Where a walk of this series from this pin to this tip is kept; `folder` is the cache.

    What it found follows from the commits alone if no server lacked a file of theirs: only then may
    it be kept.
    """
    series = _facts(history, patches, remembered)
    facts = [*series, _rules(recipes), history.fork, history.tip, bisect]
    return memory_path(folder, "walks", facts)


def _rules(recipes: Mapping[str, Recipe]) -> dict[str, str]:
    return {name: repr(recipe) for name, recipe in sorted(recipes.items())}


def _facts(
    history: History, patches: Sequence[LoadedPatch], remembered: Mapping[str, Resolution]
) -> list[Any]:
    series = [[each.name, each.sha256, each.strip, each.subdirectory] for each in patches]
    kept = sha256(repr(sorted(remembered.items(), key=lambda item: item[0])).encode()).hexdigest()
    return [_FORM, _engine(), kept, history.repository.git_dir.name, history.pin, series]


@cache
def _engine() -> str:
    """A digest of the code whose rules the verdicts are."""
    digest = sha256()
    packages = (
        patchkit.carry,
        patchkit.model,
        patchkit.model.merging,
        patchkit.drift,
        patchkit.explain,
    )
    for package in packages:
        for file in sorted(Path(str(package.__file__)).parent.glob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
