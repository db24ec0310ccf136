"""The tree that a patch met: its files and where they are, read as far as one looks."""

from __future__ import annotations

from collections.abc import Iterator

from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.model.diff_parse import split_lines
from patchkit.model.objects import (
    EMPTY_TREE,
    FILE_MODE,
    SYMLINK_MODE,
    TREE_MODE,
    TreeEntry,
    parse_tree,
)
from patchkit.model.similarity import Index, index_lines
from patchkit.model.tree import ObjectSource, Overlay, Tree

__all__ = ["Overlay", "Terrain"]


class Terrain:
    """A tree, with each file's lines read once; nothing here changes it."""

    def __init__(self, source: ObjectSource, tree: str) -> None:
        self.source = source
        self.oid = tree
        self.tree = Tree(source, tree)
        self._lines: dict[str, list[bytes]] = {}
        self._indexes: dict[str, Index] = {}
        self._files: dict[str, TreeEntry] | None = None

    def data(self, path: str) -> bytes | None:
        """A file's contents; None if no file stands there, or its blob can't be had."""
        entry = self.tree.entry(path)
        if entry is None or entry.mode & ~0o777 not in (FILE_MODE & ~0o777, SYMLINK_MODE):
            return None
        try:
            return self.source.read(entry.oid, "blob")
        except MissingObjectError:
            return None

    def lines(self, path: str) -> list[bytes]:
        """A file's lines with their newlines; none if no file stands there."""
        if path not in self._lines:
            self._lines[path] = split_lines(self.data(path) or b"")
        return self._lines[path]

    def index(self, path: str) -> Index:
        """Where each of the file's lines stands."""
        if path not in self._indexes:
            self._indexes[path] = index_lines(self.lines(path))
        return self._indexes[path]

    def files(self) -> dict[str, TreeEntry]:
        """Path -> entry of every file, symlink and submodule; reads every folder once."""
        if self._files is None:
            self._files = dict(self._walk(self.oid, ""))
        return self._files

    def _walk(self, oid: str, prefix: str) -> Iterator[tuple[str, TreeEntry]]:
        if oid == EMPTY_TREE:
            return
        for name, entry in parse_tree(self.source.read(oid, "tree")).items():
            if entry.mode == TREE_MODE:
                yield from self._walk(entry.oid, f"{prefix}{name}/")
            else:
                yield prefix + name, entry
