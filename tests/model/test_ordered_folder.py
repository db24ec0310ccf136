"""Names that say the order of a folder's patches."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.errors import BadInputError
from patchkit.model.ordered_folder import are_numbered, in_order, new_names
from tests.support.laws import share

FOUR = ["0001-a.patch", "0002-b.patch", "0003-c.patch", "0004-d.patch"]
APART = ["010_a.patch", "020_b.patch", "030_c.patch"]


def named(wanted: list[str], known: list[str], order: str = "name") -> list[str]:
    """The names that the patches have then."""
    other = new_names(wanted, known, order)
    return [other.get(name, name) for name in wanted]


def test_order_is_that_of_the_bytes_or_of_the_numbers() -> None:
    names = ["2-b.patch", "10-a.patch", "1-c.patch"]
    assert in_order(names, "name", where="") == ("1-c.patch", "10-a.patch", "2-b.patch")
    assert in_order(names, "number", where="") == ("1-c.patch", "2-b.patch", "10-a.patch")
    with pytest.raises(BadInputError) as raised:
        in_order([*names, "z.patch", "y.patch"], "number", where="m.yaml:3")
    said = [f"{each.where}: {each.what}" for each in raised.value.problems]
    assert said == [f"m.yaml:3: {name} begins with no number" for name in ("y.patch", "z.patch")]


@pytest.mark.parametrize(
    ("wanted", "known", "names"),
    [
        ([*FOUR, "fix.patch"], FOUR, [*FOUR, "0005-fix.patch"]),
        ([*APART, "fix.patch"], APART, [*APART, "040_fix.patch"]),
        (["fix.patch"], [], ["0001-fix.patch"]),
        ([*FOUR, "0009-fix.patch"], FOUR, [*FOUR, "0009-fix.patch"]),
        # a number between two leaves all others alone
        ([APART[0], "x.patch", *APART[1:]], APART, [APART[0], "015_x.patch", *APART[1:]]),
        # one that moves is counted anew, whichever way it goes
        ([*FOUR[1:], FOUR[0]], FOUR, [*FOUR[1:], "0005-a.patch"]),
        ([APART[2], *APART[:2]], APART, ["005_c.patch", *APART[:2]]),
        # so is one in the place of another
        ([FOUR[0], "x.patch", *FOUR[2:]], FOUR, [FOUR[0], "0002-x.patch", *FOUR[2:]]),
        (FOUR[:1] + FOUR[2:], FOUR, FOUR[:1] + FOUR[2:]),
        # only a number that a name begins with is one
        ([*FOUR, "name-2.patch"], FOUR, [*FOUR, "0005-name-2.patch"]),
        (["0001.patch", "fix.patch"], ["0001.patch"], ["0001.patch", "0002.fix.patch"]),
    ],
)
def test_others_keep_their_numbers(wanted: list[str], known: list[str], names: list[str]) -> None:
    assert named(wanted, known) == names


def test_without_a_free_number_all_are_written_anew_or_none() -> None:
    wanted = [FOUR[0], "x.patch", *FOUR[1:]]
    with pytest.raises(BadInputError) as raised:
        new_names(wanted, FOUR, "name")
    (problem,) = raised.value.problems
    what = "no number is free for x.patch between 0001-a.patch and 0002-b.patch"
    assert (problem.what, "--canonical" in problem.hint) == (what, True)
    called = new_names(wanted, FOUR, "name", anew=True)
    assert [called.get(each, each) for each in wanted] == [
        "0001-a.patch",
        "0002-x.patch",
        "0003-b.patch",
        "0004-c.patch",
        "0005-d.patch",
    ]


def test_a_number_that_is_too_long_for_its_place_is_refused() -> None:
    with pytest.raises(BadInputError, match="no number is free for 10-x"):
        new_names(["8-a.patch", "9-b.patch", "x.patch"], ["8-a.patch", "9-b.patch"], "name")
    assert new_names(["9-b.patch", "x.patch"], ["9-b.patch"], "number") == {"x.patch": "18-x.patch"}


def test_names_without_numbers_are_told_apart() -> None:
    assert are_numbered(FOUR)
    assert are_numbered([])
    assert not are_numbered(["a.py.patch", *FOUR])


NUMBERS = st.lists(st.integers(1, 60), unique=True, min_size=1, max_size=9)


@settings(max_examples=share(300))
@given(NUMBERS, st.randoms(use_true_random=False), st.sampled_from(["name", "number"]))
def test_the_names_give_the_order_that_was_asked_for(
    numbers: list[int], chance: object, order: str
) -> None:
    """Any moves, removals and additions: sorted names are the order, and what stays in it stays."""
    assert hasattr(chance, "shuffle")
    known = [f"{number:04}-p{number}.patch" for number in sorted(numbers)]
    wanted = [*known[:7], "new.patch", "other.patch"]
    chance.shuffle(wanted)
    try:
        names = named(wanted, known, order)
    except BadInputError:
        anew = new_names(wanted, known, order, anew=True)
        names = [anew.get(name, name) for name in wanted]
    assert list(in_order(names, order, where="")) == names
    assert [name.partition("-")[2] or name for name in names] == [
        name.partition("-")[2] or name for name in wanted
    ]
    if wanted[-2:] == ["new.patch", "other.patch"] and wanted[:-2] == known[:7]:
        assert names[:-2] == known[:7]
