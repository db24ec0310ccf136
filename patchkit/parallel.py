"""Several components at once.

Plain threads: `concurrent.futures` loads the logging package, which is a tenth of what `status`
costs in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock, Thread
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_SPELL = 0.2  # seconds


def in_parallel(
    work: Callable[[Item], Answer],
    items: Sequence[Item],
    *,
    jobs: int,
    stop: Callable[[], None] = lambda: None,
) -> tuple[Answer, ...]:
    """`work` on every item, `jobs` at a time; the answers in the order of the items.

    What one raises is raised here, once all that had begun are through. On ^C and the like `stop`
    is called, which makes the running ones end.
    """
    crew = _Crew(work, items)
    try:
        for _ in range(min(jobs, len(items))):
            if not crew.hire():
                break
        crew.wait()
    except BaseException:
        crew.give_up()
        stop()
        crew.wait()
        raise
    return crew.answers()


class _Shift:
    """The work of one thread, to be waited for.

    Not by Thread.join: one that ^C cuts short takes the thread for ended (Python 3.10 to 3.12).
    """

    def __init__(self) -> None:
        self._is_over = False
        self._bell = Lock()
        self._bell.acquire()

    def end(self) -> None:
        """Nobody needs to wait any longer."""
        self._is_over = True
        self._bell.release()

    def wait(self) -> None:
        """Wait for the end; ^C ends the wait.

        In spells, for Python looks for signals before and after a wait: one that comes just as
        it begins, or that another thread gets, does not wake it.
        """
        while not self._is_over:
            self._bell.acquire(timeout=_SPELL)


class _Crew(Generic[Item, Answer]):
    def __init__(self, work: Callable[[Item], Answer], items: Sequence[Item]) -> None:
        self._work = work
        self._items = items
        self._left = list(range(len(items)))
        self._lock = Lock()
        self._answers: dict[int, Answer] = {}
        self._error: BaseException | None = None
        self._shifts: set[_Shift] = set()

    def hire(self) -> bool:
        """Let one more thread work; False where the system gives no more.

        The work goes on with those there are; with none of them it is done here.
        """
        shift = _Shift()
        try:
            Thread(target=self._run, args=(shift,), daemon=True).start()
        except RuntimeError:  # can't start new thread
            if not self._shifts:
                self._work_off()
            return False
        self._shifts.add(shift)
        return True

    def wait(self) -> None:
        """Wait until no thread works any more."""
        for shift in list(self._shifts):
            shift.wait()

    def _run(self, shift: _Shift) -> None:
        self._shifts.add(shift)  # here, too: ^C may come while `start` waits for the thread
        try:
            self._work_off()
        finally:
            shift.end()

    def _work_off(self) -> None:
        """Do items until there are none left."""
        while (number := self._next()) is not None:
            try:
                self._answers[number] = self._work(self._items[number])
            except BaseException as error:
                self._error = self._error or error
                self.give_up()

    def give_up(self) -> None:
        """Begin no further item."""
        with self._lock:
            self._left.clear()

    def answers(self) -> tuple[Answer, ...]:
        """All answers, or the first error."""
        if self._error is not None:
            raise self._error
        return tuple(self._answers[number] for number in range(len(self._items)))

    def _next(self) -> int | None:
        with self._lock:
            return self._left.pop(0) if self._left else None
