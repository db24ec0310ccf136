"""Python code that rewrites the source of another package: which text it takes for which.

Functions are followed statement by statement with what is known of their values: constants, parts
of texts, loops over tables, calls of functions of the tree with their arguments, what is read from
a file or by `inspect.getsource`. Nothing is imported or run. Of an `if` both ways are followed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from textwrap import dedent
from typing import Any

from msgspec import Struct, field

from patchkit.extensions.python_guards.bodies import blocks_of
from patchkit.extensions.python_guards.modules import Module, Modules, imported_names
from patchkit.extensions.python_guards.resolve import Code, Outside, Resolver
from patchkit.extensions.python_guards.text_edits import (
    UNKNOWN,
    Replacement,
    Rewrite,
    UnreadableEditError,
)
from patchkit.model.syntax import FunctionNode, last_name

#: So many statements of a file are followed, and calls within calls.
_MOST_STEPS, _DEEPEST = 40_000, 6
#: Longer texts are not put together.
_LONGEST = 4_000_000
#: What gives back the text, path or list that it is given.
_SAME = frozenset(
    {"str", "Path", "PurePath", "fspath", "abspath", "realpath", "resolve", "absolute"}
    | {"iter", "next", "list", "tuple", "sorted", "decode", "encode", "as_posix"}
)
#: What says where a module's files are.
_PLACES = frozenset({"__file__", "__path__", "submodule_search_locations", "origin"})


class _Content(Struct, frozen=True):
    """A text that was read from a file or, `is_name`, is the source of a dotted name."""

    target: str
    is_name: bool


class _Handle(Struct, frozen=True):
    """A file that is open."""

    path: str


class _Function(Struct, frozen=True, eq=False):
    """A function of the tree, with the names around it."""

    node: FunctionNode
    module: Module
    around: Mapping[str, Any]


class _Frame(Struct):
    """A function, or a module, on its way: what its names are, and what it returned so far."""

    module: Module
    names: dict[str, Any]
    returned: list[Any] = field(default_factory=list)


class RewriteReader:
    """Reads the rewrites of modules of a tree."""

    def __init__(self, modules: Modules) -> None:
        self._resolver = Resolver(modules)
        self._tops: dict[Module, dict[str, Any]] = {}
        self._given: dict[str, Any] = {}  # attributes that were given to things of others
        #: What was found, where it is written, and how many calls were around it.
        self._found: list[tuple[Rewrite, ast.Call, int]] = []
        self._calls: list[tuple[FunctionNode, str, int]] = []  # underway, and where each stands
        self._steps = 0
        #: What calls of functions gave, by their arguments: followed once.
        self._known: dict[tuple[object, ...], Any] = {}

    def read(self, module: Module) -> None:
        """Follow a module; UnreadableEditError, with the line, where it is too much to follow."""
        self._steps = 0
        try:
            top = self._top(module)
            for node in _functions(module.syntax.body):
                self._call(_Function(node, module, top), {}, module.path, node.lineno)
        finally:
            self._calls.clear()

    def rewrites(self) -> list[Rewrite]:
        """Those of all that was read. A function that others call with what it does not know counts
        only as they call it.
        """
        best: dict[object, tuple[int, Rewrite]] = {}
        known = {call for each, call, _ in self._found if not each.problem}
        for each, call, depth in self._found:
            key = call, each.target, each.script
            is_best = key not in best or depth < best[key][0]
            if is_best and not (each.problem and call in known):
                best[key] = depth, each
        return [each for _, each in best.values()]

    def _top(self, module: Module) -> dict[str, Any]:
        """What a module binds at its top."""
        if module not in self._tops:
            names = self._tops[module] = {}
            self._block(module.syntax.body, _Frame(module, names))
        return self._tops[module]

    # -- statements ----------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt], frame: _Frame) -> None:
        for statement in body:
            self._count(statement)
            self._statement(statement, frame)

    def _count(self, node: ast.stmt | ast.expr) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            what = f"line {node.lineno}: more than {_MOST_STEPS} steps to follow"
            raise UnreadableEditError(what)

    def _statement(self, statement: ast.stmt, frame: _Frame) -> None:
        match statement:
            case ast.Assign(targets=targets, value=node):
                value = self._value(node, frame)
                for target in targets:
                    self._bind(target, value, frame)
            case ast.AnnAssign(target=target, value=ast.expr() as node):
                self._bind(target, self._value(node, frame), frame)
            case ast.AugAssign(target=ast.Name(id=name), value=node):
                frame.names[name] = _sum(frame.names.get(name), self._value(node, frame))
            case (
                ast.Expr(value=ast.Yield(value=ast.expr() as node))
                | ast.Return(value=ast.expr() as node)
            ):
                frame.returned.append(self._value(node, frame))
            case ast.Expr(value=node):
                self._value(node, frame)
            case ast.Import() | ast.ImportFrom():
                for name, imported in imported_names(statement):
                    things = self._resolver.imported(frame.module, imported)
                    frame.names[name] = next(map(self._thing, things), None)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                frame.names[statement.name] = _Function(statement, frame.module, frame.names)
            case _:
                self._compound(statement, frame)

    def _compound(self, statement: ast.stmt, frame: _Frame) -> None:
        match statement:
            case ast.If(body=body, orelse=[_, *_] as orelse):
                before = dict(frame.names)
                self._block(body, frame)
                after = {n: v for n, v in frame.names.items() if before.get(n) is not v}
                self._block(orelse, frame)  # what both ways set is one of two
                both = (name for name, value in after.items() if frame.names[name] != value)
                frame.names.update(dict.fromkeys(both))
            case ast.For(target=target, iter=node, body=body):
                for value in self._items(node, frame):
                    self._bind(target, value, frame)
                    self._block(body, frame)
            case ast.With(items=items, body=body):
                for item in items:
                    value = self._value(item.context_expr, frame)
                    if item.optional_vars is not None:
                        self._bind(item.optional_vars, value, frame)
                self._block(body, frame)
            case ast.If() | ast.While() | ast.Try():
                for block in blocks_of(statement):
                    self._block(block, frame)

    def _bind(self, target: ast.expr, value: Any, frame: _Frame) -> None:
        match target:
            case ast.Name(id=name):
                frame.names[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                known = isinstance(value, tuple) and len(value) == len(parts)
                for index, part in enumerate(parts):
                    self._bind(part, value[index] if known else None, frame)
            case ast.Attribute(value=owner, attr=name) if isinstance(value, Outside):
                thing = self._value(owner, frame)
                if isinstance(thing, Outside):
                    self._given.setdefault(f"{thing.name}.{name}", value)

    # -- expressions ---------------------------------------------------------------------------

    def _value(self, node: ast.expr, frame: _Frame) -> Any:
        """What is known of an expression; None for nothing."""
        match node:
            case ast.Constant(value=str() | int() as value):
                return value
            case ast.Name(id=name):
                return frame.names.get(name)
            case ast.Attribute(value=inner, attr=name):
                return self._attribute(self._value(inner, frame), name)
            case ast.Call():
                return self._called(node, frame)
        return self._made(node, frame)

    def _made(self, node: ast.expr, frame: _Frame) -> Any:  # noqa: PLR0911
        """What is known of an expression that is made of others."""
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(chain.from_iterable(self._parts(each, frame) for each in parts))
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {self._value(k, frame): self._value(v, frame) for k, v in pairs if k}
            case ast.JoinedStr(values=values):
                return "".join(_text(self._value(each, frame)) for each in values)
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self._value(inner, frame)
            case ast.BinOp(left=left, op=op, right=right):
                sides = self._value(left, frame), self._value(right, frame)
                return _path(sides) if isinstance(op, ast.Div) else _sum(*sides)
            case ast.Subscript(value=inner, slice=index):
                return _element(self._value(inner, frame), self._value(index, frame))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return -value
            case ast.ListComp(elt=each, generators=[loop]):
                return self._listed(each, loop, frame)
            case ast.GeneratorExp(elt=each, generators=[loop]):
                return self._listed(each, loop, frame)
        return None

    def _listed(self, node: ast.expr, loop: ast.comprehension, frame: _Frame) -> tuple[Any, ...]:
        """A list that is made of another, whatever that leaves out."""
        inner, made = _Frame(frame.module, dict(frame.names)), list[Any]()
        for value in self._items(loop.iter, frame):
            self._count(node)
            self._bind(loop.target, value, inner)
            made.append(self._value(node, inner))
        return tuple(made)

    def _items(self, node: ast.expr, frame: _Frame) -> Sequence[Any]:
        """What a loop walks: something, where it is not known what."""
        value = self._value(node, frame)
        return tuple(value) if isinstance(value, tuple | dict) else [None]

    def _parts(self, node: ast.expr, frame: _Frame) -> Sequence[Any]:
        """The values that an element of a list, or an argument, stands for."""
        if isinstance(node, ast.Starred):
            return self._items(node.value, frame)
        return [self._value(node, frame)]

    def _attribute(self, owner: Any, name: str) -> Any:
        match owner:
            case Outside(name=outer) if name in _PLACES:
                ending = ".py" if name == "__file__" else ""
                return f"{UNKNOWN}/{outer.replace('.', '/')}{ending}"
            case Outside(name=outer):
                return self._given.get(f"{outer}.{name}", Outside(f"{outer}.{name}"))
            case Module():
                return self._top(owner).get(name)
        return None

    def _thing(self, thing: object) -> Any:
        match thing:
            case Code(module=module, name=name):
                return self._top(module).get(name)
            case Outside() | Module():
                return thing
        return None

    # -- calls ---------------------------------------------------------------------------------

    def _called(self, call: ast.Call, frame: _Frame) -> Any:
        given = list(chain.from_iterable(self._parts(each, frame) for each in call.args))
        named = {each.arg: self._value(each.value, frame) for each in call.keywords if each.arg}
        name, owner = last_name(call.func), None
        if isinstance(call.func, ast.Attribute):
            owner = self._value(call.func.value, frame)
            function = self._attribute(owner, name)
        else:
            function = self._value(call.func, frame)
        if isinstance(function, _Function):
            return self._inlined(function, call, given, named, frame)
        if isinstance(owner, _Content):
            if name == "replace" and len(given) >= 2:
                self._note(call, owner, [*given, named.get("count", -1)], frame)
            return owner
        if isinstance(owner, _Handle):
            return _Content(owner.path, False) if name == "read" else None
        if isinstance(owner, str | dict):
            return _method(owner, name, given)
        if name in _SAME:
            return given[0] if given else None
        return _KNOWN[name](given) if name in _KNOWN and given else None

    def _inlined(
        self,
        function: _Function,
        call: ast.Call,
        given: list[Any],
        named: Mapping[str, Any],
        frame: _Frame,
    ) -> Any:
        """What a function of the tree gives for these arguments."""
        underway = [node for node, _, _ in self._calls]
        if function.node in underway or len(underway) > _DEEPEST:
            return None
        asked = function.node.args
        names = [each.arg for each in (*asked.posonlyargs, *asked.args)]
        bound = {**dict(zip(names, given, strict=False)), **named}
        if asked.vararg is not None:
            bound[asked.vararg.arg] = tuple(given[len(names) :])
        key = (function.node, *bound.items())
        try:
            is_known = key in self._known
        except TypeError:  # a table among the arguments
            return self._call(function, bound, frame.module.path, call.lineno)
        if not is_known:
            self._known[key] = self._call(function, bound, frame.module.path, call.lineno)
        return self._known[key]

    def _call(self, function: _Function, bound: Mapping[str, Any], path: str, line: int) -> Any:
        node = function.node
        asked, names = node.args, dict(function.around)
        frame = _Frame(function.module, names)
        positional = [*asked.posonlyargs, *asked.args]
        for each in (*positional, *asked.kwonlyargs):
            names[each.arg] = None
        for each, default in zip(positional[::-1], asked.defaults[::-1], strict=False):
            names[each.arg] = self._value(default, frame)
        names.update(bound)
        self._calls.append((node, path, line))
        self._block(node.body, frame)
        self._calls.pop()
        return next((each for each in reversed(frame.returned) if each is not None), None)

    def _note(self, call: ast.Call, content: _Content, given: Sequence[Any], frame: _Frame) -> None:
        """Note a replacement in a text that was read."""
        old, new, count, *_ = given
        if isinstance(old, str) and not old.strip():
            return  # ends of lines, no code
        is_known = isinstance(old, str) and old != "" and UNKNOWN not in old
        script = Replacement(old, _text(new), count if isinstance(count, int) else -1)
        path, line = self._calls[1][1:] if self._calls[1:] else (frame.module.path, call.lineno)
        problem = "" if is_known else "which text it replaces is not plain to see"
        if not content.target.strip(f"{UNKNOWN}/"):
            problem = "what it rewrites is not plain to see"
        rewrite = Rewrite(
            path,
            line,
            content.target,
            content.is_name,
            script if is_known else None,
            problem=problem,
            reason=ast.get_docstring(self._calls[0][0]) or "" if self._calls else "",
        )
        self._found.append((rewrite, call, len(self._calls)))


def _functions(body: Sequence[ast.stmt]) -> Iterator[FunctionNode]:
    """The functions of a module and the methods of its classes."""
    for statement in body:
        if isinstance(statement, FunctionNode):
            yield statement
        elif isinstance(statement, ast.ClassDef | ast.If | ast.Try):
            yield from _functions(statement.body)


# What is known of values.


def _text(value: Any) -> str:
    return str(value)[:_LONGEST] if isinstance(value, str | int) else UNKNOWN


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return left + right if len(left) + len(right) < _LONGEST else None
    if isinstance(left, str) or isinstance(right, str):
        return (_text(left) + _text(right))[:_LONGEST]
    return None


def _element(value: Any, index: Any) -> Any:
    try:
        return value[index] if isinstance(value, dict | tuple) else None
    except (KeyError, IndexError, TypeError):
        return None


def _path(parts: Sequence[Any]) -> str:
    """Folders and a name as a path."""
    return re.sub(r"/+", "/", "/".join(map(_text, parts)))[:_LONGEST]


def _method(owner: str | dict[Any, Any], name: str, given: list[Any]) -> Any:
    """What a method of a text, a path or a table gives."""
    if isinstance(owner, dict):
        return tuple(owner.items()) if name == "items" else None
    made = _METHODS.get(name)
    texts = [*map(_text, given)]
    if made is not None and sum(map(len, (owner, *texts))) < _LONGEST:
        return made(owner, texts)
    if name == "join" and given and isinstance(given[0], tuple):
        return owner.join(map(_text, given[0]))[:_LONGEST]
    return owner if name in _SAME else None


def _replaced(owner: str, texts: Sequence[str]) -> str | None:
    is_small = len(texts) > 1 and len(owner) * len(texts[1]) < _LONGEST
    return owner.replace(texts[0], texts[1]) if is_small else None


#: Methods of texts and paths, and what each makes of its arguments.
_METHODS: Mapping[str, Callable[[str, Sequence[str]], Any]] = {
    "read_text": lambda owner, _: _Content(owner, False),
    "read_bytes": lambda owner, _: _Content(owner, False),
    "open": lambda owner, _: _Handle(owner),
    "joinpath": lambda owner, texts: _path([owner, *texts]),
    "replace": _replaced,
    "split": lambda owner, texts: tuple(owner.split(texts[0] if texts else None)),
    "strip": lambda owner, texts: owner.strip(texts[0] if texts else None),
}


def _outside(given: list[Any]) -> Any:
    match given:
        case [str() as name, *_]:
            return Outside(name)
        case [Outside(name=owner), str() as name, *_]:
            return Outside(f"{owner}.{name}")
    return None


#: Functions of libraries by their last name, and what each makes of its arguments.
_KNOWN: Mapping[str, Callable[[list[Any]], Any]] = {
    "open": lambda given: _Handle(_text(given[0])),
    "join": _path,
    "getsource": lambda given: _Content(getattr(given[0], "name", UNKNOWN), True),
    "find_spec": _outside,
    "import_module": _outside,
    "getattr": _outside,
    "dedent": lambda given: dedent(given[0]) if isinstance(given[0], str) else given[0],
}
