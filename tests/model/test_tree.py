from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.model.objects import (
    EMPTY_TREE,
    EXECUTABLE_MODE,
    FILE_MODE,
    SYMLINK_MODE,
    GitObject,
    TreeEntry,
)
from patchkit.model.tree import ObstructedError, Tree
from tests.model.oracle import Objects

BLOB = "1" * 40
OTHER = "2" * 40


def tree_of(*paths: str) -> tuple[Objects, Tree]:
    objects = Objects()
    oid = objects.tree({path: (FILE_MODE, path.encode()) for path in paths})
    return objects, Tree(objects, oid)


def test_what_stands_at_a_path() -> None:
    objects, tree = tree_of("a", "d/e/f")
    found = tree.entry("d/e/f")
    assert found is not None
    assert objects.read(found.oid, "blob") == b"d/e/f"
    for nothing in ("d", "d/e", "d/e/g", "a/b", "x/y"):
        assert tree.entry(nothing) is None


def test_what_stands_where_a_folder_should_be_is_named_whole() -> None:
    _, tree = tree_of("a", "d/e/f")
    found = tree.leaf_above("d/e/f/g/h")
    assert found == ("d/e/f", tree.entry("d/e/f"))
    assert tree.leaf_above("d/e/x") is None


def test_an_edit_leaves_the_old_tree_alone() -> None:
    objects, tree = tree_of("a", "d/e/f")
    before = tree.write([])
    edited = tree.put("d/e/g", TreeEntry(EXECUTABLE_MODE, BLOB)).remove("a")
    assert edited.entry("d/e/g") == TreeEntry(EXECUTABLE_MODE, BLOB)
    assert edited.entry("a") is None
    assert tree.entry("a") is not None
    assert tree.write([]) == before
    assert objects.known[before].kind == "tree"


def test_only_folders_on_the_way_are_written() -> None:
    _, tree = tree_of("a/b/c", "x/y/z", "f")
    written: list[GitObject] = []
    tree.put("a/b/d", TreeEntry(FILE_MODE, BLOB)).write(written)
    assert len(written) == 3


def test_folders_left_empty_go_away() -> None:
    _, tree = tree_of("a/b/c", "f")
    assert tree.remove("a/b/c").remove("f").write([]) == EMPTY_TREE
    assert tree.remove("a/b/none").write([]) == tree.write([])


def test_what_is_in_the_way_is_named() -> None:
    _, tree = tree_of("a/b", "f")
    entry = TreeEntry(FILE_MODE, BLOB)
    with pytest.raises(ObstructedError, match="f is in the way of f/x/y"):
        tree.put("f/x/y", entry)
    with pytest.raises(ObstructedError, match="a/ is in the way of a"):
        tree.put("a", entry)
    linked = tree.put("l", TreeEntry(SYMLINK_MODE, OTHER))
    assert linked.symlink_above("l/x/y") == "l"
    assert linked.symlink_above("f/x") is None
    assert linked.symlink_above("l") is None


PATHS = st.lists(st.sampled_from("ab.-"), min_size=1, max_size=3).map("/".join)


@pytest.mark.slow
@given(st.dictionaries(PATHS, st.sampled_from([FILE_MODE, EXECUTABLE_MODE])), st.randoms())
def test_law_edits_give_what_building_gives(modes: dict[str, int], random: Random) -> None:
    wanted = {
        path: (mode, b"x")
        for path, mode in modes.items()
        if not any(other.startswith(path + "/") for other in modes)
    }
    objects = Objects()
    expected = objects.tree(wanted)
    blob = objects.add("blob", b"x")
    tree = Tree(objects, objects.tree({"gone/x": (FILE_MODE, b""), "z": (FILE_MODE, b"")}))
    for path in random.sample(sorted(wanted), len(wanted)):
        tree = tree.put(path, TreeEntry(wanted[path][0], blob))
    assert tree.remove("z").remove("gone/x").write([]) == expected
