"""The carry benchmark on a small history of its own: it must be able to say right, order, wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.carry.cases import Case, read_cases
from bench.carry.grading import Grade, grade
from bench.carry.run import Tally
from bench.carry.strategies import careful, patchkit, strategies
from patchkit.model.objects import make_object
from tests.support.repos import Upstream

BASE = b"one\ntwo\nthree\nfour\n"
UPSTREAM = b"one\nTWO\nthree\nup\nfour\n"


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (b"one\nTWO\nTHREE\nup\nfour\n", Grade.RIGHT),
        (b"one\nTWO\nup\nTHREE\nfour\n", Grade.ORDER),
        (b"one\nTWO\nTHREE\nup\nfour\nmore\n", Grade.WRONG),
        (b"THREE\none\nTWO\nup\nfour\n", Grade.WRONG),
        (b"one\ntwo\nTHREE\nup\nfour\n", Grade.WRONG),
        (None, Grade.CONFLICT),
    ],
)
def test_grades(result: bytes | None, expected: Grade) -> None:
    truth = b"one\nTWO\nTHREE\nup\nfour\n"
    assert grade(BASE, UPSTREAM, truth, result) is expected


def test_a_case_is_carried_and_graded(upstream: Upstream, tmp_path: Path) -> None:
    mirror = tmp_path / "mirrors" / "some+where"
    mirror.mkdir(parents=True)
    base = upstream.commit({"f": BASE})
    change = upstream.commit({"f": BASE.replace(b"three", b"THREE")})
    moved = upstream.commit({"f": UPSTREAM}, parents=(base,))
    upstream.branch("keep", change)
    (mirror / "repo").symlink_to(upstream.path)
    truth = UPSTREAM.replace(b"three", b"THREE")
    upstream.commit({"f": truth}, parents=(moved,))
    file = {"path": "f", "cls": "pure", "hard": True, "truth": make_object("blob", truth).oid}
    facts = {"id": "x", "kind": "rebase", "repo": "x", "A": change, "A_base": base}
    listed = {**facts, "B_base": moved, "files": [file]}
    gone = {**listed, "id": "y", "repo": "y"}
    cases = tmp_path / "cases.json"
    mirrors = {"x": "some+where", "y": "no+where"}
    cases.write_text(json.dumps({"mirrors": mirrors, "cases": [listed, gone]}))
    case, missing = read_cases(cases, tmp_path / "mirrors", tmp_path / "work", "hard")
    assert isinstance(case, Case)
    assert missing == "y: no clone of no+where"
    tally = Tally()
    tally.add(case, patchkit(case), 1.0)
    assert tally.grades == {Grade.RIGHT: 1}
    assert tally.flagged == {Grade.RIGHT: 1}
    assert careful(case).files == {}
    for name in ("git apply", "git merge-tree"):
        strategy = strategies()[name]
        assert isinstance(strategy, str) or strategy(case).files == {}
    case.reader.close()
