"""How a long operation tells what it does, without knowing who listens."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives steps of components; called from several threads at once."""

    def step(self, component: str, what: str, *, local: bool = False) -> None:
        """`component` now does `what` ("fetching", "applying 3 patches").

        `local`: nobody else is waited for, so it is no news in a log.
        """

    def advance(self, component: str, done: int, total: int | None) -> None:
        """Of the current step, `done` of `total` units (bytes, objects) are through."""

    def finish(self, component: str, what: str) -> None:
        """`component` is through, with the result `what`."""


class Silent:
    """A listener that says nothing."""

    def step(self, component: str, what: str, *, local: bool = False) -> None:
        """See Progress."""

    def advance(self, component: str, done: int, total: int | None) -> None:
        """See Progress."""

    def finish(self, component: str, what: str) -> None:
        """See Progress."""
