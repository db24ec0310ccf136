"""Text on its way to a terminal: made harmless, coloured by meaning, laid out in columns.

Upstream text (paths, subjects, lines of files) may hold terminal escapes. So colour is never a
part of a `str` here: a line is made of pieces, every `str` among them is cleaned when it is
written, and only `Painted` pieces get colour.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from patchkit.model.text import clean


class Paint(str, Enum):
    """A colour by what it means; the value is the SGR code, so equal colours are one member."""

    GOOD = "32"
    NOTICE = "33"
    BAD = "31"
    ADDED = "32"
    REMOVED = "31"
    PLACE = "36"
    STRONG = "1"
    FAINT = "2"

    @property
    def escape(self) -> str:
        """The terminal escape that turns it on."""
        return f"\x1b[{self.value}m"


class Painted(Struct, frozen=True):
    """Text with a colour."""

    text: str
    paint: Paint


Piece: TypeAlias = str | Painted
Line: TypeAlias = Piece | Sequence[Piece]


def width(line: Line) -> int:
    """How many columns a line takes."""
    return sum(_columns(char) for piece in pieces(line) for char in clean(_text(piece)))


def pieces(line: Line) -> Sequence[Piece]:
    """A line as its pieces."""
    return (line,) if isinstance(line, str | Painted) else line


def render(line: Line, *, colour: bool) -> str:
    """The line as it is written."""
    return "".join(_render_piece(piece, colour) for piece in pieces(line))


def columns(rows: Iterable[Sequence[Line]], *, indent: int = 0, gap: int = 2) -> list[list[Piece]]:
    """Rows of cells as lines with aligned columns; the last column is left as long as it is."""
    rows = [_without_empty_end(row) for row in rows]
    count = max(map(len, rows), default=0)
    widths = [max((width(r[i]) for r in rows if i < len(r) - 1), default=0) for i in range(count)]
    lines: list[list[Piece]] = []
    for row in rows:
        line: list[Piece] = [" " * indent]
        for index, cell in enumerate(row):
            line.extend(pieces(cell))
            if index < len(row) - 1:
                line.append(" " * (widths[index] - width(cell) + gap))
        lines.append(line)
    return lines


def cut(text: str, room: int) -> str:
    """The text, cut to so many characters."""
    return text if len(text) <= room else text[: room - 1] + "…"


def _without_empty_end(row: Sequence[Line]) -> Sequence[Line]:
    while row and width(row[-1]) == 0:
        row = row[:-1]
    return row


def _render_piece(piece: Piece, colour: bool) -> str:
    if isinstance(piece, Painted) and colour and piece.text:
        return f"{piece.paint.escape}{clean(piece.text)}\x1b[0m"
    return clean(_text(piece))


def _text(piece: Piece) -> str:
    return piece.text if isinstance(piece, Painted) else piece


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
