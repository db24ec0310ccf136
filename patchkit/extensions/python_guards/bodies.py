"""The blocks of statements in Python's syntax, and functions that are left in the text.

Most of a syntax tree is its functions, and into most of these nobody looks again. A folded function
has neither body nor parameters: they are parsed from the file's text when they are needed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct, field

from patchkit.model.syntax import FunctionNode, is_plain, parse_python


def blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks within a statement, those of a definition, too."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def first_line(statement: ast.stmt) -> int:
    """Where a statement begins, with its decorators."""
    if isinstance(statement, _Folded | _FoldedAsync):
        return statement.text.top
    return min([statement.lineno, *(each.lineno for each in _decorators(statement))])


def _decorators(statement: ast.stmt) -> Sequence[ast.expr]:
    return getattr(statement, "decorator_list", ())


#: Parts of syntax that are no nodes, or that nobody looks for: operators, whether a name is stored.
_NO_NODES = frozenset({
    "arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module",
    "op", "ops", "simple", "type_comment",
})  # fmt: skip


#: Kind of node -> its parts that may be nodes; filled as kinds are met.
_PARTS: dict[type[ast.AST], tuple[str, ...]] = {}


def _parts(kind: type[ast.AST]) -> tuple[str, ...]:
    if kind not in _PARTS:
        _PARTS[kind] = tuple(each for each in kind._fields if each not in _NO_NODES)
    return _PARTS[kind]


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it in the order of `ast.walk`, but for operators; in half its time."""
    nodes = [node]
    for each in nodes:  # grows while it is walked
        yield each
        for part in _parts(type(each)):
            value = getattr(each, part, None)
            if isinstance(value, ast.AST):
                nodes.append(value)
            elif value.__class__ is list:
                nodes += [inner for inner in value if isinstance(inner, ast.AST)]


def walk_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or module, without what is in functions and classes in it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, FunctionNode | ast.ClassDef):
            yield from walk_scope(child)


class Bodies(Struct):
    """The functions that were `opened` again; `size` is that of the text parsed for it."""

    opened: list[_Folded | _FoldedAsync] = field(default_factory=list)
    size: int = 0

    def close(self) -> None:
        """Leave all of them in the text again."""
        for each in self.opened:
            _leave(each)
        self.opened.clear()
        self.size = 0


#: What of a function stands above its body, but for what it returns: that is None by its class.
_HEAD = tuple(e for e in ("args", "decorator_list", "type_params") if e in ast.FunctionDef._fields)


def _leave(function: FunctionNode) -> None:
    for part in ("body", *_HEAD):
        function.__dict__.pop(part, None)


def fold(tree: ast.Module, data: bytes, bodies: Bodies) -> None:
    """Leave a file's functions in its text; `bodies` gets those that are opened.

    Invariant: what is parsed again is what it was, node by node, at the same lines and columns, for
    the statements of a body have lines of their own, and so has what stands above it. Whoever holds
    a node of a function while it is closed holds another one than whoever looks into it next.
    """
    if not is_plain(data):
        return
    starts = [0, *accumulate(len(each) + 1 for each in data.split(b"\n"))]
    for function in _functions(tree.body):
        inner = function.body[0]
        top, first = first_line(function), first_line(inner)
        head, begin, end = (starts[at] for at in (top - 1, first - 1, function.end_lineno or 0))
        column = min([inner.col_offset, *(each.col_offset for each in _decorators(inner))])
        if data[begin : begin + column].strip(b" \t@"):
            continue  # on the line of the definition
        is_async = isinstance(function, ast.AsyncFunctionDef)
        _leave(function)
        function.__class__ = _FoldedAsync if is_async else _Folded
        text = _Text(data, head, begin, end, top, bodies)
        function.text = text  # type: ignore[union-attr]


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
    head: int  # where it begins, with its decorators
    begin: int  # where the first line of its body does
    end: int  # where the next statement's line may begin
    top: int  # the line at `head`, from 1
    bodies: Bodies  # gets the function once it is opened

    def parsed(self, *, whole: bool) -> FunctionNode:
        """The function, with another body if not `whole`."""
        text = self.data[self.head : self.end if whole else self.begin]
        if not whole:
            first = self.data[self.begin : self.end]
            text += first[: len(first) - len(first.lstrip(b" \t"))] + b"pass\n"
        is_inner = text.startswith((b" ", b"\t"))
        above = b"\n" * (self.top - 2) + b"if 1:\n" if is_inner else b"\n" * (self.top - 1)
        tree, problem = parse_python(above + text)
        if problem:  # it was parsed before, with more room on the stack
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
    if name != "body" and name not in _HEAD:
        raise AttributeError(name)
    found = function.text.parsed(whole=name == "body")
    for part in _HEAD:
        function.__dict__.setdefault(part, getattr(found, part))
    if name == "body":
        function.body = found.body
    function.text.bodies.opened.append(function)
    return getattr(function, name)
