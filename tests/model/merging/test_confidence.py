"""How sure a merge is; what the words are worth is measured (docs/carry.md), not tested."""

from __future__ import annotations

import pytest

from patchkit.carry.carried import certainty_of
from patchkit.model.merging.merge import FileMerge, merge_file
from patchkit.model.merging.regions import Doubt, Rule
from patchkit.model.outcome import Certainty, FileResult, Status, judged

BASE = [f"{name} = call({number})\n" for number, name in enumerate("abcdefghijklmnopqrst")]


def merged(upstream: list[str], patch: list[str], base: list[str] = BASE) -> FileMerge:
    merge = merge_file("m.txt", *("".join(lines).encode() for lines in (base, upstream, patch)))
    assert merge is not None
    assert merge.data is not None
    return merge


def with_lines(*added: tuple[int, list[str]], base: list[str] = BASE) -> list[str]:
    lines = list(base)
    for at, new in sorted(added, reverse=True):
        lines[at:at] = new
    return lines


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


@pytest.mark.parametrize("count", [1, 2, 4])
def test_an_order_that_is_open_has_to_be_looked_at(count: int) -> None:
    assert certainty_of(in_places(count)) is Certainty.LOOK


@pytest.mark.parametrize(
    ("upstream", "patch", "certainty"),
    [
        (["new\n"], [BASE[4], "own\n"], Certainty.LOOK),  # below a line that upstream replaced
        ([], [BASE[4], "own\n"], Certainty.LOOK),  # below a line that upstream took away
        ([], [BASE[4], "\n", "own\n"], Certainty.SURE),  # as a block of its own
        ([BASE[4], "new\n"], ["own\n"], Certainty.LOOK),
        ([BASE[4], "new\n"], [], Certainty.SURE),
    ],
)
def test_how_sure_an_insertion_beside_other_changes_is(
    upstream: list[str], patch: list[str], certainty: Certainty
) -> None:
    sides = ([*BASE[:4], *lines, *BASE[5:]] for lines in (upstream, patch))
    merge = merged(*sides)
    assert [each.rule for _, each in merge.steps if each] == [Rule.BESIDE]
    assert certainty_of(merge) is certainty


@pytest.mark.parametrize(
    ("module", "certainty"),
    [
        ("django.conf", Certainty.LOOK),  # upstream imports from django above
        ("horizon.conf", Certainty.SURE),
        ("other", Certainty.SURE),  # nothing else does
    ],
)
def test_an_import_apart_from_its_package_has_to_be_looked_at(
    module: str, certainty: Certainty
) -> None:
    base = ["from django import a\n", "\n", "import b\n", "import horizon\n", "\n", "import own\n"]
    upstream = [*base[:4], *base[5:]]
    merge = merged(upstream, [*base[:5], f"from {module} import own\n"], base)
    assert [each.rule for _, each in merge.steps if each] == [Rule.BESIDE]
    assert certainty_of(merge) is certainty


@pytest.mark.parametrize("place", [5, 9])  # beside where they were, and where they are
def test_a_change_beside_lines_that_moved_has_to_be_looked_at(place: int) -> None:
    upstream = [*BASE[:4], *BASE[5:10], BASE[4], *BASE[10:]]
    merge = merged(upstream, [*BASE[:place], "own\n", *BASE[place + 1 :]])
    assert [each.rule for _, each in merge.steps if each] == [Rule.BESIDE]
    assert certainty_of(merge) is Certainty.LOOK


def test_lines_replaced_side_by_side_are_sure_in_a_few_places() -> None:
    words = [certainty_of(beside(count)) for count in (1, 2, 3)]
    assert words == [Certainty.SURE, Certainty.SURE, Certainty.DOUBTFUL]


def test_changes_apart_are_beyond_question() -> None:
    apart = merged(with_lines((2, ["upstream()\n"])), with_lines((9, ["own()\n"])))
    assert certainty_of(apart) is None


def test_one_doubt_asks_for_a_look_and_two_are_too_many() -> None:
    base = [*BASE[:4], "e = special(4)\n", *BASE[5:]]
    upstream = [*BASE[:4], "e = other(4)\n", *BASE[5:]]
    new = [f"new({number})\n" for number in range(3)]

    def doubted(upstream: list[str], own: list[str]) -> FileMerge:
        patch = with_lines((19, own), base=base)
        texts = ("".join(lines).encode() for lines in (base, upstream, patch))
        merge = merge_file("m.txt", *texts)
        assert merge is not None
        return merge

    once = doubted(upstream, ["special(9)\n"])
    assert once.doubts == (Doubt.NAME_GONE,)
    assert certainty_of(once) is Certainty.LOOK
    twice = doubted(with_lines((9, new), base=upstream), ["special(9)\n", *new])
    assert twice.doubts == (Doubt.UPSTREAM_HAS_MOST, Doubt.NAME_GONE)
    assert certainty_of(twice) is Certainty.DOUBTFUL


def test_what_upstream_has_already_has_to_be_looked_at() -> None:
    new = [f"new({number})\n" for number in range(3)]
    contained = merged(with_lines((4, [*new, "more()\n"])), with_lines((4, new)))
    assert {each.rule for _, each in contained.steps if each} == {Rule.CONTAINED}
    assert contained.absorbed
    assert not contained.doubts
    assert certainty_of(contained) is Certainty.LOOK


def test_an_end_that_both_sides_moved_has_to_be_looked_at() -> None:
    merge = merge_file("f", b"a\nb", b"a\nb\n", b"x\nb")
    assert merge is not None
    assert certainty_of(merge) is Certainty.LOOK


def test_a_surer_word_is_worth_more_and_the_surest_is_not_for_review() -> None:
    given = [None, Certainty.SURE, Certainty.LOOK, Certainty.DOUBTFUL]
    files = [judged(FileResult("f", Status.MERGED), each, ()) for each in given]
    for numbers in ([f.confidence for f in files], [f.same_bytes for f in files]):
        assert numbers == sorted(numbers, reverse=True)
        assert len(set(numbers)) == len(numbers)
    assert all(f.same_bytes <= f.confidence for f in files)
    assert [f.review for f in files] == [False, False, True, True]
