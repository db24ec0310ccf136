from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.model.line_diff import Edit, diff_lines, sliding_places

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=14)


def test_an_edit_names_both_ranges() -> None:
    old, new = [b"a\n", b"b\n", b"c\n"], [b"a\n", b"x\n", b"y\n", b"c\n"]
    assert diff_lines(old, new) == (Edit(1, 2, 1, 3),)


def test_a_run_slides_down_as_git_has_it() -> None:
    old = [b"def f():\n", b"    x\n", b"\n"]
    new = [b"def f():\n", b"    x\n", b"\n", b"def f():\n", b"    x\n", b"\n"]
    assert diff_lines(old, new) == (Edit(3, 3, 3, 6),)


def test_of_like_runs_the_longest_is_kept_as_git_has_it() -> None:
    old, new = ([bytes([each]) for each in text] for text in (b"bbabbb", b"bbbb"))
    assert diff_lines(old, new) == (Edit(2, 5, 2, 3),)


def test_lines_that_repeat_too_often_to_anchor_are_compared_all_the_same() -> None:
    old = [b"x\n"] * 70
    assert diff_lines(old, [*old, b"x\n"]) == (Edit(70, 70, 70, 71),)
    crowd = [b"x\n", b"y\n"] * 70
    assert diff_lines(crowd[1:-1], crowd[:-1]) == (Edit(0, 0, 0, 1),)
    shuffled = [b"p\n", *crowd[3:], b"q\n", b"x\n"]
    edits = diff_lines(crowd, shuffled)
    assert sum(each.new_end - each.new_start for each in edits) < 8


@pytest.mark.slow
def test_a_long_stretch_of_few_lines_does_not_take_for_ever() -> None:
    chance = random.Random(1)
    old, new = (chance.choices([b"x\n", b"y\n"], k=6000) for _ in range(2))
    assert diff_lines(old, new) == (Edit(0, 6000, 0, 6000),)


@given(LINES, LINES)
def test_law_the_edits_make_the_new_text(old: list[bytes], new: list[bytes]) -> None:
    edits = diff_lines(old, new)
    made: list[bytes] = []
    at = 0
    for edit in edits:
        assert at <= edit.start
        made += old[at : edit.start] + new[edit.new_start : edit.new_end]
        at = edit.end
    assert made + old[at:] == new
    starts = [edit.start for edit in edits]
    ends = [edit.end for edit in edits]
    assert all(end < start for end, start in zip(ends, starts[1:], strict=False))


@given(LINES, LINES)
def test_law_an_edit_comes_to_the_same_wherever_it_slides(
    old: list[bytes], new: list[bytes]
) -> None:
    edits = diff_lines(old, new)
    if len(edits) == 1:
        for each in sliding_places(edits[0], old, new):
            assert each not in edits
            assert old[: each.start] == new[: each.new_start]
            assert old[each.end :] == new[each.new_end :]


def test_the_nearest_places_come_first() -> None:
    old, new = [b"a\n", b"\n", b"\n", b"b\n"], [b"a\n", b"\n", b"\n", b"x\n", b"\n", b"\n", b"b\n"]
    (edit,) = diff_lines(old, new)
    assert edit == Edit(3, 3, 3, 6)
    assert [each.start for each in sliding_places(edit, old, new)] == [2, 1]
    old = [b"a\n", b"x\n", b"x\n", b"x\n", b"x\n", b"b\n"]
    edit, new = Edit(3, 3, 3, 4), [*old[:3], b"x\n", *old[3:]]
    assert [each.start for each in sliding_places(edit, old, new)] == [2, 4, 1, 5]
    old, new = [b"x\n", b"b\n"], [b"x\n", b"x\n", b"b\n"]
    assert list(sliding_places(Edit(1, 1, 1, 2), old, new)) == [Edit(0, 0, 0, 1)]
