"""Several things at once, and ^C in the middle of them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from patchkit.ops.parallel import in_parallel


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


def test_an_interrupt_waits_until_everybody_has_tidied_up(tmp_path: Path) -> None:
    begun, tidied, stopped = (tmp_path / name for name in ("begun", "tidied", "stopped"))

    def work(_: int) -> None:
        begun.touch()
        time.sleep(0.3)
        tidied.touch()

    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            in_parallel(work, [1, 2], jobs=2, stop=stopped.touch)
        finally:  # as an interpreter that ends: nobody waits for the threads
            os._exit(0)
    while not begun.exists():
        time.sleep(0.01)
    os.kill(child, signal.SIGINT)
    os.waitpid(child, 0)
    assert (stopped.exists(), tidied.exists()) == (True, True)
