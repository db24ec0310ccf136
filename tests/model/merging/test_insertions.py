"""Two insertions at one place: which comes first."""

from __future__ import annotations

import pytest

from patchkit.model.merging.merge import merge_file
from patchkit.model.merging.regions import (
    indentation,
    leaves_scope,
    put_behind,
)


def joined(
    upstream: str, patch: str, above: str = "", below: str = "", *, patch_first: bool = False
) -> str:
    texts = (above + below, above + upstream + below, above + patch + below)
    merged = _merged(*texts, patch_first=patch_first, path="list.txt")
    return merged.removeprefix(above).removesuffix(below)


@pytest.mark.parametrize(
    ("upstream", "patch", "above", "below", "in_order"),
    [
        ("d\n", "c\n", "a\nb\n", "e\n", True),
        ("d,\n", "C,\n", "a,\nb,\n", "e\n", True),  # letters and commas do not count
        ("d,\n", "c,\n", "a,\na b,\n", "e,\n", True),
        ("d\n", "c\n", "a\n", "", False),  # two lines show no order
        ("from d import x\n", "from c import x\n", "", "from e import x\nimport f\n", True),
        ("d\n", "c\n", "b\na\n", "e\n", False),  # not sorted above
        ("d\n", "c\n", "a\nb\n", "f\ne\n", False),  # nor below
        ("d\n", "c\n", "z\na\nb\nb\n", "e\nf\ng\na\n", True),  # three lines away says nothing
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
    lines = "x = 1\n", "y = 2\n", "f()\n", "g()\n"
    assert joined(*lines) == "x = 1\ny = 2\n"
    assert joined(*lines, patch_first=True) == "y = 2\nx = 1\n"


@pytest.mark.parametrize(
    ("above", "one", "other", "below"),
    [
        # by module, however it is imported
        ("from q.a import b\n", "from q.b import c\n", "import q.d\n", "from q import z\n"),
        # modules first
        ("import a\nimport b\n", "import z\n", "from c import d\n", "from e import f\n"),
        ("X, 2025/12/01\n", "Z, 2026/01/09\n", "C, 2026/01/10\n", "A, 2026/02/01\n"),
    ],
)
def test_a_list_may_be_sorted_by_a_part_of_its_lines(
    above: str, one: str, other: str, below: str
) -> None:
    for upstream, patch in ((one, other), (other, one)):
        for patch_first in (False, True):
            assert joined(upstream, patch, above, below, patch_first=patch_first) == one + other


def test_a_sorted_list_stays_so_where_a_side_replaces_an_entry() -> None:
    base = "use a;\nuse b::s;\nuse b::R;\nuse e;\n"
    upstream = base.replace("use b::s;\nuse b::R;\n", "use b::R;\nuse b::s;\n")
    patch = base.replace("use b::R;\n", "use b::{E, R};\n")
    for sides in ((upstream, patch), (patch, upstream)):
        assert _merged(base, *sides, path="f.rs") == patch


def test_entries_that_git_shows_from_their_second_line_on_stay_whole() -> None:
    above, below = "- task:\n", "    name: z\n"
    one, other = (f"    name: {name}\n  when: {name}\n- task:\n" for name in "ab")
    assert joined(one, other, above, below) == one + other


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


def _merged(
    base: str, upstream: str, patch: str, *, patch_first: bool = False, path: str = "f.py"
) -> str:
    texts = (each.encode() for each in (base, upstream, patch))
    merge = merge_file(path, *texts, patch_first=patch_first)
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
