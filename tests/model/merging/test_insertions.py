"""Two insertions at one place: which comes first."""

from __future__ import annotations

import pytest

from patchkit.model.merging.merge import merge_file
from patchkit.model.merging.regions import (
    indentation,
    join_insertions,
    leaves_scope,
    put_behind,
)


def joined(upstream: str, patch: str, above: str = "", below: str = "") -> str:
    sides = [text.encode().splitlines(True) for text in (upstream, patch, above, below)]
    around = sides[2], sides[3]
    return b"".join(join_insertions(sides[0], sides[1], around, patch_first=False)).decode()


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
        ("d\n", "c\n", "a\nb\n", "e\nc\n", False),  # nor further on
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


def test_entries_of_several_lines_are_sorted_whole() -> None:
    upstream = "from d import (\n    x,\n)\n"
    patch = "from c import (\n    x,\n)\n"
    assert joined(upstream, patch, "from a import (\n    y,\n)\n", "from e import x\n") == (
        patch + upstream
    )
    # one that does not end in the insertion is no entry
    half = "from c import (\n    x,\n"
    assert joined(upstream, half, "from a import x\n") == upstream + half


def test_numbers_and_capitals_may_have_an_order() -> None:
    assert joined("v12\n", "v3\n", "v1\nv2\n", "v20\n") == "v3\nv12\n"
    assert joined("b\n", "Z\n", "A\nB\n", "c\n") == "Z\nb\n"


def test_the_side_decides_where_the_text_does_not() -> None:
    lines = [b"x = 1\n"], [b"y = 2\n"], ([b"f()\n"], [b"g()\n"])
    assert join_insertions(*lines, patch_first=False) == [b"x = 1\n", b"y = 2\n"]
    assert join_insertions(*lines, patch_first=True) == [b"y = 2\n", b"x = 1\n"]


def test_a_call_is_not_torn_where_its_bracket_closes() -> None:
    call = [b"    add(\n", b"        'x',\n", b")\n"]
    assert put_behind(call, [b"    y = 2\n"]) == [*call, b"    y = 2\n"]
    own = [b"        'y',\n"]
    # it closes what stands above: the lines belong inside of that
    tail = [b"        'x',\n", b"    )\n", b"    add(\n"]
    assert put_behind(tail, own) == [tail[0], own[0], *tail[1:]]
    # both do: each is a whole call, but for where git shows it
    other = [b"        'z',\n", b"    )\n", b"    add(\n"]
    assert put_behind(tail, other) == [*tail, *other]


def test_what_is_still_in_the_block_comes_before_both_leave_it() -> None:
    one = [b"    x = 1\n", b"\n", b"def g():\n", b"    pass\n"]
    other = [b"    y = 2\n", b"\n", b"def h():\n", b"    pass\n"]
    assert put_behind(one, other) == [one[0], other[0], *one[1:], *other[1:]]


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


def _merged(base: str, upstream: str, patch: str, *, patch_first: bool = False) -> str:
    texts = (each.encode() for each in (base, upstream, patch))
    merge = merge_file("f.py", *texts, patch_first=patch_first)
    assert merge is not None and merge.data is not None
    return merge.data.decode()


@pytest.mark.parametrize("patch_first", [False, True])
def test_what_follows_a_line_follows_the_line_that_replaces_it(patch_first: bool) -> None:
    base = "def compute(data):\n    return data\n"
    upstream = base.replace("data):\n", 'data):\n    """Compute it."""\n')
    patch = base.replace("compute(data)", "compute(data, scale=1)")
    wanted = 'def compute(data, scale=1):\n    """Compute it."""\n    return data\n'
    assert _merged(base, upstream, patch, patch_first=patch_first) == wanted
    assert _merged(base, patch, upstream, patch_first=patch_first) == wanted


@pytest.mark.parametrize("patch_first", [False, True])
def test_a_statement_that_replaces_a_line_is_kept_whole(patch_first: bool) -> None:
    base = "from a.b import one_name, other_name\n\nuse(one_name, other_name)\n"
    longer = base.replace("import one_name, other_name", "import (\n    one_name,\n    more,\n)")
    patch = base.replace("other_name\n\n", "other_name\nfrom a.c import third_name\n\n", 1)
    wanted = "    more,\n)\nfrom a.c import third_name\n\n"
    assert wanted in _merged(base, longer, patch, patch_first=patch_first)


def test_nothing_goes_behind_the_statement_that_leaves_a_block() -> None:
    first = [b"    a = 1\n", b"    return a\n", b"\n", b"\n", b"def more():\n", b"    b = 1\n"]
    second = [b"    c = {\n", b"        1: 2,\n", b"    }\n"]
    assert put_behind(first, second) == [first[0], *second, *first[1:]]
    several = [b"    a = 1\n", b"    return call(\n", b"        a,\n", b"    )\n", b"x()\n"]
    assert put_behind(several, second) == [several[0], *second, *several[1:]]
    inner = [b"    if a:\n", b"        return a\n", b"x()\n"]
    assert put_behind(inner, second) == [*inner[:2], *second, inner[2]]


def test_a_comment_in_the_first_column_leaves_no_block() -> None:
    first = [b'    "one",\n', b'#    "two",\n']
    assert put_behind(first, [b'    "three",\n']) == [*first, b'    "three",\n']
    conditional = [b"    one();\n", b"#endif\n"]
    second = [b"    two();\n"]
    assert put_behind(conditional, second) == [conditional[0], *second, conditional[1]]
