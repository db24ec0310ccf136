"""Whether a change applies to a file as it is: git apply's verdict, and which hunks stop it.

The first stage of forecasting, and a cheap one: what becomes of a change that does not apply as it
is, the carry engine says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from patchkit.drift.drift_report import ExactVerdict, HunkFault
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.evidence import evidence
from patchkit.model.objects import SUBMODULE_MODE, GitObject, TreeEntry
from patchkit.model.outcome import Clash, FileResult, Reason, Status
from patchkit.model.patch import FileChange, Hunk
from patchkit.model.revision import reverse_changes
from patchkit.model.tree import ObjectSource, ObstructedError, Tree, few_files

#: What stands at each path; None for nothing.
State: TypeAlias = Mapping[str, TreeEntry | None]


class ChangeResult(Struct, frozen=True):
    """What changes that apply leave at their paths, and the new blobs."""

    after: State  # path -> entry, None for no file
    blobs: tuple[GitObject, ...]  # the new contents


def judge(
    source: ObjectSource, met: State, changes: Sequence[FileChange], *, trial: bool
) -> tuple[ExactVerdict, ChangeResult | None]:
    """Apply changes to the files that they meet; what they make is left out in a `trial`.

    MissingObjectError for a file that no server gives.
    """
    tree = few_tree(source, met)
    if tree is None:  # a file where another path needs a folder
        fault = HunkFault(changes[0].path, 0, changes[0].line, Reason.EXISTS)
        return ExactVerdict(Status.CONFLICTED, faults=(fault,)), None
    blobs = Blobs(source)
    trial = trial and len(changes) == 1  # else one may start from nothing that another one makes
    applied = apply_changes(tree, blobs, changes, terse=True, trial=trial)
    if applied.tree is None:
        faults = tuple(_faults(tree, blobs, changes, applied.files))
        return ExactVerdict(Status.CONFLICTED, faults=faults), None
    offsets = tuple(offset for file in applied.files for offset in file.offsets)
    made = None
    if not trial:
        made = ChangeResult({path: applied.tree.entry(path) for path in met}, applied.blobs)
    if not any(offsets) and all(each.status is Status.UNCHANGED for each in applied.files):
        return ExactVerdict(Status.UNCHANGED, offsets), made
    contained = _undoes(tree, blobs, changes, in_place=True)
    return ExactVerdict(Status.SHIFTED, offsets, contained=contained), made


def few_tree(source: ObjectSource, state: State) -> Tree | None:
    """A tree of just these paths; None where a file stands in for another's folder."""
    try:
        return few_files(source, state)
    except ObstructedError:
        return None


def _undoes(
    tree: Tree, blobs: Blobs, changes: Sequence[FileChange], *, in_place: bool = False
) -> bool:
    """Whether the tree is as the changes leave it; at other lines, too, unless `in_place`."""
    if not all(_may_hold(tree, blobs, change) for change in changes):
        return False
    back = reverse_changes(changes)
    undone = apply_changes(tree, blobs, back, terse=True, trial=len(changes) == 1)
    shifted = any(each.status is Status.SHIFTED for each in undone.files)
    return undone.tree is not None and not (in_place and shifted)


def _may_hold(tree: Tree, blobs: Blobs, change: FileChange) -> bool:
    """Whether all lines that the change leaves behind stand there in one piece each: a quick no."""
    if change.new_path is None:
        return tree.entry(change.path) is None
    data = _contents(tree, blobs, change.new_path)
    return data is not None and all(_result(hunk) in data for hunk in change.hunks)


def _faults(
    tree: Tree, blobs: Blobs, changes: Sequence[FileChange], files: Sequence[FileResult]
) -> Iterator[HunkFault]:
    for change, outcome in zip(changes, files, strict=True):
        for clash in outcome.clashes:
            absorbed = _is_absorbed(tree, blobs, change, clash)
            yield HunkFault(clash.path, clash.hunk, clash.line, clash.reason, absorbed)


def _is_absorbed(tree: Tree, blobs: Blobs, change: FileChange, clash: Clash) -> bool:
    """Whether the result of one clashing hunk, or of a whole change, is there."""
    if change.new_path is None:
        return tree.entry(change.path) is None
    if not clash.hunk:
        return _undoes(tree, blobs, (change,))
    hunk = change.hunks[clash.hunk - 1]
    data = _contents(tree, blobs, change.new_path)
    if data is None or b"\n" + _result(hunk) not in b"\n" + data:
        return False
    # that lines are gone is no sign that somebody took them out as we did
    return bool(evidence((line[1:] for line in hunk.lines if line[:1] == b"+"), data))


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
