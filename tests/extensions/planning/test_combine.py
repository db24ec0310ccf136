"""The newest commits that fit each other, against trying every combination."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.extensions.planning.combination import any_version_meets, clashes, combine
from patchkit.extensions.planning.plan_report import (
    ChosenCommit,
    Combination,
    Declaration,
    Effort,
    Grade,
    MetadataRequirement,
)
from tests.support.laws import share


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("==4.57.1", ">=5.8,<=5.12.1", False),
        ("==4.57.1", ">=4.43.2", True),
        (">5.0", "<6", True),
        ("<5", "<6", True),
        (">=2,<3", "==2.9.*", True),
        (">=2,<3", "==3.*", False),
        ("!=5.6.0", "==5.6.0", False),
        ("~=1.4", "==1.9", True),
        ("==4.0.0b18", ">=4.0.0b1", True),
    ],
)
def test_whether_a_version_meets_both(one: str, other: str, *, meet: bool) -> None:
    assert any_version_meets(one, other) is meet
    assert any_version_meets(other, one) is meet


def declaration(name: str, version: str = "", **needs: str) -> Declaration:
    wanted = (MetadataRequirement(other, spec, "pyproject.toml") for other, spec in needs.items())
    return Declaration(name, version, tuple(wanted))


def test_a_clash_names_both_sides() -> None:
    trainer = declaration("trainer", engine="==0.16.*", lib="<2")
    engine = declaration("engine", "0.17.0", lib=">=2")
    found = [
        (c.component, c.subject, c.specifier, c.other, c.found)
        for c in clashes("t", trainer, "e", engine)
    ]
    assert found == [("t", "engine", "==0.16.*", "e", "0.17.0"), ("t", "lib", "<2", "e", ">=2")]


def choice(name: str, effort: Effort, age: int, said: Declaration) -> ChosenCommit:
    return ChosenCommit(name, None, said.version, effort, age, 0, 0, said)


def test_what_the_pins_do_not_meet_either_stops_nobody() -> None:
    trainer = declaration("trainer", engine="==1.0")
    old, new = declaration("engine", "2.0"), declaration("engine", "3.0")
    options = {"e": [choice("e", Effort(), 9, old), choice("e", Effort(), 0, new)]}
    assert combine(options, {"t": trainer}, ()) == ()
    (found,) = combine(options, {"t": trainer}, tuple(clashes("t", trainer, "e", old)))
    assert [each.version for each in found.choices] == ["3.0"]


EFFORTS = st.builds(Effort, st.integers(0, 2), st.integers(0, 1), st.integers(0, 1))
VERSIONS = st.sampled_from(["1.0", "2.0", ""])
SPECS = st.sampled_from(["==1.0", ">=1.5", "<3", ""])


@st.composite
def option(draw: st.DrawFn, name: str, other: str) -> ChosenCommit:
    needs = {n: draw(SPECS) for n in (other, "lib")}
    said = declaration(name, draw(VERSIONS), **{n: spec for n, spec in needs.items() if spec})
    return choice(name, draw(EFFORTS), draw(st.integers(0, 9)), said)


def by_trying(
    options: dict[str, list[ChosenCommit]], grade: Grade, conflicts: int
) -> tuple[int, Effort] | None:
    """The fewest seconds behind, and then the least work, of all combinations that are allowed."""
    ranks = list(Grade)
    best = None
    for choice in product(*options.values()):
        efforts = [each.effort for each in choice]
        fits = not any(
            list(clashes("one", one.declaration, "other", other.declaration))
            for one, other in combinations(choice, 2)
        )
        allowed = all(ranks.index(e.grade) <= ranks.index(grade) for e in efforts)
        if fits and allowed and sum(e.conflicts for e in efforts) <= conflicts:
            work = Effort(
                sum(e.conflicts for e in efforts),
                sum(e.review for e in efforts),
                sum(e.changed for e in efforts),
            )
            found = (sum(each.age for each in choice), work)
            best = found if best is None else min(best, found)
    return best


@pytest.mark.slow
@settings(max_examples=share(60))
@given(
    st.lists(option("a", "b"), min_size=1, max_size=4),
    st.lists(option("b", "c"), min_size=1, max_size=4),
    st.lists(option("c", "a"), min_size=1, max_size=3),
)
def test_law_as_good_as_trying_them_all(
    a: list[ChosenCommit], b: list[ChosenCommit], c: list[ChosenCommit]
) -> None:
    options = {"a": a, "b": b, "c": c}
    found = list(combine(options, {}, ()))
    end = by_trying(options, Grade.CONFLICTED, 99)
    half = end[1].conflicts // 2 if end is not None else 0
    wanted = [(grade, 0) for grade in list(Grade)[:-1]]
    wanted += [(Grade.CONFLICTED if half else Grade.FLAGGED, half), (Grade.CONFLICTED, 99)]
    newest: list[tuple[int, Effort]] = []
    for grade, conflicts in wanted:
        best = by_trying(options, grade, conflicts)
        if best is not None and (not newest or best[0] < newest[-1][0]):
            newest.append(best)
    assert [(each.age, each.effort) for each in found] == newest
    assert all(isinstance(each, Combination) for each in found)
    assert len(found) <= 5
