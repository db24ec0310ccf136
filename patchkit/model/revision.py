"""How a patch file differs from its former self, so that a reviewer reads only what matters; and a
patch turned round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from enum import Enum

from msgspec.structs import replace

from patchkit.model.diff_parse import split_lines
from patchkit.model.objects import FILE_MODE
from patchkit.model.patch import FileChange, Hunk, Kind, PatchFile


class Revision(str, Enum):
    """What changed in a patch file, from nothing to everything."""

    UNCHANGED = "unchanged"  # not a byte
    SHIFTED = "shifted"  # line numbers and blob ids
    CONTEXT = "context"  # the lines around the change, too
    MESSAGE = "message"  # author or message; the change is the same
    CONTENT = "content"  # the lines that it adds or removes, or the files that it touches
    ADDED = "added"  # a new patch
    REMOVED = "removed"  # the patch is gone

    @property
    def needs_review(self) -> bool:
        """Whether a person should read it."""
        return self not in (Revision.UNCHANGED, Revision.SHIFTED, Revision.CONTEXT)


def compare_patches(old: PatchFile, new: PatchFile) -> Revision:
    """How `new` differs from `old`, by its most important difference."""
    if old.data == new.data:
        return Revision.UNCHANGED
    if what_it_does(old) != what_it_does(new):
        return Revision.CONTENT
    if old.header != new.header:
        return Revision.MESSAGE
    return Revision.SHIFTED if _with_context(old) == _with_context(new) else Revision.CONTEXT


def _with_context(patch: PatchFile) -> frozenset[object]:
    return frozenset(
        (change.path, tuple(hunk.lines for hunk in change.hunks)) for change in patch.changes
    )


def what_it_does(patch: PatchFile) -> frozenset[object]:
    """What a patch does to its files, without where, between which lines and on which blobs."""
    return frozenset(map(_edit, patch.changes))


def _edit(change: FileChange) -> tuple[object, ...]:
    """What the change does, without where and on which blobs; a rename is its pair of paths."""
    lines = tuple(line for hunk in change.hunks for line in hunk.lines if line[:1] != b" ")
    return change.old_path, change.new_path, change.kind, _modes(change), lines, change.binary


def _modes(change: FileChange) -> tuple[int | None, ...]:
    """The modes that the change sets or relies on; a file is an ordinary one unless it says so."""
    if change.kind is Kind.ADD:
        return (change.new_mode or FILE_MODE,)
    if change.kind is Kind.DELETE:
        return (change.old_mode or FILE_MODE,)
    modes = change.old_mode, change.new_mode
    # an index line gives one mode, and with that the file's, which stays
    return () if None in modes or modes[0] == modes[1] else modes


# The difference between two versions of a patch, without the numbers that always change.


_NUMBERS = re.compile(rb"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_INDEX = re.compile(rb"^(?:dis)?similarity index |^index ")


def interdiff(old: PatchFile | None, new: PatchFile | None, name: str) -> bytes:
    """A unified diff of the patch files, `@@` numbers and blob ids left out; b"" if it is empty."""
    before, after = ([*_lines(each)] if each is not None else [] for each in (old, new))
    sides = (f"old/{name}" if old else "/dev/null", f"new/{name}" if new else "/dev/null")
    return unified(before, after, sides)


def unified(before: Iterable[bytes], after: Iterable[bytes], sides: tuple[str, str]) -> bytes:
    """A unified diff of lines, under the names of both `sides`; b"" if they are the same."""
    # difflib knows text only; latin-1 takes any byte there and back
    old, new = ([line.decode("latin-1") for line in each] for each in (before, after))
    rows = unified_diff(old, new, *sides, lineterm="\n")
    cut = "\n\\ No newline at end of file\n"
    return "".join(row if row.endswith("\n") else row + cut for row in rows).encode("latin-1")


def _lines(file: PatchFile) -> Iterator[bytes]:
    yield from split_lines(file.preamble)
    for line in split_lines(file.diff):
        if not _INDEX.match(line):
            yield _NUMBERS.sub(b"@@", line)


# Turn a patch round: the changes that undo it.


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
