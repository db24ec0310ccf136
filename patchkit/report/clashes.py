"""A clash side by side: what a hunk expects, and what stands in its place upstream."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from msgspec import Struct

from patchkit.explain.explanation import Mismatch, PatchExplanation, Statement, statements
from patchkit.model.text import shown

# So many rows of a hunk are shown; lines up to so long, and so much alike, compared word by word.
_ROWS = 60
_COMPARED = 300
_ALIKE = 0.4
# A line of minified code may be a megabyte.
_LONGEST = 1000
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class Part(Struct, frozen=True):
    """A piece of a line; `differs` from what stands on the other side."""

    text: str  # some of the line's characters
    differs: bool


class Side(Struct, frozen=True):
    """A line of one side with its number; none: there is nothing there."""

    number: int | None = None
    parts: tuple[Part, ...] = ()


class Row(Struct, frozen=True):
    """What a hunk expects beside what is there; `gap`: lines that agree lie before it."""

    expects: Side
    stands: Side  # what the file has there
    gap: bool = False


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
    return rows_beside(olds, news, gap=True, compared=len(olds) == len(news))


def rows_beside(
    gone: Sequence[tuple[int, str]],
    come: Sequence[tuple[int, str]],
    *,
    gap: bool,
    compared: bool = True,
) -> Iterator[Row]:
    """Lines with their numbers that gave way to others, side by side.

    `gap`: lines that agree lie before the first one. What differs in a line is marked if they are
    to be `compared`.
    """
    for place, pair in enumerate(zip_longest(gone, come)):
        texts = ["" if each is None else _cut(each[1]) for each in pair]
        both = compared and None not in pair
        parts = _compared(*texts) if both else tuple(map(_whole, texts))
        old, new = (
            Side() if each is None else Side(each[0], said)
            for each, said in zip(pair, parts, strict=True)
        )
        yield Row(old, new, gap and place == 0)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _compared(one: str, other: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Both lines with what differs marked, word by word."""
    if max(len(one), len(other)) > _COMPARED:
        return _whole(one), _whole(other)
    words = _WORD.findall(one), _WORD.findall(other)
    matcher = SequenceMatcher(None, *words, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return _whole(one), _whole(other)
    steps = matcher.get_opcodes()
    left = tuple(Part("".join(words[0][a:b]), tag != "equal") for tag, a, b, _, _ in steps if a < b)
    right = tuple(
        Part("".join(words[1][a:b]), tag != "equal") for tag, _, _, a, b in steps if a < b
    )
    return left, right


def _whole(text: str) -> tuple[Part, ...]:
    return (Part(text, False),) if text else ()
