"""Where lines stand approximately, and how they differ there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.model.similarity import differences, find_exact, find_place, without_end

LINES = [f"line {n}\n".encode() for n in range(1, 31)]

texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"{\n", b"\n", b"call(x)\n"]), max_size=12)


def test_exact_lines_are_found_wherever_they_are() -> None:
    place = find_place(LINES[9:14], LINES, near=1)
    assert place is not None
    assert (place.start, place.end, place.similarity) == (10, 15, 1.0)
    assert differences(LINES[9:14], LINES, place) == ()


def test_nearest_of_equal_places_wins() -> None:
    lines = [*LINES, *LINES]
    for near, start in ((1, 5), (33, 35), (60, 35)):
        place = find_place(LINES[4:8], lines, near=near)
        assert place is not None
        assert place.start == start


def test_punctuation_does_not_make_a_place() -> None:
    expected = [b"def wanted():\n", b"    {\n", b"    }\n", b"    )\n"]
    lines = [b"    {\n", b"    }\n", b"    )\n"] * 5
    assert find_place(expected, lines, near=1) is None


def test_reworded_line_is_still_a_place() -> None:
    place = find_place([b"value = compute(first)\n"], [b"x\n", b"value = compute(other)\n"], near=2)
    assert place is not None
    assert place.start == 2
    assert place.similarity < 1
    place = find_place([b"other(value)\n", *LINES[10:14]], LINES, near=10)
    assert place is not None
    assert (place.start, place.end) == (10, 15)


def test_nothing_to_look_for_or_in() -> None:
    assert find_place([], LINES, near=1) is None
    assert find_place(LINES, [], near=1) is None


def test_line_ends_do_not_unhinge_the_alignment() -> None:
    lines = [line.replace(b"\n", b"\r\n") for line in LINES]
    place = find_place(LINES[4:7], lines, near=5)
    assert place is not None
    found = differences(LINES[4:7], lines, place)
    assert [each.is_only_in(without_end) for each in found] == [True, True, True]
    assert [each.found_at for each in found] == [5, 6, 7]


def test_exact_search_takes_the_nearest() -> None:
    lines = [b"a\n", b"b\n"] * 5
    assert find_exact([b"a\n", b"b\n"], lines, near=6) == 5
    assert find_exact([b"b\n", b"b\n"], lines, near=6) is None
    assert find_exact([], lines, near=6) is None


@pytest.mark.slow
@given(texts, texts, texts)
def test_differences_turn_one_into_the_other(
    before: list[bytes], expected: list[bytes], after: list[bytes]
) -> None:
    lines = before + after
    place = find_place(expected, lines, near=len(before))
    if place is None:
        return
    rebuilt = list(expected)
    for each in reversed(differences(expected, lines, place)):
        rebuilt[each.expected_at : each.expected_at + len(each.expected)] = each.found
    assert rebuilt == lines[place.start - 1 : place.end - 1]
