"""What the expressions of a module come to, as far as following its statements tells.

Functions are followed statement by statement with what is known of their values: constants, parts
of texts, loops over tables, calls of functions of the tree with their arguments, what is read from
a file or by `inspect.getsource`. Nothing is imported or run. Of an `if` both ways are followed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, product
from textwrap import dedent
from typing import Any

from msgspec import Struct

from patchkit.extensions.python_guards.bodies import blocks_of, walk
from patchkit.extensions.python_guards.inference import parameters_of
from patchkit.extensions.python_guards.modules import Module, Modules, imported_names
from patchkit.extensions.python_guards.resolve import (
    Absent,
    Code,
    Inherited,
    Outside,
    Resolver,
    Unclear,
)
from patchkit.extensions.python_guards.text_edits import UNKNOWN, UnreadableEditError
from patchkit.model.syntax import FunctionNode, last_name

#: The most statements of a file that are followed, and the most calls within calls.
_MOST_STEPS, _DEEPEST = 40_000, 6
#: Longer texts are not put together, nor are more alternatives looked at.
_LONGEST, _MOST = 4_000_000, 100
#: What gives back the text, path or list that it is given.
_SAME = frozenset(
    {"str", "Path", "PurePath", "fspath", "abspath", "realpath", "resolve", "absolute"}
    | {"iter", "next", "list", "tuple", "sorted", "decode", "encode", "as_posix"}
)
#: What says where a module's files are.
_PLACES = frozenset({"__file__", "__path__", "submodule_search_locations", "origin"})
#: What changes a list or a table, but for `extend`, which is followed.
_FILLS = frozenset({"append", "insert", "update", "setdefault", "pop", "remove", "clear"})


class FileContent(Struct, frozen=True):
    """A text that was read from a file or, `is_name`, is the source of a dotted name."""

    target: str
    is_name: bool


class ReplacedText(Struct, frozen=True):
    """A call of `replace`, or `re.sub`, on the text of a file: what it is given (old, new, count),
    and where that is said.

    `path` and `line` are those of the outermost call that leads to it, `reason` what that function
    says of itself, and `depth` how many calls are around it.
    """

    call: ast.Call
    content: FileContent
    given: Sequence[Any]
    path: str
    line: int
    reason: str
    depth: int


class _Handle(Struct, frozen=True):
    """A file that is open."""

    path: str


class _Several(Struct, frozen=True):
    """One of these values, of which some may be None: not known."""

    values: tuple[Any, ...]


class _Function(Struct, frozen=True, eq=False):
    """A function of the tree, with the names around it."""

    node: FunctionNode
    module: Module
    around: Mapping[str, Any]


class _Frame(Struct):
    """A function, or a module, on its way: what its names are, and what it returned so far."""

    module: Module
    names: dict[str, Any]
    returned: list[Any] = []


class ValueFlow:
    """Follows modules of a tree; what expressions in `wanted` come to is added to them there."""

    def __init__(self, modules: Modules) -> None:
        self.resolver = Resolver(modules)
        self.wanted: dict[ast.expr, list[Any]] = {}
        self.replaced: list[ReplacedText] = []
        self._tops: dict[Module, dict[str, Any]] = {}
        self._filled: dict[Module, frozenset[str]] = {}
        self._given: dict[str, Any] = {}  # attributes that were given to things of others
        self._calls: list[tuple[FunctionNode, str, int]] = []  # underway, and where each stands
        self._steps = 0
        #: What calls of functions gave, by their arguments: followed once.
        self._known: dict[tuple[object, ...], Any] = {}

    def follow(self, module: Module) -> None:
        """Follow a module; UnreadableEditError, with the line, where it is too much to follow."""
        self._steps = 0
        try:
            top = self._top(module)
            for node in _functions(module.syntax.body):
                unknown = dict.fromkeys(parameters_of(node))
                self._call(_Function(node, module, top), unknown, module.path, node.lineno)
        finally:
            self._calls.clear()

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
                    things = self.resolver.imported(frame.module, imported)
                    frame.names[name] = next(things, None)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for decorator in statement.decorator_list:
                    self._value(decorator, frame)
                frame.names[statement.name] = _Function(statement, frame.module, frame.names)
            case _:
                self._compound(statement, frame)

    def _compound(self, statement: ast.stmt, frame: _Frame) -> None:
        match statement:
            case ast.If(body=body, orelse=orelse):
                self._branch(body, orelse, frame)
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
            case ast.While() | ast.Try():
                for block in blocks_of(statement):
                    self._branch(block, (), frame)

    def _branch(self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], frame: _Frame) -> None:
        """Follow both ways; a name that they leave otherwise is one of two."""
        before = dict(frame.names)
        self._block(body, frame)
        after = dict(frame.names)
        frame.names.update(before)
        self._block(orelse, frame)
        for name, value in after.items():
            frame.names[name] = _either(frame.names[name], value)

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
        value = self._known_value(node, frame)
        if node in self.wanted:
            self.wanted[node].append(value)
        return value

    def _known_value(self, node: ast.expr, frame: _Frame) -> Any:  # noqa: PLR0911
        match node:
            case ast.Constant(value=str() | int() as value):
                return value
            case ast.Name(id=name):
                return self._named(name, frame)
            case ast.Attribute(value=inner, attr=name):
                return self._attribute(self._value(inner, frame), name)
            case ast.Call():
                return self._called(node, frame)
            case ast.IfExp(body=one, orelse=other):
                return _either(self._value(one, frame), self._value(other, frame))
            case (
                ast.ListComp(elt=element, generators=[loop])
                | ast.GeneratorExp(elt=element, generators=[loop])
            ):
                return self._listed(element, loop, frame)
        return self._made(node, frame)

    def _made(self, node: ast.expr, frame: _Frame) -> Any:  # noqa: PLR0911
        """What is known of an expression that is made of others."""
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(chain.from_iterable(self._parts(part, frame) for part in parts))
            case ast.Dict(keys=keys, values=values):
                pairs = zip(keys, values, strict=True)
                return {self._value(k, frame): self._value(v, frame) for k, v in pairs if k}
            case ast.JoinedStr(values=values):
                return reduce(_sum, (self._value(part, frame) for part in values), "")
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self._value(inner, frame)
            case ast.BinOp(left=left, op=ast.Add() | ast.Div() as op, right=right):
                sides = self._value(left, frame), self._value(right, frame)
                return _path(sides) if isinstance(op, ast.Div) else _sum(*sides)
            case ast.Subscript(value=inner, slice=index):
                return _element(self._value(inner, frame), self._value(index, frame))
        return None

    def _named(self, name: str, frame: _Frame) -> Any:
        """What a name has; of a list that more is added to, that something may follow."""
        if name not in frame.names and "*" in frame.names:
            things = self.resolver.evaluate(frame.module, ast.Name(name, ast.Load()))
            return self._thing(things[0])
        value = self._thing(frame.names.get(name))
        if isinstance(value, tuple | dict) and name in self._filled_names(frame.module):
            return (*value, None) if isinstance(value, tuple) else None
        return value

    def _filled_names(self, module: Module) -> frozenset[str]:
        """The names of lists and tables that are changed somewhere."""
        if module not in self._filled:
            self._filled[module] = frozenset(_changed_in(module.syntax))
        return self._filled[module]

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
        found = list[Any]()
        for value in alternatives(self._value(node, frame)):
            found += tuple(value) if isinstance(value, tuple | dict) else [None]
        return found

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
                return self._thing(next(self.resolver.attribute(owner, name, last=True), None))
        return None

    def _thing(self, thing: Any) -> Any:
        """What a name is bound to, followed into the module that it comes from."""
        match thing:
            case Code(module=module, name=name):
                return self._top(module).get(name)
            case Inherited() | Absent() | Unclear():
                return None
        return thing

    # -- calls ---------------------------------------------------------------------------------

    def _called(self, call: ast.Call, frame: _Frame) -> Any:  # noqa: PLR0911
        given = list(chain.from_iterable(self._parts(argument, frame) for argument in call.args))
        named = {word.arg: self._value(word.value, frame) for word in call.keywords if word.arg}
        name, owner = last_name(call.func), None
        if isinstance(call.func, ast.Attribute):
            value = self._value(call.func.value, frame)
            if name == "extend" and given:
                self._bind(call.func.value, _sum(value, given[0]), frame)
            owner = _only(value)
            function = self._attribute(owner, name)
        else:
            function = _only(self._value(call.func, frame))
        if isinstance(function, _Function):
            return self._inlined(function, call, given, named, frame)
        given = list(map(_only, given))
        match function, given:
            case Outside(name="re.sub"), [old, new, FileContent() as content, *rest]:
                plain = None if "flags" in named or rest[1:] else old
                count = _only([*rest, named.get("count")][0])
                self._note(call, content, [plain, new, count or -1], frame)
                return content
        if isinstance(owner, FileContent):
            if name == "replace" and len(given) >= 2:
                self._note(call, owner, [*given, _only(named.get("count", -1))], frame)
            return owner
        if isinstance(owner, _Handle):
            return FileContent(owner.path, False) if name == "read" else None
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
        names = [parameter.arg for parameter in (*asked.posonlyargs, *asked.args)]
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
        names.update(dict.fromkeys(parameters_of(node)))
        positional = [*asked.posonlyargs, *asked.args]
        for parameter, default in zip(positional[::-1], asked.defaults[::-1], strict=False):
            names[parameter.arg] = self._value(default, frame)
        names.update(bound)
        self._calls.append((node, path, line))
        self._block(node.body, frame)
        self._calls.pop()
        return reduce(_either, frame.returned) if frame.returned else None

    def _note(
        self, call: ast.Call, content: FileContent, given: Sequence[Any], frame: _Frame
    ) -> None:
        """Note a replacement in a text that was read."""
        path, line = self._calls[1][1:] if self._calls[1:] else (frame.module.path, call.lineno)
        reason = ast.get_docstring(self._calls[0][0]) or "" if self._calls else ""
        depth = len(self._calls)
        self.replaced.append(ReplacedText(call, content, given, path, line, reason, depth))


def _functions(body: Sequence[ast.stmt]) -> Iterator[FunctionNode]:
    """The functions of a module and the methods of its classes."""
    for statement in body:
        if isinstance(statement, FunctionNode):
            yield statement
        elif isinstance(statement, ast.ClassDef | ast.If | ast.Try):
            yield from _functions(statement.body)


def _changed_in(syntax: ast.Module) -> Iterator[str]:
    for node in walk(syntax):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=how)) if how in _FILLS:
                yield name
            case (
                ast.AugAssign(target=ast.Name(id=name))
                | ast.Subscript(value=ast.Name(id=name), ctx=ast.Store())
            ):
                yield name


# What is known of values.


def alternatives(value: Any) -> tuple[Any, ...]:
    """The values of which it is one; None among them where that is not known."""
    return value.values if isinstance(value, _Several) else (value,)


def _either(one: Any, other: Any) -> Any:
    if one is other or one == other:
        return one
    found = list(alternatives(one))
    found += [value for value in alternatives(other) if value not in found]
    return _Several(tuple(found)) if len(found) <= _MOST else None


def _only(value: Any) -> Any:
    """The one alternative that is known; None for none, or more."""
    known = [each for each in alternatives(value) if each is not None]
    return known[0] if len(known) == 1 else None


def _text(value: Any) -> str:
    value = _only(value)
    return str(value)[:_LONGEST] if isinstance(value, str | int) else UNKNOWN


def _sum(left: Any, right: Any) -> Any:
    if isinstance(left, _Several) or isinstance(right, _Several):
        pairs = [*product(alternatives(left), alternatives(right))]
        return reduce(_either, (_sum(*pair) for pair in pairs)) if len(pairs) <= _MOST else None
    if isinstance(left, tuple):
        more = right if isinstance(right, tuple) else (None,)
        return left + more if len(left) + len(more) < _LONGEST else None
    if isinstance(left, str) or isinstance(right, str):
        return (_text(left) + _text(right))[:_LONGEST]
    return None


def _element(value: Any, index: Any) -> Any:
    if isinstance(value, tuple) and value[-1:] == (None,):  # it may have changed
        return None
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
    "read_text": lambda owner, _: FileContent(owner, False),
    "read_bytes": lambda owner, _: FileContent(owner, False),
    "open": lambda owner, _: _Handle(owner),
    "joinpath": lambda owner, texts: _path([owner, *texts]),
    "replace": _replaced,
    "split": lambda owner, texts: tuple(owner.split(texts[0] if texts else None)),
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
    "getsource": lambda given: FileContent(getattr(given[0], "name", UNKNOWN), True),
    "find_spec": _outside,
    "import_module": _outside,
    "getattr": _outside,
    "dedent": lambda given: dedent(given[0]) if isinstance(given[0], str) else given[0],
}
