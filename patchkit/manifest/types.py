"""The vocabulary in which the manifest's format is declared (see format.py).

One declaration serves four readers: the loader (validate.py), the JSON Schema that editors use
(json_schema.py), the reference in the documentation, and whoever wants to know the format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct


class Complaint(Struct, frozen=True):
    """What is wrong with a value, to be read after its name: "is a short commit id"."""

    what: str
    hint: str = ""


class Text(Struct, frozen=True):
    """A text; `what` it is called in messages ("a full commit id").

    `check` says what is wrong with a text, better than "is not WHAT"; `pattern`, which JSON Schema
    can express too, must match the whole text. `pattern` holds for every text that `check` passes.
    With `number`, whole numbers need no quotes; with `written`, no number and no true or false
    does: all are taken as they are written.
    """

    what: str
    pattern: str = ""
    check: Callable[[str], Complaint | None] | None = None
    lines: bool = False
    empty: bool = False
    example: str = ""
    number: bool = False
    written: bool = False


class Number(Struct, frozen=True):
    """A whole number in decimal digits."""

    minimum: int
    maximum: int


class ListOf(Struct, frozen=True):
    """A list; `what` one item is called."""

    of: Shape
    what: str


class MapOf(Struct, frozen=True):
    """A mapping with free keys; at least `minimum` of them."""

    key: Text
    of: Shape
    minimum: int = 0


class Field(Struct, frozen=True):
    """One key of a record; `synonyms` are words that people try instead."""

    key: str
    shape: Shape
    description: str
    required: bool = False
    default: str = ""
    synonyms: tuple[str, ...] = ()


class Record(Struct, frozen=True):
    """A mapping with fixed keys; `name` is what the reference calls it."""

    name: str
    fields: tuple[Field, ...]
    description: str = ""

    @property
    def first(self) -> str:
        """The key that tells this record from the others of a choice."""
        return self.fields[0].key

    def field(self, key: str) -> Field | None:
        """The field of that key."""
        return next((field for field in self.fields if field.key == key), None)


class Choice(Struct, frozen=True):
    """One of several records, told apart by their first keys."""

    name: str
    options: tuple[Record, ...]


class DependentShape(Struct, frozen=True):
    """A value whose shape follows from the choice that the key `other` beside it makes."""

    name: str
    other: str
    shapes: Mapping[str, Shape]


class ByForm(Struct, frozen=True):
    """A value whose shape follows from how it is written; None: not written that way."""

    name: str
    scalar: Shape | None = None
    items: Shape | None = None
    table: Shape | None = None

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Those that it may have."""
        return tuple(each for each in (self.scalar, self.items, self.table) if each is not None)


class Later(Struct, frozen=True):
    """A shape that contains itself: looked up when it is needed, by `name` in a JSON Schema."""

    name: str
    of: Callable[[], Shape]


Shape: TypeAlias = (
    Text | Number | ListOf | MapOf | Record | Choice | DependentShape | ByForm | Later
)
