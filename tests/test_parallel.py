"""Several things at once, and ^C in the middle of them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from threading import Event

import pytest

from patchkit.parallel import in_parallel


def test_answers_come_in_order() -> None:
    assert in_parallel(lambda n: n * n, range(20), jobs=3) == tuple(n * n for n in range(20))


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
