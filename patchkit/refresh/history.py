"""What each commit of a stack did to one file, followed backwards through renames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from patchkit.gitcmd.diffs import diff_trees
from patchkit.gitcmd.repository import Repository
from patchkit.model.diff import parse_diff
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE, TREE_MODE, TreeEntry
from patchkit.model.patch import FileChange, Hunk, Kind
from patchkit.model.weave import Edit, Weave, weave

_REGULAR = (FILE_MODE, EXECUTABLE_MODE)


class Reader(Protocol):
    """Objects by id."""

    def blob(self, oid: str) -> bytes:
        """The contents of a blob."""

    def tree(self, oid: str) -> dict[str, TreeEntry]:
        """The entries of a tree."""


class Passage(Struct, frozen=True):
    """One commit's change of the file; `number` counts the stack's commits from 1.

    `old` is None where the commit adds the file, `new` None where it removes it; `edits` is None
    where the change is not one of lines (binary files, links, submodules).
    """

    number: int
    old_path: str
    old: TreeEntry | None
    path: str
    new: TreeEntry | None
    edits: tuple[Edit, ...] | None


class FileHistory(Struct, frozen=True):
    """A file of the tip with everything that the stack did to it, oldest first.

    `weave` holds its versions as lines, None where one of them is not made of lines.
    """

    path: str
    entry: TreeEntry | None
    passages: tuple[Passage, ...]
    weave: Weave | None

    @property
    def numbers(self) -> frozenset[int]:
        """The commits that touch the file."""
        return frozenset(each.number for each in self.passages)

    @property
    def born(self) -> int:
        """The commit that adds the file, 0 if the base has it."""
        first = self.passages[0] if self.passages else None
        return first.number if first is not None and first.old is None else 0

    @property
    def mode_set_by(self) -> int:
        """The last commit that set the file's mode or added it, 0 if none did."""
        return max((p.number for p in self.passages if _sets_mode(p)), default=0)

    def path_at(self, number: int) -> str:
        """The path that the file has after commit `number`."""
        for passage in reversed(self.passages):
            if passage.number <= number:
                return passage.path
        return self.passages[0].old_path if self.passages else self.path

    def entry_at(self, number: int) -> TreeEntry | None:
        """The file's entry after commit `number`, None where it is not there."""
        for passage in reversed(self.passages):
            if passage.number <= number:
                return passage.new
        return self.passages[0].old if self.passages else self.entry


class Ground(Struct, frozen=True):
    """The stack that histories are read from: `trees[0]` is the base's, `trees[n]` after n."""

    repository: Repository
    reader: Reader
    trees: tuple[str, ...]

    @property
    def tip(self) -> int:
        """The number of the last commit."""
        return len(self.trees) - 1


def lookup(reader: Reader, tree: str, path: str) -> TreeEntry | None:
    """What a tree has at a path; None for nothing and for a folder."""
    *folders, name = path.split("/")
    for folder in folders:
        entry = reader.tree(tree).get(folder)
        if entry is None or entry.mode != TREE_MODE:
            return None
        tree = entry.oid
    entry = reader.tree(tree).get(name)
    return None if entry is None or entry.mode == TREE_MODE else entry


def read_history(ground: Ground, path: str) -> FileHistory:
    """The history of the file that the tip has, or lacks, at `path`."""
    entry = lookup(ground.reader, ground.trees[-1], path)
    passages: list[Passage] = []
    current = path
    for number in range(ground.tip, 0, -1):
        passage = _passage(ground, number, current)
        if passage is not None:
            passages.append(passage)
            current = passage.old_path
            if passage.old is None or passage.new is None:
                break
    ordered = tuple(reversed(passages))
    return FileHistory(path, entry, ordered, _weave(ground.reader, entry, ordered))


def hunk_edits(hunks: Sequence[Hunk]) -> tuple[Edit, ...]:
    """The edits that hunks without context stand for."""
    edits = []
    for hunk in hunks:
        # "-7,0" inserts behind line 7
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        edits.append(Edit(start, start + hunk.old_count, tuple(hunk.postimage)))
    return tuple(edits)


def is_text_change(change: FileChange) -> bool:
    """Whether the change is one of the lines, or the mode, of an ordinary file."""
    modes = [mode for mode in (change.old_mode, change.new_mode) if mode is not None]
    return change.binary is None and all(mode in _REGULAR for mode in modes)


def _passage(ground: Ground, number: int, path: str) -> Passage | None:
    before, after = ground.trees[number - 1], ground.trees[number]
    if before == after:
        return None
    old, new = (lookup(ground.reader, tree, path) for tree in (before, after))
    if old == new:
        return None
    (diff,) = diff_trees(ground.repository, [(before, after)], "-U0", "-M50%")
    changes = [each for each in parse_diff(diff) if path in (each.old_path, each.new_path)]
    if new is None:
        return Passage(number, path, old, path, None, None)
    change = next((each for each in changes if each.new_path == path), None)
    if change is not None and change.kind is Kind.RENAME and change.old_path is not None:
        old = lookup(ground.reader, before, change.old_path)
        return Passage(number, change.old_path, old, path, new, _edits(change, old, new))
    return Passage(number, path, old, path, new, _edits(change, old, new))


def _edits(
    change: FileChange | None, old: TreeEntry | None, new: TreeEntry
) -> tuple[Edit, ...] | None:
    regular = new.mode in _REGULAR and (old is None or old.mode in _REGULAR)
    if change is None or not regular or not is_text_change(change):
        return None
    return hunk_edits(change.hunks)


def _weave(reader: Reader, tip: TreeEntry | None, passages: Sequence[Passage]) -> Weave | None:
    first = passages[0].old if passages else tip
    if any(each.edits is None for each in passages):
        return None
    if first is not None and first.mode not in _REGULAR:
        return None
    result = weave(b"" if first is None else reader.blob(first.oid))
    for passage in passages:
        assert passage.edits is not None
        result = result.grown(passage.number, passage.edits)
    return result


def _sets_mode(passage: Passage) -> bool:
    return passage.new is not None and (passage.old is None or passage.old.mode != passage.new.mode)
