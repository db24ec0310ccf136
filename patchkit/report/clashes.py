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
    olds, news = mismatch.sides
    pairs = zip_longest(olds, news)
    for place, (old, new) in enumerate(pairs):
        yield _row(old, new, paired=len(olds) == len(news), gap=place == 0)


def _row(
    old: tuple[int, bytes] | None, new: tuple[int, bytes] | None, *, paired: bool, gap: bool
) -> Row:
    texts = ("" if old is None else _text(old[1]), "" if new is None else _text(new[1]))
    one, other = _compared(*texts) if paired else (_whole(texts[0]), _whole(texts[1]))
    expects = Side() if old is None else Side(old[0], one)
    stands = Side() if new is None else Side(new[0], other)
    return Row(expects, stands, gap)


def compared_rows(gone: Sequence[str], come: Sequence[str]) -> list[tuple[Side, Side]]:
    """Lines that gave way to others, side by side, with the words that differ; no numbers."""
    rows = []
    for old, new in zip_longest(gone, come):
        if old is None or new is None:
            one, other = _whole(_cut(old or "")), _whole(_cut(new or ""))
        else:
            one, other = _compared(_cut(old), _cut(new))
        left = Side(0, one) if old is not None else Side()
        rows.append((left, Side(0, other) if new is not None else Side()))
    return rows


def _text(line: bytes) -> str:
    return _cut(shown(line))


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
