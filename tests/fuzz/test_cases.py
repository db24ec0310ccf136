"""Cases of `python -m bench.fuzz`: those that failed once, and a few of every target."""

from __future__ import annotations

from random import Random

import pytest

from bench.fuzz.targets import TARGETS

#: What each was: see docs/evidence.md.
FAILED = {
    "archive": (14129, 136556, 1206514),
    "carry": (7231, 8202, 11714, 26515, 31058, 114091),
    "recipe": (88100574, 88101793, 88102424, 88102614, 1200007558),
    "manifest": (911003459,),
    "small-files": (555099854,),
    "mail": (21450, 27677, 1016540, 1192123),
}
#: Cheap ones more often.
COUNTS = {"mail": 150, "manifest": 40, "archive": 40, "small-files": 30, "mail-as-git": 10}


@pytest.mark.parametrize(("target", "number"), [(t, n) for t in FAILED for n in FAILED[t]])
def test_what_failed_once(target: str, number: int) -> None:
    TARGETS[target](Random(number))


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_of_every_target(target: str) -> None:
    for number in range(COUNTS.get(target, 5)):
        TARGETS[target](Random(number))
