from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from patchkit.model.objects import (
    EMPTY_TREE,
    FILE_MODE,
    SYMLINK_MODE,
    TreeEntry,
)
from patchkit.model.tree import FewFiles, ObstructedError, Tree
from tests.model.oracle import Objects

_PATHS = ("a", "a/b", "a/b/c", "ab", "d/e", "d")
_ENTRY = TreeEntry(FILE_MODE, "1" * 40)
_entries = st.sampled_from([_ENTRY, TreeEntry(SYMLINK_MODE, "2" * 40)])
_edits = st.lists(st.tuples(st.sampled_from(_PATHS), _entries | st.none()), max_size=8)


@given(_edits)
@example([("a/b", _ENTRY), ("a", _ENTRY)])
def test_law_few_files_answer_as_a_tree_does(edits: list[tuple[str, TreeEntry | None]]) -> None:
    objects = Objects()
    few, tree = FewFiles(objects, {}), Tree(objects, EMPTY_TREE)
    for path, entry in edits:
        if entry is None:
            if tree.entry(path) is not None:
                few, tree = few.remove(path), tree.remove(path)
            continue
        by = None
        try:
            tree = tree.put(path, entry)
        except ObstructedError as error:
            by = error.by
        try:
            few = few.put(path, entry)
            assert by is None
        except ObstructedError as error:
            assert error.by == by
    for path in _PATHS:
        assert few.entry(path) == tree.entry(path)
        assert few.leaf_above(path) == tree.leaf_above(path)
        assert few.symlink_above(path) == tree.symlink_above(path)
