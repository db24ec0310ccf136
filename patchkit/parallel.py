"""Several components at once, in threads."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
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

    Invariant: an item is in `left`, or one thread has taken it.
    """
    left = iter(range(len(items)))
    answers: dict[int, Answer] = {}

    def begin_no_more() -> None:
        deque(left, maxlen=0)

    def work_off() -> None:
        try:
            for number in left:
                answers[number] = work(items[number])
        except BaseException:
            begin_no_more()
            raise

    threads: list[Future[None]] = []
    pool = ThreadPoolExecutor(max(1, min(jobs, len(items))))
    try:
        with suppress(RuntimeError):  # the system gives no more threads
            for _ in range(min(jobs, len(items))):
                threads.append(pool.submit(work_off))
        if not threads:
            work_off()
        _wait_for(threads)
    except BaseException:
        begin_no_more()
        stop()
        _wait_for(threads)
        raise
    finally:
        pool.shutdown(wait=False)
    for thread in threads:
        thread.result()
    return tuple(answers[number] for number in range(len(items)))


def _wait_for(threads: Sequence[Future[None]]) -> None:
    """Wait until all have ended; ^C ends the wait.

    By polling: Python looks for signals before and after a wait, so one that comes just as it
    begins, or that another thread gets, does not end it.
    """
    while wait(threads, _POLL_INTERVAL).not_done:
        pass


#: Settings of glibc's `mallopt`: how many arenas there are, from which size on memory is the
#: system's own and goes back at once, and how much may be free at the end of an arena.
_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1
_LARGE = 1 << 17


def share_memory() -> None:
    """Let threads take memory from one place, and files that were read leave none behind.

    By itself glibc has a place for each thread, and keeps what was large for the next time. For
    what looks along histories; with another C library nothing is done.
    """
    if sys.platform != "linux":
        return
    import ctypes  # noqa: PLC0415 (short commands need it not)

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, 1)
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, _LARGE)
