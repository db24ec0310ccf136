from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.model.diff_parse import parse_diff
from patchkit.model.hunks import Placement, place_hunks
from tests.model.oracle import git_verdict, our_verdict

NUMBERS = b"".join(b"%d\n" % number for number in range(1, 31))


def diff(*hunks: bytes) -> bytes:
    return b"--- a/f\n+++ b/f\n" + b"".join(hunks)


def place(data: bytes, *hunks: bytes) -> Placement:
    (change,) = parse_diff(diff(*hunks))
    return place_hunks(data, change.hunks)


def test_the_recorded_place_comes_first() -> None:
    hunk = b"@@ -4,3 +4,3 @@\n a\n-b\n+B\n a\n"
    assert place(b"a\nb\na\na\nb\na\na\nb\na\n", hunk) == Placement(
        b"a\nb\na\na\nB\na\na\nb\na\n", (0,)
    )


def test_the_nearest_place_wins_and_forward_a_tie() -> None:
    block = b"a\nb\na\n"
    hunk = b"@@ -9,3 +9,3 @@\n a\n-b\n+B\n a\n"
    before_and_after = block + b"x\n" * 8 + block
    assert place(before_and_after, hunk).offsets == (3,)
    assert place(block + b"x\n" * 20 + block, hunk).offsets == (-8,)
    tie = b"x\n" * 5 + block + b"x\n" * 3 + block
    assert place(tie, hunk).offsets == (3,)


def test_a_hunk_for_the_first_line_lands_nowhere_else() -> None:
    hunk = b"@@ -1,2 +1,2 @@\n-a\n+b\n c\n"
    assert place(b"a\nc\nd\n", hunk).data == b"b\nc\nd\n"
    assert place(b"x\na\nc\nd\n", hunk).data is None


def test_a_hunk_without_trailing_context_lands_at_the_end() -> None:
    hunk = b"@@ -2,2 +2,3 @@\n a\n b\n+c\n"
    assert place(b"a\nb\na\nb\n", hunk) == Placement(b"a\nb\na\nb\nc\n", (1,))
    assert place(b"1\na\nb\nx\n", hunk).data is None


def test_lines_that_an_earlier_hunk_placed_do_not_match_again() -> None:
    first = b"@@ -2,3 +2,3 @@\n a\n-b\n+x\n a\n"
    second = b"@@ -4,3 +4,3 @@\n a\n-b\n+B\n a\n"
    assert place(b"1\na\nb\na\nb\na\n", first, second).data is None
    assert place(b"1\na\nb\na\na\nb\na\n", first, second).data == b"1\na\nx\na\na\nB\na\n"


def test_hunks_may_come_out_of_order() -> None:
    early = b"@@ -5,3 +5,2 @@\n 5\n-6\n 7\n"
    late = b"@@ -20,3 +20,3 @@\n 20\n-21\n+x\n 22\n"
    placed = place(NUMBERS, late, early)
    assert placed.data == NUMBERS.replace(b"\n6\n", b"\n").replace(b"21", b"x")
    assert placed.offsets == (0, 0)


def test_hunks_out_of_order_in_a_file_that_begins_with_an_empty_line() -> None:
    late = b"@@ -20,3 +20,3 @@\n 19\n-20\n+x\n 21\n"
    early = b"@@ -5,3 +5,3 @@\n 4\n-5\n+y\n 6\n"
    placed = place(b"\n" + NUMBERS, late, early)
    assert placed.data == b"\n" + NUMBERS.replace(b"\n20", b"\nx").replace(b"\n5\n", b"\ny\n")
    assert placed.offsets == (0, 0)


@pytest.mark.parametrize("new_start", [0, 1, 2, 9, 16, 17, 400])
def test_only_the_new_line_number_says_which_place_is_nearest(new_start: int) -> None:
    """The old one says whether it is the first line that is meant."""
    block = b"a\nb\na\n"
    files = {"f": (0o100644, b"1\n" + block + b"x\n" * 10 + block + b"2\n")}
    patch = b"diff --git a/f b/f\n" + diff(b"@@ -5,3 +%d,3 @@\n a\n-b\n+B\n a\n" % new_start)
    assert our_verdict(files, patch) == git_verdict(files, patch) is not None


def test_blanks_count() -> None:
    hunk = b"@@ -2,3 +2,3 @@\n a\n-b\n+c\n d\n"
    assert place(b"1\na\nb\nd\n", hunk).data == b"1\na\nc\nd\n"
    for other in (b"1\na \nb\nd\n", b"1\na\nb\nd", b"1\r\na\r\nb\r\nd\r\n", b"1\na\n b\nd\n"):
        assert place(other, hunk).data is None


def test_what_stands_at_the_place_is_told() -> None:
    shifted = b"@@ -2,3 +2,3 @@\n 4\n-5\n+x\n 6\n"
    placed = place(NUMBERS, shifted, b"@@ -20,3 +20,3 @@\n 22\n-zz\n+y\n 24\n")
    assert (placed.data, placed.offsets) == (None, (2,))
    (misfit,) = placed.misfits
    assert (misfit.number, misfit.found_at, misfit.found) == (2, 22, (b"22\n", b"23\n", b"24\n"))
    (second,) = place(
        NUMBERS, b"@@ -1,2 +1,2 @@\n-1\n+x\n 2\n", b"@@ -4,3 +4,3 @@\n 4\n-zz\n+y\n 6\n"
    ).misfits
    assert (second.found_at, second.found) == (4, (b"4\n", b"5\n", b"6\n"))
    (beyond,) = place(b"a\n", b"@@ -20,3 +20,3 @@\n a\n-b\n+c\n d\n").misfits
    assert beyond.found == ()


@pytest.mark.parametrize(
    "target", [b"", b"a", b"a\n", b"a\nb", b"a\nb\n", b"a\nb \n", b"a\nb\nc\n", b"a\nb\nc", b"\n"]
)
@pytest.mark.parametrize(
    "body",
    [
        b"@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
        b"@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n",
        b"@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n",
        b"@@ -2,2 +2,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n",
        b"@@ -2 +2 @@\n-b\n+c\n",
        b"@@ -0,0 +1 @@\n+c\n",
        b"@@ -2,0 +3 @@\n+c\n",
        b"@@ -1 +0,0 @@\n-a\n",
        b"@@ -1,2 +1,2 @@\n-a\n\\ No newline at end of file\n+A\n b\n",
    ],
)
def test_the_ends_of_files_as_git_sees_them(target: bytes, body: bytes) -> None:
    header = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n"
    files = {"f": (0o100644, target)}
    assert our_verdict(files, header + body) == git_verdict(files, header + body)


@pytest.mark.parametrize("tail", [b"\n", b" \t\r\n", b"\x0c\n", b"\x0b\n", b"x\n"])
def test_a_last_line_without_newline_may_have_blanks_behind_it_as_git_has_it(tail: bytes) -> None:
    patch = diff(b"@@ -2,3 +2,3 @@\n a\n-b\n+B\n c\n\\ No newline at end of file\n")
    files = {"f": (0o100644, b"0\na\nb\nc" + tail + b"d\n")}
    verdict = git_verdict(files, patch)
    assert our_verdict(files, patch) == verdict
    assert (verdict is None) is bool(tail.strip(b" \t\r\n"))


def test_a_first_misfit_tells_what_stands_at_its_own_place() -> None:
    (misfit,) = place(NUMBERS, b"@@ -4,3 +4,3 @@\n x\n-y\n+Y\n z\n").misfits
    assert (misfit.number, misfit.found_at, misfit.found) == (1, 4, (b"4\n", b"5\n", b"6\n"))


_lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), min_size=2, max_size=14)
_PARTS = (b"@@ -2,3 +2,3 @@\n a\n-b\n+x\n c\n", b"@@ -6,2 +6,3 @@\n c\n+y\n a\n")


@given(st.lists(_lines.map(b"".join), min_size=2, max_size=6))
def test_law_what_an_earlier_version_taught_changes_nothing(versions: list[bytes]) -> None:
    hunks = parse_diff(diff(*_PARTS))[0].hunks
    for data in versions:
        told, quick = place_hunks(data, hunks), place_hunks(data, hunks, terse=True)
        assert (quick.data, quick.offsets) == (told.data, told.offsets)
        assert [each.number for each in quick.misfits] == [each.number for each in told.misfits]
