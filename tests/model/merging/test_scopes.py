"""Two insertions at one place: which comes first."""

from __future__ import annotations

import pytest

from patchkit.model.merging.scopes import indentation, join_insertions, leaves_scope, put_behind


def joined(upstream: str, patch: str, above: str = "", below: str = "") -> str:
    sides = [text.encode().splitlines(True) for text in (upstream, patch, above, below)]
    return b"".join(join_insertions(sides[0], sides[1], (sides[2], sides[3]))).decode()


@pytest.mark.parametrize(
    ("upstream", "patch", "above", "below", "in_order"),
    [
        ("d\n", "c\n", "a\nb\n", "e\n", True),
        ("d,\n", "C,\n", "a,\nb,\n", "e\n", True),  # letters and commas do not count
        ("d,\n", "c,\n", "a,\na b,\n", "e,\n", True),
        ("d\n", "c\n", "a\n", "", False),  # two lines show no order
        ("import d\n", "import c\n", "import a\n", "", True),  # but for imports
        ("from d import x\n", "from c import x\n", "", "from e import x\n", True),
        ("d\n", "c\n", "b\na\n", "e\n", False),  # not sorted above
        ("d\n", "c\n", "a\nb\n", "e\nc\n", False),  # nor below
        ("z\n", "c\n", "a\nb\n", "e\n", False),  # not with upstream's
        ("d\n", "z\n", "a\nb\n", "e\n", False),  # not with the patch's
        ("'d'\n", "'c'\n", "a\nb\n", "e\n", False),  # another kind of line: one entry
        ("'d'\n", "'c'\n", "'a'\n'b'\n", "e\n", True),
        ("d\n", "c\n", "a\nb\n\n", "", False),  # an empty line ends the list
        ("  d\n", "  c\n", "  a\n  b\nz\n", "  e\n", False),  # and so does another depth
        ("  d\n", "  c\n", "z\n  a\n  b\n", "  e\nz\n", True),
    ],
)
def test_a_list_that_is_sorted_stays_sorted(
    upstream: str, patch: str, above: str, below: str, in_order: bool
) -> None:
    assert joined(upstream, patch, above, below) == (
        patch + upstream if in_order else upstream + patch
    )


def test_several_lines_are_merged_in_order() -> None:
    assert joined("b\ne\n", "c\nd\nf\n", "a\n", "g\n") == "b\nc\nd\ne\nf\n"


def test_lines_stand_beside_those_that_they_are_like() -> None:
    above, below = "assert first(1) == 1\n", "return done\n"
    assert joined("log(x)\n", "assert second(2) == 2\n", above, below) == (
        "assert second(2) == 2\nlog(x)\n"
    )
    assert joined("assert second(2) == 2\n", "log(x)\n", above, below) == (
        "assert second(2) == 2\nlog(x)\n"
    )


def test_the_patch_s_come_first_on_demand() -> None:
    lines = [b"c\n"], [b"d\n"], ([b"a\n", b"b\n"], [b"e\n"])
    assert join_insertions(*lines, patch_first=True) == [b"d\n", b"c\n"]


def test_deeper_lines_stay_in_the_block_above() -> None:
    first = [b"    x = 1\n", b"\n", b"\n", b"def g():\n", b"    y = 2\n"]
    own = [b"    z = 3\n"]
    assert put_behind(first, own) == [first[0], own[0], *first[1:]]
    assert put_behind([b"x\n"], [b"y\n"]) == [b"x\n", b"y\n"]
    assert leaves_scope(first, 4) == 1
    assert leaves_scope(first, 0) == 5
    assert leaves_scope([b"\n", b"x\n"], 4) == 0
    assert joined("def g():\n    pass\n", "    z = 3\n", "def f():\n") == (
        "    z = 3\ndef g():\n    pass\n"
    )


def test_a_tab_is_eight_blanks() -> None:
    assert indentation([b"\n", b"\tx\n"]) == 8
    assert indentation([b"  \tx\n"]) == 8
    assert indentation([b"\n"]) == 0
    assert leaves_scope([b"\tx\n"], 8) == 1
