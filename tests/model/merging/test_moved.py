"""Edits whose surroundings upstream moved elsewhere in the file."""

from __future__ import annotations

import pytest

from patchkit.model.line_diff import Edit as LineEdit
from patchkit.model.line_diff import diff_lines
from patchkit.model.merging.moved import find_moved, placed_at, scored_places
from patchkit.model.merging.regions import MergeEdit

BLOCK = ["first(value)\n", "second(value)\n", "third(value)\n", "fourth(value)\n"]
REST = [f"line {number}\n" for number in range(12)]


def found(base: list[str], upstream: list[str], patch: list[str]) -> str | None:
    """Upstream's file with the patch's only edit at its new place."""
    b, u, p = ([line.encode() for line in side] for side in (base, upstream, patch))
    (edit,) = diff_lines(b, p)
    place = find_moved(b, u, p, edit, tuple(diff_lines(b, u)))
    if place is None:
        return None
    return b"".join([*u[: place.start], *place.lines, *u[place.end :]]).decode()


def deeper(lines: list[str], by: str = "    ") -> list[str]:
    return [by + line for line in lines]


PATCHED = [*BLOCK[:2], "own(value)\n", *BLOCK[2:]]
REPLACED = [BLOCK[0], "own(value)\n", *BLOCK[2:]]


@pytest.mark.parametrize("patched", [PATCHED, REPLACED])
@pytest.mark.parametrize("by", ["", "    ", "\t"])
def test_it_goes_along_and_takes_their_indentation(patched: list[str], by: str) -> None:
    base, patch = [*BLOCK, *REST], [*patched, *REST]
    assert found(base, [*REST, *deeper(BLOCK, by)], patch) == "".join([*REST, *deeper(patched, by)])
    assert found(deeper(base, by), [*deeper(REST, by), *BLOCK], deeper(patch, by)) == "".join(
        [*deeper(REST, by), *patched]
    )


def test_two_places_are_none() -> None:
    base, patch = [*BLOCK, *REST], [*PATCHED, *REST]
    assert found(base, [*REST, *BLOCK, "between\n", *BLOCK], patch) is None
    # but the better one, if it is better
    half = BLOCK[1:3]
    assert found(base, [*REST, *half, "between\n", *BLOCK], patch) == "".join(
        [*REST, *half, "between\n", *PATCHED]
    )


@pytest.mark.parametrize(
    ("come", "is_found"),
    [
        (BLOCK[1:3], True),
        (BLOCK[1:2], False),  # one line that says something is not enough
        ([BLOCK[1], ")\n"], False),
        ([], False),
    ],
)
def test_two_lines_that_say_something_must_be_there(come: list[str], is_found: bool) -> None:
    assert (found([*BLOCK, *REST], [*REST, *come], [*PATCHED, *REST]) is not None) is is_found


def test_all_that_it_removes_must_be_there() -> None:
    base, patch = [*BLOCK, *REST], [BLOCK[0], BLOCK[3], *REST]
    assert found(base, [*REST, *BLOCK], patch) == "".join([*REST, BLOCK[0], BLOCK[3]])
    other = [BLOCK[0], BLOCK[1], "other(value)\n", BLOCK[3]]
    assert found(base, [*REST, *other], patch) is None


def test_at_the_ends_of_a_file() -> None:
    base, patch = [*BLOCK, *REST], ["own(value)\n", *BLOCK, *REST]
    assert found(base, [*REST, *BLOCK], patch) == "".join([*REST, "own(value)\n", *BLOCK])
    assert found([*REST, *BLOCK], [*BLOCK, *REST], [*REST, *BLOCK, "own(value)\n"]) == "".join(
        [*BLOCK, "own(value)\n", *REST]
    )


def test_lines_that_cannot_be_shifted_have_no_place() -> None:
    base, patch = deeper([*BLOCK, *REST]), deeper([*PATCHED, *REST])
    assert found(base, [*deeper(REST), *deeper(BLOCK, "\t")], patch) is None
    assert found(base, [*deeper(REST), *BLOCK], [*deeper(PATCHED), *deeper(REST)]) is not None
    shallow = [*deeper(BLOCK[:2]), "own(value)\n", *deeper(BLOCK[2:]), *deeper(REST)]
    assert found(base, [*deeper(REST), *BLOCK], shallow) is None


def test_empty_lines_stay_empty() -> None:
    patch = [*BLOCK[:2], "own(value)\n", "\n", "more(value)\n", *BLOCK[2:], *REST]
    assert found([*BLOCK, *REST], [*REST, *deeper(BLOCK)], patch) == "".join(
        [
            *REST,
            *deeper(BLOCK[:2]),
            "    own(value)\n",
            "\n",
            "    more(value)\n",
            *deeper(BLOCK[2:]),
        ]
    )


def test_an_edit_of_a_whole_file_keeps_its_indentation() -> None:
    (edit,) = diff_lines([b"a\n"], [b"  b\n"])
    place = placed_at([b"a\n"], [b"c\n", b"d\n"], [b"  b\n"], edit, 0)
    assert place is not None
    assert (place.start, place.end, place.lines) == (0, 1, (b"  b\n",))


@pytest.mark.parametrize("come", [[0], [1], [2], [3], range(5)])
def test_one_line_that_came_along_is_enough_to_find_the_place(come: list[int]) -> None:
    base = [b"above(value)\n", b"gone(value)\n", b"away(value)\n", b"below(value)\n"]
    (edit,) = diff_lines(base, [base[0], base[3]])
    upstream = [*base, b"more(value)\n"]
    assert scored_places(base, upstream, edit, come) == ([(4, 1)] if come != [2] else [])


def test_the_first_line_of_a_file_says_how_deep_it_is() -> None:
    base, there = [b"first(value)\n"], [b"    first(value)\n"]
    edit = LineEdit(1, 1, 1, 2)
    placed = placed_at(base, there, [*base, b"own(value)\n"], edit, 1)
    assert placed == MergeEdit(1, 1, (b"    own(value)\n",))


@pytest.mark.parametrize(
    ("start", "upstream", "line"),
    [
        (1, [b"    f():\n", b"        other\n"], b"        new\n"),
        (1, [b"    other():\n", b"  a\n"], b"  new\n"),
        (0, [b"  a\n", b"f():\n"], b"    new\n"),
        (0, [b"f():\n", b"other\n"], b"    new\n"),
    ],
)
def test_the_nearest_line_that_both_have_says_how_deep(
    start: int, upstream: list[bytes], line: bytes
) -> None:
    base = [b"f():\n", b"    a\n"]
    edit = LineEdit(start, start, start, start + 1)
    patch = [*base[:start], b"    new\n", *base[start:]]
    placed = placed_at(base, upstream, patch, edit, 1)
    assert placed == MergeEdit(1, 1, (line,))
