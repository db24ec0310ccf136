"""What makes a merge less sure; how much less is measured (docs/carry.md), not tested."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from patchkit.carry.carried import CERTAIN, score_of
from patchkit.model.merging.merge import FileMerge, merge_file
from patchkit.model.merging.regions import Doubt, Rule

BASE = [f"{name} = call({number})\n" for number, name in enumerate("abcdefghijklmnopqrst")]


def merged(upstream: list[str], patch: list[str]) -> FileMerge:
    merge = merge_file("m.txt", *("".join(lines).encode() for lines in (BASE, upstream, patch)))
    assert merge is not None
    assert merge.data is not None
    return merge


def with_lines(*added: tuple[int, list[str]], base: list[str] = BASE) -> list[str]:
    lines = list(base)
    for at, new in sorted(added, reverse=True):
        lines[at:at] = new
    return lines


def inserting(count: int, *, blank: int = 0) -> FileMerge:
    own = [f"own({number})\n" for number in range(count)] + ["\n"] * blank
    return merged(with_lines((4, ["upstream()\n"])), with_lines((4, own)))


def test_a_short_insertion_is_surer_than_a_long_one() -> None:
    sure = [score_of(inserting(count)).lines for count in (1, 2, 3, 4, 5)]
    assert sure[0] == sure[1] == sure[2] > sure[3] == sure[4]
    assert score_of(inserting(3, blank=2)).lines == sure[2]
    assert sure[0] < CERTAIN


def in_places(count: int) -> FileMerge:
    places = range(2, 2 + 5 * count, 5)
    return merged(
        with_lines(*((at, [f"upstream({at})\n"]) for at in places)),
        with_lines(*((at, [f"own({at})\n"]) for at in places)),
    )


def beside(count: int) -> FileMerge:
    upstream, patch = list(BASE), list(BASE)
    for at in range(2, 2 + 5 * count, 5):
        upstream[at], patch[at + 1] = f"upstream({at})\n", f"own({at})\n"
    return merged(upstream, patch)


@pytest.mark.parametrize("made", [in_places, beside])
def test_many_places_are_less_sure(made: Callable[[int], FileMerge]) -> None:
    one, two, three, four = (score_of(made(count)) for count in (1, 2, 3, 4))
    assert one.lines > two.lines > three.lines > four.lines > 0
    assert two.same_bytes / one.same_bytes < two.lines / one.lines


def test_the_least_certain_place_counts() -> None:
    own = [f"own({number})\n" for number in range(5)]
    both = merged(
        with_lines((4, ["upstream()\n"]), (12, ["theirs()\n"])),
        with_lines((4, own), (12, ["ours()\n"])),
    )
    assert score_of(both).lines < score_of(inserting(5)).lines
    apart = merged(with_lines((2, ["upstream()\n"])), with_lines((9, ["own()\n"])))
    assert score_of(apart).lines >= CERTAIN


def test_a_doubt_costs_confidence() -> None:
    upstream = [line.replace("call(4)", "other(4)") for line in BASE]
    upstream = [line.replace("call", "ring") for line in upstream]
    sound = merged(with_lines((2, ["new()\n"])), with_lines((9, ["own()\n"])))
    names = merged(with_lines((2, ["new()\n"]), base=upstream), with_lines((19, ["call(9)\n"])))
    assert Doubt.NAME_GONE in names.doubts
    assert score_of(names).lines < score_of(sound).lines


def test_that_upstream_has_it_already_is_no_doubt_about_what_says_so() -> None:
    new = [f"new({number})\n" for number in range(3)]
    upstream = with_lines((4, [*new, "more()\n"]))
    contained = merged(upstream, with_lines((4, new)))
    rules = {each.rule for _, each in contained.steps if each is not None}
    assert rules == {Rule.CONTAINED}
    assert contained.absorbed
    assert not contained.doubts
    with_another = merged(upstream, with_lines((4, new), (12, ["own(1)\n"])))
    assert Doubt.UPSTREAM_HAS_MOST in with_another.doubts
    assert score_of(with_another).lines < score_of(contained).lines


@pytest.mark.parametrize("count", [1, 5])
def test_all_are_numbers_between_none_and_all(count: int) -> None:
    for merge in (inserting(count), in_places(count - 1 or 1)):
        sure = score_of(merge)
        assert 0 < sure.same_bytes < sure.lines < 1


def test_an_end_that_both_sides_moved_is_less_sure_to_the_byte() -> None:
    merge = merge_file("f", b"a\nb", b"a\nb\n", b"x\nb")
    assert merge is not None
    assert score_of(merge).same_bytes < 0.5 < score_of(merge).lines
