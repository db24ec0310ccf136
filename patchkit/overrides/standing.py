"""What a name stands for, as far as a replacement depends on it: the record that is kept."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from msgspec import Struct

from patchkit.overrides.fingerprint import (
    body_hash,
    fields_signature,
    joined_hash,
    signature_of,
    text_of,
)
from patchkit.python.bindings import FunctionNode
from patchkit.python.resolving import (
    Absent,
    Code,
    Inherited,
    Outside,
    Resolver,
    Thing,
    Unclear,
)
from patchkit.python.sources import Module


class Kind(str, Enum):
    """What a target is."""

    FUNCTION = "function"
    CLASS = "class"
    VALUE = "value"
    MODULE = "module"
    OUTSIDE = "outside"  # imported from elsewhere: not the target's own code
    ABSENT = "absent"
    UNCLEAR = "unclear"  # syntax does not show whether it is there

    @property
    def is_there(self) -> bool:
        """Whether the name leads to something."""
        return self not in (Kind.ABSENT, Kind.UNCLEAR)


class Standing(Struct, frozen=True):
    """What a target stands for.

    `place` is path:line of its definition, "" where there is none in the tree; `signature` how it
    is called, "" for what cannot be; `body` a hash of its code; `why` says where an absent or
    unclear name ends. Of something outside `signature` is its name there.
    """

    kind: Kind
    place: str = ""
    signature: str = ""
    body: str = ""
    why: str = ""


def standing_of(resolver: Resolver, name: str) -> Standing:
    """What a dotted name stands for in a tree."""
    things = resolver.resolve(name)
    first = things[0]
    if isinstance(first, Absent | Unclear):
        kind = Kind.ABSENT if isinstance(first, Absent) else Kind.UNCLEAR
        return Standing(kind, why=first.why)
    inner = tuple(thing for thing in things if not isinstance(thing, Outside))
    own: tuple[Thing, ...] = inner or things
    return Standing(
        kind=_kind(own),
        place=_place(own[0]),
        signature=" | ".join(dict.fromkeys(filter(None, (_signature(resolver, t) for t in own)))),
        body=joined_hash(list(_bodies(resolver, own))),
    )


def source_of(resolver: Resolver, name: str) -> tuple[Code, ...]:
    """The definitions of a name in the tree, for a person to read."""
    return tuple(thing for thing in resolver.resolve(name) if isinstance(thing, Code))


def _kind(things: Sequence[Thing]) -> Kind:
    kinds = set(map(_kind_of, things))
    order = (Kind.FUNCTION, Kind.CLASS, Kind.MODULE, Kind.VALUE, Kind.OUTSIDE)
    return next(kind for kind in order if kind in kinds)


def _kind_of(thing: Thing) -> Kind:
    match thing:
        case Module():
            return Kind.MODULE
        case Outside():
            return Kind.OUTSIDE
        case Inherited():
            return Kind.FUNCTION
        case Code(node=ast.ClassDef()):
            return Kind.CLASS
        case Code(node=ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda()):
            return Kind.FUNCTION
    return Kind.VALUE


def _place(thing: Thing) -> str:
    match thing:
        case Module(path=path):
            return path
        case Code(module=module, line=line):
            return f"{module.path}:{line}"
        case Inherited(owner=owner):
            return f"{owner.module.path}:{owner.line}"
    return ""


def _signature(resolver: Resolver, thing: Thing) -> str:
    match thing:
        case Outside(name=name):
            return name
        case Inherited(owner=owner, name="__init__"):
            fields = resolver.dataclass_fields(owner)
            shown = {name: text_of(value) if value else "" for name, value in fields.items()}
            return fields_signature(shown) if shown else ""
        case Code(node=ast.ClassDef()):
            made = resolver.of_class(thing, "__init__")
            return next(filter(None, (_signature(resolver, each) for each in made)), "")
        case Code(node=node) if isinstance(node, FunctionNode):
            return signature_of(node)
    return ""


def _bodies(resolver: Resolver, things: Iterable[Thing]) -> Iterator[str]:
    for thing in things:
        if isinstance(thing, Code):
            yield body_hash(thing.node)
        else:
            yield body_hash(ast.Constant(f"{_kind_of(thing).value} {_signature(resolver, thing)}"))
