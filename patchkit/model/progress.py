"""How a long operation tells what it does, without knowing who listens, and how it is told to
stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock
from typing import Protocol


class Progress(Protocol):
    """Receives steps of components; called from several threads at once."""

    @property
    def counts(self) -> bool:
        """Whether anybody sees what `advance` tells."""

    def step(self, component: str, what: str, *, local: bool = False) -> None:
        """`component` now does `what` ("fetching", "applying 3 patches").

        `local`: nobody else is waited for, so it is no news in a log.
        """
        return

    def advance(self, component: str, done: int, total: int | None) -> None:
        """Of the current step, `done` of `total` units (bytes, objects) are through."""
        return

    def finish(self, component: str, what: str) -> None:
        """`component` is through, with the result `what`."""
        return


class Silent(Progress):
    """A listener that says nothing."""

    counts = False


# A way to end work in other threads: ^C reaches the main thread only.
#
# Every download looks at `Stop.check`, every child process registers how to kill it.


class StoppedError(Exception):
    """The work was given up because somebody asked to stop; never shown to the user."""


class Stop:
    """Shared by the threads of one operation."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked = Event()
        self._kills: list[Callable[[], None]] = []

    def __reduce__(self) -> tuple[type[Stop], tuple[()]]:
        return Stop, ()  # another process has one of its own

    def ask(self) -> None:
        """End everything that runs, and whatever is about to start."""
        with self._lock:
            self._asked.set()
            kills = list(self._kills)
        for kill in kills:
            kill()

    def check(self) -> None:
        """Raise StoppedError once `ask` was called."""
        if self._asked.is_set():
            raise StoppedError

    def wait(self, seconds: float) -> None:
        """Wait that long; StoppedError as soon as `ask` is called."""
        self._asked.wait(seconds)
        self.check()

    @contextmanager
    def killing(self, kill: Callable[[], None]) -> Iterator[None]:
        """`kill` ends what runs inside the block; it may be called more than once."""
        with self._lock:
            self._kills.append(kill)
            asked = self._asked.is_set()
        try:
            if asked:
                kill()
            yield
        finally:
            with self._lock:
                self._kills.remove(kill)
