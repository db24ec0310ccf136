"""Patches that do not fit, left out in one pass: as if each had been left out after a carry."""

from __future__ import annotations

from random import Random

import pytest

from patchkit.carry import carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.repository import Repository
from patchkit.model.mail import parse_patch
from patchkit.model.objects import TreeId
from patchkit.model.outcome import Status
from patchkit.refresh.conflict import DecidedPatches, Decision
from patchkit.stack.build import SeriesPatch
from tests.support.repos import Upstream, make_patch


@pytest.mark.parametrize("seed", range(4))
def test_one_pass_leaves_out_what_one_at_a_time_does(upstream: Upstream, seed: int) -> None:
    chance = Random(seed)
    texts = {name: [f"{name} {n}\n" for n in range(30)] for name in "abc"}
    old = upstream.commit({name: "".join(lines) for name, lines in texts.items()})
    there = {name: list(lines) for name, lines in texts.items()}
    for name in "ab":
        for _ in range(18):
            there[name][chance.randrange(30)] = f"upstream {chance.random()}\n"
    new = upstream.commit({name: "".join(lines) for name, lines in there.items()})
    series = []
    for number in range(20):
        name = chance.choice("abc")
        before = "".join(texts[name])
        texts[name][chance.randrange(30)] = f"ours {number}\n"
        patch = make_patch({name: before}, {name: "".join(texts[name])})
        series.append(SeriesPatch(f"{number}.patch", parse_patch(patch, name="x")))
    repository = Repository(upstream.path)
    with reading(repository) as reader:
        bases = read_base(repository, old), read_base(repository, new)
        decisions: dict[str, Decision] = {}
        while True:
            report = carry_stack(reader, *bases, series, CarryOptions(DecidedPatches(decisions)))
            failed = [n for n, e in enumerate(report.outcomes) if e.status is Status.CONFLICTED]
            if not failed:
                break
            landed = [str(e.tree) for e in report.outcomes[: failed[0]] if e.commit and e.tree]
            onto = landed[-1] if landed else bases[1].tree
            decisions[series[failed[0]].name] = Decision(TreeId(onto), None)
        once = carry_stack(
            reader, *bases, series, CarryOptions(leave_out=[each.name for each in series])
        )
    assert len(decisions) >= 2
    assert once.left_out == {name: each.onto for name, each in decisions.items()}
    assert once.outcomes == report.outcomes
    assert (once.stack.tree, once.stack.commit) == (report.stack.tree, report.stack.commit)
    assert once.conflicts == report.conflicts
