"""Several components at once, in threads.

Plain threads: `concurrent.futures` loads the logging package, which is a tenth of what `status`
costs in all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

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

    The first exception is raised here, after all items that were begun have ended. On ^C and the
    like `stop` is called, which makes the running ones end.
    """
    pool = _Pool(work, items)
    try:
        for _ in range(min(jobs, len(items))):
            if not pool.start_thread():
                break
        pool.wait()
    except BaseException:
        pool.cancel()
        stop()
        pool.wait()
        raise
    return pool.answers()


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


class _Pool(Generic[Item, Answer]):
    """Threads that take items from one list until it is empty.

    Invariant: an item is in `_left`, or one thread has taken it; it has an answer, or `_error` is
    set, before the event of that thread is.
    """

    def __init__(self, work: Callable[[Item], Answer], items: Sequence[Item]) -> None:
        self._work = work
        self._items = items
        self._left = list(range(len(items)))
        self._lock = Lock()
        self._answers: dict[int, Answer] = {}
        self._error: BaseException | None = None
        self._ended: set[Event] = set()  # one for each thread

    def start_thread(self) -> bool:
        """Let one more thread work; False where the system gives no more.

        The work goes on with those there are; without any it is done here.
        """
        ended = Event()
        try:
            Thread(target=self._run, args=(ended,), daemon=True).start()
        except RuntimeError:  # can't start new thread
            if not self._ended:
                self._work_off()
            return False
        self._ended.add(ended)
        return True

    def wait(self) -> None:
        """Wait until every thread has ended; ^C ends the wait.

        Not by Thread.join: one that ^C interrupts takes the thread for ended (Python 3.10 to
        3.12). And by polling, for Python looks for signals before and after a wait: one that comes
        just as it begins, or that another thread gets, does not end it.
        """
        for ended in list(self._ended):
            while not ended.wait(_POLL_INTERVAL):
                pass

    def cancel(self) -> None:
        """Begin no further item."""
        with self._lock:
            self._left.clear()

    def answers(self) -> tuple[Answer, ...]:
        """All answers; raises the first error."""
        if self._error is not None:
            raise self._error
        return tuple(self._answers[number] for number in range(len(self._items)))

    def _run(self, ended: Event) -> None:
        self._ended.add(ended)  # here, too: ^C may come while `start` waits for the thread
        try:
            self._work_off()
        finally:
            ended.set()

    def _work_off(self) -> None:
        """Do items until there are none left."""
        while (number := self._next()) is not None:
            try:
                self._answers[number] = self._work(self._items[number])
            except BaseException as error:
                self._error = self._error or error
                self.cancel()

    def _next(self) -> int | None:
        with self._lock:
            return self._left.pop(0) if self._left else None
