"""Laws of the weave, on random histories of small files."""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from patchkit.model.line_history import EditNeighbours, VersionEdit, Weave, weave

_LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n"]), max_size=8)
_HISTORY = st.lists(_LINES, min_size=1, max_size=5)


def edits_between(old: list[bytes], new: list[bytes]) -> list[VersionEdit]:
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [VersionEdit(a, b, tuple(new[c:d])) for tag, a, b, c, d in codes if tag != "equal"]


def woven(versions: list[list[bytes]]) -> Weave:
    result = weave(b"".join(versions[0]))
    for number, (old, new) in enumerate(pairwise(versions), 1):
        result = result.grown(number, edits_between(old, new))
    return result


@given(_HISTORY)
def test_every_version_comes_out_as_it_went_in(versions: list[list[bytes]]) -> None:
    result = woven(versions)
    assert [result.version(n) for n in range(len(versions))] == [b"".join(v) for v in versions]


@given(_HISTORY, _LINES, st.integers(0, 4))
def test_an_edit_ends_up_in_the_last_version_and_leaves_the_ones_before_alone(
    versions: list[list[bytes]], final: list[bytes], delay: int
) -> None:
    before = woven(versions)
    tip = len(versions) - 1
    edits = edits_between(versions[-1], final)
    placed = []
    for edit in edits:
        first = max(before.touched(edit).replaced, default=0)
        placed.append((min(tip, first + delay), edit))
    after = before.edited(placed)
    assert after.version(tip) == b"".join(final)
    for number in range(min((number for number, _ in placed), default=0)):
        assert after.version(number) == before.version(number)


def test_a_replaced_line_names_the_version_that_it_came_with() -> None:
    history = woven([[b"a\n", b"b\n"], [b"a\n", b"x\n", b"b\n"], [b"x\n", b"b\n"]])
    assert history.touched(VersionEdit(0, 1, (b"y\n",))) == EditNeighbours(
        frozenset({1}), before=None, after=0, struck=frozenset({2})
    )


def test_an_added_line_knows_its_neighbours() -> None:
    history = woven([[b"a\n", b"b\n"], [b"a\n", b"x\n", b"b\n"]])
    assert history.touched(VersionEdit(2, 2, (b"y\n",))) == EditNeighbours(
        frozenset(), before=1, after=0, struck=frozenset()
    )


def test_a_line_that_its_own_patch_takes_back_was_never_there() -> None:
    history = woven([[b"a\n"], [b"a\n", b"x\n"], [b"a\n", b"x\n", b"y\n"]])
    after = history.edited([(1, VersionEdit(1, 2, ()))])
    assert [after.version(n) for n in range(3)] == [b"a\n", b"a\n", b"a\ny\n"]
    assert after.touched(VersionEdit(1, 1, (b"z\n",))).struck == frozenset()


def test_a_missing_newline_inside_an_earlier_version_is_noticed() -> None:
    history = woven([[b"a"], [b"a\n", b"b\n"]])
    after = history.edited([(0, VersionEdit(2, 2, (b"c\n",)))])
    assert history.is_whole(0)
    assert not after.is_whole(0)
