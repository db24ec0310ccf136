"""Bars on a terminal, by rich: how far each component is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from patchkit.model.text import clean, short_ids

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import Task

# A command that is done by then shows no bars (and does not pay for loading rich).
_PATIENCE = 0.4


class Bars:
    """A bar per component that is under way; drawn once the operation has lasted a moment."""

    counts = True

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._state: dict[str, tuple[str, int, int | None]] = {}
        self._tasks: dict[str, Task] = {}
        self._display: RichProgress | None = None
        self._lasts = False
        self._timer = threading.Timer(_PATIENCE, self._open)
        self._timer.daemon = True
        self._timer.start()

    def step(self, component: str, what: str, *, local: bool = False) -> None:
        """Say beside its bar what happens now."""
        self._show(component, what, 0, None)

    def advance(self, component: str, done: int, total: int | None) -> None:
        """Move its bar."""
        with self._lock:
            what = self._state.get(component, ("", 0, None))[0]
            self._show(component, what, done, total)

    def finish(self, component: str, what: str) -> None:
        """Take its bar away, so that those left have room on a small screen."""
        with self._lock:
            self._state.pop(component, None)
            task = self._tasks.pop(component, None)
            if self._display is not None and task is not None:
                self._display.remove_task(task.id)
            if not self._state:
                self._stop()  # a question may be asked where they were

    @contextmanager
    def away(self) -> Iterator[None]:
        """Without bars on the screen for a moment: something is printed in their place."""
        with self._lock:
            shown = self._display is not None
            self._stop()
            try:
                yield
            finally:
                if shown:
                    self._open()  # a new display: one that is started again wipes what is above it

    def close(self) -> None:
        """Take the bars off the screen: the report that follows says how it ended."""
        self._timer.cancel()
        with self._lock:
            self._lasts = False
            self._stop()
            self._state.clear()

    def _stop(self) -> None:
        if self._display is not None:
            self._display.stop()
        self._display = None
        self._tasks.clear()

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn
        from rich.progress import Progress as RichProgress

        with self._lock:
            self._lasts = True
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
            if self._lasts and self._display is None:
                self._open()
            self._draw(component, what, done, total)

    def _draw(self, component: str, what: str, done: int, total: int | None) -> None:
        if self._display is None:
            return
        if component not in self._tasks:
            name = clean(component)
            self._display.add_task("", total=None, component=name, figures="")
            self._tasks[component] = self._display.tasks[-1]
        # update() takes a total of None for "as before"; here it means that it is not known
        self._tasks[component].total = total
        figures = f"{done} of {total}" if total and total > 1 else ""
        self._display.update(
            self._tasks[component].id,
            description=clean(short_ids(what)),
            completed=done,
            figures=figures,
        )
