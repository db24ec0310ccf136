"""Turn a patch round: the changes that undo it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from patchkit.model.patch import FileChange, Hunk, Kind

_OPPOSITE = {Kind.ADD: Kind.DELETE, Kind.DELETE: Kind.ADD}
_SWAPPED_MARK = {b"+": b"-", b"-": b"+"}


def reverse_changes(changes: Sequence[FileChange]) -> tuple[FileChange, ...]:
    """The changes that take the tree after `changes` back to the one before, last first.

    As with git, a copy cannot be undone (its source would have to be made a second time), and a
    binary change without its reverse direction carries no contents any more.
    """
    return tuple(_reverse_change(change) for change in reversed(changes))


def _reverse_change(change: FileChange) -> FileChange:
    forward, backward = change.binary or (None, None)
    turned = None if forward is None or backward is None else (backward, forward)
    same_mode = change.kind is not Kind.ADD and change.new_mode is None
    return replace(
        change,
        kind=_OPPOSITE.get(change.kind, change.kind),
        old_path=change.new_path,
        new_path=change.old_path,
        hunks=tuple(_reverse_hunk(hunk) for hunk in change.hunks),
        old_mode=change.old_mode if same_mode else change.new_mode,
        new_mode=None if same_mode and change.kind is not Kind.DELETE else change.old_mode,
        old_blob=change.new_blob,
        new_blob=change.old_blob,
        binary=turned,
        binary_differs=change.binary_differs or (forward is not None and backward is None),
    )


def _reverse_hunk(hunk: Hunk) -> Hunk:
    return Hunk(
        old_start=hunk.new_start,
        old_count=hunk.new_count,
        new_start=hunk.old_start,
        new_count=hunk.old_count,
        section=hunk.section,
        lines=tuple(_SWAPPED_MARK.get(text[:1], b" ") + text[1:] for text in hunk.lines),
        line=hunk.line,
    )
