"""Several things at once, and ^C in the middle of them."""

from __future__ import annotations

import ast
import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from threading import Event

import pytest

from patchkit.model.syntax import parse_python
from patchkit.parallel import in_parallel, return_memory


def test_answers_come_in_order() -> None:
    assert in_parallel(lambda n: n * n, range(20), jobs=3) == tuple(n * n for n in range(20))


def test_threads_may_parse_while_python_collects() -> None:
    # a collection in the middle of parsing that lets another thread go on, as a finalizer may
    text = b"def f(x):\n    return [x + 1, {x: (x, x)}]\n" * 300
    before = gc.get_threshold()

    def let_others(_phase: str, _info: object) -> None:
        time.sleep(0.0001)

    gc.callbacks.append(let_others)
    gc.set_threshold(500)
    try:
        found = in_parallel(lambda _: parse_python(text), range(6), jobs=3)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(let_others)
    assert all(ast.dump(tree) == ast.dump(found[0][0]) and not why for tree, why in found)


def test_the_first_error_is_raised_when_all_are_through() -> None:
    done = []

    def work(number: int) -> None:
        if number == 0:
            raise ValueError("first")
        time.sleep(0.05)
        done.append(number)

    with pytest.raises(ValueError, match="first"):
        in_parallel(work, [1, 0], jobs=2)
    assert done == [1]


@pytest.mark.parametrize("gets_it", ["the first", "another"])
def test_an_interrupt_waits_until_everybody_has_tidied_up(tmp_path: Path, gets_it: str) -> None:
    """Whichever thread it is delivered to: one that only waits does not wake for the others'."""
    begun, tidied, stopped = (tmp_path / name for name in ("begun", "tidied", "stopped"))
    ended = Event()

    def work(_: int) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        begun.touch()
        if ended.wait(5):
            time.sleep(0.3)
            tidied.touch()

    def stop() -> None:
        stopped.touch()
        ended.set()

    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if gets_it == "another":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            in_parallel(work, [1, 2], jobs=2, stop=stop)
        finally:  # as an interpreter that ends: nobody waits for the threads
            os._exit(0)
    while not begun.exists():
        time.sleep(0.01)
    os.kill(child, signal.SIGINT)
    os.waitpid(child, 0)
    assert (stopped.exists(), tidied.exists()) == (True, True)


def test_an_interrupt_while_threads_begin_waits_for_them(tmp_path: Path) -> None:
    """It comes from a thread that has begun before the next one does."""
    tidied = tmp_path / "tidied"

    def work(number: int) -> None:
        if number == 1:
            signal.raise_signal(signal.SIGINT)
        time.sleep(0.3)
        tidied.touch()

    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.setswitchinterval(1e-6)
        try:
            in_parallel(work, [1, 2], jobs=2)
        finally:  # as an interpreter that ends: nobody waits for the threads
            os._exit(0)
    os.waitpid(child, 0)
    assert tidied.exists()


_KEEPS = """
import sys
from patchkit.parallel import share_memory

def held() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if sys.argv[1] == "shared":
    share_memory()
one = bytes(30 << 20)
del one  # from now on so much may be kept
before, rows, few = held(), [], []
for _ in range(200):
    rows.append(bytes(200_000))
    few.append(bytes(1000))
del rows
print((held() - before) >> 20)
"""


@pytest.mark.skipif(
    not (os.confstr_names.get("CS_GNU_LIBC_VERSION") and Path("/proc/self/statm").exists()),
    reason="glibc's own",
)
def test_memory_of_files_goes_back() -> None:
    def kept(how: str) -> int:
        command = [sys.executable, "-c", _KEEPS, how]
        return int(subprocess.run(command, capture_output=True, check=True).stdout)

    assert kept("shared") < 5 < kept("by itself")


def test_what_holds_itself_is_given_back() -> None:
    class Ring:
        own: Ring

    ring = Ring()
    ring.own = ring
    gone = weakref.ref(ring)
    gc.disable()
    try:
        del ring
        return_memory()
    finally:
        gc.enable()
    assert gone() is None
