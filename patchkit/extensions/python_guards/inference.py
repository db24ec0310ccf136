"""What an expression is where it stands: a module, a class, an instance of one, a method.

Followed are names through the functions around them and through imports, attributes, what calls
return (classes, and functions that say so), `self`, `super()`, annotations of parameters, fields.
A name that is bound several times can be all of it. What cannot be followed is Unknown, with why.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from patchkit.extensions.python_guards.bodies import may_have, walk, walk_scope
from patchkit.extensions.python_guards.modules import (
    Binding,
    Imported,
    Module,
    Namespace,
    read_namespace,
)
from patchkit.extensions.python_guards.resolve import (
    Absent,
    Code,
    Inherited,
    Outside,
    Resolver,
    Thing,
    Unclear,
)
from patchkit.model.syntax import FunctionNode, decorator_names, parse_expression

#: Followed at most so far from the expression.
_DEEPEST = 12
#: More than so many values of one expression tell nothing.
_MOST = 12


class Instance(Struct, frozen=True):
    """An object of a class; `exact`: not of a class that inherits from it."""

    owner: Code  # the class
    exact: bool = False


class Bound(Struct, frozen=True):
    """A function whose first parameter is taken."""

    function: Code | Inherited


class Above(Struct, frozen=True):
    """What `super()` is in a method of the class."""

    owner: Code  # the class in which `super()` is called


class Unknown(Struct, frozen=True):
    """Nobody can tell from the source: `why`."""

    why: str


Value = Thing | Instance | Bound | Above | Unknown


class Attributes(Struct):
    """What the body of a class, or a method, says of attributes that only methods set, by name.

    `annotations` are what is said of their kind; `stored` are all that are set in any way;
    `by_name`: setattr is called.
    """

    values: dict[str, list[ast.expr]] = {}
    annotations: dict[str, list[ast.expr]] = {}
    stored: set[str] = set()
    by_name: bool = False


def _note_given(node: ast.AST, found: Attributes, *, in_class: bool) -> None:
    """Note what a node in a method, or in the body of a class, gives attributes."""
    targets: Sequence[ast.AST] = ()
    annotation: ast.expr | None = None
    given: ast.expr | None = None
    match node:
        case ast.Assign(targets=targets, value=given):
            pass
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if in_class:
            found.annotations.setdefault(name, []).append(annotation)
        case ast.AnnAssign(target=target, annotation=annotation, value=given):
            targets = [target]
        case ast.Attribute(value=ast.Name(), attr=name, ctx=ast.Store()):
            found.stored.add(name)
        case ast.Call(func=ast.Name(id="setattr")):
            found.by_name = True
    for each in targets:
        match each:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                if annotation is not None:
                    found.annotations.setdefault(name, []).append(annotation)
                if given is not None:
                    found.values.setdefault(name, []).append(given)


def plain_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """The parameters that take one argument, in order."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


class NameScope(Struct, frozen=True, eq=False):
    """Where an expression stands: in a function, in another one, ..., in a module.

    `node` is None for the module itself; `owner` the class that the function is a method of;
    `hidden` are names that something smaller binds, as a comprehension.
    """

    module: Module
    node: FunctionNode | ast.Lambda | None = None
    owner: Code | None = None
    outer: NameScope | None = None  # the scope around it; None for a module
    hidden: frozenset[str] = frozenset()


class Values(Struct):
    """Evaluates expressions in modules that one resolver reads."""

    resolver: Resolver
    _locals: dict[ast.AST, Namespace] = {}
    _attributes: dict[ast.ClassDef | FunctionNode, Attributes] = {}
    _tops: dict[tuple[Module, str], tuple[Thing, ...]] = {}
    _members: dict[tuple[Value, str], tuple[Value, ...]] = {}
    _bound: dict[tuple[int, str], tuple[Value, ...]] = {}
    _naming: set[tuple[int, str]] = set()
    _underway: set[tuple[int, int]] = set()
    _cuts: int = 0

    def forget(self, *, nodes: bool) -> None:
        """Forget what was followed through others, and with `nodes` what syntax alone says."""
        if nodes:
            self._locals.clear()
            self._attributes.clear()
        self._tops.clear()
        self._members.clear()
        self._bound.clear()

    def of(self, scope: NameScope, node: ast.expr) -> tuple[Value, ...]:
        """Everything that the expression can be; at least one value."""
        here = (id(scope.node), id(node))
        if here in self._underway or len(self._underway) > _DEEPEST:
            self._cuts += 1
            return (Unknown("bound by itself"),)
        self._underway.add(here)
        try:
            found = tuple(dict.fromkeys(self._values(scope, node)))
        finally:
            self._underway.discard(here)
        return found[:_MOST] or (Unknown("nothing"),)

    def local_names(self, node: FunctionNode) -> Namespace:
        """The names that a function binds."""
        if node not in self._locals:
            found = self._locals[node] = read_namespace(node.body)
            for name in _bound_within(node, found):
                found.names[name] = [Binding(None, False, node.lineno)]
        return self._locals[node]

    def _values(self, scope: NameScope, node: ast.expr) -> Iterator[Value]:
        match node:
            case ast.Name(id=name):
                yield from self._named(scope, name)
            case ast.Attribute(value=value, attr=name):
                for each in self.of(scope, value):
                    yield from self.member(each, name)
            case ast.Call(func=ast.Name(id="super"), args=[]):
                owner = _owner_around(scope)
                yield Above(owner) if owner is not None else Unknown("super() in no method")
            case ast.Call(func=func) | ast.Await(value=ast.Call(func=func)):
                for each in self.of(scope, func):
                    yield from self._returned(each, awaited=isinstance(node, ast.Await))
            case ast.IfExp(body=one, orelse=other):
                yield from self.of(scope, one)
                yield from self.of(scope, other)
            case ast.BoolOp(op=ast.Or(), values=values):
                for part in values:
                    yield from self.of(scope, part)
            case ast.NamedExpr(value=value):
                yield from self.of(scope, value)
            case ast.Constant(value=None):
                return  # what stands for "not there": nobody means to use it
            case _:
                yield Unknown("an expression")

    # -- names ---------------------------------------------------------------------------------

    def _named(self, scope: NameScope, name: str) -> Iterator[Value]:
        place: NameScope | None = scope
        while place is not None:
            if name in place.hidden:
                yield Unknown(f"{name} is bound in an expression")
                return
            bound = self._bound_in(place, name) if place.node is not None else ()
            if bound:
                yield from bound
                return
            place = place.outer
        things = self._at_top(scope.module, name)
        if all(isinstance(each, Absent) for each in things) and hasattr(builtins, name):
            yield Outside(f"builtins.{name}")
            return
        for thing in things:
            yield from self._followed(thing)

    def _at_top(self, module: Module, name: str) -> tuple[Thing, ...]:
        """What a name means at the top of a module."""
        if (module, name) not in self._tops:
            found = self.resolver.evaluate(module, ast.Name(name, ast.Load()))
            self._tops[module, name] = found
        return self._tops[module, name]

    def _bound_in(self, place: NameScope, name: str) -> tuple[Value, ...]:
        """What a function binds a name to; () if it does not bind it.

        Invariant: a name is never followed while it is being followed, so that `x = f(x)`, written
        many times, costs no more than it has lines.
        """
        here = (id(place.node), name)
        known = self._bound.get(here)
        if known is not None:
            return known
        if here in self._naming:
            self._cuts += 1
            return (Unknown(f"{name} is bound by itself"),)
        before = self._cuts
        self._naming.add(here)
        try:
            found = tuple(dict.fromkeys(self._bindings_in(place, name)))
        finally:
            self._naming.discard(here)
        if len(found) > 1:  # what it is bound to beside itself
            found = tuple(e for e in found if e != Unknown(f"{name} is bound by itself")) or found
        if self._cuts == before or not self._underway:
            self._bound[here] = found
        return found

    def _bindings_in(self, place: NameScope, name: str) -> Iterator[Value]:
        node = place.node
        bindings = []
        if isinstance(node, FunctionNode):
            bindings = self.local_names(node).names.get(name, [])
        if node is not None and name in parameters_of(node):
            # what a function does to its own parameter is of the same kind, as a rule
            yield from self._parameter(place, name)
            return
        for binding in bindings[: _MOST + 1]:  # of more, nothing is known
            match binding.meaning:
                case Imported() as imported:
                    for thing in self.resolver.imported(place.module, imported):
                        yield from self._followed(thing)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() as inner:
                    yield Code(place.module, inner, name, binding.line, owner="<locals>")
                case None:
                    yield Unknown(f"{name} is bound by a statement")
                case expression:
                    yield from self.of(place, expression)

    def _parameter(self, place: NameScope, name: str) -> Iterator[Value]:
        node, owner = place.node, place.owner
        if isinstance(node, FunctionNode):
            decorators = decorator_names(node)
            for number, parameter in enumerate(plain_parameters(node.args)):
                if parameter.arg != name:
                    continue
                if owner is not None and not number and "staticmethod" not in decorators:
                    yield owner if "classmethod" in decorators else Instance(owner)
                    return
                if parameter.annotation is not None:
                    yield from self.annotated(place.module, parameter.annotation)
                    return
        yield Unknown(f"parameter {name}")

    def _followed(self, thing: Thing) -> Iterator[Value]:
        """A value that a module gives a name, by what it is."""
        if isinstance(thing, Code) and isinstance(thing.node, ast.expr) and not thing.owner:
            yield from self.of(NameScope(thing.module), thing.node)
        elif isinstance(thing, Code) and thing.node is None:
            yield Unknown(f"{thing.name} is bound by a statement")
        else:
            yield thing

    # -- members -------------------------------------------------------------------------------

    def member(self, value: Value, name: str) -> tuple[Value, ...]:
        """What `value.name` may be."""
        known = self._members.get((value, name))
        if known is None:
            before = self._cuts
            known = tuple(dict.fromkeys(self._member(value, name)))
            if self._cuts == before:  # else it may be more where the way to it is shorter
                self._members[value, name] = known
        return known

    def _member(self, value: Value, name: str) -> Iterator[Value]:
        match value:
            case Instance(owner=owner):
                yield from self._of_instance(value, self.resolver.of_class(owner, name), name)
            case Above(owner=owner):
                things = self.resolver.of_bases(owner, name)
                yield from self._of_instance(Instance(owner), things, name)
            case Bound() | Inherited() | Code(node=ast.FunctionDef() | ast.AsyncFunctionDef()):
                yield Unknown("an attribute of a function")
            case Code(node=ast.ClassDef()):
                for thing in self.resolver.of_class(value, name):
                    yield from self._of_type(thing)
            case Unknown():
                yield value
            case _:
                for thing in self.resolver.attribute(value, name, last=True):
                    yield from self._followed(thing)

    def _of_type(self, thing: Thing) -> Iterator[Value]:
        """What a class has, asked of the class itself."""
        if isinstance(thing, Code) and isinstance(thing.node, FunctionNode):
            yield Bound(thing) if "classmethod" in decorator_names(thing.node) else thing
        elif isinstance(thing, Code) and isinstance(thing.node, ast.expr):
            yield from self.of(NameScope(thing.module), thing.node)
        else:
            yield thing

    def _of_instance(
        self, instance: Instance, things: Iterable[Thing], name: str
    ) -> Iterator[Value]:
        for thing in things:
            match thing:
                case Code(node=ast.FunctionDef() | ast.AsyncFunctionDef() as node):
                    decorators = decorator_names(node)
                    if "property" in decorators or "cached_property" in decorators:
                        yield from self._by_annotation(thing, node)
                    elif "staticmethod" in decorators:
                        yield thing
                    else:
                        yield Bound(thing)
                case Code(node=ast.ClassDef()):
                    yield thing
                case Code():
                    yield Unknown(f"{name} is an attribute of the class")
                case Inherited():
                    yield Bound(thing)
                case Absent() | Unclear():
                    yield from self._of_self(instance, thing, name)
                case _:
                    yield thing

    def _of_self(self, instance: Instance, lacking: Absent | Unclear, name: str) -> Iterator[Value]:
        """What the methods of a class give `self.name`."""
        values: list[Value] = []
        for owner in (instance.owner, *self.resolver.bases(instance.owner, [])):
            assert isinstance(owner.node, ast.ClassDef)
            functions = (part for part in owner.node.body if isinstance(part, FunctionNode))
            methods = [part for part in functions if may_have(part, name.encode(), b"setattr")]
            said = [self._said_in(part) for part in (owner.node, *methods)]
            for there in said:
                for annotation in there.annotations.get(name, ()):
                    values += self.annotated(owner.module, annotation)
            for method, there in zip(methods, said[1:], strict=True):
                around = NameScope(owner.module, method, owner, NameScope(owner.module))
                for value in there.values.get(name, ()):
                    values += self.of(around, value)
            if not values and any(name in there.stored or there.by_name for there in said):
                values.append(Unknown(f"self.{name}"))
        if values:
            yield from values
        elif self._makes_attributes(instance.owner):
            yield Unclear(f"{instance.owner.name} makes its attributes while it runs")
        else:
            yield lacking

    def _said_in(self, place: ast.ClassDef | FunctionNode) -> Attributes:
        if place not in self._attributes:
            found = self._attributes[place] = Attributes()
            in_class = isinstance(place, ast.ClassDef)
            for node in walk_scope(place) if in_class else walk(place):
                _note_given(node, found, in_class=in_class)
        return self._attributes[place]

    def _makes_attributes(self, owner: Code) -> bool:
        hooks = ("__getattr__", "__getattribute__")
        found = (thing for hook in hooks for thing in self.resolver.of_class(owner, hook))
        return any(isinstance(thing, Code) for thing in found)

    # -- what calls and annotations give -------------------------------------------------------

    def _returned(self, called: Value, *, awaited: bool) -> Iterator[Value]:
        function = called.function if isinstance(called, Bound) else called
        match function:
            case Code(node=ast.ClassDef()):
                yield Instance(function, exact=True)
            case Code(node=ast.FunctionDef() | ast.AsyncFunctionDef() as node) if (
                awaited or isinstance(node, ast.FunctionDef)
            ):
                yield from self._by_annotation(function, node)
            case Outside(name=name):
                yield Outside(f"{name}()")
            case _:
                yield Unknown("what a call returns")

    def _by_annotation(self, function: Code, node: FunctionNode) -> Iterator[Value]:
        if node.returns is None or "contextmanager" in decorator_names(node):
            yield Unknown(f"what {function.name} returns")
        else:
            yield from self.annotated(function.module, node.returns)

    def annotated(self, module: Module, node: ast.expr) -> Iterator[Value]:
        """Objects of the classes that an annotation names."""
        match node:
            case ast.Constant(value=str() as text):
                named = parse_expression(text)
                unknown = (Unknown("an annotation"),)
                yield from unknown if named is None else self.annotated(module, named)
            case ast.Constant(value=None):
                return
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                yield from self.annotated(module, left)
                yield from self.annotated(module, right)
            case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner) if (
                name in ("Optional", "Union", "Annotated")
            ):
                several = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                for each in several[: 1 if name == "Annotated" else None]:
                    yield from self.annotated(module, each)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                for thing in self.resolver.evaluate(module, node):
                    match thing:
                        case Code(node=ast.ClassDef()):
                            yield Instance(thing)
                        case Outside(name=name):
                            yield Outside(f"{name}()")
                        case _:
                            yield Unknown(f"annotated {ast.unparse(node)}")
            case _:
                yield Unknown("an annotation")


#: What stands in each such place.
_BINDING = (b":=", b"case", b"global", b"nonlocal")


def _bound_within(function: FunctionNode, known: Namespace) -> Iterator[str]:
    """Names that a function binds in expressions and patterns, or for another scope."""
    for node in walk(function) if may_have(function, *_BINDING) else ():
        match node:
            case ast.NamedExpr(target=ast.Name(id=name)):
                yield name
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                yield name
            case ast.Global(names=several) | ast.Nonlocal(names=several):
                yield from (each for each in several if each in known.names)


def _owner_around(scope: NameScope) -> Code | None:
    place: NameScope | None = scope
    while place is not None:
        if place.owner is not None:
            return place.owner
        place = place.outer
    return None


def parameters_of(node: FunctionNode | ast.Lambda) -> frozenset[str]:
    """The names of all parameters, those of `*rest` and `**more`, too."""
    several = filter(None, (node.args.vararg, node.args.kwarg))
    return frozenset(parameter.arg for parameter in (*plain_parameters(node.args), *several))
