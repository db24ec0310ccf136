"""From a dotted name to what stands behind it in a tree: through re-exports, classes and bases.

The rules are Python's own for import and attribute access, as far as syntax shows them. A name that
is bound in several branches leads to all of them. What syntax does not show is reported as
uncertain, never guessed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from patchkit.extensions.python_guards.modules import (
    Binding,
    Imported,
    Module,
    Modules,
    Namespace,
    in_force,
    read_namespace,
)
from patchkit.model.syntax import FunctionNode, decorator_names

#: What every class has, whatever it says.
_OF_EVERY_OBJECT = frozenset(dir(object))

#: Modules whose classes bring nothing that anybody would replace.
_BARE = frozenset({"abc", "typing", "typing_extensions"})


class Code(Struct, frozen=True):
    """A definition or a value in the tree; `owner` is the class or "" around it."""

    module: Module
    node: FunctionNode | ast.ClassDef | ast.expr | None  # None for a module
    name: str  # dotted within its module
    line: int  # from 1
    owner: str = ""

    @property
    def qualified(self) -> str:
        """Its name within the module."""
        return f"{self.owner}.{self.name}" if self.owner else self.name


class Inherited(Struct, frozen=True):
    """What a class has by itself: a dataclass' `__init__`, or what `object` gives to all."""

    owner: Code  # the class
    name: str  # of the attribute


class Outside(Struct, frozen=True):
    """Something that is imported from elsewhere, by its dotted name."""

    name: str


class Absent(Struct, frozen=True):
    """Nothing: `why` says where the way ends."""

    why: str


class Unclear(Struct, frozen=True):
    """Perhaps there, perhaps not: `why` syntax does not show it."""

    why: str


Thing = Module | Code | Inherited | Outside | Absent | Unclear


#: (dotted name of a module or class, attribute) -> the modules that give it that, and how.
Rebound: TypeAlias = dict[tuple[str, str], list[tuple[Module, Binding]]]


class Resolver(Struct):
    """Follows names through modules.

    `rebound` are attributes that other modules give to a module or class while they are loaded, by
    its dotted name and theirs: they count beside those that it has by itself.
    """

    modules: Modules
    rebound: Rebound = {}
    _underway: set[tuple[str, str]] = set()
    _classes: dict[ast.ClassDef, Namespace] = {}

    def resolve(self, name: str) -> tuple[Thing, ...]:
        """Everything that the dotted name may stand for; at least one thing."""
        first, *rest = name.split(".")
        start = self.modules.module(first)
        things: list[Thing] = [Absent(f"there is no package {first}") if start is None else start]
        for number, part in enumerate(rest, 1):
            last = number == len(rest)
            things = [each for thing in things for each in self.attribute(thing, part, last=last)]
        return _decided(things)

    def attribute(self, thing: Thing, name: str, *, last: bool) -> Iterator[Thing]:
        """What `thing.name` may be; within a longer name modules go before what is bound."""
        match thing:
            case Module():
                yield from self._of_module(thing, name, last=last)
            case Code(node=ast.ClassDef()):
                yield from self.of_class(thing, name)
            case Code(node=ast.Name() | ast.Attribute() as node):
                for inner in self.evaluate(thing.module, node):
                    yield from self.attribute(inner, name, last=last)
            case Code():
                yield Unclear(f"{thing.qualified} in {thing.module.path} is no class or module")
            case Outside(name=outer):
                yield Outside(f"{outer}.{name}")
            case Inherited() | Absent() | Unclear():
                yield thing

    def evaluate(self, module: Module, node: ast.expr) -> tuple[Thing, ...]:
        """What an expression of names and dots means at the top of a module."""
        match node:
            case ast.Name(id=name):
                return _decided(self._of_module(module, name, last=True))
            case ast.Attribute(value=value, attr=name):
                inner = self.evaluate(module, value)
                found = (each for thing in inner for each in self.attribute(thing, name, last=True))
                return _decided(found)
            case ast.Subscript(value=value):  # Generic[T]
                return self.evaluate(module, value)
        return (Unclear("an expression"),)

    def load(self, module: Module) -> list[tuple[str, str]]:
        """Note what a module, once it is loaded, has given to others: `Class.name = function`.

        The modules that are given something, by dotted name, each with what that is.
        """
        given: list[tuple[str, str]] = []
        for home, within, (owner, name) in self._given_by(module):
            there = self.rebound.setdefault((f"{home}{within}", name), [])
            there += [(module, each) for each in module.namespace.foreign[owner, name]]
            given.append((home, f"{within}.{name} {owner}"))
        return given

    def gives(self, module: Module) -> bool:
        """Whether a module, once it is loaded, has given something to others."""
        return next(self._given_by(module), None) is not None

    def _given_by(self, module: Module) -> Iterator[tuple[str, str, tuple[str, str]]]:
        """(module, what in it, the names by which the giver has it) of what a module gives."""
        for owner, name in module.namespace.foreign:
            for thing in self.evaluate(module, ast.Name(owner, ast.Load())):
                home = thing if isinstance(thing, Module) else getattr(thing, "module", module)
                if home is not module:
                    within = f".{thing.qualified}" if isinstance(thing, Code) else ""
                    yield home.name, within, (owner, name)

    # -- modules -------------------------------------------------------------------------------

    def _of_module(self, module: Module, name: str, *, last: bool) -> Iterator[Thing]:
        if module.problem:
            yield Unclear(f"{module.path} {module.problem}")
            return
        inner = self.modules.module(f"{module.name}.{name}") if module.is_package else None
        if inner is not None and not last:
            yield inner
            return
        found = [*self._bound(module, name), *self._rebound(module.name, name)]
        if found:
            yield from found
        elif inner is not None:
            yield inner
        elif "__getattr__" in module.namespace.names:
            yield Unclear(f"{module.name} makes its names in __getattr__")
        else:
            yield Absent(f"{module.name} has no {name}")

    def _bound(self, module: Module, name: str) -> Iterator[Thing]:
        if (module.name, name) in self._underway:
            return  # a circle of imports
        self._underway.add((module.name, name))
        try:
            bindings = module.namespace.bindings(name)
            for binding in bindings:
                yield from self._meant(module, name, binding)
            if not any(each.certain for each in bindings):
                yield from self._through_stars(module, name)
        finally:
            self._underway.discard((module.name, name))

    def _meant(
        self, module: Module, name: str, binding: Binding, owner: str = ""
    ) -> Iterator[Thing]:
        meaning = binding.meaning
        if isinstance(meaning, Imported):
            yield from self.imported(module, meaning)
            return
        if isinstance(meaning, ast.Name | ast.Attribute) and not owner:
            things = self.evaluate(module, meaning)  # `new = old` is another name for it
            if any(isinstance(each, Code | Module | Outside) for each in things):
                yield from things
                return
        yield Code(module, meaning, name, binding.line, owner)

    def imported(self, module: Module, imported: Imported) -> Iterator[Thing]:
        """What an import in a module gives."""
        target = module.absolute(imported)
        top = target.partition(".")[0]
        if self.modules.module(top) is None:
            yield Outside(".".join(part for part in (target, imported.name) if part))
            return
        found = self.modules.module(target)
        if found is None:
            yield Absent(f"{module.name} imports from {target}, which is not there")
        elif not imported.name:
            yield found
        else:
            yield from self._of_module(found, imported.name, last=True)

    def _through_stars(self, module: Module, name: str) -> Iterator[Thing]:
        for star in reversed(module.namespace.stars):
            target = module.absolute(star)
            source = self.modules.module(target)
            if source is None:
                continue
            public = _public_names(source)
            if name.startswith("_") if public is None else name not in public:
                continue
            found = list(self._bound(source, name))
            yield from found
            if found:
                return

    # -- classes -------------------------------------------------------------------------------

    def of_class(self, owner: Code, name: str) -> Iterator[Thing]:
        """What a class has under a name: itself, or the first of its bases that has it."""
        own = list(self._own(owner, name))
        yield from own or self.of_bases(owner, name)

    def of_bases(self, owner: Code, name: str) -> Iterator[Thing]:
        """What `super()` has under a name in a method of the class."""
        foreign: list[str] = []
        for base in self.bases(owner, foreign):
            inherited = list(self._own(base, name))
            if inherited:
                yield from inherited
                return
        yield self._by_itself(owner, name, foreign)

    def _by_itself(self, owner: Code, name: str, foreign: list[str]) -> Thing:
        """What a class has that neither it nor a base in the tree defines."""
        place = f"{owner.module.name}.{owner.qualified}"
        if name in _OF_EVERY_OBJECT:
            return Outside(f"{foreign[0]}.{name}") if foreign else Inherited(owner, name)
        if foreign:
            return Unclear(f"{place} has no {name}, unless {foreign[0]} has it")
        return Absent(f"{place} has no {name}")

    def dataclass_fields(self, owner: Code) -> dict[str, ast.expr | None]:
        """The fields of a dataclass, those of its bases first; a field's value or None."""
        fields: dict[str, ast.expr | None] = {}
        for each in (*reversed(list(self.bases(owner, []))), owner):
            if is_dataclass(each):
                fields |= dict(_own_fields(each))
        return fields

    def names_of(self, owner: ast.ClassDef) -> Namespace:
        """The names that the body of a class binds."""
        if owner not in self._classes:
            self._classes[owner] = read_namespace(owner.body)
        return self._classes[owner]

    def _rebound(self, owner: str, name: str) -> Iterator[Thing]:
        for module, binding in self.rebound.get((owner, name), ()):
            yield from self._meant(module, name, binding)

    def _own(self, owner: Code, name: str) -> Iterator[Thing]:
        yield from self._rebound(f"{owner.module.name}.{owner.qualified}", name)
        assert isinstance(owner.node, ast.ClassDef)
        given = owner.module.namespace.foreign.get((owner.name, name), [])
        for binding in in_force(given):  # `Class.name = function`, in the module
            yield from self._meant(owner.module, name, binding)
        if not any(each.certain for each in given):
            bindings = self.names_of(owner.node).bindings(name)
            for binding in bindings:
                yield from self._meant(owner.module, name, binding, owner.qualified)
            if name == "__init__" and not bindings and is_dataclass(owner):
                yield Inherited(owner, name)  # made by the decorator

    def bases(self, owner: Code, foreign: list[str]) -> Iterator[Code]:
        """The classes that it inherits from, nearest first; others' names go into `foreign`."""
        queue, seen = [owner], {owner.qualified + owner.module.name}
        while queue:
            current = queue.pop(0)
            assert isinstance(current.node, ast.ClassDef)
            for expression in current.node.bases:
                for thing in self.evaluate(current.module, expression):
                    if isinstance(thing, Code) and isinstance(thing.node, ast.ClassDef):
                        if thing.qualified + thing.module.name not in seen:
                            seen.add(thing.qualified + thing.module.name)
                            queue.append(thing)
                            yield thing
                    elif not _is_bare(thing):
                        foreign.append(
                            thing.name if isinstance(thing, Outside) else ast.unparse(expression)
                        )


def is_dataclass(owner: Code) -> bool:
    """Whether a class says so by its decorator."""
    assert isinstance(owner.node, ast.ClassDef)
    return "dataclass" in decorator_names(owner.node)


def _own_fields(owner: Code) -> Iterator[tuple[str, ast.expr | None]]:
    assert isinstance(owner.node, ast.ClassDef)
    for statement in owner.node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                if "ClassVar" not in ast.unparse(annotation):
                    yield name, value


def _public_names(module: Module) -> frozenset[str] | None:
    """What `__all__` lists; None where there is none, or it is not plain to see."""
    bindings = module.namespace.names.get("__all__", [])
    if len(bindings) != 1 or not isinstance(bindings[0].meaning, ast.List | ast.Tuple):
        return None
    items = bindings[0].meaning.elts
    names = [each.value for each in items if isinstance(each, ast.Constant)]
    return frozenset(each for each in names if isinstance(each, str))


def _decided(things: Iterable[Thing]) -> tuple[Thing, ...]:
    """What is there, if anything is; else why not."""
    found = tuple(dict.fromkeys(things))
    there = tuple(each for each in found if not isinstance(each, Absent | Unclear))
    if there:
        return there
    unclear = tuple(each for each in found if isinstance(each, Unclear))
    return unclear or found[:1] or (Absent("its imports are circular"),)


def _is_bare(thing: Thing) -> bool:
    """Whether a base brings nothing but what every object has: those of abc, typing, enum."""
    if isinstance(thing, Absent):
        return thing.why.endswith(" has no object")
    return isinstance(thing, Outside) and thing.name.partition(".")[0] in _BARE
