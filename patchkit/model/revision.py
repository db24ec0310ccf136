"""How a patch file differs from its former self, so that a reviewer reads only what matters."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from patchkit.model.objects import FILE_MODE
from patchkit.model.patch import FileChange, Hunk, Kind, PatchFile


class Revision(str, Enum):
    """What changed in a patch file, from nothing to everything."""

    IDENTICAL = "identical"  # not a byte
    OFFSETS = "offsets"  # line numbers and blob ids
    CONTEXT = "context"  # the lines around the change, too
    MESSAGE = "message"  # author or message; the change is the same
    CONTENT = "content"  # the lines that it adds or removes, or the files that it touches
    ADDED = "added"  # a new patch
    REMOVED = "removed"  # the patch is gone

    @property
    def needs_review(self) -> bool:
        """Whether a person should read it."""
        return self not in (Revision.IDENTICAL, Revision.OFFSETS, Revision.CONTEXT)


def compare_patches(old: PatchFile, new: PatchFile) -> Revision:
    """How `new` differs from `old`, by its most important difference."""
    if old.data == new.data:
        return Revision.IDENTICAL
    before, after = _by_path(old.changes), _by_path(new.changes)
    if before.keys() != after.keys():
        return Revision.CONTENT
    pairs = [(before[path], after[path]) for path in before]
    if not all(_edit(one) == _edit(other) for one, other in pairs):
        return Revision.CONTENT
    if old.header != new.header:
        return Revision.MESSAGE
    if all(_texts(one.hunks) == _texts(other.hunks) for one, other in pairs):
        return Revision.OFFSETS
    return Revision.CONTEXT


def same_changes(old: Sequence[FileChange], new: Sequence[FileChange]) -> bool:
    """Whether `old`, perhaps with short blob ids or none, says just what `new` says."""
    before, after = _by_path(old), _by_path(new)
    return (
        len(before) == len(old)
        and before.keys() == after.keys()
        and all(_same_change(before[path], after[path]) for path in before)
    )


def _same_change(old: FileChange, new: FileChange) -> bool:
    return (
        _edit(old) == _edit(new)
        and [_place(hunk) for hunk in old.hunks] == [_place(hunk) for hunk in new.hunks]
        and _texts(old.hunks) == _texts(new.hunks)
        and _agrees(old.old_blob, new.old_blob)
        and _agrees(old.new_blob, new.new_blob)
    )


def _by_path(changes: Sequence[FileChange]) -> dict[tuple[str | None, str | None], FileChange]:
    return {(change.old_path, change.new_path): change for change in changes}


def _edit(change: FileChange) -> tuple[object, ...]:
    """What the change does, without where and on which blobs; a rename is its pair of paths."""
    lines = [line for hunk in change.hunks for line in hunk.lines if line[:1] != b" "]
    return change.kind, _modes(change), lines, change.binary


def _modes(change: FileChange) -> tuple[int | None, ...]:
    """The modes that the change sets or relies on; a file is an ordinary one unless it says so."""
    if change.kind is Kind.ADD:
        return (change.new_mode or FILE_MODE,)
    if change.kind is Kind.DELETE:
        return (change.old_mode or FILE_MODE,)
    modes = change.old_mode, change.new_mode
    # an index line gives one mode, and with that the file's, which stays
    return () if None in modes or modes[0] == modes[1] else modes


def _texts(hunks: Sequence[Hunk]) -> list[tuple[bytes, ...]]:
    return [hunk.lines for hunk in hunks]


def _place(hunk: Hunk) -> tuple[int, int, int, int]:
    return hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count


def _agrees(short: str | None, full: str | None) -> bool:
    return short is None or full is None or full.startswith(short)
