"""Which hunks stop a change from applying as it is, and whether upstream has what they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from patchkit.drift.drift_report import HunkFault
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.evidence import evidence
from patchkit.model.objects import SUBMODULE_MODE, TreeEntry
from patchkit.model.outcome import Clash, FileResult, Status
from patchkit.model.patch import FileChange, Hunk
from patchkit.model.revision import reverse_changes
from patchkit.model.tree import Tree

#: What stands at each path; None for nothing.
State: TypeAlias = Mapping[str, TreeEntry | None]


def faults_of(
    tree: Tree, blobs: Blobs, changes: Sequence[FileChange], files: Sequence[FileResult]
) -> tuple[HunkFault, ...]:
    """The hunks that stop changes, whose outcomes on a tree these are."""
    return tuple(
        HunkFault(
            clash.path,
            clash.hunk,
            clash.line,
            clash.reason,
            _is_absorbed(tree, blobs, change, clash),
        )
        for change, outcome in zip(changes, files, strict=True)
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


def _is_absorbed(tree: Tree, blobs: Blobs, change: FileChange, clash: Clash) -> bool:
    """Whether the result of one clashing hunk, or of a whole change, is there."""
    if change.new_path is None:
        return tree.entry(change.path) is None
    if not clash.hunk:
        return is_undone(tree, blobs, (change,))
    hunk = change.hunks[clash.hunk - 1]
    data = _contents(tree, blobs, change.new_path)
    if data is None or b"\n" + _result(hunk) not in b"\n" + data:
        return False
    # that lines are gone is no sign that somebody took them out as we did
    return bool(evidence(hunk.added, data))


def stands(change: FileChange, number: int, data: bytes | None) -> bool:
    """Whether contents have what a hunk of a change makes, or (0) what all of them make.

    Its own lines are enough where they occur only once: the lines around may have changed.
    """
    if data is None or change.new_path is None:
        return data is None and change.new_path is None
    hunks = change.hunks[number - 1 : number] if number else change.hunks
    return all(_result(hunk) in data or _core_stands(hunk, data) for hunk in hunks)


def _core_stands(hunk: Hunk, data: bytes) -> bool:
    """Whether what a hunk leaves, without the lines around, is there once, and is evidence."""
    changed = [number for number, line in enumerate(hunk.lines) if line[:1] in b"+-"]
    core = _joined(hunk.lines[changed[0] : changed[-1] + 1])
    return data.count(core) == 1 and bool(evidence(core.split(b"\n"), data))


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
