"""Which texts an expression can have, by following names through assignments, loops and imports.

Understood is what `constant_value` does (literals, `+`, f-strings, joins), conditional expressions,
names of the functions around and of the module, constants of other modules of the tree, and the
elements of lists and tuples that a loop walks. Anything else makes the answer incomplete, and it
says so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice, product
from typing import TypeAlias

from msgspec import Struct, field

from patchkit.extensions.python_guards.bodies import walk, walk_scope
from patchkit.extensions.python_guards.inference import parameters_of
from patchkit.extensions.python_guards.modules import Module
from patchkit.extensions.python_guards.resolve import Code, Resolver
from patchkit.model.syntax import FunctionNode, constant_text, constant_value

#: A step from an expression to what is meant: any element of it; other steps are indexes.
_EACH = -1
#: More texts than this for one expression are no list that anybody wrote.
_MOST = 2000
_DEEPEST = 24


#: Where something begins and ends: a line from 1, and how many bytes of it stand before.
Span: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


class Texts(Struct, frozen=True):
    """What an expression can be; `complete`: nothing else."""

    values: frozenset[str]  # in no order
    complete: bool


class ScopedExpression(Struct, frozen=True, eq=False):
    """An expression and the functions around it, innermost first."""

    node: ast.expr  # its syntax
    module: Module
    around: tuple[FunctionNode, ...] = ()

    @property
    def span(self) -> Span:
        """Where it begins and ends."""
        node = self.node
        end = (node.end_lineno or 0, node.end_col_offset or 0)
        return (node.lineno, node.col_offset), end

    def at(self, node: ast.expr) -> ScopedExpression:
        """Another expression that stands there."""
        return ScopedExpression(node, self.module, self.around)


class Evaluator(Struct):
    """Evaluates expressions in the modules of one tree."""

    resolver: Resolver
    _known: dict[ast.expr, Texts] = field(default_factory=dict)

    def texts(self, spot: ScopedExpression) -> Texts:
        """Every text that the expression can have."""
        if spot.node not in self._known:
            self._known[spot.node] = Texts(frozenset(), False)  # to itself
            self._known[spot.node] = self._found(spot)
        return self._known[spot.node]

    def _found(self, spot: ScopedExpression) -> Texts:
        values, complete = set[str](), True
        for meant in islice(self._meant(spot), _MOST):
            if meant is None:
                complete = False
                continue
            names = {ast.unparse(each): each for each in _names_in(meant.node)}
            named = [self.texts(meant.at(each)) for each in names.values()]
            for chosen in islice(product(*(sorted(each.values) for each in named)), _MOST):
                known = dict(zip(names, chosen, strict=True))
                values.add(constant_text(constant_value(meant.node, known)))
            complete &= all(each.complete for each in named)
        complete &= "" not in values and len(values) < _MOST
        return Texts(frozenset(values - {""}), complete)

    def _meant(
        self, spot: ScopedExpression, steps: tuple[int, ...] = (), depth: int = 0
    ) -> Iterator[ScopedExpression | None]:
        """What an expression comes to, and what a way into it leads to; None: that is not known."""
        match spot.node:
            case _ if depth > _DEEPEST:
                yield None
            case ast.Name() | ast.Attribute():
                for value, more in self._bound(spot):
                    yield from (
                        (None,) if value is None else self._meant(value, (*more, *steps), depth + 1)
                    )
            case ast.IfExp(body=one, orelse=other):
                yield from self._meant(spot.at(one), steps, depth + 1)
                yield from self._meant(spot.at(other), steps, depth + 1)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) if steps:
                chosen = parts if steps[0] == _EACH else parts[steps[0] : steps[0] + 1]
                for part in chosen:
                    yield from self._meant(spot.at(part), steps[1:], depth + 1)
                yield from [] if chosen or steps[0] == _EACH else [None]
            case ast.expr() as node:
                is_known = not steps and not isinstance(node, ast.Starred)
                yield spot if is_known else None

    def _bound(
        self, spot: ScopedExpression
    ) -> Iterator[tuple[ScopedExpression | None, tuple[int, ...]]]:
        """The expressions that a name is bound to, and the steps into each."""
        name = getattr(spot.node, "id", "")
        for number, scope in enumerate((*spot.around, spot.module.syntax)):
            bound = list(_sources(scope, name))
            for value, steps in bound:
                yield ScopedExpression(value, spot.module, spot.around[number:]), steps
            taken = isinstance(scope, FunctionNode) and name in parameters_of(scope)
            if taken or (bound and _is_filled(spot.module.syntax, name)):
                yield None, ()
            if taken or bound:
                return
        for thing in self.resolver.evaluate(spot.module, spot.node):  # another module's constant
            match thing:
                case Code(node=ast.expr() as value, module=module):
                    yield ScopedExpression(value, module), ()
                case _:
                    yield None, ()


def expressions_of(module: Module) -> dict[Span, ScopedExpression]:
    """Every expression of a module by where it begins and ends; the outermost of several."""
    found: dict[Span, ScopedExpression] = {}
    todo: list[tuple[ast.AST, tuple[FunctionNode, ...]]] = [(module.syntax, ())]
    for node, around in todo:  # grows while it is walked
        if isinstance(node, ast.expr):
            each = ScopedExpression(node, module, around)
            found.setdefault(each.span, each)
        inner = (node, *around) if isinstance(node, FunctionNode) else around
        todo += [(child, inner) for child in ast.iter_child_nodes(node)]
    return found


def _sources(scope: ast.AST, name: str) -> Iterator[tuple[ast.expr, tuple[int, ...]]]:
    """The expressions that a scope binds a name to, and the steps into each."""
    for node in walk_scope(scope):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((value, s) for target in targets for s in _steps(target, name))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from ((value, s) for s in _steps(target, name))
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                yield from ((value, (_EACH, *s)) for s in _steps(target, name))
    for node in walk(scope):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=found), attr="extend"), args=[value]
            ):
                yield from [(value, ())] if found == name else ()


def _steps(target: ast.expr, name: str) -> Iterator[tuple[int, ...]]:
    """The way to a name in the target of an assignment."""
    match target:
        case ast.Name(id=found) if found == name:
            yield ()
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            for index, each in enumerate(targets):
                yield from ((index, *steps) for steps in _steps(each, name))


def _is_filled(syntax: ast.Module, name: str) -> bool:
    """Whether something else than a list is added to what a name has, or may be."""
    for node in walk(syntax):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=found), attr="extend"), args=[_]):
                pass
            case (
                ast.Call(func=ast.Attribute(value=ast.Name(id=found)))
                | ast.AugAssign(target=ast.Name(id=found))
                | ast.Subscript(value=ast.Name(id=found), ctx=ast.Store())
            ) if found == name:
                return True
    return False


def _names_in(node: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    """The names and dotted names in an expression, but for what it calls."""
    match node:
        case ast.Name() | ast.Attribute():
            yield node
        case ast.Call(func=func, args=args):
            for part in (func.value if isinstance(func, ast.Attribute) else func, *args):
                yield from () if part is func else _names_in(part)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _names_in(child)
