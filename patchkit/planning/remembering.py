"""Keep what became of files, so that the next plan only looks at versions that are new since.

One small file for each series on each pin. A shortcut and nothing more: one that is damaged, or
that another version of the carry engine wrote, is as good as none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import patchkit.carry
import patchkit.model.merging
from patchkit.histories import History
from patchkit.memory import memory_path, recall, remember
from patchkit.model.objects import TreeEntry
from patchkit.model.outcome import Status
from patchkit.model.resolution import Resolution
from patchkit.planning.values import FileVerdict
from patchkit.series import LoadedPatch

_FORM = 1


def verdicts_path(
    cache_folder: Path,
    history: History,
    patches: Sequence[LoadedPatch],
    remembered: Mapping[str, Resolution],
) -> Path:
    """Where the verdicts on this series from this pin are kept."""
    series = [[each.name, each.sha256, each.strip, each.subdirectory] for each in patches]
    kept = sha256(repr(sorted(remembered.items(), key=lambda item: item[0])).encode()).hexdigest()
    facts = [_FORM, _engine(), kept, history.repository.git_dir.name, history.pin, series]
    return memory_path(cache_folder, "plan", facts)


def recall_verdicts(path: Path) -> dict[str, FileVerdict]:
    """The verdicts that were kept; none if they cannot be believed."""
    try:
        rows = recall(path)
        return {key: _verdict(row) for key, row in rows.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def remember_verdicts(path: Path, verdicts: Mapping[str, FileVerdict]) -> None:
    """Keep verdicts."""
    remember(
        path,
        {
            key: [
                verdict.path,
                verdict.status.value,
                verdict.review,
                {name: [e.mode, e.oid] if e else None for name, e in verdict.after.items()},
            ]
            for key, verdict in verdicts.items()
        },
    )


def _verdict(row: tuple[str, str, bool, dict[str, list[object] | None]]) -> FileVerdict:
    path, status, review, after = row
    entries = {
        name: TreeEntry(int(str(each[0])), str(each[1])) if each else None
        for name, each in after.items()
    }
    return FileVerdict(str(path), Status(status), bool(review), entries)


@cache
def _engine() -> str:
    """A digest of the code whose rules the verdicts are."""
    digest = sha256()
    for package in (patchkit.carry, patchkit.model.merging):
        for file in sorted(Path(str(package.__file__)).parent.glob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
