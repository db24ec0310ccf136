"""Keep what became of files, so that the next drift or plan only looks at versions that are new.

One small file for each series on each pin, one for what carrying to single commits came to, and one
for each walk to a tip. A shortcut and nothing more: one that is damaged, or that another version of
the engine wrote, is as good as none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from patchkit.disk.result_cache import (
    code_digest,
    memory_path,
    read_as,
    recall,
    recall_packed,
    remember,
    remember_packed,
)
from patchkit.drift.drift_report import FileVerdict, LineDrift, PatchForecast
from patchkit.model.objects import CommitId
from patchkit.stack.series import LoadedPatch
from patchkit.upstream.history import History

if TYPE_CHECKING:  # an answer that is kept whole loads nothing that would find it
    from patchkit.model.resolution import Resolution
    from patchkit.stack.generated import PatchRecipe

# Raise it when the same files could come to another verdict.
_FORM = 3

#: The code whose rules the verdicts are.
_ENGINE = (
    "carry",
    "model",
    "model/merging",
    "drift",
    "explain",
    "guards/overrides",
    "python",
    "stack",
)


class Verdicts:
    """What the carry engine makes of changes, by keys that have all that it follows from; without
    a path in memory only.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        kept = recall(path) if path is not None else None
        self._rows: dict[str, Any] = kept if isinstance(kept, dict) else {}
        self._news = False

    def file(self, key: str) -> FileVerdict | None:
        """The carry engine's verdict on a change."""
        return read_as(self._rows[key], FileVerdict) if key in self._rows else None

    def note_file(self, key: str, verdict: FileVerdict) -> None:
        """Remember a verdict for another run."""
        if self._path is not None:
            self._rows[key] = msgspec.to_builtins(verdict)
            self._news = True

    def close(self) -> None:
        """Write what is new."""
        if self._news and self._path is not None:
            remember(self._path, self._rows)
            self._news = False


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


class SeriesMemory:
    """Where answers on a series from a pin are kept below the cache folder `folder`."""

    def __init__(
        self,
        folder: Path,
        history: History,
        patches: Sequence[LoadedPatch],
        recipes: Mapping[str, PatchRecipe],
        remembered: Mapping[str, Resolution],
    ) -> None:
        series = [[each.name, each.sha256, each.strip, each.subdirectory] for each in patches]
        decided = repr(sorted(remembered.items(), key=lambda item: item[0])).encode()
        upstream = history.repository.git_dir.name
        self._folder, self._history = folder, history
        self.recipes, self.remembered = recipes, remembered
        # what a file comes to, and what a whole series does: a recipe looks at more than a file
        self._files: list[object] = [_FORM, code_digest(*_ENGINE), sha256(decided).hexdigest()]
        self._files += [upstream, history.pin, series]
        rules = {name: recipe.facts for name, recipe in sorted(recipes.items())}
        self._series = [*self._files, rules]

    def verdicts(self) -> Verdicts:
        """What became of single files."""
        return Verdicts(memory_path(self._folder, "verdicts", self._files))

    def trials(self) -> Trials:
        """What carrying the series to single commits came to."""
        return Trials(memory_path(self._folder, "trials", self._series))

    def line(self, *, bisect: bool) -> LineDrift | None:
        """What an earlier run found along the line to this tip; None if nothing is kept."""
        return recall_packed(self._line(bisect), LineDrift)

    def note_line(self, found: LineDrift, *, bisect: bool) -> None:
        """Keep what was found.

        It follows from the commits alone if no server lacked a file of theirs: only then may it be
        kept.
        """
        remember_packed(self._line(bisect), found)

    def _line(self, bisect: bool) -> Path:
        history = self._history
        line = [history.repository.source.url, history.tip, bisect]
        return memory_path(self._folder, "walks", [*self._series, *line])
