"""`patchkit bisect`: planted bad patches and commits are found in few runs; nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.extensions.bisect.bisection import BisectAnswer, TrialVerdict, first_bad
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch
from tests.support.stacked import lines

GOOD, BAD, SKIPPED = TrialVerdict.GOOD, TrialVerdict.BAD, TrialVerdict.SKIPPED
#: Fails where the file says so.
_LOOK = "echo run >> {log}; ! grep -q broken *.txt"


@given(st.lists(st.booleans(), min_size=2, max_size=60), st.data())
def test_the_first_bad_state_is_among_what_is_told(skips: list[bool], data: st.DataObject) -> None:
    count = len(skips)
    bad_from = data.draw(st.integers(0, count))
    skips[0] = skips[-1] = False
    tried: list[int] = []

    def judge(number: int) -> TrialVerdict:
        tried.append(number)
        return SKIPPED if skips[number] else BAD if number >= bad_from else GOOD

    answer, (low, high) = first_bad(count, judge)
    assert len(tried) == len(set(tried))
    if bad_from in (0, count):
        assert answer is (BisectAnswer.ALWAYS if bad_from == 0 else BisectAnswer.NEVER)
        return
    assert low < bad_from <= high
    assert all(skips[number] for number in range(low + 1, high))
    assert answer is (BisectAnswer.FOUND if high == low + 1 else BisectAnswer.AMONG)
    if not any(skips):
        assert len(tried) <= (count - 1).bit_length() + 2


@given(st.integers(2, 400), st.data())
def test_a_stack_that_carries_no_further_costs_few_runs(count: int, data: st.DataObject) -> None:
    ends = data.draw(st.integers(1, count))  # from here on nothing can be judged
    bad_from = data.draw(st.integers(1, count))
    tried: list[int] = []

    def judge(number: int) -> TrialVerdict:
        tried.append(number)
        return SKIPPED if number >= ends else BAD if number >= bad_from else GOOD

    answer, (low, high) = first_bad(count, judge)
    assert len(tried) == len(set(tried))
    assert len(tried) <= 3 * count.bit_length() + 3
    if bad_from >= ends:
        assert (answer, low, high) == (BisectAnswer.NEVER, ends - 1, ends - 1)
    else:
        assert (answer, low, high) == (BisectAnswer.FOUND, bad_from - 1, bad_from)


def test_nothing_that_can_be_judged() -> None:
    assert first_bad(9, lambda _: SKIPPED)[0] is BisectAnswer.UNKNOWN


@pytest.mark.slow
def test_a_stack_that_does_not_carry_to_the_newest_commit(
    project: Project, upstream: Upstream
) -> None:
    _stack(project, upstream, bad=99, count=2)
    upstream.commit({"f1.txt": lines({9: "broken\n"})}, "Break it")
    upstream.commit({"f0.txt": lines({5: "upstream's\n"})}, "In the way")
    run = ("bisect", "--to", "latest", "--run", "! grep -q broken *.txt")
    ran = project.run(*run, "--json")
    verdicts = [each["verdict"] for each in ran.json["judged"]]
    assert (ran.code, verdicts, ran.json["title"]) == (1, ["skipped", "bad", "good"], "Break it")
    project.run("bisect", "--to", "latest", "--run", "true").ok().shows(
        ", the newest that can be judged"
    )
    project.run("bisect", "--to", "latest", "--run", "exit 125").ends(1).shows(
        "no state can be judged"
    )


def _stack(project: Project, upstream: Upstream, bad: int, count: int = 12) -> None:
    """Patches that add a file each, the bad one with the word."""
    base = {f"f{n}.txt": lines() for n in range(count)}
    patches = {}
    for n in range(count):
        text = "broken\n" if n == bad else "fine\n"
        change = {f"f{n}.txt": lines({5: text})}
        patches[f"p{n:02}.patch"] = make_patch(base, {**base, **change}, subject=f"Patch {n}")
    project.component("demo", upstream, upstream.commit(base, "Begin"), patches, track="main")


def _runs(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_a_planted_patch_is_found_in_few_runs(
    project: Project, upstream: Upstream, tmp_path: Path, golden: Golden
) -> None:
    _stack(project, upstream, bad=7)
    project.prepare("apply").ok()
    edited = project.checkout("demo") / "f0.txt"
    edited.write_text("mine\n")
    log = tmp_path / "log"
    ran = project.run("bisect", "--run", _LOOK.format(log=log))
    golden("bisect-patch", ran)
    assert (ran.code, _runs(log)) == (1, 6)
    assert "broken by p07.patch: Patch 7" in ran.out
    assert edited.read_text() == "mine\n"
    assert not list((project.root / "workspace/.patchkit/bisect").glob("*.json"))


_UNCLEAR = "grep -q broken f4.txt && exit 1; grep -q fine f3.txt && exit 125; exit 0"


@pytest.mark.parametrize(
    ("bad", "command", "said"),
    [
        (3, "true", "passes with every patch"),
        (3, "false", "fails without any patch"),
        (0, _LOOK, "broken by p00.patch"),
        (4, _LOOK, "broken by p04.patch"),
        (4, _UNCLEAR, "broken by one of p03.patch, p04.patch"),
    ],
)
def test_answers(project: Project, upstream: Upstream, bad: int, command: str, said: str) -> None:
    _stack(project, upstream, bad, count=5)
    project.run("bisect", "demo", "--run", command.format(log="/dev/null")).ends(
        int(command != "true")
    ).shows(said)


@pytest.mark.slow
def test_a_planted_commit_is_found_and_others_are_skipped(
    project: Project, upstream: Upstream, tmp_path: Path, golden: Golden
) -> None:
    _stack(project, upstream, bad=-1, count=2)
    ids = [
        upstream.commit({"other.txt": "broken\n" if n >= 9 else f"{n}\n"}, f"Commit {n}")
        for n in range(16)
    ]
    ran = project.run("bisect", "--to", "latest", "--run", _LOOK.format(log=tmp_path / "log"))
    golden("bisect-upstream", ran)
    assert f"broken by {ids[9][:10]}: Commit 9" in ran.out
    assert _runs(tmp_path / "log") <= 7
    upstream.commit({"f0.txt": lines({5: "upstream's\n"}), "other.txt": "0\n"}, "Clash")
    upstream.commit({"f0.txt": lines(), "other.txt": "broken\n"}, "Again")
    ran = project.run(
        "bisect", "--to", "latest", "--json", "--run", _LOOK.format(log=tmp_path / "l")
    )
    assert ran.json["answer"] in ("found", "among")


@pytest.mark.slow
def test_a_search_that_was_stopped_goes_on(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    _stack(project, upstream, bad=7)
    log = tmp_path / "log"
    stop = tmp_path / "stop"
    stop.touch()
    command = f"echo run >> {log}; [ $(wc -l < {log}) -lt 4 ] || [ ! -e {stop} ] || sleep 60;"
    command += " ! grep -q broken *.txt"
    argv = [sys.executable, "-m", "patchkit", "bisect", "--run", command]
    process = subprocess.Popen(
        argv, cwd=project.root, stderr=subprocess.PIPE, start_new_session=True
    )
    end = time.monotonic() + 30
    while _runs(log) < 4 and time.monotonic() < end:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    stop.unlink()
    ran = project.run("bisect", "--run", command).ends(1).shows("broken by p07.patch")
    assert _runs(log) == 7  # the run that was stopped is made again, no other one
    assert ran.out.count("by an earlier run") == 3
    notes = project.root / "workspace/.patchkit/bisect/demo+demo.json"
    for damage in ("{", '{"search": 1, "verdicts": 2}', "\0"):
        notes.write_text(damage)
        assert "broken by p07.patch" in project.run("bisect", "--run", command).out


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        ((), 2, "bisect: --run CMD is missing"),
        (("--run", " "), 2, "bisect: --run CMD is missing"),
        (("--run", "true", "--to", "nowhere"), 2, "nowhere"),
        (("--run", "no-such-command-here"), 5, "exits with 127: no verdict"),
        (("--run", "kill -9 $$"), 5, "no verdict"),
    ],
)
def test_bad_input(
    project: Project, upstream: Upstream, argv: tuple[str, ...], code: int, said: str
) -> None:
    _stack(project, upstream, bad=1, count=2)
    project.run("bisect", *argv).ends(code, said)
