"""How a long operation is shown: bars on a terminal, plain lines elsewhere, nothing with --quiet.

All are called from the threads of several components at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from patchkit.cli.terminal import Paint, Painted, Terminal
from patchkit.model.progress import Progress, Silent
from patchkit.model.text import short_ids


@contextmanager
def showing_progress(terminal: Terminal) -> Iterator[Progress]:
    """A listener for the operation in the block, as fits the terminal."""
    if terminal.quiet:
        yield Silent()
    elif terminal.interactive:
        from patchkit.cli.bars import Bars

        bars = Bars()
        try:
            yield bars
        finally:
            bars.close()
    else:
        yield _Lines(terminal)


class _Lines:
    """A line when a component starts to wait for a server, and one when it is done."""

    counts = False

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._lock = threading.Lock()
        self._waiting: set[str] = set()

    def step(self, component: str, what: str, *, local: bool = False) -> None:
        with self._lock:
            if not local and component not in self._waiting:
                self._waiting.add(component)
                self._say(component, what)

    def advance(self, component: str, done: int, total: int | None) -> None:
        pass

    def finish(self, component: str, what: str) -> None:
        with self._lock:
            if component in self._waiting:
                self._waiting.remove(component)
                self._say(component, what)

    def _say(self, component: str, what: str) -> None:
        self._terminal.say([Painted(component, Paint.STRONG), ": ", short_ids(what)])
