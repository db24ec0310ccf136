"""`${name}` in a text of the manifest: a site value; all the rest of the text is itself.

`$${` stands for `${`. A `$` without a brace is an ordinary character.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

#: Values that no manifest needs to declare.
ALWAYS_THERE = ("workspace",)

VALUE_NAME = re.compile("[a-z][a-z0-9_]*")
_TOKEN = re.compile(r"\$\$\{|\$\{(?P<name>[^{}]*)\}?")


class Reference(Struct, frozen=True):
    """A place where a site value goes."""

    name: str


Piece: TypeAlias = str | Reference


def split_references(text: str) -> tuple[Piece, ...]:
    """Literal texts and references in turn, none of the texts empty.

    A reference that is malformed (`${}`, `${A}`, an open `${a`) comes with what stands there as its
    name, which is then the name of no value.
    """
    pieces: list[Piece] = []
    literal, end = "", 0
    for token in _TOKEN.finditer(text):
        literal += text[end : token.start()]
        end = token.end()
        if token["name"] is None:
            literal += "${"
            continue
        if literal:
            pieces.append(literal)
        literal = ""
        closed = token.group().endswith("}")
        pieces.append(Reference(token["name"] if closed else token["name"] + " (open)"))
    literal += text[end:]
    return (*pieces, literal) if literal else tuple(pieces)


def referred(text: str) -> tuple[str, ...]:
    """The names in a text, in order."""
    return tuple(each.name for each in split_references(text) if isinstance(each, Reference))


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with the values in their places."""
    return "".join(
        values[each.name] if isinstance(each, Reference) else each
        for each in split_references(text)
    )
