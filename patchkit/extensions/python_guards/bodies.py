"""The blocks of statements in Python's syntax, and functions that are left in the text.

Most of a syntax tree is the bodies of functions, and into most of these nobody looks. A folded
function has none: it is parsed from the file's text when it is needed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from typing import Any

from msgspec import Struct

from patchkit.model.syntax import FunctionNode, is_plain, parse_python


def blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks within a statement, those of a definition, too."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


#: Parts of syntax that are no nodes, or that nobody looks for: operators, whether a name is stored.
_NO_NODES = frozenset({
    "arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module",
    "op", "ops", "simple", "type_comment",
})  # fmt: skip


#: Kind of node -> its parts that may be nodes; filled as kinds are met.
_PARTS: dict[type[ast.AST], tuple[str, ...]] = {}


def children_of(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes right below one, in their order, but for operators."""
    kind = type(node)
    if kind not in _PARTS:
        _PARTS[kind] = tuple(part for part in kind._fields if part not in _NO_NODES)
    for part in _PARTS[kind]:
        value = getattr(node, part, None)
        if isinstance(value, ast.AST):
            yield value
        elif value.__class__ is list:
            yield from (inner for inner in value if isinstance(inner, ast.AST))


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it in the order of `ast.walk`, but for operators; in half its time."""
    nodes = [node]
    for each in nodes:  # grows while it is walked
        yield each
        nodes += children_of(each)


def walk_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a class, without what is in functions and classes in it."""
    for child in children_of(scope):
        yield child
        if not isinstance(child, FunctionNode | ast.ClassDef):
            yield from walk_scope(child)


def may_have(function: FunctionNode, *words: bytes) -> bool:
    """Whether one of these words may be in what a function does; one that is left in the text stays
    there.
    """
    if not isinstance(function, _Folded | _FoldedAsync):
        return True
    code = function.text.data[function.text.begin : function.text.end]
    # beyond ASCII a word may be spelled in another way
    return not code.isascii() or any(word in code for word in words)


class Bodies(Struct):
    """The functions whose bodies were `opened`; `size` is that of the text parsed for them."""

    opened: list[_Folded | _FoldedAsync] = []
    size: int = 0

    def close(self) -> None:
        """Leave all of them in the text again."""
        for each in self.opened:
            _leave(each)
        self.opened.clear()
        self.size = 0


def _leave(function: FunctionNode) -> None:
    for part in ("args", "body"):
        function.__dict__.pop(part, None)


def parse_folded(data: bytes, bodies: Bodies) -> tuple[ast.Module, str]:
    """A file's syntax with what functions take and do left in the text, and why it could not be
    read ("" if it could); `bodies` gets the functions that are opened.

    Invariant: what is parsed when a body is opened is what a parse of the whole file has there, at
    the same lines and columns. Only the column where a definition ends is another one until then,
    and what cannot be parsed in a body comes out when that is opened. Whoever holds a node of a
    body while it is closed holds another one than whoever looks into it next.
    """
    skipped = set[int]()
    while True:  # what is no function's body, but in a text or after something else, is put back
        shortened, cuts = _without_bodies(data, skipped, bodies)
        tree, problem = parse_python(shortened)
        folded = [function for function in _functions(tree.body) if _is_cut(function, cuts)]
        if len(folded) == len(cuts):
            break
        skipped |= cuts.keys() - {function.body[0].lineno for function in folded}
    for function in folded:
        text = cuts[function.body[0].lineno]
        _leave(function)
        is_async = isinstance(function, ast.AsyncFunctionDef)
        function.__class__ = _FoldedAsync if is_async else _Folded
        function.text = text  # type: ignore[union-attr]
    return tree, problem


#: The line of a definition; the last line of its head; a text that may not be what it seems.
_DEFINITION = re.compile(rb"^([ \t]*)(?:async[ \t]+)?def\b", re.MULTILINE)
_HEAD_END = re.compile(rb"^[^#\n]*:[ \t]*(?:#[^\n]*)?\n", re.MULTILINE)
_ODD_QUOTES = re.compile(rb"""['#\\][^\n"]*\"""|["#\\][^\n']*'''""")


@cache
def _block_end(indentation: int) -> re.Pattern[bytes]:
    """The end of a line before one that is not indented further and has more than a comment."""
    return re.compile(rb"\n(?![ \t]{%d}[ \t]|[ \t]*(?:#|\n))" % indentation)


def _without_bodies(
    data: bytes, skipped: Collection[int], bodies: Bodies
) -> tuple[bytes, dict[int, _Text]]:
    """The text with `pass` for each function's body, at its last line, but for some of these lines;
    and what each stands for.

    A body ends where the indentation does. If that is in brackets, the rest does not parse; if it
    may be in a text of several lines, the body is left as it is.
    """
    parts, cuts = list[bytes](), dict[int, _Text]()
    place, line, counted = 0, 1, 0
    found = _DEFINITION.search(data) if is_plain(data) else None
    while found is not None:
        head = _HEAD_END.search(data, found.start())
        if head is None:
            break
        begin = head.end()
        while (inner := _DEFINITION.search(data, found.end(), begin)) is not None:
            found = inner  # the one before stands on a line of its own
        last = _block_end(len(found[1])).search(data, begin - 1)
        end = last.end() if last is not None else len(data)
        code = _without_comments(data[begin:end])
        line += data.count(b"\n", counted, begin)
        counted, more = begin, code.count(b"\n")
        if code and line + more not in skipped and _ends_outside_text(code):
            parts += [data[place:begin], b"\n" * more, found[1], b" pass"]
            cuts[line + more] = _Text(data, found.start(), begin, end, bodies)
            place = begin + len(code)
        found = _DEFINITION.search(data, end)
    return b"".join([*parts, data[place:]]), cuts


def _without_comments(block: bytes) -> bytes:
    """Lines without the blank ones and comments at their end."""
    code = block.rstrip()
    while (start := code.rfind(b"\n") + 1) and code[start:].lstrip().startswith(b"#"):
        code = code[:start].rstrip()
    return code


def _ends_outside_text(code: bytes) -> bool:
    """Whether lines end outside of a text of several lines if they begin so, for certain."""
    kinds = [code.count(quotes) for quotes in (b'"""', b"'''")]
    if not any(kinds):
        return not code.endswith(b"\\")
    return not all(kinds) and not sum(kinds) % 2 and _ODD_QUOTES.search(code) is None


def _is_cut(function: FunctionNode, cuts: Collection[int]) -> bool:
    body = function.body
    return len(body) == 1 and isinstance(body[0], ast.Pass) and body[0].lineno in cuts


def _functions(body: Iterable[ast.stmt]) -> Iterator[FunctionNode]:
    """Functions and methods, but not those in functions."""
    for statement in body:
        if isinstance(statement, FunctionNode):
            yield statement
        else:
            for block in blocks_of(statement):
                yield from _functions(block)


class _Text(Struct, frozen=True):
    """Where a function stands in a file."""

    data: bytes  # the file
    head: int  # where the line of its definition begins
    begin: int  # where its body does
    end: int  # where the next statement's line may begin
    bodies: Bodies  # gets the function once it is opened

    def parsed(self, line: int, column: int, *, whole: bool) -> FunctionNode:
        """The function at a line and column, with another body if not `whole`; RecursionError if it
        cannot be parsed.
        """
        text = self.data[self.head : self.end if whole else self.begin]
        text += b"" if whole else text[:column] + b" pass"
        above = b"\n" * (line - 2) + b"if 1:\n" if column else b"\n" * (line - 1)
        tree, problem = parse_python(above + text)
        if problem:
            raise RecursionError(problem)
        self.bodies.size += len(text)
        (found,) = tree.body
        if isinstance(found, ast.If):
            (found,) = found.body
        assert isinstance(found, FunctionNode)
        return found


class _Folded(ast.FunctionDef):
    text: _Text

    def __getattr__(self, name: str) -> Any:
        return _opened(self, name)


class _FoldedAsync(ast.AsyncFunctionDef):
    text: _Text
    __getattr__ = _Folded.__getattr__


# whoever writes a tree down by the names of its kinds, as a fingerprint does, sees no difference
_Folded.__name__, _FoldedAsync.__name__ = "FunctionDef", "AsyncFunctionDef"


def _opened(function: _Folded | _FoldedAsync, name: str) -> Any:
    """A part of a function that is asked for it; it stays there until it is closed."""
    if name not in ("args", "body"):
        raise AttributeError(name)
    place = (function.lineno, function.col_offset)
    found = function.text.parsed(*place, whole=name == "body")
    function.__dict__.setdefault("args", found.args)
    if name == "body":
        function.body = found.body
    function.text.bodies.opened.append(function)
    return getattr(function, name)
