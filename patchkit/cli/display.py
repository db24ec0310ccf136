"""How a long operation is shown: bars on a terminal, plain lines elsewhere, nothing with --quiet;
and what is known of each component before the others are done.

All are called from the threads of several components at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Generic, TypeVar

from patchkit.cli.terminal import Paint, Painted, Terminal
from patchkit.model.progress import Progress, Silent
from patchkit.model.text import short_ids

_Result = TypeVar("_Result")


@contextmanager
def showing_progress(terminal: Terminal) -> Iterator[Progress]:
    """A listener for the operation in the block, as fits the terminal."""
    if terminal.quiet:
        yield Silent()
    elif terminal.interactive:
        from patchkit.cli.bars import Bars

        bars = Bars()
        terminal.above_bars = bars.away
        try:
            yield bars
        finally:
            terminal.above_bars = nullcontext
            bars.close()
    else:
        yield _Lines(terminal)


class Answers(Generic[_Result]):
    """Shows what is known of each component as soon as it is known, while others are looked at.

    Called from the components' threads. On a terminal the first to end comes first; in a pipe or a
    file the order is that of `names`, so that two runs can be compared.
    """

    def __init__(
        self,
        terminal: Terminal,
        names: Sequence[str],
        show: Callable[[Terminal, _Result], None],
        *,
        shown: bool,
    ) -> None:
        self._terminal = terminal
        self._left = list(names)
        self._known: dict[str, _Result] = {}
        self._show = show
        self.shown = shown
        self._lock = threading.Lock()

    def __call__(self, name: str, answer: _Result) -> None:
        """The answer for a component is known."""
        if not self.shown:
            return
        with self._lock:
            self._known[name] = answer
            most = None if self._terminal.watched else 1
            while ready := [name for name in self._left[:most] if name in self._known]:
                self._print(ready[0])

    def interrupted(self) -> None:
        """Show what is known, with the problems that a whole report ends with; name the rest."""
        if not self.shown:
            return
        with self._lock:
            for name in [left for left in self._left if left in self._known]:
                self._print(name)
            for answer in self._known.values():
                self._terminal.problems(getattr(answer, "problems", ()))
            if self._left:
                self._terminal.problem(f"no answer yet for {', '.join(self._left)}")

    def _print(self, name: str) -> None:
        self._left.remove(name)
        with self._terminal.above_bars():
            self._show(self._terminal, self._known[name])
            self._terminal.flush()


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
