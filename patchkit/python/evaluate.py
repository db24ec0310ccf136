"""Which texts an expression can have, by following names through assignments, loops and calls.

Understood: literals, `+`, `%`, f-strings, `str.format`, `"".join`, conditional expressions, names
of the function, class or module around, constants of other modules of the tree, elements of lists,
tuples, sets and dicts that a loop or comprehension walks (also those that `append`, `extend`, `+=`
and `d[key] =` put there), parameters by the calls in the same file. Anything else makes the answer
incomplete, and it says so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import islice, product

from msgspec import Struct, field

from patchkit.model.syntax import called_name
from patchkit.python.bodies import FunctionNode, walk
from patchkit.python.modules import Module
from patchkit.python.resolve import Code, Resolver

# Where a function or module gives a name its value, and with which way into the expression.


#: A step from an expression to what is meant: any element of it; other steps are indexes.
EACH = -1


def definitions_around(
    node: ast.AST, around: tuple[FunctionNode | ast.ClassDef, ...]
) -> Iterator[tuple[ast.AST, tuple[FunctionNode | ast.ClassDef, ...]]]:
    """Every expression below a node with the definitions around it, innermost first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child, around
        inner = (child, *around) if isinstance(child, FunctionNode | ast.ClassDef) else around
        yield from definitions_around(child, inner)


def walk_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function or module, without what is in functions and classes in it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, FunctionNode | ast.ClassDef):
            yield from walk_scope(child)


def sources(scope: ast.AST, name: str) -> Iterator[tuple[ast.expr, tuple[int, ...]]]:
    """The expressions that a scope binds a name to, and the steps into each."""
    for node in walk_scope(scope):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    yield from ((value, steps) for steps in _steps(target, name))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from ((value, steps) for steps in _steps(target, name))
            case ast.NamedExpr(target=target, value=value):
                yield from ((value, steps) for steps in _steps(target, name))
            case (
                ast.For(target=target, iter=iterated)
                | ast.AsyncFor(target=target, iter=iterated)
                | ast.comprehension(target=target, iter=iterated)
            ):
                yield from ((iterated, (EACH, *steps)) for steps in _steps(target, name))


def _steps(target: ast.expr, name: str) -> Iterator[tuple[int, ...]]:
    """The way to a name in the target of an assignment."""
    match target:
        case ast.Name(id=found) if found == name:
            yield ()
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for index, each in enumerate(targets):
                yield from ((index, *steps) for steps in _steps(each, name))


def additions(scope: ast.AST, name: str) -> Iterator[tuple[ast.expr, tuple[int, ...]]]:
    """What a scope puts into a container: expressions, and the steps to the elements."""
    for node in walk_scope(scope):
        match node:
            case ast.AugAssign(target=ast.Name(id=found), value=value) if found == name:
                yield value, (EACH,)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr=how), args=args) if (
                found == name and args
            ):
                if how in ("append", "add", "insert"):
                    yield args[-1], ()
                elif how in ("extend", "update"):
                    yield args[0], (EACH,)
    for key, _ in items_set(scope, name):
        yield key, ()


def items_set(scope: ast.AST, name: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The (key, value) pairs that a scope sets in a dict."""
    for node in walk_scope(scope):
        match node:
            case ast.Assign(
                targets=[ast.Subscript(value=ast.Name(id=found), slice=key)], value=value
            ) if found == name:
                yield key, value


class Attributes(Struct):
    """What a class and its methods give its attributes, by name.

    `values` come with the method around them, () for the class itself; `annotations` are what is
    said of their kind; `stored` are all that are set in any way; `by_name`: setattr is called.
    """

    values: dict[str, list[tuple[ast.expr, tuple[FunctionNode, ...]]]] = field(default_factory=dict)
    annotations: dict[str, list[ast.expr]] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    by_name: bool = False


def attributes_of(owner: ast.ClassDef) -> Attributes:
    """The attributes of a class; those of its bases are not among them."""
    found = Attributes()
    for node in walk_scope(ast.Module(owner.body, [])):
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        found.values.setdefault(target.id, []).append((value, ()))
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=given):
                found.annotations.setdefault(name, []).append(annotation)
                if given is not None:
                    found.values.setdefault(name, []).append((given, ()))
    for method in (each for each in owner.body if isinstance(each, FunctionNode)):
        for node in walk(method):
            _set_by(node, method, found)
    return found


def _set_by(node: ast.AST, method: FunctionNode, found: Attributes) -> None:
    match node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
            found.values.setdefault(name, []).append((value, (method,)))
        case ast.AnnAssign(
            target=ast.Attribute(value=ast.Name(id="self"), attr=name),
            annotation=annotation,
            value=given,
        ):
            found.annotations.setdefault(name, []).append(annotation)
            if given is not None:
                found.values.setdefault(name, []).append((given, (method,)))
        case ast.Attribute(value=ast.Name(), attr=name, ctx=ast.Store()):
            found.stored.add(name)
        case ast.Call(func=ast.Name(id="setattr")):
            found.by_name = True


def plain_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """The parameters that take one argument, in order."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def parameter_names(function: FunctionNode) -> list[str]:
    """The names of the parameters that take one argument, in order."""
    return [parameter.arg for parameter in plain_parameters(function.args)]


def default_of(function: FunctionNode, name: str) -> ast.expr | None:
    """A parameter's default, None if it has none."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    late = plain[len(plain) - len(arguments.defaults) :]
    pairs = [*zip(late, arguments.defaults, strict=True)]
    keywords = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return next((d for a, d in (*pairs, *keywords) if a.arg == name and d is not None), None)


def given(call: ast.Call, function: FunctionNode, name: str) -> ast.expr | None:
    """What a call gives a parameter; None if nothing, or not plainly."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = parameter_names(function)
    bound = isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"])
    index = names.index(name) - bound
    if 0 <= index < len(call.args) and not isinstance(call.args[index], ast.Starred):
        return call.args[index]
    return None


#: More texts than this for one expression are no list that anybody wrote.
_MOST = 2000
_DEEPEST = 24

_SAME_ELEMENTS = ("list", "tuple", "set", "frozenset", "sorted", "reversed", "dict")


class Texts(Struct, frozen=True):
    """What an expression can be; `complete`: nothing else."""

    values: frozenset[str]  # in no order
    complete: bool


class ScopedExpression(Struct, frozen=True, eq=False):
    """An expression and the definitions around it, innermost first."""

    node: ast.expr  # its syntax
    module: Module
    around: tuple[FunctionNode | ast.ClassDef, ...]


class Evaluator(Struct):
    """Evaluates expressions in the modules of one tree."""

    resolver: Resolver
    _around: dict[Module, dict[ast.AST, tuple[FunctionNode | ast.ClassDef, ...]]] = field(
        default_factory=dict
    )
    _depth: int = 0

    def spot(self, module: Module, node: ast.expr) -> ScopedExpression:
        """An expression of a module with what stands around it."""
        if module not in self._around:
            self._around[module] = dict(definitions_around(module.syntax, ()))
        return ScopedExpression(node, module, self._around[module].get(node, ()))

    def texts(self, spot: ScopedExpression) -> Texts:
        """Every text that the expression can have."""
        values: set[str] = set()
        complete = True
        for found in islice(self._literals(spot), _MOST):
            one = None if found is None else self._text(found)
            if one is None:
                complete = False
            else:
                values |= one.values
                complete &= one.complete
        return Texts(frozenset(values), complete and len(values) < _MOST)

    # -- texts of literals ---------------------------------------------------------------------

    def _text(self, spot: ScopedExpression) -> Texts | None:
        if isinstance(spot.node, ast.Constant) and isinstance(spot.node.value, str | int):
            return Texts(frozenset({str(spot.node.value)}), True)
        parts = self._parts(spot.node)
        return None if parts is None else self._joined(spot, parts)

    def _parts(self, node: ast.expr) -> Sequence[ast.expr] | None:
        """The pieces of which an expression makes a text."""
        parts: Sequence[ast.expr] | None = None
        match node:
            case ast.JoinedStr(values=values):
                parts = values
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                parts = [value]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                parts = [left, right]
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                values = right.elts if isinstance(right, ast.Tuple) else [right]
                parts = _filled(left, values, "%s")
            case ast.Call(func=ast.Attribute(value=value, attr="format"), args=args, keywords=[]):
                parts = _filled(value, args, "{}")
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str() as glue), attr="join"),
                args=[ast.List(elts=pieces) | ast.Tuple(elts=pieces)],
            ):
                parts = [each for piece in pieces for each in (ast.Constant(glue), piece)][1:]
        return parts

    def _joined(self, spot: ScopedExpression, parts: Sequence[ast.expr]) -> Texts:
        texts = [self.texts(self._at(spot, part)) for part in parts]
        values = islice(product(*(sorted(each.values) for each in texts)), _MOST)
        complete = all(each.complete for each in texts)
        return Texts(frozenset("".join(each) for each in values), complete)

    # -- following names -----------------------------------------------------------------------

    def _literals(self, spot: ScopedExpression) -> Iterator[ScopedExpression | None]:
        """What names stand for, followed until something is written down; None: not known."""
        if self._depth > _DEEPEST:
            yield None
            return
        self._depth += 1
        try:
            match spot.node:
                case ast.Name(id=name):
                    yield from self._named(spot, name)
                case ast.Attribute():
                    yield from self._attribute(spot, spot.node)
                case ast.IfExp(body=one, orelse=other):
                    yield from self._literals(self._at(spot, one))
                    yield from self._literals(self._at(spot, other))
                case ast.Subscript(value=value, slice=index):
                    yield from self._subscript(spot, value, index)
                case _:
                    yield spot
        finally:
            self._depth -= 1

    def _named(self, spot: ScopedExpression, name: str) -> Iterator[ScopedExpression | None]:
        for number, definition in enumerate(spot.around):
            if isinstance(definition, ast.ClassDef):
                continue
            around = spot.around[number:]
            bound = list(sources(definition, name))
            if bound:
                for expression, steps in bound:
                    yield from self._stepped(
                        ScopedExpression(expression, spot.module, around), steps
                    )
                return
            if name in parameter_names(definition):
                yield from self._argument(
                    ScopedExpression(spot.node, spot.module, around), definition, name
                )
                return
        top = list(sources(spot.module.syntax, name))
        for expression, steps in top:
            yield from self._stepped(ScopedExpression(expression, spot.module, ()), steps)
        if not top:
            yield from self._elsewhere(spot)

    def _elsewhere(self, spot: ScopedExpression) -> Iterator[ScopedExpression | None]:
        """A constant that another module has."""
        things = self.resolver.evaluate(spot.module, spot.node)
        for thing in things:
            if isinstance(thing, Code) and isinstance(thing.node, ast.expr) and not thing.owner:
                yield from self._literals(ScopedExpression(thing.node, thing.module, ()))
            else:
                yield None

    def _attribute(
        self, spot: ScopedExpression, node: ast.Attribute
    ) -> Iterator[ScopedExpression | None]:
        owner = next((each for each in spot.around if isinstance(each, ast.ClassDef)), None)
        before = node.value.id if isinstance(node.value, ast.Name) else ""
        if owner is not None and before in ("self", "cls", owner.name):
            found = False
            around = spot.around[spot.around.index(owner) :]
            for value, within in attributes_of(owner).values.get(node.attr, ()):
                found = True
                yield from self._literals(ScopedExpression(value, spot.module, (*within, *around)))
            if not found:
                yield None
        else:
            yield from self._elsewhere(spot)

    def _subscript(
        self, spot: ScopedExpression, value: ast.expr, index: ast.expr
    ) -> Iterator[ScopedExpression | None]:
        key = index.value if isinstance(index, ast.Constant) else None
        for container in self._literals(self._at(spot, value)):
            match container:
                case ScopedExpression(node=ast.Dict(keys=keys, values=values)):
                    pairs = zip(keys, values, strict=True)
                    wanted = [
                        v
                        for k, v in pairs
                        if key is None or not isinstance(k, ast.Constant) or k.value == key
                    ]
                case _:
                    yield None
                    continue
            for each in wanted:
                yield from self._literals(
                    ScopedExpression(each, container.module, container.around)
                )

    def _argument(
        self, spot: ScopedExpression, function: FunctionNode, name: str
    ) -> Iterator[ScopedExpression | None]:
        """What a parameter is given by the calls in this file, and by default."""
        default = default_of(function, name)
        if default is not None:
            yield from self._literals(ScopedExpression(default, spot.module, ()))
        called = False
        for call in walk(spot.module.syntax):
            if isinstance(call, ast.Call) and called_name(call) == function.name:
                called = True
                argument = given(call, function, name)
                if argument is not None:
                    yield from self._literals(self.spot(spot.module, argument))
                elif default is None:
                    yield None
        if not called or not function.name.startswith("_"):
            yield None  # others may call it with something else

    # -- elements ------------------------------------------------------------------------------

    def _stepped(
        self, spot: ScopedExpression, steps: tuple[int, ...]
    ) -> Iterator[ScopedExpression | None]:
        """What is found by going into a container step by step."""
        if not steps:
            yield from self._literals(spot)
            return
        step, rest = steps[0], steps[1:]
        inner = self._elements(spot) if step == EACH else self._item(spot, step)
        for each in inner:
            if each is None:
                yield None
            else:
                yield from self._stepped(each, rest)

    def _item(self, spot: ScopedExpression, index: int) -> Iterator[ScopedExpression | None]:
        for container in self._literals(spot):
            match container:
                case ScopedExpression(node=ast.Tuple(elts=elements) | ast.List(elts=elements)) if (
                    index < len(elements)
                ):
                    yield ScopedExpression(elements[index], container.module, container.around)
                case _:
                    yield None

    def _elements(self, spot: ScopedExpression) -> Iterator[ScopedExpression | None]:
        if isinstance(spot.node, ast.Name):
            for scope in self._scopes(spot):
                for expression, steps in additions(scope, spot.node.id):
                    added = ScopedExpression(expression, spot.module, spot.around)
                    yield from self._stepped(added, steps)
        for container in self._literals(spot):
            if container is None:
                yield None
            else:
                yield from self._elements_of(container)

    def _elements_of(self, spot: ScopedExpression) -> Iterator[ScopedExpression | None]:
        match spot.node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                yield from (self._at(spot, each) for each in elements)
            case ast.Dict(keys=keys):
                for key in keys:
                    yield None if key is None else self._at(spot, key)
            case ast.Call(func=ast.Name(id=name), args=[only]) if name in _SAME_ELEMENTS:
                yield from self._elements(self._at(spot, only))
            case ast.Call(func=ast.Name(id="enumerate"), args=[only]):
                for inner in self._elements(self._at(spot, only)):
                    yield inner and self._pair(inner, ast.Constant(0), inner.node)
            case ast.Call(func=ast.Attribute(value=value, attr="items")):
                yield from self._items(self._at(spot, value))
            case _:
                yield None

    def _items(self, spot: ScopedExpression) -> Iterator[ScopedExpression | None]:
        """The pairs of a dict's keys and values."""
        if isinstance(spot.node, ast.Name):
            for scope in self._scopes(spot):
                for name, value in items_set(scope, spot.node.id):
                    yield self._pair(spot, name, value)
        for container in self._literals(spot):
            if container is None or not isinstance(container.node, ast.Dict):
                yield None
                continue
            for key, value in zip(container.node.keys, container.node.values, strict=True):
                yield None if key is None else self._pair(container, key, value)

    def _pair(self, spot: ScopedExpression, one: ast.expr, other: ast.expr) -> ScopedExpression:
        return self._at(spot, ast.Tuple([one, other], ast.Load()))

    def _scopes(self, spot: ScopedExpression) -> list[ast.AST]:
        """The functions around it and its module: who may put things into a container."""
        return [
            *(each for each in spot.around if isinstance(each, FunctionNode)),
            spot.module.syntax,
        ]

    def _at(self, spot: ScopedExpression, node: ast.expr) -> ScopedExpression:
        return ScopedExpression(node, spot.module, spot.around)


def _filled(template: ast.expr, values: Sequence[ast.expr], hole: str) -> list[ast.expr] | None:
    """A template's pieces with values in its holes; None if it is not as simple as that."""
    if not isinstance(template, ast.Constant) or not isinstance(template.value, str):
        return None
    pieces = template.value.split(hole)
    if len(pieces) != len(values) + 1 or any(hole[0] in piece for piece in pieces):
        return None
    woven: list[ast.expr] = [ast.Constant(pieces[0])]
    for value, piece in zip(values, pieces[1:], strict=True):
        woven += [value, ast.Constant(piece)]
    return woven
