"""What the names in a Python module or class are bound to, read off its syntax; nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class Imported(Struct, frozen=True):
    """`from module import name`, or `import module` where `name` is ""; `level` counts dots."""

    module: str
    name: str
    level: int


#: What a name can be bound to: a definition, the value that an assignment gives (None where it is
#: not plain to see, as in a loop), an import.
Meaning = FunctionNode | ast.ClassDef | Imported | ast.expr | None


class Binding(Struct, frozen=True):
    """One place where a name is bound; `certain`: whenever the code around it runs."""

    meaning: Meaning
    certain: bool
    line: int


class Namespace(Struct):
    """The names of a module or class, each with its bindings in order.

    `stars` are modules all of whose names are imported; `foreign` holds names that are given to
    another object from outside: (object, name) -> bindings.
    """

    names: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[Imported] = field(default_factory=list)
    foreign: dict[tuple[str, str], list[Binding]] = field(default_factory=dict)

    def bindings(self, name: str) -> tuple[Binding, ...]:
        """Those that may be in force in the end: the last certain one and what comes after it."""
        return in_force(self.names.get(name, ()))


def in_force(bindings: Sequence[Binding]) -> tuple[Binding, ...]:
    """The last binding that is certain, and those after it."""
    last = max((number for number, each in enumerate(bindings) if each.certain), default=0)
    return tuple(bindings[last:])


def read_namespace(body: Iterable[ast.stmt]) -> Namespace:
    """The names that statements bind, those within `if`, `try` and loops included."""
    namespace = Namespace()
    for name, binding in _bindings(body, True):
        if name == "*":
            assert isinstance(binding.meaning, Imported)
            namespace.stars.append(binding.meaning)
        elif "." in name:
            owner, _, attribute = name.rpartition(".")
            namespace.foreign.setdefault((owner, attribute), []).append(binding)
        else:
            namespace.names.setdefault(name, []).append(binding)
    return namespace


def _bindings(body: Iterable[ast.stmt], certain: bool) -> Iterator[tuple[str, Binding]]:
    for statement in body:
        yield from (
            (name, Binding(meaning, certain, statement.lineno))
            for name, meaning in _bound_by(statement)
        )
        inner_certain = certain and isinstance(statement, ast.With | ast.AsyncWith)
        for inner in _blocks(statement):
            yield from _bindings(inner, inner_certain)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks within a statement that run where it stands."""
    if not isinstance(statement, FunctionNode | ast.ClassDef):
        yield from blocks_of(statement)


def blocks_of(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks within a statement, those of a definition, too."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _bound_by(statement: ast.stmt) -> Iterator[tuple[str, Meaning]]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, statement
        case ast.Import() | ast.ImportFrom():
            yield from _imported(statement)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _assigned(target, value)
        case ast.AnnAssign(target=target, value=value) if value is not None:
            yield from _assigned(target, value)
        case ast.AugAssign(target=target) | ast.For(target=target) | ast.AsyncFor(target=target):
            yield from _assigned(target, None)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for each in filter(None, (item.optional_vars for item in items)):
                yield from _assigned(each, None)


def _imported(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Imported]]:
    for alias in statement.names:
        if isinstance(statement, ast.ImportFrom):
            whole = Imported(statement.module or "", alias.name, statement.level)
            yield alias.asname or alias.name, whole
        elif alias.asname is not None:
            yield alias.asname, Imported(alias.name, "", 0)
        else:
            first = alias.name.partition(".")[0]
            yield first, Imported(first, "", 0)


def _assigned(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, Meaning]]:
    match target:
        case ast.Name(id=name):
            yield name, value
        case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
            yield f"{owner}.{attribute}", value
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            values: Sequence[ast.expr | None] = [None] * len(targets)
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets):
                values = value.elts
            for each, part in zip(targets, values, strict=True):
                yield from _assigned(each, part)
        case ast.Starred(value=inner):
            yield from _assigned(inner, None)
