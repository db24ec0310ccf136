"""Several components at once, in threads."""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Lock
from typing import TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_POLL_INTERVAL = 0.2  # seconds


def in_parallel(
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    *,
    jobs: int,
    stop: Callable[[], None] = lambda: None,
) -> tuple[Answer, ...]:
    """`work` on every item, `jobs` at a time; the answers in the order of the items.

    An exception of `work` is raised here after all items that were begun have ended; no further
    one is begun. On ^C and the like `stop` is called, which makes the running ones end.
    """
    begun = Begun(len(items))
    answers: dict[int, Answer] = {}

    def work_off() -> None:
        while (number := begun.take()) is not None:
            try:
                answers[number] = work(items[number])
            except BaseException:
                begun.take_all()
                raise
            finally:
                begun.running.discard(number)

    threads: list[Future[None]] = []
    pool = ThreadPoolExecutor(max(1, min(jobs, len(items))))
    try:
        with suppress(RuntimeError):  # the system gives no more threads
            for _ in range(min(jobs, len(items))):
                threads.append(pool.submit(work_off))
        # by polling: Python looks for signals before and after a wait, so one that comes just as
        # it begins, or that another thread gets, does not end it
        while wait(threads, _POLL_INTERVAL).not_done:
            pass
    except BaseException:
        begun.take_all()
        stop()
        while begun.running:
            time.sleep(_POLL_INTERVAL / 10)
        raise
    finally:
        pool.shutdown(wait=False)
    if not threads:
        return tuple(map(work, items))
    for thread in threads:
        thread.result()
    return tuple(answers[number] for number in range(len(items)))


class Begun:
    """Which items were begun, by number.

    Invariant: under the lock an item is in `_left`, in `running`, or has ended. The pool does not
    know of a thread that begins while ^C comes, so what is waited for is what runs.
    """

    def __init__(self, count: int) -> None:
        self._lock, self._left = Lock(), iter(range(count))
        self.running: set[int] = set()

    def take(self) -> int | None:
        """The next item, which runs from now on; None if there is none."""
        with self._lock:
            number = next(self._left, None)
            if number is not None:
                self.running.add(number)
            return number

    def take_all(self) -> None:
        """Let no further item be begun."""
        with self._lock:
            deque(self._left, maxlen=0)


#: Settings of glibc's `mallopt`: how many arenas there are, from which size on memory is the
#: system's own and goes back at once, and how much may be free at the end of an arena.
_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1
_LARGE = 1 << 17


def share_memory() -> None:
    """Let threads take memory from one place, and files that were read leave none behind.

    By itself glibc has a place for each thread, and keeps what was large for the next time. For
    what looks along histories; with another C library nothing is done.
    """
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, _LARGE)


def return_memory() -> None:
    """Give back what nobody uses any more: to be called between two things that take much.

    Python finds values that hold each other late, and glibc keeps what is free between others.
    """
    gc.collect()
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _of_glibc(name: str) -> Callable[..., object] | None:
    """A function of glibc; None with another C library."""
    if sys.platform != "linux":
        return None
    import ctypes  # noqa: PLC0415 (short commands need it not)

    found: Callable[..., object] | None = getattr(ctypes.CDLL(None), name, None)
    return found
