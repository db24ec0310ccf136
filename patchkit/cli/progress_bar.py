"""How a long operation is shown: bars on a terminal, plain lines elsewhere, nothing with --quiet.

All are called from the threads of several components at once.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from patchkit.cli.terminal import Paint, Painted, Terminal
from patchkit.model.progress import Progress, Silent
from patchkit.model.text import clean

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

# A command that is done by then shows no bars (and does not pay for loading rich).
_PATIENCE = 0.4


@contextmanager
def showing_progress(terminal: Terminal) -> Iterator[Progress]:
    """A listener for the operation in the block, as fits the terminal."""
    if terminal.quiet:
        yield Silent()
    elif terminal.interactive:
        bars = _Bars()
        try:
            yield bars
        finally:
            bars.close()
    else:
        yield _Lines(terminal)


class _Lines:
    """A line when a component starts to wait for a server, and one when it is done."""

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
        self._terminal.say([Painted(component, Paint.STRONG), ": ", _short_ids(what)])


def _short_ids(text: str) -> str:
    """The text with whole commit ids cut to the length that reports have."""
    return re.sub(r"\b[0-9a-f]{40}\b", lambda found: found[0][:10], text)


class _Bars:
    """A bar per component; drawn once the operation has lasted a moment."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._state: dict[str, tuple[str, int, int | None]] = {}
        self._tasks: dict[str, TaskID] = {}
        self._display: RichProgress | None = None
        self._timer = threading.Timer(_PATIENCE, self._open)
        self._timer.daemon = True
        self._timer.start()

    def step(self, component: str, what: str, *, local: bool = False) -> None:
        self._show(component, what, 0, None)

    def advance(self, component: str, done: int, total: int | None) -> None:
        with self._lock:
            what = self._state.get(component, ("", 0, None))[0]
            self._show(component, what, done, total)

    def finish(self, component: str, what: str) -> None:
        self._show(component, what, 1, 1)

    def close(self) -> None:
        """Take the bars off the screen: the report that follows says how it ended."""
        self._timer.cancel()
        with self._lock:
            if self._display is not None:
                self._display.stop()
            self._display = None
            self._state.clear()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as RichProgress

        with self._lock:
            if not self._state:
                return
            self._display = RichProgress(
                SpinnerColumn(),
                TextColumn("{task.fields[component]}", markup=False),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[figures]}"),
                TextColumn("{task.description}", markup=False),
                console=Console(stderr=True, highlight=False, markup=False),
                transient=True,
            )
            self._display.start()
            for component, state in self._state.items():
                self._draw(component, *state)

    def _show(self, component: str, what: str, done: int, total: int | None) -> None:
        with self._lock:
            self._state[component] = (what, done, total)
            self._draw(component, what, done, total)

    def _draw(self, component: str, what: str, done: int, total: int | None) -> None:
        if self._display is None:
            return
        if component not in self._tasks:
            name = clean(component)
            self._tasks[component] = self._display.add_task(
                "", total=None, component=name, figures=""
            )
        # update() takes a total of None for "as before"; here it means that it is not known
        self._display.tasks[self._tasks[component]].total = total
        figures = f"{done} of {total}" if total and total > 1 else ""
        self._display.update(
            self._tasks[component],
            description=clean(_short_ids(what)),
            completed=done,
            figures=figures,
        )
