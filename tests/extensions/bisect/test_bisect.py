"""`patchkit bisect`: planted bad commits are found in few runs; nothing is lost."""

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
_SEARCH = ("bisect", "--to", "latest", "--run")
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


def test_nothing_that_can_be_judged() -> None:
    assert first_bad(9, lambda _: SKIPPED)[0] is BisectAnswer.UNKNOWN


@pytest.mark.slow
def test_a_stack_that_does_not_carry_to_the_newest_commit(
    project: Project, upstream: Upstream
) -> None:
    _stack(project, upstream, bad=99, count=0)
    broken = upstream.commit({"f1.txt": lines({9: "broken\n"})}, "Break it")
    upstream.commit({"f0.txt": lines({5: "upstream's\n"})}, "In the way")
    command = "! grep -q broken *.txt"
    ran = project.run(*_SEARCH, command).ends(1).shows("the newest commit cannot be judged")
    assert "hint: `patchkit plan -m demo -c demo` says how far the stack carries" in ran.err
    typed = ("bisect", "--to", broken, "--run", command)
    project.run(*typed).ends(1).shows(f"broken by {broken[:10]}: Break it")


def _stack(project: Project, upstream: Upstream, bad: int, count: int = 12) -> None:
    """Two patches that change a file each, and later commits of upstream's, the bad one with the
    word.
    """
    base = {f"f{n}.txt": lines() for n in range(2)}
    patches = {}
    for name in base:
        change = {name: lines({5: "fine\n"})}
        patches[f"p{name[1]}.patch"] = make_patch(base, {**base, **change}, subject=f"Patch {name}")
    project.component("demo", upstream, upstream.commit(base, "Begin"), patches, track="main")
    for n in range(count):
        upstream.commit({f"g{n}.txt": "broken\n" if n == bad else "fine\n"}, f"Commit {n}")


def _runs(log: Path) -> int:
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_a_planted_commit_is_found_in_few_runs(
    project: Project, upstream: Upstream, tmp_path: Path, golden: Golden
) -> None:
    _stack(project, upstream, bad=7)
    project.prepare("apply").ok()
    edited = project.checkout("demo") / "f0.txt"
    edited.write_text("mine\n")
    log = tmp_path / "log"
    ran = project.run(*_SEARCH, _LOOK.format(log=log))
    golden("bisect-upstream", ran)
    assert (ran.code, _runs(log)) == (1, 6)
    assert ": Commit 7" in ran.out
    assert edited.read_text() == "mine\n"
    assert not list((project.root / "workspace/.patchkit/bisect").glob("*.json"))


_UNCLEAR = "grep -q broken g4.txt && exit 1; [ -e g3.txt ] && exit 125; exit 0"


@pytest.mark.parametrize(
    ("bad", "command", "said"),
    [
        (3, "true", "passes at the newest commit"),
        (3, "false", "fails at the pin, too"),
        (0, _LOOK, ": Commit 0"),
        (4, _LOOK, ": Commit 4"),
        (4, _UNCLEAR, "broken by one of "),
    ],
)
def test_answers(project: Project, upstream: Upstream, bad: int, command: str, said: str) -> None:
    _stack(project, upstream, bad, count=5)
    project.run(*_SEARCH, command.format(log="/dev/null")).ends(int(command != "true")).shows(said)


@pytest.mark.slow
def test_commits_that_the_stack_does_not_carry_to_are_skipped(
    project: Project, upstream: Upstream
) -> None:
    _stack(project, upstream, bad=9, count=16)
    upstream.commit({"f0.txt": lines({5: "upstream's\n"}), "g9.txt": "0\n"}, "Clash")
    upstream.commit({"f0.txt": lines(), "g9.txt": "broken\n"}, "Again")
    ran = project.run(*_SEARCH, _LOOK.format(log="/dev/null"), "--json")
    assert ran.json["answer"] in ("found", "among")


def test_which_patch_it_is_git_says(project: Project, upstream: Upstream) -> None:
    """By the command that the hint types, in the checkout."""
    _stack(project, upstream, bad=99, count=0)
    project.prepare("apply").ok()
    command = "! grep -q fine f1.txt"
    ran = project.run("bisect", "--run", command).ends(2, "--to REF is missing")
    typed = ran.err.partition("in the checkout: ")[2]
    done = subprocess.run(
        typed, shell=True, cwd=project.checkout("demo"), capture_output=True, check=True, text=True
    )
    assert "Patchkit-Patch: p1.patch" in done.stdout.partition("is the first bad commit")[2]


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
    argv = [sys.executable, "-m", "patchkit", *_SEARCH, command]
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
    ran = project.run(*_SEARCH, command).ends(1).shows(": Commit 7")
    assert _runs(log) == 7  # the run that was stopped is made again, no other one
    assert ran.out.count("by an earlier run") == 3
    notes = project.root / "workspace/.patchkit/bisect/demo+demo.json"
    for damage in ("{", '{"search": 1, "verdicts": 2}', "\0"):
        notes.write_text(damage)
        assert ": Commit 7" in project.run(*_SEARCH, command).out


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        ((), 2, "bisect: --run CMD is missing"),
        (("--run", " "), 2, "bisect: --run CMD is missing"),
        (("--run", "true", "--to", "nowhere"), 2, "nowhere"),
        (("--to", "latest", "--run", "no-such-command-here"), 5, "exits with 127: no verdict"),
        (("--to", "latest", "--run", "kill -9 $$"), 5, "no verdict"),
    ],
)
def test_bad_input(
    project: Project, upstream: Upstream, argv: tuple[str, ...], code: int, said: str
) -> None:
    _stack(project, upstream, bad=1, count=2)
    project.run("bisect", *argv).ends(code, said)
