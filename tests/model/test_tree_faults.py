"""Trees that no checkout must have: names that leave it, and sizes that fit nowhere."""

from __future__ import annotations

import pytest

from patchkit.model.names import DEEPEST, unsafe_path
from patchkit.model.tree import MOST_FILES, tree_fault
from tests.model.oracle import Objects

BLOB = bytes.fromhex("1" * 40)


def made(objects: Objects, *rows: tuple[int, str, bytes]) -> bytes:
    """The id of a tree of (mode, name, id) rows, put into `objects` as they are."""
    payload = b"".join(b"%o %s\x00%s" % (mode, name.encode(), oid) for mode, name, oid in rows)
    return bytes.fromhex(objects.add("tree", payload))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (".git", "inside a .git folder"),
        (".GIT", "inside a .git folder"),
        (".g\u200cit", "inside a .git folder"),
        ("git~1", "inside a .git folder"),
        ("..", "leaves the tree"),
        (".", "'.' component"),
        ("a/b", "name with a slash"),
    ],
)
def test_names_are_refused_at_any_depth(name: str, said: str) -> None:
    for mode in (0o100644, 0o40000):
        objects = Objects()
        inner = made(objects, (0o100644, "x", BLOB))
        bad = made(objects, (mode, name, inner if mode == 0o40000 else BLOB))
        root = made(objects, (0o40000, "fine", inner), (0o40000, "sub", bad))
        fault = tree_fault(objects, root.hex())
        assert fault is not None
        assert (fault[0], said in fault[1]) == (f"sub/{name}", True)


def test_a_name_that_stands_twice() -> None:
    objects = Objects()
    root = made(objects, (0o100644, "x", BLOB), (0o120000, "x", BLOB))
    assert tree_fault(objects, root.hex()) == ("", "two entries of one name")


def test_a_link_in_the_place_of_git_s_modules() -> None:
    objects = Objects()
    fine, bad = (made(objects, (mode, ".gitmodules", BLOB)) for mode in (0o100644, 0o120000))
    assert tree_fault(objects, fine.hex()) is None
    fault = (".gitmodules", "symlink in the place of .gitmodules")
    assert tree_fault(objects, bad.hex()) == fault


def nested(objects: Objects, depth: int) -> bytes:
    oid = made(objects, (0o100644, "x", BLOB))
    for _ in range(depth):
        oid = made(objects, (0o40000, "d", oid))
    return oid


@pytest.mark.parametrize("depth", [DEEPEST, DEEPEST + 1, 3000])
def test_folders_in_each_other(depth: int) -> None:
    objects = Objects()
    fault = tree_fault(objects, nested(objects, depth).hex())
    assert (fault is None) == (depth <= DEEPEST)
    assert (unsafe_path("d/" * depth + "x") is None) == (depth <= DEEPEST)


@pytest.mark.parametrize("depth", [DEEPEST, DEEPEST + 1])
def test_a_long_way_through_trees_that_have_a_short_one_too(depth: int) -> None:
    """Each tree is referred to by the next and by the root: the longest way counts."""
    objects = Objects()
    oid = made(objects, (0o100644, "x", BLOB))
    all_ = [oid]
    for _ in range(depth - 1):
        oid = made(objects, (0o40000, "d", oid))
        all_.append(oid)
    root = made(objects, *sorted((0o40000, f"r{n:04}", each) for n, each in enumerate(all_)))
    assert (tree_fault(objects, root.hex()) is None) == (depth <= DEEPEST)


def test_a_few_trees_that_stand_for_any_number_of_files() -> None:
    objects = Objects()
    oid = made(objects, *((0o100644, str(n), BLOB) for n in range(10)))
    for _ in range(9):
        oid = made(objects, *((0o40000, str(n), oid) for n in range(10)))
    fault = tree_fault(objects, oid.hex())
    assert fault is not None
    assert fault[1] == f"more than {MOST_FILES} files"
