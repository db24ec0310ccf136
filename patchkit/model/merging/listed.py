"""Statements that list names, over one line or several: imports, and `__all__`.

Their order has no meaning and their layout says nothing, so both sides' changes are those of sets:
upstream's statements stay as they are written, the patch's names come in and go out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from textwrap import dedent

from msgspec import Struct

from patchkit.model.merging.imports import both_rebind

Lines = Sequence[bytes]

#: (module, name, alias); of a plain import the name is "", of `__all__` the module is.
_Name = tuple[str, str, str]

_WIDTH = 88  # a new statement that is longer is written over several lines
_EXPORTS = "__all__"


class _Statement(Struct):
    """One statement: its lines as they are, and which of them has which name.

    `rows` maps names to lines where each has one of its own, between `head` and `tail`; without
    rows it is one line. What is written otherwise cannot be changed.
    """

    module: str
    names: list[_Name]
    lines: list[bytes]
    rows: dict[_Name, bytes]
    changeable: bool

    def without(self, gone: set[_Name]) -> bool:
        """Take names out; False where that cannot be said."""
        if not gone & set(self.names):
            return True
        left = [name for name in self.names if name not in gone]
        return (not left and self._emptied()) or self._written(left)

    def with_name(self, name: _Name) -> bool:
        """Put a name in, where it belongs if the names are sorted; False if it cannot be said."""
        if not self.rows and len(self.lines) != 1:
            return False
        if self.rows:
            some = next(iter(self.rows.values()))
            ending = some[len(some.rstrip(b"\r\n")) :]
            indent = some[: len(some) - len(some.lstrip())]
            self.rows[name] = indent + _text(name).encode() + b"," + ending
        for key in (_plainly, _by_letters):
            if sorted(self.names, key=key) == self.names:
                return self._written(sorted([*self.names, name], key=key))
        return self._written([*self.names, name])

    def _emptied(self) -> bool:
        self.names, self.lines = [], []
        return True

    def _written(self, names: list[_Name]) -> bool:
        if not self.changeable:
            return False
        if self.rows:
            head, tail = self.lines[0], self.lines[-1]
            last = self.rows[self.names[-1]]
            if not last.rstrip().endswith(b","):
                self.rows[self.names[-1]] = last.rstrip() + b"," + last[len(last.rstrip()) :]
            self.lines = [head, *(self.rows[name] for name in names), tail]
        else:
            line = self.lines[0]
            start = line[: len(line) - len(line.lstrip())]
            ending = line[len(line.rstrip(b"\r\n")) :]
            self.lines = [start + _one_line(self.module, names) + ending]
            if len(self.lines[0]) > _WIDTH >= len(line) and names[0][1]:
                self.lines = _block(self.module, names, start, ending)
        self.names = names
        return True


def merge_listed(
    base: Lines, upstream: Lines, patch: Lines, elsewhere: bytes = b""
) -> tuple[bytes, ...] | None:
    """Upstream's statements with the names that the patch adds, without those that it removes.

    None if something else is among the lines, if it cannot be said in upstream's statements, or if
    `elsewhere`, the rest of upstream's file, imports from a module that a statement is missing for.
    """
    sides = [_statements(lines) for lines in (base, upstream, patch)]
    before, theirs, ours = sides
    if before is None or theirs is None or ours is None:
        return None
    known, there, wanted = (_all_names(side) for side in (before, theirs, ours))
    if both_rebind(known, there, wanted):
        return None
    added = [name for s in _only(ours) for name in s.names if name not in known | there]
    gone = (known - wanted) & there
    if not all(each.without(gone) for each in _only(theirs)):
        return None
    for name in dict.fromkeys(added):
        home = next((s for s in _only(theirs) if s.module == name[0] and s.names), None)
        if home is not None and name[1]:
            if not home.with_name(name):
                return None
        elif name[0] == _EXPORTS or f"from {name[0]} import".encode() in elsewhere:
            return None
        else:
            _insert(theirs, _new(name, upstream))
    lines = tuple(line for each in theirs for line in _lines_of(each))
    merged = _statements(lines)
    return lines if merged and _all_names(merged) == (there | set(added)) - gone else None


def lists_names(lines: Lines) -> bool:
    """Whether the lines are whole statements of these kinds, blank lines and comments."""
    return _statements(lines) is not None


def _statements(lines: Lines) -> list[_Statement | bytes] | None:
    """The statements, and the lines between them; None if there is anything else."""
    try:
        tree = ast.parse(dedent(b"".join(lines).decode("utf-8", "surrogateescape")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: list[_Statement | bytes] = []
    at = 0
    for node in tree.body:
        statement = _statement(node, lines)
        if statement is None or node.lineno <= at:
            return None
        found += [*lines[at : node.lineno - 1], statement]
        at = node.end_lineno or node.lineno
    return [*found, *lines[at:]]


def _statement(node: ast.stmt, lines: Lines) -> _Statement | None:
    listed = _listed(node)
    if listed is None:
        return None
    module, named = listed
    end = node.end_lineno or node.lineno
    own = list(lines[node.lineno - 1 : end])
    rows = {name: lines[line - 1] for name, line in named}
    apart = len({line for _, line in named} | {node.lineno, end}) == len(named) + 2
    whole = apart and len(own) == len(named) + 2
    plain = len(own) == 1 and b"#" not in own[0] and b"(" not in own[0] and module != _EXPORTS
    names = [name for name, _ in named]
    return _Statement(module, names, own, rows if whole else {}, whole or plain)


def _listed(node: ast.stmt) -> tuple[str, list[tuple[_Name, int]]] | None:
    """The module of a statement that lists names, and each name with its line."""
    match node:
        case ast.Import(names=names):
            return names[0].name, [((e.name, "", e.asname or ""), e.lineno) for e in names]
        case ast.ImportFrom(names=names):
            module = "." * node.level + (node.module or "")
            return module, [((module, e.name, e.asname or ""), e.lineno) for e in names]
        case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=items)):
            texts = [item for item in items if isinstance(item, ast.Constant)]
            named = [((_EXPORTS, str(item.value), ""), item.lineno) for item in texts]
            return (_EXPORTS, named) if len(texts) == len(items) else None
    return None


def _new(name: _Name, like: Lines) -> _Statement:
    """A statement of its own, indented like the others."""
    first = next((line for line in like if line.strip()), b"")
    start = first[: len(first) - len(first.lstrip())]
    ending = b"\r\n" if first.endswith(b"\r\n") else b"\n"
    line = start + _one_line(name[0], [name]) + ending
    return _Statement(name[0], [name], [line], {}, len(line) <= _WIDTH)


def _insert(side: list[_Statement | bytes], new: _Statement) -> None:
    """Put a statement among those of its kind: in order, if they are, else behind the last."""
    alike = [each for each in _only(side) if bool(each.names[:1] and each.names[0][1])]
    modules = [each.module for each in alike]
    after = next((each for each in alike if each.module > new.module), None)
    if modules != sorted(modules) or after is None:
        last = next((n for n in range(len(side), 0, -1) if side[n - 1] != b"\n"), 0)
        side.insert(last, new)
    else:
        side.insert(side.index(after), new)


def _block(module: str, names: Sequence[_Name], start: bytes, ending: bytes) -> list[bytes]:
    head = start + f"from {module} import (".encode() + ending
    rows = [start + b"    " + _text(name).encode() + b"," + ending for name in names]
    return [head, *rows, start + b")" + ending]


def _one_line(module: str, names: Sequence[_Name]) -> bytes:
    texts = ", ".join(_text(name) for name in names)
    plain = not names[0][1]
    return (f"import {texts}" if plain else f"from {module} import {texts}").encode()


def _text(name: _Name) -> str:
    module, own, alias = name
    if module == _EXPORTS:
        return f'"{own}"'
    return f"{own or module} as {alias}" if alias else own or module


def _only(side: Sequence[_Statement | bytes]) -> Iterator[_Statement]:
    return (each for each in side if isinstance(each, _Statement))


def _all_names(side: Sequence[_Statement | bytes]) -> set[_Name]:
    return {name for each in _only(side) for name in each.names}


def _lines_of(each: _Statement | bytes) -> Lines:
    return each.lines if isinstance(each, _Statement) else [each]


def _plainly(name: _Name) -> tuple[str, str]:
    return name[1], name[0]


def _by_letters(name: _Name) -> tuple[str, str]:
    return name[1].lower(), name[0].lower()
