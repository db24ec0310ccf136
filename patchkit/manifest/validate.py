"""Read nodes by their declared shape: their value, and everything that is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from patchkit.errors import BadInputError, Problem, first_problems
from patchkit.manifest.types import (
    ByForm,
    Choice,
    DependentShape,
    Field,
    Later,
    ListOf,
    MapOf,
    Number,
    Record,
    Shape,
    Text,
    Unavailable,
    without_secret,
)
from patchkit.manifest.values import Location
from patchkit.manifest.yaml_nodes import Items, Node, Reading, Scalar, Table, decode, parse
from patchkit.model.text import with_article

_KINDS: dict[type[Node], str] = {Items: "a list", Table: "a mapping"}

# Looking for what is near is slow, and a file with more mistakes than this is no manifest.
_SUGGESTIONS = 50
#: Nor is one in which a word may be so many things.
_MANY = 1000

_HOW_TO_WRITE = {
    "a list": "write each item after `- ` on a line of its own, or all in [ ]",
    "a mapping": "write `key: value` lines, or all in { }",
    "a number": "decimal digits only",
}


class Whole(Struct, frozen=True):
    """The file that is read: `name` for messages, and `root`, the folder that its URLs start from.

    `partial`: a shared part, in which required keys may be absent. `given` are the attributes of
    its value that are no keys.
    """

    name: str = "the manifest"
    root: Path = Path()
    partial: bool = False
    given: Mapping[str, object] = {}


def read_shape(node: Node, shape: Shape, whole: Whole) -> tuple[Any, list[Problem]]:
    """The value of `node`, and what is wrong with it: the value is good if that is nothing.

    Of a part there is no value.
    """
    reader = _Reader(whole)
    value = reader.read(node, shape, "")
    return value, reader.problems


def read_file(data: bytes, file: Path, shape: Shape, whole: Whole) -> tuple[Table, Any]:
    """What a file's bytes say, as nodes and as a value; BadInputError unless it is of the shape.

    `file` is for messages.
    """
    table = parse(decode(data, file), file)
    value, problems = read_shape(table, shape, whole)
    if problems:
        raise BadInputError(*first_problems(problems))
    assert isinstance(table, Table)
    return table, value


def shown(text: str) -> str:
    """A value for a message: short, on one line, without credentials."""
    text = without_secret(text)
    if not text.isprintable():
        text = ascii(text)[1:-1]
    return text if len(text) <= 72 else text[:69] + "..."


class _Reader:
    """Walks nodes and shapes together; `name` is the dotted path for messages.

    What it gives for a node is its value only while there is no problem.
    """

    def __init__(self, whole: Whole) -> None:
        self.problems: list[Problem] = []
        self._suggestions = Suggestions()
        self._whole = whole
        self._kinds: Mapping[type, tuple[type[Node], str, Callable[[Any, Any, str], Any]]] = {
            Text: (Scalar, "", self._text),
            Number: (Scalar, "a number", self._number),
            ListOf: (Items, "a list", self._list),
            MapOf: (Table, "a mapping", self._map),
            Record: (Table, "a mapping", self._record),
            Choice: (Table, "a mapping", self._choice),
        }

    def read(self, node: Node, shape: Shape, name: str) -> Any:
        if isinstance(shape, Later):
            shape = shape.of()
        if isinstance(shape, ByForm):
            form = {Scalar: shape.scalar, Items: shape.items, Table: shape.table}[type(node)]
            if form is None:
                return self._wrong_kind(node, shape.name, name)
            return self.read(node, form, name)
        if isinstance(shape, Unavailable):
            return self._add(f"{name}: {shape.problem.what}", node, shape.problem.hint)
        kind, wanted, read = self._kinds[type(shape)]
        if not isinstance(node, kind):
            wanted = shape.what if isinstance(shape, Text) else wanted
            return self._wrong_kind(node, wanted, name)
        if isinstance(node, Scalar) and node.reading is Reading.NULL:
            return self._empty(node, name)
        return read(node, shape, name)

    def _text(self, node: Scalar, shape: Text, name: str) -> Any:
        if node.reading is not Reading.TEXT and not _is_meant(node, shape):
            return self._mangled(node, shape, name)
        return self._words(node, shape, name)

    def _words(self, node: Scalar, shape: Text, name: str) -> Any:
        text = node.text
        if text == "":
            if not shape.empty:
                self._add(f"{name} is empty", node, f"write {shape.what}, or delete the key")
        elif not shape.lines and ("\n" in text or "\r" in text):
            self._add(f"{name} has more than one line", node, f"write {shape.what} on one line")
        elif _CONTROL.search(text):
            self._add(f"{name} has a control character: {shown(text)}", node, "delete it")
        elif text != text.strip() and not shape.lines and shape.what != "text":
            self._add(f"{name} begins or ends with a blank", node, "delete the blank")
        elif shape.check is not None and (complaint := shape.check(text)) is not None:
            self._add(f"{name}: {shown(text)} {complaint.what}", node, complaint.hint)
        elif shape.pattern and not re.fullmatch(shape.pattern, text):
            self._add(f"{name}: {shown(text)} is not {shape.what}", node, _example(shape))
        elif not self.problems:
            return _meaning(node, shape, self._whole.root)
        return text

    def _mangled(self, node: Scalar, shape: Text, name: str) -> None:
        complaint = shape.check(node.text) if shape.check is not None else None
        if complaint is None:
            hint = f'quote it: "{shown(node.text)}"'
        else:
            hint = f"quote it, and {complaint.hint}"
        self._add(f"{name}: {shown(node.text)} is {node.reading.value} to YAML", node, hint)

    def _number(self, node: Scalar, shape: Number, name: str) -> int:
        if node.style and node.text.isdecimal():
            self._add(f'{name}: "{shown(node.text)}" is quoted', node, "a number: no quotes")
        elif node.reading is not Reading.INTEGER or not node.text.isdecimal():
            what = f"{name}: {shown(node.text)} is not a plain whole number"
            self._add(what, node, f"decimal digits only, {_range(shape)}")
        elif len(node.text) > 18 or not shape.minimum <= int(node.text) <= shape.maximum:
            self._add(f"{name}: {shown(node.text)} is out of range", node, _range(shape))
        else:
            return int(node.text)
        return 0

    def _list(self, node: Items, shape: ListOf, name: str) -> Any:
        return tuple(
            [self.read(item, shape.of, f"{name}[{n}]") for n, item in enumerate(node.items, 1)]
        )

    def _map(self, node: Table, shape: MapOf, name: str) -> Any:
        self._keys(node, name)
        if len(node.entries) < shape.minimum and not self._whole.partial:
            self._add(f"{name} is empty", node, "there must be at least one")
        values: dict[Any, Any] = {}
        for key, value in node.entries:
            word = self._words(key, shape.key, name) if key.reading is Reading.TEXT else ""
            inner = _join(name, shown(key.text))
            if shape.named and isinstance(value, Table) and isinstance(shape.of, Record):
                values[word] = self._record(value, shape.of, inner, key)
            else:
                values[word] = self.read(value, shape.of, inner)
        return tuple(values.values()) if shape.named else values

    def _record(self, node: Table, shape: Record, name: str, key: Scalar | None = None) -> Any:
        """The value of a table; `key` is its own where it stands in a mapping by names."""
        self._keys(node, name)
        own: dict[str, Any] = {}
        more: dict[str, Any] = {}
        for word, item in node.entries:
            field, inner = shape.field(word.text), _join(name, word.text)
            if field is None:
                self._unknown(word, shape.all_fields, name)
                continue
            if isinstance(field.shape, DependentShape):
                value = self._matching(node, item, field.shape, inner)
            else:
                value = self.read(item, field.shape, inner)
            (own if field.attribute else more)[field.attribute or field.key] = value
        if not self._whole.partial:
            self._missing(node, shape, name)
        if self._whole.partial or self.problems or shape.of is None:
            return more
        if more:
            own["more"] = more
        return shape.of(**own, **self._places(node, shape, name, key))

    def _choice(self, node: Table, shape: Choice, name: str) -> Any:
        keys = shape.keys
        taken = [key for key in keys if node.get(key) is not None]
        if len(taken) == 1:
            return self.read(node, shape.option(taken[0]), name)
        if taken:
            both = " and ".join(taken)
            return self._add(f"{name} has {both}", node, f"a {shape.name} has exactly one of them")
        words = [key.text for key, _ in node.entries]
        hint = self._suggestions.hint(words, keys, f"write one of {', '.join(keys)}")
        return self._add(f"{name} says nothing of {', '.join(keys)}", node, hint)

    def _matching(self, beside: Table, value: Node, shape: DependentShape, name: str) -> Any:
        """What depends on another key: nothing is said where that is wrong, or in another part."""
        other = beside.get(shape.other)
        taken = [key for key in shape.shapes if isinstance(other, Table) and other.get(key)]
        if len(taken) != 1:
            return None
        wanted = shape.shapes[taken[0]]
        if isinstance(wanted, Record) and isinstance(value, Scalar):
            keys = " and ".join(field.key for field in wanted.fields)
            return self._add(
                f"{name}: {shown(value.text)} is not a mapping",
                value,
                f"the pin of {with_article(taken[0])} source has {keys}",
            )
        return self.read(value, wanted, name)

    def _places(
        self, node: Table, shape: Record, name: str, key: Scalar | None
    ) -> Mapping[str, Any]:
        """What a value has beside its keys: where it stands, and its name."""
        if not name:
            return self._whole.given
        at = node.where if key is None else key.where
        places = {
            attribute: _beginning(node, of) if of else at for attribute, of in shape.places.items()
        }
        return places if key is None else {**places, "name": key.text}

    def _keys(self, node: Table, name: str) -> None:
        first: dict[str, Scalar] = {}
        for key, _ in node.entries:
            label = _join(name, shown(key.text))
            if key.reading is not Reading.TEXT:
                self._add(
                    f"the key {label} is {key.reading.value} to YAML",
                    key,
                    f'quote it: "{shown(key.text)}"',
                )
            if key.text in first:
                line = first[key.text].where.line
                self._add(f"{label} is given twice, first in line {line}", key, "delete one")
            first.setdefault(key.text, key)

    def _missing(self, node: Table, shape: Record, name: str) -> None:
        for field in shape.fields:
            if field.required and node.get(field.key) is None:
                self._add(f"{_join(name, field.key)} is missing", node, _what_to_write(field))

    def _unknown(self, key: Scalar, fields: tuple[Field, ...], name: str) -> None:
        keys = [field.key for field in fields]
        close = next((each.key for each in fields if key.text.lower() in each.synonyms), "")
        others = f"keys here: {', '.join(keys)}"
        hint = self._suggestions.hint([close or key.text], [close] if close else keys, others)
        self._add(f"{_join(name, shown(key.text))} is an unknown key", key, hint)

    def _wrong_kind(self, node: Node, wanted: str, name: str) -> None:
        name = name or self._whole.name
        if isinstance(node, Scalar):
            if node.reading is Reading.NULL:
                self._empty(node, name)
                return
            what = f"{name}: {shown(node.text)} is not {wanted}"
        else:
            what = f"{name} is {_KINDS[type(node)]}, not {wanted}"
        self._add(what, node, _HOW_TO_WRITE.get(wanted, "write one value, without brackets"))

    def _empty(self, node: Scalar, name: str) -> None:
        self._add(f"{name or self._whole.name} has no value", node, "write one, or delete the key")

    def _add(self, what: str, node: Node, hint: str) -> None:
        self.problems.append(Problem(what, str(node.where), hint))


def _beginning(table: Table, key: str) -> Location:
    """Where the value of a key begins: in a mapping, its first value."""
    node = table.get(key)
    while isinstance(node, Table):
        node = node.entries[0][1]
    return (node or table).where


# Line breaks are looked at apart; the rest never has a meaning in a name, a URL or a command.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f]")


#: What is still itself when it is taken as it is written.
_PLAIN = (Reading.INTEGER, Reading.FLOAT, Reading.BOOLEAN)


def _is_meant(node: Scalar, shape: Text) -> bool:
    """Whether a scalar that YAML takes for something else is welcome as text."""
    if shape.written and node.reading in _PLAIN:
        return True
    return shape.number and node.reading is Reading.INTEGER and node.text.isdecimal()


def _meaning(node: Scalar, shape: Text, root: Path) -> object:
    is_block = shape.code and node.style in ("|", ">")
    text = node.text.removesuffix("\n") if is_block else node.text
    return text if shape.meant is None else shape.meant(text, root)


def _join(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


class Suggestions(Struct):
    """Hints that name the key which a word is probably meant for, for the first mistakes."""

    _left: int = _SUGGESTIONS

    def hint(self, words: Iterable[str], keys: Collection[str], otherwise: str) -> str:
        """The key that one of the words is near; `otherwise` if none is, or nobody looks."""
        from difflib import get_close_matches  # noqa: PLC0415 (only where something is wrong)

        for word in words if len(keys) < _MANY else ():
            self._left -= 1
            if self._left > 0 and (close := get_close_matches(word.lower(), keys, n=1)):
                return f"did you mean {close[0]}?"
        return otherwise


def _what_to_write(field: Field) -> str:
    what = field.description.partition(". ")[0].rstrip(".")
    if what[1:2].islower():
        what = what[0].lower() + what[1:]
    return f"write `{field.key}:`, {what}"


def _range(shape: Number) -> str:
    if shape.minimum == shape.maximum:
        return f"it must be {shape.minimum}"
    return f"{shape.minimum} to {shape.maximum}"


def _example(shape: Text) -> str:
    return f"like {shape.example}" if shape.example else f"write {shape.what}"
