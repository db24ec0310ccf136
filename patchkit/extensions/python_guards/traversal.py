"""The imports, calls and dotted names of a module that run on this machine, each with its place.

What an `if` keeps from running is passed over; so is what comes after one that always returns. What
a `try` catches, and what a `hasattr` asks for, is known of each place.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchkit.extensions.python_guards.bodies import children_of, may_have, walk
from patchkit.extensions.python_guards.inference import NameScope, Values, parameters_of
from patchkit.extensions.python_guards.modules import Imported, Module
from patchkit.extensions.python_guards.resolve import Code
from patchkit.model.syntax import FunctionNode, last_name

# Which branches run, by what a manifest says of the machine: true, false or not known.
#
# `assume: {is_npu: true}` holds for the name `is_npu`, for the attribute, and for what a call of
# it gives. Names that a module or function binds once are followed to what they are bound to.


_DEEPEST = 8


class Conditions(Struct, frozen=True):
    """Judges tests in the modules that `values` reads; `assume` by the tree of the module."""

    values: Values
    assume: Mapping[str, Mapping[str, bool]]

    def holds(self, scope: NameScope, test: ast.expr, depth: int = 0) -> bool | None:
        """Whether a test is true; None where that depends on more than is known."""
        found: bool | None = None
        match test:
            case ast.Constant(value=value):
                found = bool(value)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                held = self.holds(scope, inner, depth)
                found = None if held is None else not held
            case ast.BoolOp(op=op, values=parts):
                found = self._several(scope, parts, depth, decisive=isinstance(op, ast.Or))
            case (
                ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))
                | ast.Attribute(attr=name)
            ):
                found = self._assumed(scope, name)
            case ast.Name(id=name):
                found = self._assumed(scope, name)
                if found is None and depth < _DEEPEST:
                    found = self._followed(scope, name, depth)
            case ast.Compare(
                left=ast.Name(id="__name__"), comparators=[ast.Constant(value="__main__")]
            ):
                found = False
        return found

    def _assumed(self, scope: NameScope, name: str) -> bool | None:
        if name == "TYPE_CHECKING":
            return False
        return self.assume.get(scope.module.tree, {}).get(name)

    def _several(
        self, scope: NameScope, parts: list[ast.expr], depth: int, *, decisive: bool
    ) -> bool | None:
        found = [self.holds(scope, part, depth) for part in parts]
        if decisive in found:
            return decisive
        return None if None in found else not decisive

    def _followed(self, scope: NameScope, name: str, depth: int) -> bool | None:
        """What a name holds that is bound once, for certain, to an expression."""
        place: NameScope | None = scope
        while place is not None and place.node is not None:
            if name in place.hidden or name in parameters_of(place.node):
                return None
            if isinstance(place.node, FunctionNode):
                bound = self.values.local_names(place.node).names.get(name, [])
                if bound:
                    only = bound[0]
                    if len(bound) > 1 or not only.certain or not isinstance(only.meaning, ast.expr):
                        return None
                    return self.holds(place, only.meaning, depth + 1)
            place = place.outer
        things = self.values.resolver.evaluate(scope.module, ast.Name(name, ast.Load()))
        match things:
            case (Code(node=ast.expr() as value, module=module, owner=""),):
                return self.holds(NameScope(module), value, depth + 1)
        return None


_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
#: What a bare `except:` catches.
_ANYTHING = "BaseException"


class UseSpot(Struct, frozen=True, eq=False):
    """Where something stands: `within` is the dotted name of the function or class around it.

    `caught` are the exceptions that a `try` around it takes, `asked` the attributes that a test
    around it asks for; `versioned`: a test of a version, or of what a function takes, decides
    whether it runs.
    """

    scope: NameScope  # where its names are looked up
    within: str = ""
    caught: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    versioned: bool = False


class CodeUse(Struct, frozen=True, eq=False):
    """An import, a call, or a dotted name that is not what a call calls."""

    node: ast.Import | ast.ImportFrom | ast.Call | ast.Attribute  # its syntax
    spot: UseSpot  # where it stands


class Traversal(Struct, frozen=True):
    """Walks modules; what runs is judged by `conditions`.

    Without `calls` only imports are met, without `functions` nothing that stands in one. Given
    `within`, dotted names of functions and classes, of those only these are walked, and all around
    them.
    """

    conditions: Conditions
    calls: bool = True
    functions: bool = True
    within: Collection[str] | None = None

    def walk(
        self, module: Module, *, calls: bool = True, within: Collection[str] | None = None
    ) -> Iterator[CodeUse]:
        """Everything of a module that may run, in the order of the text, or its imports alone."""
        walker = replace(self, calls=calls, within=within)
        yield from walker._block(module.syntax.body, UseSpot(NameScope(module)))

    def _leads_in(self, name: str) -> bool:
        """Whether a function or class is one of those to walk, or around one."""
        return self.within is None or any(f"{e}.".startswith(f"{name}.") for e in self.within)

    def imports(self, module: Module) -> Iterator[ast.Import | ast.ImportFrom]:
        """The imports that run when a module is loaded."""
        for found in replace(self, functions=False).walk(module, calls=False):
            if isinstance(found.node, ast.Import | ast.ImportFrom):
                yield found.node

    def _block(self, body: Sequence[ast.stmt], spot: UseSpot) -> Iterator[CodeUse]:
        for statement in body:
            yield from self._statement(statement, spot)
            if isinstance(statement, _ENDS) or self._always_ends(statement, spot):
                return

    def _always_ends(self, statement: ast.stmt, spot: UseSpot) -> bool:
        if not isinstance(statement, ast.If):
            return False
        holds = self.conditions.holds(spot.scope, statement.test)
        if holds is None:
            return False
        taken = statement.body if holds else statement.orelse
        return any(isinstance(each, _ENDS) for each in taken)

    def _statement(self, statement: ast.stmt, spot: UseSpot) -> Iterator[CodeUse]:
        match statement:
            case ast.Import() | ast.ImportFrom():
                yield CodeUse(statement, spot)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self._function(statement, spot)
            case ast.ClassDef():
                yield from self._class(statement, spot)
            case ast.If(test=test, body=body, orelse=orelse):
                yield from self._expression(test, spot)
                holds = self.conditions.holds(spot.scope, test)
                inner = spot if holds is not None else _asking(spot, test)
                if holds is not False:
                    yield from self._block(body, inner)
                if holds is not True:
                    yield from self._block(orelse, inner)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                caught = frozenset(name for each in handlers for name in _names(each.type))
                inner = replace(spot, caught=spot.caught | caught)
                yield from self._block(body, inner)
                for handler in handlers:
                    names = frozenset({handler.name} if handler.name else ())
                    yield from self._block(handler.body, _hiding(inner, names))
                yield from self._block(orelse, spot)
                yield from self._block(final, spot)
            case _:
                yield from self._other(statement, spot)

    def _other(self, statement: ast.stmt, spot: UseSpot) -> Iterator[CodeUse]:
        """A statement whose expressions come first and whose blocks may run."""
        blocks: list[list[ast.stmt]] = []
        for part in children_of(statement):
            match part:
                case ast.stmt():
                    blocks.append([part])
                case ast.match_case(body=body):
                    blocks.append(body)
                case ast.withitem(context_expr=expression):
                    yield from self._expression(expression, spot)
                case ast.expr():
                    yield from self._expression(part, spot)
        for block in blocks:
            yield from self._block(block, spot)

    def _function(
        self, node: FunctionNode, spot: UseSpot, owner: Code | None = None
    ) -> Iterator[CodeUse]:
        if not self.functions:
            return
        within = _dotted(spot.within, node.name)
        is_walked = self._leads_in(within) and (self.calls or may_have(node, b"import"))
        body = node.body if is_walked else []  # a folded one is parsed once for both
        arguments = (*node.args.defaults, *node.args.kw_defaults) if self.calls else ()
        for each in filter(None, (*node.decorator_list, *arguments)):
            yield from self._expression(each, spot)
        scope = NameScope(spot.scope.module, node, owner, spot.scope)
        # what is caught around a definition is not caught around its calls
        yield from self._block(body, UseSpot(scope, within))

    def _class(self, node: ast.ClassDef, spot: UseSpot) -> Iterator[CodeUse]:
        for each in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            yield from self._expression(each, spot)
        around = "" if spot.scope.node is None else "<locals>"
        holder = spot.within if spot.scope.node is None else around
        owner = Code(spot.scope.module, node, node.name, node.lineno, holder)
        within = _dotted(spot.within, node.name)
        names = self.conditions.values.resolver.names_of(node).names
        own = replace(_hiding(spot, names), within=within)
        outside = replace(spot, within=within)
        for statement in node.body if self._leads_in(within) else ():
            if isinstance(statement, FunctionNode):
                yield from self._function(statement, outside, owner)
            else:
                yield from self._statement(statement, own)

    def _expression(self, node: ast.expr, spot: UseSpot) -> Iterator[CodeUse]:  # noqa: PLR0912
        if not self.calls:
            return
        match node:
            case ast.Name() | ast.Constant():
                return
            case ast.Call(func=func):
                yield CodeUse(node, spot)
                if isinstance(func, ast.Attribute):
                    yield from self._expression(func.value, spot)
                elif not isinstance(func, ast.Name):
                    yield from self._expression(func, spot)
                for each in (*node.args, *(k.value for k in node.keywords)):
                    yield from self._expression(each, spot)
            case ast.Attribute(value=value, ctx=ast.Load()):
                yield CodeUse(node, spot)
                yield from self._expression(value, spot)
            case ast.Lambda(body=body):
                scope = NameScope(spot.scope.module, node, None, spot.scope)
                yield from self._expression(body, replace(spot, scope=scope))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                yield from self._expression(test, spot)
                holds = self.conditions.holds(spot.scope, test)
                if holds is not False:
                    yield from self._expression(body, _asking(spot, test))
                if holds is not True:
                    yield from self._expression(orelse, _asking(spot, test))
            case ast.BoolOp(op=op, values=values):
                yield from self._alternatives(values, spot, ends=isinstance(op, ast.Or))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                yield from self._comprehension(node, spot)
            case _:
                for child in children_of(node):
                    if isinstance(child, ast.expr):
                        yield from self._expression(child, spot)

    def _alternatives(
        self, values: Sequence[ast.expr], spot: UseSpot, *, ends: bool
    ) -> Iterator[CodeUse]:
        for value in values:
            yield from self._expression(value, spot)
            if self.conditions.holds(spot.scope, value) is ends:
                return
            spot = _asking(spot, value)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, spot: UseSpot
    ) -> Iterator[CodeUse]:
        inner = spot
        for each in node.generators:
            yield from self._expression(each.iter, inner)
            names = (n.id for n in walk(each.target) if isinstance(n, ast.Name))
            inner = _hiding(inner, frozenset(names))
            for test in each.ifs:
                yield from self._expression(test, inner)
                inner = _asking(inner, test)
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for part in made:
            yield from self._expression(part, inner)


def _asking(spot: UseSpot, test: ast.expr) -> UseSpot:
    """The place behind a test that may or may not hold: what it asks for."""
    asked: set[str] = set()
    versioned = spot.versioned
    for each in walk(test):
        match each:
            case ast.Call(func=ast.Name(id="hasattr"), args=[_, ast.Constant(value=str() as name)]):
                asked.add(name)
            case ast.Name(id=name) | ast.Attribute(attr=name) if "version" in name.lower():
                versioned = True
            case ast.Attribute(attr="parameters" | "__version__"):
                versioned = True
    return replace(spot, asked=spot.asked | asked, versioned=versioned)


def _hiding(spot: UseSpot, names: Iterable[str]) -> UseSpot:
    scope = replace(spot.scope, hidden=spot.scope.hidden | frozenset(names))
    return replace(spot, scope=scope)


def _names(caught: ast.expr | None) -> Iterator[str]:
    """The exceptions that a handler takes."""
    if caught is None:
        yield _ANYTHING
    for each in caught.elts if isinstance(caught, ast.Tuple) else filter(None, [caught]):
        yield last_name(each) or _ANYTHING


def _dotted(within: str, name: str) -> str:
    return f"{within}.{name}" if within else name


# Which modules are loaded: what an import names, the packages around it, what a module may be.


def loaded_by(module: Module, statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The names that may be modules which an import loads, outer packages first."""
    if isinstance(statement, ast.Import):
        names = [each.name for each in statement.names]
    else:
        base = absolute_name(module, statement)
        inner = [f"{base}.{each.name}" for each in statement.names if each.name != "*"]
        names = [base, *inner] if base else []
    for name in names:
        parts = name.split(".")
        yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def absolute_name(module: Module, statement: ast.ImportFrom) -> str:
    """The module that a `from` names, "" if it leads out of the packages."""
    return module.absolute(Imported(statement.module or "", "", statement.level))
