"""What has to move in a worktree between two trees, and what of the user's is in the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.gitcmd.overlay import overlay
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import SUBMODULE_MODE, TreeEntry, decode_path, lines_of
from patchkit.workspace.contents import (
    FOLDER,
    SPECIAL,
    blocking_parent,
    contents_at,
    files_below,
)


class TreeChange(Struct, frozen=True):
    """A path that differs between two trees; None where it is not in that tree."""

    path: str
    old: TreeEntry | None
    new: TreeEntry | None

    @property
    def old_file(self) -> TreeEntry | None:
        """The old entry if it is a file or a symbolic link: what we may touch on disk."""
        return _file(self.old)

    @property
    def new_file(self) -> TreeEntry | None:
        """The new entry if it is a file or a symbolic link."""
        return _file(self.new)


def tree_changes(repository: Repository, old: str, new: str) -> list[TreeChange]:
    """The paths in which two trees differ, in git's order; a rename is two of them."""
    out = repository.git("diff-tree", "-r", "-z", "--raw", "--no-renames", old, new, "--").out
    fields = decode_path(out).split("\0")[:-1]
    return [_change(head, path) for head, path in zip(fields[::2], fields[1::2], strict=True)]


def absent_objects(repository: Repository, oids: Iterable[str]) -> set[str]:
    """Which of the objects the repository does not have (some servers have lost a few blobs)."""
    rows = "".join(f"{oid}\n" for oid in sorted(set(oids))).encode()
    # asked of the repository itself, git would try to fetch them
    with overlay(repository) as trial:
        out = trial.git("cat-file", "--batch-check=%(objectname)", stdin=rows).out
    return {row.split()[0] for row in lines_of(out.decode()) if row.endswith(" missing")}


def obstacles(root: Path, changes: Sequence[TreeChange]) -> list[str]:
    """What of the user's stands where the new tree has a file: untracked or ignored files.

    A path is relative to `root`; a folder that is in the way ends in "/".
    """
    tracked = {change.path for change in changes if change.old_file is not None}
    found: dict[str, None] = {}
    for change in changes:
        if change.new is None or change.path in tracked:
            continue
        parent = blocking_parent(root, change.path)
        if parent is not None:
            if parent not in tracked:
                found[parent] = None
        elif change.new_file is not None and _is_taken(root, change, tracked):
            actual = contents_at(root, change.path)
            folder = actual is not None and actual.kind == FOLDER
            found[change.path + "/" * folder] = None
    return list(found)


def _is_taken(root: Path, change: TreeChange, tracked: set[str]) -> bool:
    actual = contents_at(root, change.path)
    if actual is None:
        return False
    if actual.kind == FOLDER:
        # a folder of tracked files that go makes room by itself
        return any(path not in tracked for path in files_below(root, change.path))
    return actual.kind == SPECIAL or change.new is None or actual.oid != change.new.oid


def _file(entry: TreeEntry | None) -> TreeEntry | None:
    return None if entry is None or entry.mode == SUBMODULE_MODE else entry


def _change(head: str, path: str) -> TreeChange:
    old_mode, new_mode, old, new, _ = head.removeprefix(":").split(" ")
    return TreeChange(path, _entry(old_mode, old), _entry(new_mode, new))


def _entry(mode: str, oid: str) -> TreeEntry | None:
    return TreeEntry(int(mode, 8), oid) if int(mode, 8) else None
