"""A tree of a few files, held flat: for many small questions, each about a handful of paths."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from patchkit.model.objects import EMPTY_TREE, GitObject, TreeEntry
from patchkit.model.tree import ObjectSource, ObstructedError, Tree


class FewFiles(Tree):
    """Answers as a Tree of these files does; none stands in the way of another."""

    __slots__ = ("_files",)

    def __init__(self, source: ObjectSource, files: Mapping[str, TreeEntry]) -> None:
        self._source = source
        self._files = files

    def entry(self, path: str) -> TreeEntry | None:
        """See Tree."""
        return self._files.get(path)

    def leaf_above(self, path: str) -> tuple[str, TreeEntry] | None:
        """See Tree."""
        for folder in accumulate(path.split("/")[:-1], "{}/{}".format):
            if folder in self._files:
                return folder, self._files[folder]
        return None

    def put(self, path: str, entry: TreeEntry) -> FewFiles:
        """See Tree."""
        above = self.leaf_above(path)
        if above is not None:
            raise ObstructedError(path, above[0])
        if any(each.startswith(path + "/") for each in self._files):
            raise ObstructedError(path, path + "/")
        return FewFiles(self._source, {**self._files, path: entry})

    def remove(self, path: str) -> FewFiles:
        """See Tree."""
        rest = {each: entry for each, entry in self._files.items() if each != path}
        return FewFiles(self._source, rest)

    def write(self, written: list[GitObject]) -> str:
        """See Tree; this is the time for folders."""
        tree = Tree(self._source, EMPTY_TREE)
        for path, entry in self._files.items():
            tree = tree.put(path, entry)
        return tree.write(written)


def few_files(source: ObjectSource, state: Mapping[str, TreeEntry | None]) -> FewFiles:
    """The tree of what stands at some paths; ObstructedError if a file stands for a folder."""
    files = {path: entry for path, entry in state.items() if entry is not None}
    if len(files) < 2:
        return FewFiles(source, files)
    tree = FewFiles(source, {})
    for path, entry in files.items():
        tree = tree.put(path, entry)
    return tree
