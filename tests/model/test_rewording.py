"""Renamings that explain why lines differ."""

from __future__ import annotations

import pytest

from patchkit.model.similarity import (
    Pair,
    Rewording,
    absolute_import,
    changed_names,
    explains,
    find_rewordings,
    pair_lines,
)


def pair(expected: str, found: str, path: str = "a.py") -> Pair:
    return Pair(path, expected.encode(), found.encode())


@pytest.mark.parametrize(
    ("expected", "found", "names"),
    [
        ("from a.b.c import X", "from a.z.c import X", [("a.b", "a.z")]),
        ("x = old_name(1)", "x = new_name(1)", [("old_name", "new_name")]),
        ("open('lib/old/a')", "open('lib/new/a')", [("lib/old", "lib/new")]),
        ("import a, b", "import a", []),
        ("same", "same", []),
        ("x = 1", "x = 2", []),  # a number is no name
    ],
)
def test_names_that_changed(expected: str, found: str, names: list[tuple[str, str]]) -> None:
    assert changed_names(pair(expected, found)) == names


def test_renaming_needs_two_lines() -> None:
    one = pair("from a.b.c import X", "from a.z.c import X", "1.py")
    two = pair("from a.b.d import Y", "from a.z.d import Y", "2.py")
    assert find_rewordings([one]) == ()
    assert find_rewordings([one, two]) == (Rewording("a.b", "a.z", 2, ("1.py", "2.py")),)


def test_explains_only_what_is_renamed_and_nothing_else() -> None:
    renaming = [Rewording("a.b", "a.z", 2, ())]
    assert explains(pair("from a.b.c import X", "from a.z.c import X"), renaming)
    assert not explains(pair("from a.b.c import X", "from a.z.c import Y"), renaming)
    assert not explains(pair("from a.b.c import X, Y", "from a.z.c import X"), renaming)


@pytest.mark.parametrize(
    ("line", "path", "absolute"),
    [
        ("from .x import y", "a/b/c.py", "from a.b.x import y"),
        ("from ..x import y", "a/b/c.py", "from a.x import y"),
        ("from . import y", "a/b/c.py", "from a.b import y"),
        ("    from .x import y  # why", "a/c.py", "    from a.x import y  # why"),
        ("from .x import y", "a/c.txt", "from .x import y"),
        ("from x import y", "a/c.py", "from x import y"),
    ],
)
def test_absolute_import(line: str, path: str, absolute: str) -> None:
    assert absolute_import(line, path) == absolute


def test_a_long_line_is_like_one_with_another_end() -> None:
    """Signs that are frequent in a long line count, too."""
    old, new = (b"x = [" + b"1, " * 200 + end + b"]\n" for end in (b"2", b"3, 4"))
    assert pair_lines("f", [old], [new]) == [(0, Pair("f", old, new))]


def test_lines_are_paired_in_order_by_likeness() -> None:
    expected = [b"alpha = compute(1)\n", b"}\n", b"beta = compute(2)\n"]
    found = [b"alpha = compute(10)\n", b"beta = compute(20)\n"]
    pairs = pair_lines("a.py", expected, found)
    assert [(number, each.found) for number, each in pairs] == [(0, found[0]), (2, found[1])]
