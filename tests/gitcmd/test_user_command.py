"""A user's command ends with us, at whatever moment a signal comes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from patchkit.gitcmd.user_command import run_command
from patchkit.model.progress import Stop, StoppedError

#: Runs a command again and again, each time with a signal at another moment of its start, on one
#: core; prints how often it came in between, and how many commands outlived it.
_SWEEP = """
import os, random, signal, sys, threading, time
from pathlib import Path
from patchkit.gitcmd.user_command import run_command

tries, mark, moments = int(sys.argv[1]), sys.argv[2].encode(), random.Random(1)
commands = (b"sleep\\0" + mark + b"\\0", b"sh\\0-e\\0-c\\0sleep " + mark + b"\\0")
signal.signal(signal.SIGTERM, signal.default_int_handler)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

def running():
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if each.read_bytes() in commands:
                yield int(each.parent.name)
        except OSError:
            pass

def strike(go, number, seconds):
    go.wait()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
    os.kill(os.getpid(), number)

came = survivors = 0
for each in range(tries):
    number = (signal.SIGINT, signal.SIGTERM)[each % 2]
    go = threading.Event()
    thread = threading.Thread(target=strike, args=(go, number, moments.uniform(0, 0.012)))
    thread.start()
    try:
        go.set()
        run_command("sleep " + sys.argv[2], Path("/"))
    except KeyboardInterrupt:
        came += 1
    thread.join()
    end = time.monotonic() + 5  # what was killed is listed until its parent, init, noticed
    while (left := list(running())) and time.monotonic() < end:
        time.sleep(0.005)
    survivors += len(left)
    for each in left:
        os.kill(each, signal.SIGKILL)
print(came, survivors)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
def test_no_command_outlives_a_signal() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _SWEEP, "60", f"7391.{os.getpid()}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.stdout.split(), ran.stderr) == (["60", "0"], "")


def test_a_signal_is_raised_once_nothing_runs() -> None:
    """The first of several; the handlers are ours again."""
    script = """
import os, signal
from pathlib import Path
from patchkit.gitcmd.process import signals_held

signal.signal(signal.SIGTERM, signal.SIG_IGN)
said = []
try:
    with signals_held(lambda: said.append("now")):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)  # ignored, and stays so
        said.append("goes on")
except KeyboardInterrupt:
    said.append("raised")
print(said, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert ran.stdout == "['now', 'now', 'goes on', 'raised'] True\n", ran.stderr


def test_in_another_thread_stop_ends_it(tmp_path: Path) -> None:
    stop, raised = Stop(), list[BaseException]()

    def work() -> None:
        try:
            run_command("touch begun; sleep 60", tmp_path, stop=stop)
        except StoppedError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive() and not (tmp_path / "begun").exists():
        time.sleep(0.01)
    stop.ask()
    thread.join(10)
    assert (thread.is_alive(), len(raised)) == (False, 1)
    with pytest.raises(StoppedError):  # and none begins afterwards
        run_command("sleep 60", tmp_path, stop=stop)


def test_how_it_ends(tmp_path: Path) -> None:
    assert run_command("echo out; exit 3", tmp_path).problem == "exits with 3"
    assert run_command("echo out; exit 3", tmp_path).output == "out"
    assert run_command("sleep 60", tmp_path, patience=0.1).code is None
    assert "cannot be started" in run_command("true", tmp_path / "nowhere").problem
    assert run_command('[ "$A" = b ]', tmp_path, variables={"A": "b"}).code == 0
