"""A status as the terminal prints it: its sign and word, coloured by how much it matters."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from patchkit.cli.terminal import Paint, Painted
from patchkit.model.states import Level, state_of

if TYPE_CHECKING:
    from patchkit.model.outcome import Status

_PAINTS = {
    Level.ERROR: Paint.BAD,
    Level.WARNING: Paint.NOTICE,
    Level.NOTE: Paint.NOTICE,
    Level.FINE: Paint.GOOD,
    Level.FAINT: Paint.FAINT,
}

#: What is said of a patch that stays as it is, where the question is whether it applies.
_VERDICTS = {"unchanged": "applies", "shifted": "applies at an offset"}


def word(status: Enum | str, text: str = "") -> Painted:
    """A status as sign and word, coloured; `text` stands in for the word."""
    state = state_of(status)
    return Painted(f"{state.sign} {text or state.word}", _PAINTS[state.level])


def verdict(status: Status) -> Painted:
    """Whether a patch applies, where it stands."""
    return word(status, _VERDICTS.get(status.value, ""))
