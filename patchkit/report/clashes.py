"""A clash side by side: what a hunk expects, and what stands in its place upstream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec import Struct

from patchkit.explain.explanation import Mismatch, PatchExplanation, Statement, statements
from patchkit.model.text import shown

# So many rows of a hunk are shown.
_ROWS = 60
# A line of minified code may be a megabyte.
_LONGEST = 1000


class Side(Struct, frozen=True):
    """A line of one side with its number; none: there is nothing there."""

    number: int | None = None
    text: str = ""  # a very long line is cut


class Row(Struct, frozen=True):
    """What a hunk expects beside what is there; `gap`: lines that agree lie before it."""

    expects: Side
    stands: Side  # what the file has there
    gap: bool


class ShownClash(Struct, frozen=True):
    """A sentence of an explanation, and the rows of the hunk that it is about."""

    said: Statement
    rows: tuple[Row, ...]
    left_out: int  # rows that are too many to show


def clash_of(explanation: PatchExplanation) -> tuple[ShownClash, ...]:
    """An explanation as it is shown."""
    return tuple(map(_clash, statements(explanation)))


def _clash(said: Statement) -> ShownClash:
    mismatches = said.hunk.mismatches if said.hunk is not None else ()
    rows = [row for each in mismatches for row in _rows(each)]
    return ShownClash(said, tuple(rows[:_ROWS]), max(0, len(rows) - _ROWS))


def _rows(mismatch: Mismatch) -> Iterator[Row]:
    olds, news = ([(number, shown(line)) for number, line in side] for side in mismatch.sides)
    return rows_beside(olds, news, gap=True)


def rows_beside(
    gone: Sequence[tuple[int, str]], come: Sequence[tuple[int, str]], *, gap: bool
) -> Iterator[Row]:
    """Lines with their numbers that gave way to others, side by side.

    `gap`: lines that agree lie before the first one.
    """
    for place, pair in enumerate(zip_longest(gone, come)):
        old, new = (Side() if line is None else Side(line[0], _cut(line[1])) for line in pair)
        yield Row(old, new, gap and place == 0)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
