"""YAML text -> nodes that know where they stand, and nothing that a manifest does not need.

YAML is read event by event: what the file says is kept as written (a scalar's characters, whether
it is quoted), so that a value that YAML would turn into something else can be refused by name.
Anchors, aliases, merge keys and tags are refused: sharing is what `extends` is for, an alias would
make one edit change two values, and without them no file can grow while it is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import yaml
from msgspec import Struct

from patchkit.errors import BadInputError, Problem, first_problems
from patchkit.manifest.values import Location

#: More than any manifest needs, and still read in well under a second.
MAXIMUM_BYTES = 1 << 20
MAXIMUM_DEPTH = 32

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# What YAML allows nowhere, and what shows a reader another text than the program reads: line breaks
# that editors do not count, invisible marks, and the overrides of writing direction.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]"
    "|\r(?!\n)|[\ud800-\udfff\ufffe\uffff]"
)


class Reading(str, Enum):
    """What YAML takes an unquoted scalar for; the union of YAML 1.1 and 1.2."""

    TEXT = "text"
    INTEGER = "a number"
    OCTAL = "an octal number"
    SEXAGESIMAL = "a base-60 number"
    FLOAT = "a decimal number"
    BOOLEAN = "true or false"
    NULL = "nothing"
    DATE = "a date"
    MERGE = "a merge"


class Scalar(Struct, frozen=True):
    """One value: its text as YAML unescapes it, and `start:end`, its characters with quotes.

    `style` is "" (plain), a quote, or the indicator of a block.
    """

    text: str
    reading: Reading
    style: str
    where: Location  # of its first character
    start: int
    end: int


class Items(Struct, frozen=True):
    """A list; `flow` if written in brackets."""

    items: tuple[Node, ...]  # in order
    where: Location  # of its first character
    start: int  # index in the file's text
    end: int  # index behind its last character
    flow: bool


class Table(Struct, frozen=True):
    """A mapping, in the order written, duplicates included; `flow` if written in braces."""

    entries: tuple[tuple[Scalar, Node], ...]  # (key, value)
    where: Location  # of its first character
    start: int  # index in the file's text
    end: int  # index behind its last character
    flow: bool

    def get(self, key: str) -> Node | None:
        """The value of `key`; the first one if there are several."""
        return next((value for name, value in self.entries if name.text == key), None)

    def text(self, key: str) -> str:
        """The text at `key`; "" where there is none."""
        node = self.get(key)
        return node.text if isinstance(node, Scalar) else ""

    def at(self, path: str) -> Iterator[Node]:
        """The values at a path of keys, with dots between; `*` is each value or item there."""
        nodes: list[Node] = [self]
        for key in path.split("."):
            nodes = [inner for node in nodes for inner in _inner(node, key)]
        return iter(nodes)

    def tables(self, path: str) -> Iterator[Table]:
        """The mappings at a path."""
        return (node for node in self.at(path) if isinstance(node, Table))

    def scalars(self, path: str = "*") -> Iterator[Scalar]:
        """The single values at a path, and those in the lists and mappings there."""
        nodes = list(self.at(path))
        for node in nodes:  # grows while it is walked
            if isinstance(node, Scalar):
                yield node
            else:
                nodes += _inner(node, "*")

    def pairs(self, key: str) -> tuple[tuple[Scalar, Node], ...]:
        """The entries of the mapping at `key`."""
        node = self.get(key)
        return node.entries if isinstance(node, Table) else ()

    def key(self, key: str) -> Scalar | None:
        """Where `key` itself stands."""
        return next((name for name, _ in self.entries if name.text == key), None)


Node: TypeAlias = Scalar | Items | Table


def _inner(node: Node, key: str) -> Iterable[Node]:
    if isinstance(node, Scalar):
        return ()
    if key == "*":
        return node.items if isinstance(node, Items) else [value for _, value in node.entries]
    value = node.get(key) if isinstance(node, Table) else None
    return () if value is None else (value,)


def decode(data: bytes, file: Path) -> str:
    """A manifest's text, less a byte order mark; BadInputError unless it is clean UTF-8."""
    if len(data) > MAXIMUM_BYTES:
        raise BadInputError(
            Problem(f"larger than {MAXIMUM_BYTES >> 10} KiB", str(file), "no manifest is that long")
        )
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = Problem("not UTF-8", f"{file}:{line}", "save the file as UTF-8")
        raise BadInputError(problem) from error
    if _FORBIDDEN.search(text):
        raise BadInputError(*first_problems(list(_forbidden(text, file))))
    return text


def parse(text: str, file: Path, *, loader: Any = _LOADER) -> Node:
    """The only document of a text without a byte order mark; `file` is for messages.

    `loader` is PyYAML's, whose marks are the same for the fast one and the portable one.

    Raises BadInputError for what is not YAML or not a part of YAML that manifests use.
    """
    try:
        return _Composer(text, file, loader).document()
    except yaml.MarkedYAMLError as error:
        raise BadInputError(_syntax_problem(error, text, file)) from error
    except yaml.YAMLError as error:
        raise BadInputError(Problem(f"not YAML: {error}", str(file), _SYNTAX_HINT)) from error


class _Composer:
    """Turns events into nodes."""

    def __init__(self, text: str, file: Path, loader: Any) -> None:
        self._events: Iterator[Any] = iter(yaml.parse(text, Loader=loader))
        self._file = file
        self._depth = 0

    def document(self) -> Node:
        next(self._events)  # the start of the stream
        first = next(self._events)
        if isinstance(first, yaml.StreamEndEvent):
            raise BadInputError(
                Problem("an empty file", f"{self._file}:1", "begin with `version: 1`")
            )
        node = self._node(next(self._events))
        next(self._events)  # the end of the document
        another = next(self._events)
        if not isinstance(another, yaml.StreamEndEvent):
            self._refuse("a second document", another, "one manifest a file, without `---` inside")
        return node

    def _node(self, event: Any) -> Node:
        if isinstance(event, yaml.AliasEvent):
            self._refuse(f"the alias *{event.anchor}", event, _SHARING)
        if event.anchor is not None:
            self._refuse(f"the anchor &{event.anchor}", event, _SHARING)
        if event.tag not in (None, "!"):
            self._refuse("a tag", event, "write the value without `!`; quote it to make it text")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            self._refuse(f"nested more than {MAXIMUM_DEPTH} deep", event, "no manifest needs that")
        build = self._table if isinstance(event, yaml.MappingStartEvent) else self._items
        node = build(event)
        self._depth -= 1
        return node

    def _scalar(self, event: Any) -> Scalar:
        style = event.style or ""
        return Scalar(
            text=event.value,
            reading=reading_of(event.value) if style == "" else Reading.TEXT,
            style=style,
            where=self._where(event),
            start=event.start_mark.index,
            end=event.end_mark.index,
        )

    def _items(self, event: Any) -> Items:
        items: list[Node] = []
        for each in self._events:
            if isinstance(each, yaml.SequenceEndEvent):
                break
            items.append(self._node(each))
        end = each.end_mark.index
        return Items(
            tuple(items), self._where(event), event.start_mark.index, end, bool(event.flow_style)
        )

    def _table(self, event: Any) -> Table:
        entries: list[tuple[Scalar, Node]] = []
        for each in self._events:
            if isinstance(each, yaml.MappingEndEvent):
                break
            key = self._node(each)
            if not isinstance(key, Scalar):
                self._refuse(
                    "a key that is no plain word", each, "quote a value that begins with { or ["
                )
            if key.reading is Reading.MERGE:
                self._refuse("the merge key <<", each, _SHARING)
            entries.append((key, self._node(next(self._events))))
        end = each.end_mark.index
        return Table(
            tuple(entries), self._where(event), event.start_mark.index, end, bool(event.flow_style)
        )

    def _where(self, event: Any) -> Location:
        mark = event.start_mark
        return Location(self._file, mark.line + 1, mark.column + 1)

    def _refuse(self, what: str, event: Any, hint: str) -> NoReturn:
        raise BadInputError(Problem(what, str(self._where(event)), hint))


_SHARING = "manifests share parts by `extends`, not inside a file"

# Compiled when first needed: most scalars begin with a letter and are asked nothing.
_READINGS = {
    Reading.NULL: r"~|null|Null|NULL|",
    Reading.MERGE: r"<<",
    Reading.BOOLEAN: (
        r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF|[yYnN]"
    ),
    Reading.OCTAL: r"[-+]?0o?[0-7_]+",
    Reading.INTEGER: r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)",
    Reading.SEXAGESIMAL: r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?",
    Reading.FLOAT: (
        r"[-+]?([0-9][0-9_]*\.|\.[0-9])[0-9_]*([eE][-+]?[0-9]+)?"
        r"|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
    ),
    Reading.DATE: (
        r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
        r"([Tt \t]+[0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]*)?"
        r"([ \t]*(Z|[-+][0-9]{1,2}(:[0-9]{2})?))?)?"
    ),
}

# How a scalar begins that YAML may take for something else; nearly none does.
_SUSPICIOUS = frozenset("0123456789-+.~<nNyYtTfFoO") | {""}


def reading_of(text: str) -> Reading:
    """What YAML 1.1 or 1.2 takes the unquoted `text` for."""
    if text[:1] not in _SUSPICIOUS:
        return Reading.TEXT
    for reading, pattern in _READINGS.items():
        if re.fullmatch(pattern, text):
            return reading
    return Reading.TEXT


def _forbidden(text: str, file: Path) -> Iterator[Problem]:
    for number, line in enumerate(re.split(r"(?<=\n)", text), 1):
        for match in _FORBIDDEN.finditer(line):
            what = f"the control character U+{ord(match[0]):04X}"
            yield Problem(what, f"{file}:{number}", "delete it, it is invisible")


def _syntax_problem(error: yaml.MarkedYAMLError, text: str, file: Path) -> Problem:
    mark = error.problem_mark or error.context_mark
    # what is missing at the end is missed in a line behind the last one
    line = min(mark.line + 1, text.rstrip("\n").count("\n") + 1) if mark is not None else 1
    what = error.problem or error.context or "cannot be read"
    if mark is not None and "cannot start any token" in what:
        character = text[mark.index : mark.index + 1]
        what = "a tab" if character == "\t" else f"{character} cannot begin a value"
    hint = next((hint for words, hint in _SYNTAX_HINTS.items() if words in what), _SYNTAX_HINT)
    return Problem(f"not YAML: {what}", f"{file}:{line}", hint)


_SYNTAX_HINT = "the line above it may be the one that is wrong"

_SYNTAX_HINTS = {
    "mapping values are not allowed": "quote a value that contains `: `",
    "tab": "indent with spaces",
    "cannot begin a value": "quote the value",
    "could not find expected ':'": "is a colon missing, or a quote not closed?",
    "unexpected end of stream": "a quote or bracket is not closed",
    "did not find expected node content": "is a value missing, or a bracket not closed?",
    "did not find expected key": "lines of one level begin in the same column",
    "incompatible YAML document": "delete the %YAML line",
}


# Whether a file of an upstream is YAML at all: any YAML, not only what manifests may use.


def yaml_problem(data: bytes) -> str:
    """Why the bytes are no YAML, "" if they are; nothing is built from them."""
    try:
        for _ in yaml.parse(data, _LOADER):
            pass
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        return f"{line}{error.problem}"
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        return str(error).partition("\n")[0]
    return ""


def repeated_keys(data: bytes) -> Counter[str]:
    """The keys that mappings of a YAML text have more than once; none of what is no YAML."""
    found = Counter[str]()
    around: list[list[str]] = []  # of each collection that is open: its keys and values so far
    try:
        for event in yaml.parse(data, _LOADER):
            if isinstance(event, yaml.NodeEvent):
                if around:
                    around[-1].append(getattr(event, "value", ""))
                if isinstance(event, yaml.CollectionStartEvent):
                    around.append([])
            elif isinstance(event, yaml.CollectionEndEvent):
                keys = [key for key in around.pop()[::2] if key]
                if isinstance(event, yaml.MappingEndEvent):
                    found.update(Counter(keys) - Counter(set(keys)))
    except (yaml.YAMLError, UnicodeDecodeError):
        return Counter()
    return found
