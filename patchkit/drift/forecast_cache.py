"""Keep what became of files, so that the next drift or plan only looks at versions that are new.

One small file for each series on each pin, one for what carrying to single commits came to, and one
for each walk to a tip. A shortcut and nothing more: one that is damaged, or that another version of
the engine wrote, is as good as none.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from hashlib import sha256
from os import SEEK_END
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

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
from patchkit.drift.drift_report import ExactVerdict, FileVerdict, LineDrift, PatchForecast
from patchkit.model.objects import CommitId, TreeEntry
from patchkit.stack.series import LoadedPatch
from patchkit.upstream.history import History

if TYPE_CHECKING:  # an answer that is kept whole loads nothing that would find it
    from patchkit.drift.judge import State
    from patchkit.model.resolution import Resolution
    from patchkit.recipes.rule import Recipe

# Raise it when the same files could come to another verdict.
_FORM = 2

#: The code whose rules the verdicts are.
_ENGINE = (
    "carry",
    "model",
    "model/merging",
    "drift",
    "explain",
    "guards/overrides",
    "python",
    "recipes",
    "stack",
)

_Exact: Any = tuple[ExactVerdict, dict[str, TreeEntry | None]]


class MadeBlobs:
    """Contents by id, in a file that is gone with it: a long line makes more than memory holds.

    Where no such file can be written they stay in memory.
    """

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, int]] = {}  # where each begins, and its length
        self._held: dict[str, bytes] = {}
        self._file: IO[bytes] | None = None

    def get(self, oid: str) -> bytes | None:
        """The contents of a blob; None where it was not noted."""
        if oid not in self._places or self._file is None:
            return self._held.get(oid)
        begin, size = self._places[oid]
        self._file.seek(begin)
        return self._file.read(size)

    def note(self, oid: str, contents: bytes) -> None:
        """Keep a blob."""
        if oid in self._places or oid in self._held:
            return
        try:
            if self._file is None:
                from tempfile import TemporaryFile  # noqa: PLC0415 (slow to import)

                self._file = TemporaryFile(buffering=0)  # noqa: SIM115 (it lives as long as this)
                weakref.finalize(self, self._file.close)
            begin = self._file.seek(0, SEEK_END)
            if self._file.write(contents) == len(contents):
                self._places[oid] = begin, len(contents)
                return
        except OSError:
            pass
        self._held[oid] = contents


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
        #: The blobs that verdicts of this run made, by id, for whoever goes along the line again.
        self.made = MadeBlobs()
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


class SeriesMemory:
    """Where answers on a series from a pin are kept below the cache folder `folder`."""

    def __init__(
        self,
        folder: Path,
        history: History,
        patches: Sequence[LoadedPatch],
        recipes: Mapping[str, Recipe],
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
        rules = {name: repr(recipe) for name, recipe in sorted(recipes.items())}
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
