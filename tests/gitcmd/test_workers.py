"""Components in processes: what they answer and tell, when one dies, and ^C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from patchkit.drift.walk import Walk, Walker, walk_history
from patchkit.errors import FAILED_CHECKS, BadInputError, advice
from patchkit.gitcmd import workers
from patchkit.gitcmd.workers import in_processes
from patchkit.model.progress import Progress, Silent, Stop, StoppedError
from patchkit.ops import line_drift
from tests.drift.lines import edit, numbered
from tests.support.projects import Project
from tests.support.repos import Upstream

BASE = numbered(8)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_PATIENCE", 0.0)


class _Told(Progress):
    counts = True

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.counted: list[int] = []

    def step(self, component: str, what: str, *, local: bool = False) -> None:
        self.steps.append(f"{component} {what} {local}")

    def advance(self, component: str, done: int, total: int | None) -> None:
        self.counted.append(done)


def _look(number: int, progress: Progress, stop: Stop) -> tuple[int, int]:
    progress.step("one", str(number), local=True)
    if progress.counts:
        progress.advance("one", number, None)
    stop.wait(0.3)
    return os.getpid(), number * number


def _looks(progress: Progress, stop: Stop) -> Sequence[tuple[int, int]]:
    work = partial(_look, progress=progress, stop=stop)
    return in_processes(work, range(4), progress=progress, stop=stop)


def test_answers_come_in_order_from_here_and_from_another_process() -> None:
    told: list[tuple[int, int]] = []
    progress, stop = _Told(), Stop()
    work = partial(_look, progress=progress, stop=stop)
    found = in_processes(
        work,
        range(4),
        progress=progress,
        stop=stop,
        told=lambda number, answer: told.append((number, answer[1])),
    )
    assert [answer for _, answer in found] == [0, 1, 4, 9]
    assert sorted(told) == [(0, 0), (1, 1), (2, 4), (3, 9)]
    assert os.getpid() in {process for process, _ in found}
    assert len({process for process, _ in found}) > 1
    assert sorted(progress.steps) == [f"one {number} True" for number in range(4)]
    assert sorted(progress.counted) == [0, 1, 2, 3]


def test_what_is_soon_through_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_PATIENCE", 30.0)
    assert {process for process, _ in _looks(Silent(), Stop())} == {os.getpid()}


def test_without_help_all_is_done_here() -> None:
    progress, stop = Silent(), Stop()
    work = partial(_look, progress=progress, stop=stop)
    found = in_processes(work, range(4), progress=progress, stop=stop, helped=False)
    assert {process for process, _ in found} == {os.getpid()}


def test_what_comes_first_is_done_here_while_others_have_begun() -> None:
    progress, stop, known = Silent(), Stop(), Event()
    places: list[int] = []

    def tell(_number: int, answer: tuple[int, int]) -> None:
        places.append(answer[0])
        known.set()

    def first() -> None:
        assert known.wait(30)

    work = partial(_look, progress=progress, stop=stop)
    in_processes(work, [1, 2], progress=progress, stop=stop, told=tell, first=first)
    assert places[0] != os.getpid()


def _die(number: int, asking: int) -> int:
    if os.getpid() != asking:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.1)
    return number


def test_what_a_process_that_dies_was_asked_is_done_here() -> None:
    work = partial(_die, asking=os.getpid())
    assert in_processes(work, range(4), progress=Silent(), stop=Stop()) == (0, 1, 2, 3)


def _refuse(number: int) -> int:
    time.sleep(0.1)
    if number:
        raise BadInputError(f"not {number}")
    return number


def test_an_error_is_raised_here(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInputError, match="not 1"):
        in_processes(_refuse, [0, 1], progress=Silent(), stop=Stop())
    assert capfd.readouterr() == ("", "")


def _print(number: int) -> int:
    print("said on the way", flush=True)
    os.system("echo by a program")
    time.sleep(0.1)
    return number


def test_nothing_that_is_printed_comes_between_the_answers(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert in_processes(_print, range(3), progress=Silent(), stop=Stop()) == (0, 1, 2)
    assert capfd.readouterr().out.count("by a program") < 3


def _advised(number: int) -> int | None:
    time.sleep(0.1)
    return advice(lambda: 1 // number)


def test_a_check_that_fails_there_is_known_here() -> None:
    try:
        assert in_processes(_advised, [1, 0, 1, 0], progress=Silent(), stop=Stop()) == (
            1,
            None,
            1,
            None,
        )
        assert [each.count("ZeroDivisionError") for each in FAILED_CHECKS] != []
    finally:
        FAILED_CHECKS.clear()


_ASKED = """
import subprocess, sys
from functools import partial
from patchkit.gitcmd import workers
from patchkit.model.progress import Silent, Stop
from tests.gitcmd.test_workers import sleep

workers._PATIENCE = 0
stop = Stop()
workers.in_processes(partial(sleep, stop=stop), [1, 2], progress=Silent(), stop=stop)
"""


def sleep(number: int, stop: Stop) -> int:
    """Wait for a program that does not end by itself; asked for by `_ASKED`."""
    with subprocess.Popen(["sleep", "600.25"]) as process, stop.killing(process.kill):
        process.wait()
        stop.check()
    return number


def _sleeping() -> list[int]:
    found = subprocess.run(["pgrep", "-f", "sleep 600.25"], capture_output=True, check=False)
    return [int(each) for each in found.stdout.split()]


@pytest.mark.parametrize("whom", ["the command", "the group"])
def test_an_interrupt_ends_all_processes_and_what_they_run(whom: str) -> None:
    asked = subprocess.Popen(
        [sys.executable, "-c", _ASKED],
        cwd=Path(__file__).parent.parent.parent,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 20
    while len(_sleeping()) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(_sleeping()) == 2
    if whom == "the group":  # as a terminal does
        os.killpg(asked.pid, signal.SIGINT)
    else:
        asked.send_signal(signal.SIGINT)
    _, said = asked.communicate(timeout=20)
    assert said.count("Traceback") == said.count("KeyboardInterrupt\n") == 1  # its own
    assert (_sleeping(), asked.returncode) == ([], -signal.SIGINT)


def test_nothing_is_asked_any_more_once_it_is_stopped() -> None:
    stop = Stop()
    stop.ask()
    with pytest.raises(StoppedError):
        _looks(Silent(), stop)


class _Counted(workers._Worker):
    answered = 0

    def ask(self, question: object, progress: Progress) -> tuple[Any] | None:
        found = super().ask(question, progress)
        _Counted.answered += found is not None
        return found


@pytest.mark.parametrize(
    ("command", "code"),
    [("drift", 1), ("plan", 0), ("bump --all -n", 3), ("ci", 1)],
)
def test_commands_say_the_same_from_several_processes(
    command: str,
    code: int,
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("one", "two", "three"):
        upstream = Upstream.create(tmp_path / f"{name}.git")
        pin = upstream.commit({"a.py": BASE})
        upstream.commit({"a.py": BASE.replace("l2", f"{name} 2")})
        upstream.commit({"a.py": BASE.replace("l2", f"{name} 2").replace("l7", "7")})
        patches = {"ours.patch": edit("a.py", BASE, l2="ours")}
        project.component(name, upstream, pin, patches, track="main")
    monkeypatch.setattr(workers, "_Worker", _Counted)
    before = _Counted.answered
    found = project.run(*command.split(), "--json").ends(code).json
    assert _Counted.answered > before
    monkeypatch.setattr(workers, "_PATIENCE", 600.0)
    monkeypatch.setenv("PATCHKIT_CACHE", str(tmp_path / "empty"))
    assert project.run(*command.split(), "--json").ends(code).json == found


@pytest.mark.slow
def test_one_component_is_carried_in_another_process_while_its_line_is_walked(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def walk_slowly(walker: Walker) -> Walk:
        time.sleep(1.5)
        return walk_history(walker)

    upstream = Upstream.create(tmp_path / "one.git")
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": BASE.replace("l2", "one 2")})
    patches = {"ours.patch": edit("a.py", BASE, l2="ours"), "7.patch": edit("a.py", BASE, l7="7")}
    project.component("one", upstream, pin, patches, track="main")
    monkeypatch.setattr(workers, "_Worker", _Counted)
    monkeypatch.setattr(workers, "_PATIENCE", 0.2)
    before = _Counted.answered
    with monkeypatch.context() as walking:
        walking.setattr(line_drift, "walk_history", walk_slowly)
        found = project.run("drift", "--json").ends(1).json
    assert _Counted.answered == before + 1
    monkeypatch.setattr(workers, "_PATIENCE", 600.0)
    monkeypatch.setenv("PATCHKIT_CACHE", str(tmp_path / "empty"))
    assert project.run("drift", "--json").ends(1).json == found
    assert _Counted.answered == before + 1
