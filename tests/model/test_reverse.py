"""A patch that is turned round takes back what it did; git is asked for the patches."""

from __future__ import annotations

import pytest

from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.mail import parse_patch
from patchkit.model.objects import (
    EXECUTABLE_MODE,
    FILE_MODE,
    SYMLINK_MODE,
)
from patchkit.model.patch import FileChange
from patchkit.model.revision import reverse_changes
from patchkit.model.tree import Tree
from tests.model.oracle import Objects, Snapshot, git_diff

LINES = b"".join(b"%d\n" % number for number in range(30))
BINARY = bytes(range(256))
BEFORE: Snapshot = {
    "edit": (FILE_MODE, LINES),
    "gone": (FILE_MODE, b"gone\n"),
    "gone.sh": (EXECUTABLE_MODE, b"gone\n"),
    "mode": (FILE_MODE, b"mode\n"),
    "both": (EXECUTABLE_MODE, b"both\n" + LINES),
    "moved": (FILE_MODE, LINES + b"moved\n"),
    "binary": (FILE_MODE, BINARY),
    "swap": (FILE_MODE, b"file\n"),
    "end": (FILE_MODE, b"no newline"),
}
AFTER: Snapshot = {
    "edit": (FILE_MODE, b"first\n" + LINES.replace(b"\n7\n", b"\nseven\n") + b"last\n"),
    "new": (FILE_MODE, b"new\n"),
    "new.sh": (EXECUTABLE_MODE, b"new\n"),
    "mode": (EXECUTABLE_MODE, b"mode\n"),
    "both": (FILE_MODE, LINES),
    "moved2": (FILE_MODE, LINES + b"moved!\n"),
    "binary": (FILE_MODE, BINARY[::-1]),
    "swap": (SYMLINK_MODE, b"edit"),
    "end": (FILE_MODE, b"no newline\nbut now\n"),
}


def changes_of(*options: str) -> tuple[FileChange, ...]:
    patch = git_diff(BEFORE, AFTER, "-M50%", *options)
    return parse_patch(patch, name="x.patch").changes


def applied(files: Snapshot, changes: tuple[FileChange, ...]) -> str | None:
    objects = Objects()
    result = apply_changes(Tree(objects, objects.tree(files)), Blobs(objects), changes)
    return result.tree.write([]) if result.tree else None


def test_it_goes_back_and_forth() -> None:
    changes = changes_of("--binary")
    back = reverse_changes(changes)
    assert applied(BEFORE, changes) == Objects().tree(AFTER)
    assert applied(AFTER, back) == Objects().tree(BEFORE)
    assert applied(BEFORE, reverse_changes(back)) == Objects().tree(AFTER)
    assert applied(BEFORE, back) is None


def test_it_is_what_git_reverses() -> None:
    """Line for line, as `git diff -R` has it, for changes whose order says nothing."""
    (back,) = reverse_changes(parse_patch(_diff(BEFORE, AFTER), name="x").changes)
    (gits,) = parse_patch(_diff(AFTER, BEFORE), name="x").changes
    for ours, theirs in zip(back.hunks, gits.hunks, strict=True):
        assert (ours.old_start, ours.old_count) == (theirs.old_start, theirs.old_count)
        assert (ours.new_start, ours.new_count) == (theirs.new_start, theirs.new_count)
        assert sorted(ours.lines) == sorted(theirs.lines)
    assert (back.old_blob, back.new_blob) == (gits.old_blob, gits.new_blob)
    assert (back.old_mode, back.new_mode) == (gits.old_mode, gits.new_mode)


def _diff(before: Snapshot, after: Snapshot) -> bytes:
    return git_diff({"edit": before["edit"]}, {"edit": after["edit"]})


@pytest.mark.parametrize("options", [("--full-index",), ("--binary",)])
def test_a_binary_change_without_its_way_back_fits_nowhere(options: tuple[str, ...]) -> None:
    patch = git_diff({"f": (FILE_MODE, BINARY)}, {"f": (FILE_MODE, BINARY[1:])}, *options)
    # a hand took the second half off
    lines = patch.split(b"\n\n")[:1]
    changes = parse_patch(b"\n\n".join(lines) + b"\n\n", name="x").changes
    (back,) = reverse_changes(changes)
    assert back.binary is None
    assert applied({"f": (FILE_MODE, BINARY[1:])}, (back,)) is None
