"""How the states of a patch look in a report: a word, a sign, and a shape that needs no colour.

A row of a timeline is as wide as the window and as long as the history, so that a commit may be
less than a pixel wide: no pattern survives that. Height does: the worse, the taller.
"""

from __future__ import annotations

from msgspec import Struct

from patchkit.model.outcome import Status

#: A row is so high; bands are counted from its top.
ROW = 20


class Look(Struct, frozen=True):
    """`key` names the colour in the style sheet; `bands` are the filled parts of a row's height."""

    key: str
    word: str
    sign: str
    bands: tuple[tuple[int, int], ...]
    means: str


_APPLIES = Look("applies", "applies", "✓", ((14, ROW),), "every hunk at its line")
_OFFSETS = Look("offsets", "offsets", "≈", ((11, ROW),), "applies, at other lines")
_MERGES = Look("merges", "merges", "~", ((7, ROW),), "a bump carries it by merging")
_ANEW = Look("anew", "regenerates", "↻", ((4, 8), (11, ROW)), "its recipe regenerates it")
_ABSORBED = Look("absorbed", "absorbed", "−", ((0, 4), (16, ROW)), "upstream has it")  # noqa: RUF001
_EMPTY = Look("empty", "empty", "·", ((18, ROW),), "changes no file")
_CONFLICTS = Look("conflicts", "conflicts", "✗", ((0, ROW),), "a hunk has no place")
_WAITS = Look(
    "empty",
    "waits",
    "◦",
    ((2, 6), (9, 13), (16, ROW)),
    "fails as an earlier patch conflicts",
)
_SKIPPED = Look("empty", "not tried", "·", ((18, ROW),), "an earlier patch does not apply")

_LOOKS = {
    Status.UNCHANGED: _APPLIES,
    Status.SHIFTED: _OFFSETS,
    Status.MERGED: _MERGES,
    Status.REGENERATED: _ANEW,
    Status.ABSORBED: _ABSORBED,
    Status.EMPTY: _EMPTY,
    Status.CONFLICTED: _CONFLICTS,
    Status.WAITING: _WAITS,
    Status.SKIPPED: _SKIPPED,
}

#: In the order of a legend, and of drawing: what must be seen comes last.
ORDER = (_EMPTY, _APPLIES, _OFFSETS, _ANEW, _MERGES, _ABSORBED, _WAITS, _CONFLICTS)


def look_of(status: Status) -> Look:
    """How a state looks."""
    return _LOOKS[status]


def outline(look: Look, first: float, last: float) -> str:
    """The shape of a state from `first` to `last` of a row, as SVG path data."""
    return "".join(f"M{first:g} {top}H{last:g}V{end}H{first:g}Z" for top, end in look.bands)
