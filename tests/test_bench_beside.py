"""What plays the commit before beside this one: no example is left out, no difference passes."""

from __future__ import annotations

import pytest

from bench.beside import LATER, ROOT, SCENES, ChangedFact, Played, Step, differences, todays_words


def test_each_example_is_a_scene() -> None:
    scripts = {path.stem for path in (ROOT / "examples").glob("*.sh")} - {"shell"}
    assert scripts == set(SCENES) | LATER


def _played(code: int, facts: object, file: bytes, checkout: str) -> Played:
    return Played([Step("check", code, facts)], {"f": file}, {"c": checkout})


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (_played(1, None, b"", ""), "check: exit 0 before, 1 now"),
        (_played(0, {"a": [{"b": 2}]}, b"", ""), "check: $.a[0].b: 1 before, 2 now"),
        (_played(0, {"a": [3, 4]}, b"", ""), 'check: $.a: [{"b": 1}] before, [3, 4] now'),
        (_played(0, {"a": [{"b": 1}]}, b"x", ""), "file f: differs"),
        (_played(0, {"a": [{"b": 1}]}, b"", "x"), "checkout c: differs"),
    ],
)
def test_each_difference_is_told(now: Played, said: str) -> None:
    before = _played(0, {"a": [{"b": 1}]}, b"", "")
    assert list(differences(before, before)) == []
    assert list(differences(before, now)) == [said]


def test_a_known_change_is_passed_over_where_it_was_made() -> None:
    before = _played(0, {"a": [{"b": 1}], "c": 1}, b"", "")
    now = _played(0, {"a": [{"b": 2}], "c": 2, "came": []}, b"x", "")
    known = ChangedFact("check", "$.a.b", "counts from one")
    met: set[ChangedFact] = set()
    rows = (ChangedFact("drift", "$.c", "another command"), known, ChangedFact("file", "f", ""))
    assert list(differences(before, now, rows, met)) == ["check: $.c: 1 before, 2 now"]
    assert met == {known, rows[2]}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("status --json", "status --json"),
        ("vendor --json", "import --json"),
        ("apply --json", "apply --json"),
        ("apply --into site --json", "install site --json"),
        ("apply --into site --reverse", "install --reverse site"),
    ],
)
def test_a_line_is_said_in_the_words_of_today(before: str, now: str) -> None:
    changed = {
        ("vendor",): ("import",),
        ("apply", "--into"): ("install",),
        ("apply", "--into", "--reverse"): ("install", "--reverse"),
    }
    assert todays_words(before.split(), changed) == now.split()
