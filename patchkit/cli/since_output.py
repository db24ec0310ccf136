"""What changed since the last report, as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.cli.terminal import Terminal
from patchkit.cli.text import Line, Painted
from patchkit.cli.words import word
from patchkit.model.names import short_id

if TYPE_CHECKING:
    from patchkit.drift.changes import Change, Since
    from patchkit.ops.drift import ComponentDrift

# So many findings of one kind are worth reading in a terminal.
_SHOWN = 6


def print_changes(terminal: Terminal, component: ComponentDrift, since: Since) -> None:
    """A line for each change, below a line that names the component."""
    if not since.at:
        terminal.product("  the first report on it: all that does not fit is new")
    elif since.pin != component.pin:
        terminal.product(f"  the pin was {short_id(since.pin)} and is {short_id(component.pin)}")
    rows = [_row(change, first=not since.at) for change in since.changes]
    terminal.table(rows, indent=2)
    _print_notes(terminal, "new", since.new)
    _print_notes(terminal, "settled", since.settled)


def _print_notes(terminal: Terminal, kind: str, notes: Sequence[str]) -> None:
    for note in notes[:_SHOWN]:
        terminal.product(["  ", word(kind), f"  {note}"])
    if len(notes) > _SHOWN:
        terminal.product(["  ", word(kind), f"  {len(notes) - _SHOWN} more"])


def _row(change: Change, *, first: bool) -> tuple[Line, Line, Line]:
    return _now(change), change.patch, "" if first else _before(change)


def _now(change: Change) -> Painted:
    return word(change.status if change.status is not None else "dropped")


def _before(change: Change) -> str:
    if change.status is None:
        return "is no longer in the series"
    if change.again:
        return "by another commit than before"
    return f"was {change.was.value}" if change.was is not None else "is new in the series"
