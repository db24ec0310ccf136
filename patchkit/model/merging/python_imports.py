"""Import statements and `__all__` of Python, merged as sets of names: their order has no meaning,
and many layouts say the same.

Apart from `merge`, its only user: here alone the syntax of a language counts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from textwrap import dedent
from typing import AnyStr

from msgspec import Struct

from patchkit.model.syntax import parse_python

_FROM = re.compile(rb"^(\s*)from\s+(\S+)\s+import\s+([\w., ]+?)\s*$")
_IMPORT = re.compile(rb"^\s*import\s+([\w., ]+?)\s*$")
_COMMENT = re.compile(rb"\s*#.*$")
_AS = re.compile(rb"\s+as\s+")

#: (module, name, alias) of one imported name; a plain `import m` has the name b"".
Imported = tuple[bytes, bytes, bytes]


def imported_by(lines: Iterable[bytes]) -> set[Imported] | None:
    """What statements of one line each import; None if a line is anything else."""
    found: set[Imported] = set()
    for line in lines:
        bare = _COMMENT.sub(b"", line.rstrip(b"\r\n"))
        if not bare.strip():
            continue
        names = _names(bare)
        if names is None:
            return None
        found |= names
    return found


def merge_imports(
    base: Sequence[bytes], upstream: Sequence[bytes], patch: Sequence[bytes]
) -> tuple[bytes, ...] | None:
    """Upstream's imports with those that the patch adds; None if that cannot be said in lines.

    What the patch takes away must still be imported upstream by a line of its own, or be gone; a
    name that both sides newly import from different places is a conflict.
    """
    sides = [imported_by(lines) for lines in (base, upstream, patch)]
    before, theirs, ours = sides
    if before is None or theirs is None or ours is None:
        return None
    if both_rebind(before, theirs, ours):
        return None
    added, removed = ours - before - theirs, (before - ours) & theirs
    kept = [line for line in upstream if not _only(line, removed)]
    if removed - _all_of(line for line in upstream if _only(line, removed)):
        return None
    lines = [line for line in patch if line not in base and _all_of([line]) & added]
    if not all(_all_of([line]) <= added for line in lines):
        return None  # a statement that imports other names as well: see `listed`
    return (*kept, *lines)


def both_rebind(
    before: Set[tuple[AnyStr, AnyStr, AnyStr]],
    theirs: Set[tuple[AnyStr, AnyStr, AnyStr]],
    ours: Set[tuple[AnyStr, AnyStr, AnyStr]],
) -> bool:
    """Whether a name that the patch newly imports is newly imported, or no more, by upstream, too.

    With both lines in the file the last would win, or one would be left that nobody needs.
    """
    for name in {_bound(each) for each in ours - before}:
        old, now, wanted = (
            {each for each in side if _bound(each) == name} for side in (before, theirs, ours)
        )
        if now not in (old, wanted):
            return True
    return False


def _bound(imported: tuple[AnyStr, AnyStr, AnyStr]) -> AnyStr:
    """The name that an import binds; of a plain one the whole module's, dots and all."""
    module, name, alias = imported
    return alias or name or module


def _only(line: bytes, imported: set[Imported]) -> bool:
    names = _all_of([line])
    return bool(names) and names <= imported


def _all_of(lines: Iterable[bytes]) -> set[Imported]:
    return imported_by(lines) or set()


def _names(line: bytes) -> set[Imported] | None:
    match = _FROM.match(line)
    if match:
        return {(match[2], *_renamed(each)) for each in match[3].split(b",") if each.strip()}
    match = _IMPORT.match(line)
    if match:
        pairs = [_renamed(each) for each in match[1].split(b",") if each.strip()]
        return {(module, b"", alias) for module, alias in pairs}
    return None


def _renamed(text: bytes) -> tuple[bytes, bytes]:
    name, *alias = _AS.split(text.strip())
    return name, alias[0] if alias else b""


# Statements that list names, over one line or several. Both sides' changes are those of sets:
# upstream's statements stay as they are written, the patch's names come in and go out.


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

    module: str  # "" for `import a, b`
    names: list[_Name]
    lines: list[bytes]
    rows: dict[_Name, bytes]
    changeable: bool  # names can be put in and taken out

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
    added = [name for s in _only_listed(ours) for name in s.names if name not in known | there]
    gone = (known - wanted) & there
    if not all(each.without(gone) for each in _only_listed(theirs)):
        return None
    for name in dict.fromkeys(added):
        home = next((s for s in _only_listed(theirs) if s.module == name[0] and s.names), None)
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


#: What the first statement of such lines begins with, if there is any.
_OPENS = re.compile(
    rb"(?:[ \t\f]*(?:#[^\n]*)?\r?\n)*[ \t\f]*(?:(?:import|from|__all__)\b|(?:#.*)?\Z)"
)


def lists_names(lines: Lines) -> bool:
    """Whether the lines are whole statements of these kinds, blank lines and comments."""
    return _statements(lines) is not None


def _statements(lines: Lines) -> list[_Statement | bytes] | None:
    """The statements, and the lines between them; None if there is anything else."""
    text = b"".join(lines)
    if not _OPENS.match(text):
        return None  # most lines that are asked about: not parsed
    tree, problem = parse_python(dedent(text.decode("utf-8", "surrogateescape")))
    if problem:
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
    alike = [each for each in _only_listed(side) if bool(each.names[:1] and each.names[0][1])]
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


def _only_listed(side: Sequence[_Statement | bytes]) -> Iterator[_Statement]:
    return (each for each in side if isinstance(each, _Statement))


def _all_names(side: Sequence[_Statement | bytes]) -> set[_Name]:
    return {name for each in _only_listed(side) for name in each.names}


def _lines_of(each: _Statement | bytes) -> Lines:
    return each.lines if isinstance(each, _Statement) else [each]


def _plainly(name: _Name) -> tuple[str, str]:
    return name[1], name[0]


def _by_letters(name: _Name) -> tuple[str, str]:
    return name[1].lower(), name[0].lower()
