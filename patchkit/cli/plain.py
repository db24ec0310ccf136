"""Parse a plain command line without typer.

Typer and what it imports cost as much CPU time as all the rest of a small command. So lines made of
whole option names, their values and arguments are read here; for anything else (an error, `-qn`, a
choice, a value that begins with "-") the answer is None and typer decides. A property test keeps
both in agreement.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One parameter in the table; `names` is empty for an argument, `least` 0 for any number."""

    keyword: str
    names: tuple[str, ...]
    metavar: str
    kind: str  # "flag", "text", "path", "number"; others are not plain
    repeatable: bool
    required: bool
    variable: str
    least: int


def parse_plain(rows: Iterable[Row], arguments: list[str]) -> dict[str, Any] | None:
    """Keyword -> value of what is given, here or by a variable; None if typer must decide."""
    rows = list(rows)
    given = _words(rows, arguments)
    if given is None:
        return None
    values: dict[str, Any] = {}
    for row in rows:
        words = given.get(row.keyword) or _from_environment(row)
        value = _value(row, words) if words else None
        if value is not None:
            values[row.keyword] = value
        elif words or row.required:
            return None
    return values


def _words(rows: list[Row], arguments: list[str]) -> dict[str, list[str]] | None:
    """Keyword -> the words given for it; None for what is not plain."""
    options = {name: row for row in rows for name in row.names}
    places = [row for row in rows if not row.names]
    given: dict[str, list[str]] = {}
    queue = iter(arguments)
    for word in queue:
        if word.startswith("-"):
            row = options.get(word.partition("=")[0])
            value = _option_value(row, word, queue) if row else ""
        else:
            row, value = (places[0] if places else None), word
            places = places if row and row.repeatable else places[1:]
        if row is None or not value:
            return None
        given.setdefault(row.keyword, []).append(value)
    return given


def _option_value(row: Row, word: str, queue: Iterator[str]) -> str:
    """The value of an option, the word itself for a flag; "" for what is not plain."""
    name, equals, value = word.partition("=")
    if row.kind == "flag":
        return "" if equals else name
    if equals:
        return value if name.startswith("--") else ""
    value = next(queue, "")
    return "" if value.startswith("-") else value


def _from_environment(row: Row) -> list[str]:
    value = os.environ.get(row.variable, "") if row.variable else ""
    return [value] if value else []


def _value(row: Row, words: list[str]) -> Any:
    """The words as the function takes them; None if they are not plain."""
    values = [_converted(row, word) for word in words]
    if None in values:
        return None
    return values if row.repeatable else values[-1]


def _converted(row: Row, word: str) -> bool | str | int | Path | None:
    if row.kind == "flag":
        return True
    if row.kind == "text":
        return word
    if row.kind == "path":
        return Path(word)
    if row.kind == "number" and word.isdecimal() and word.isascii() and int(word) >= row.least:
        return int(word)
    return None
