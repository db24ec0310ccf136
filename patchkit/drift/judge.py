"""Which hunks stop a change from applying as it is, and whether upstream has what it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from patchkit.drift.drift_report import HunkFault
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.objects import SUBMODULE_MODE, TreeEntry
from patchkit.model.outcome import FileResult, Status
from patchkit.model.patch import FileChange, Hunk
from patchkit.model.revision import reverse_changes
from patchkit.model.tree import Tree

#: What stands at each path; None for nothing.
State: TypeAlias = Mapping[str, TreeEntry | None]


def faults_of(files: Sequence[FileResult]) -> tuple[HunkFault, ...]:
    """The hunks that stop changes, whose outcomes these are."""
    return tuple(
        HunkFault(clash.path, clash.hunk, clash.line, clash.reason)
        for outcome in files
        for clash in outcome.clashes
    )


def is_undone(
    tree: Tree, blobs: Blobs, changes: Sequence[FileChange], *, in_place: bool = False
) -> bool:
    """Whether a tree is as changes leave it; at other lines, too, unless `in_place`."""
    if not all(_may_hold(tree, blobs, change) for change in changes):
        return False
    back = reverse_changes(changes)
    undone = apply_changes(tree, blobs, back, terse=True)
    shifted = any(each.status is Status.SHIFTED for each in undone.files)
    return undone.tree is not None and not (in_place and shifted)


def _may_hold(tree: Tree, blobs: Blobs, change: FileChange) -> bool:
    """Whether all lines that the change leaves behind stand there in one piece each: a quick no."""
    if change.new_path is None:
        return tree.entry(change.path) is None
    data = _contents(tree, blobs, change.new_path)
    return data is not None and all(_result(hunk) in data for hunk in change.hunks)


def _contents(tree: Tree, blobs: Blobs, path: str) -> bytes | None:
    entry = tree.entry(path)
    readable = entry is not None and entry.mode != SUBMODULE_MODE
    return blobs.contents(entry.oid) if entry is not None and readable else None


def _result(hunk: Hunk) -> bytes:
    return _joined(hunk.lines)


@lru_cache(maxsize=4096)
def _joined(lines: tuple[bytes, ...]) -> bytes:
    """What a hunk leaves: the same at every commit."""
    return b"".join(line[1:] for line in lines if line[:1] != b"-")
