"""Keep what became of files, so that the next drift or plan only looks at versions that are new.

One small file for each series on each pin, one for what carrying to single commits came to, and one
for each walk to a tip. A shortcut and nothing more: one that is damaged, or that another version of
the engine wrote, is as good as none.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from patchkit.disk.result_cache import (
    ResultCache,
    memory_path,
    recall_packed,
    remember_packed,
)
from patchkit.drift.drift_report import LineDrift
from patchkit.stack.series import LoadedPatch
from patchkit.stack.series_facts import rule_facts, series_facts
from patchkit.upstream.history import History

if TYPE_CHECKING:  # an answer that is kept whole loads nothing that would find it
    from patchkit.model.resolution import Resolution
    from patchkit.stack.generated import PatchRecipe

# Raise it when the same files could come to another verdict.
_FORM = 4


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
        self._folder, self._history = folder, history
        self.recipes, self.remembered = recipes, remembered
        # what a file comes to, and what a whole series does: a recipe looks at more than a file
        upstream = history.repository.git_dir.name
        self._files = [_FORM, *series_facts(upstream, history.pin, patches, remembered)]
        self._series = [*self._files, rule_facts(recipes)]

    def verdicts(self) -> ResultCache:
        """What the carry engine makes of changes, by keys that have all that it follows from."""
        return ResultCache(memory_path(self._folder, "verdicts", self._files), sys.maxsize)

    def trials(self) -> ResultCache:
        """What carrying the series to single commits came to, by commit."""
        return ResultCache(memory_path(self._folder, "trials", self._series), sys.maxsize)

    def line(self) -> LineDrift | None:
        """What an earlier run found along the line to this tip; None if nothing is kept."""
        return recall_packed(self._line(), LineDrift)

    def note_line(self, found: LineDrift) -> None:
        """Keep what was found.

        It follows from the commits alone if no server lacked a file of theirs: only then may it be
        kept.
        """
        remember_packed(self._line(), found)

    def _line(self) -> Path:
        history = self._history
        line = [history.repository.source.url, history.tip]
        return memory_path(self._folder, "walks", [*self._series, *line])
