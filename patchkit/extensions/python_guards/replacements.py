"""Functions that one upstream replaces in another: the calls that do it, and what a name stands for
as far as a replacement depends on it (the record that is kept).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from hashlib import sha256
from itertools import chain, product
from typing import TypeAlias

from msgspec import Struct

from patchkit.extension import Captured, Captures
from patchkit.extensions.python_guards.bodies import walk
from patchkit.extensions.python_guards.modules import Module, Modules, imported_names
from patchkit.extensions.python_guards.resolve import (
    Absent,
    Code,
    Inherited,
    Outside,
    Resolver,
    Thing,
    Unclear,
)
from patchkit.extensions.python_guards.text_edits import UNKNOWN, UnreadableEditError
from patchkit.extensions.python_guards.value_flow import ValueFlow, alternatives
from patchkit.model.finding import Finding
from patchkit.model.names import AtLine
from patchkit.model.syntax import FunctionNode, constant_text, python_literal, signature_of

# What a replacement of a function depends on: how it is called, and what it does.
#
# Both come from the syntax tree, so comments, blank lines, line breaks, quotes and docstrings do
# not count. Nothing here depends on the version of Python that runs it.


# Enough of a hash that two bodies never share it.
_DIGITS = 16


def body_hash(node: ast.AST | None) -> str:
    """A hash of what code does: of a definition with its decorators, or of a value."""
    words: list[str] = []
    _write(node, words)
    return sha256("".join(words).encode()).hexdigest()[:_DIGITS]


def _write(node: object, words: list[str]) -> None:
    """The tree as text, without what is empty: Pythons differ in which empty fields they have."""
    if isinstance(node, ast.AST):
        words.append(f"({type(node).__name__}")
        for name in node._fields:
            value = _part(node, name)
            if value is None and not isinstance(node, ast.Constant):
                continue
            if value == [] or name in ("ctx", "kind", "type_comment", "type_ignores"):
                continue
            words.append(f" {name}=")
            _write(value, words)
        words.append(")")
    elif isinstance(node, list):
        for each in node:
            _write(each, words)
    else:
        words.append(f"{type(node).__name__}:{node!r}")


def _part(node: ast.AST, name: str) -> object:
    value = getattr(node, name, None)
    if name == "body" and isinstance(node, FunctionNode | ast.ClassDef):
        return value if ast.get_docstring(node, clean=False) is None else node.body[1:]
    if name == "values" and isinstance(node, ast.JoinedStr):
        # Python 3.12 leaves empty texts in there
        return [each for each in node.values if getattr(each, "value", None) != ""]
    return value


class TargetKind(str, Enum):
    """What a target is; of several things the first kind counts."""

    FUNCTION = "function"
    CLASS = "class"
    MODULE = "module"
    VALUE = "value"
    OUTSIDE = "outside"  # imported from elsewhere: not the target's own code
    ABSENT = "absent"
    UNCLEAR = "unclear"  # syntax does not show whether it is there

    @property
    def is_there(self) -> bool:
        """Whether the name leads to something."""
        return self not in (TargetKind.ABSENT, TargetKind.UNCLEAR)


class Definition(Struct, frozen=True):
    """What a target stands for.

    `place` is path:line of its definition, "" where there is none in the tree; `signature` how it
    is called, "" for what cannot be; `body` a hash of its code; `why` says where an absent or
    unclear name ends. Of something outside `signature` is its name there.
    """

    kind: TargetKind  # what it is, or that it is not there
    place: str = ""
    signature: str = ""
    body: str = ""
    why: str = ""


def definition_of(resolver: Resolver, name: str) -> Definition:
    """What a dotted name stands for in a tree."""
    things = resolver.resolve(name)
    first = things[0]
    if isinstance(first, Absent | Unclear):
        kind = TargetKind.ABSENT if isinstance(first, Absent) else TargetKind.UNCLEAR
        return Definition(kind, why=first.why)
    inner = tuple(thing for thing in things if not isinstance(thing, Outside))
    own: tuple[Thing, ...] = inner or things
    try:
        hashes = list(_bodies(resolver, own))
    except RecursionError:
        return Definition(TargetKind.UNCLEAR, why=f"{_place(own[0])} cannot be parsed")
    # several definitions, as of `if` and `else`, have one hash
    body, *others = hashes
    if others:
        body = sha256("\n".join(hashes).encode()).hexdigest()[:_DIGITS]
    return Definition(
        kind=_kind(own),
        place=_place(own[0]),
        signature=" | ".join(dict.fromkeys(filter(None, (_signature(resolver, t) for t in own)))),
        body=body,
    )


def source_of(resolver: Resolver, name: str) -> tuple[Code, ...]:
    """The definitions of a name in the tree, for a person to read."""
    return tuple(thing for thing in resolver.resolve(name) if isinstance(thing, Code))


def first_line(node: ast.stmt | ast.expr) -> int:
    """Where a definition begins, with its decorators."""
    above: Sequence[ast.expr] = getattr(node, "decorator_list", ())
    return min([node.lineno, *(decorator.lineno for decorator in above)])


def definition_text(text: str, node: ast.stmt | ast.expr) -> str:
    """The lines of a definition in its file's text, those of its decorators, too."""
    return "\n".join(text.split("\n")[first_line(node) - 1 : node.end_lineno]) + "\n"


def _kind(things: Sequence[Thing]) -> TargetKind:
    kinds = set(map(_kind_of, things))
    return next(kind for kind in TargetKind if kind in kinds)


def _kind_of(thing: Thing) -> TargetKind:
    match thing:
        case Module():
            return TargetKind.MODULE
        case Outside():
            return TargetKind.OUTSIDE
        case Inherited():
            return TargetKind.FUNCTION
        case Code(node=ast.ClassDef()):
            return TargetKind.CLASS
        case Code(node=ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda()):
            return TargetKind.FUNCTION
    return TargetKind.VALUE


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
            fields = resolver.dataclass_fields(owner).items()
            given = [f"{n}={ast.unparse(value)}" if value else n for n, value in fields]
            return f"({', '.join(['self', *given])})" if given else ""
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


# The calls and assignments by which one upstream replaces things of another, and the names that
# they give.


#: The variable of a rule that stands for the name of what is replaced.
VARIABLE = "TARGET"
#: Where something begins and ends: a line from 1, and how many bytes of it stand before.
Span: TypeAlias = tuple[tuple[int, int], tuple[int, int]]


class CallSite(AtLine, Struct, frozen=True):
    """A call that replaces something; `within` is the function around it, `text` the argument."""

    path: str  # the file in the component
    line: int  # from 1
    within: str
    text: str


class Replacements(Struct, frozen=True):
    """What the calls name.

    `targets` maps each dotted name to the calls that give it; `uncertain` are calls whose argument
    can be something that is not plain to see. `added` are names that are assigned to by files that
    read them, too: a mark, or a method of their own.
    """

    targets: Mapping[str, tuple[CallSite, ...]]
    uncertain: tuple[CallSite, ...] = ()
    findings: tuple[Finding, ...] = ()  # rules that find too few, or nothing
    added: frozenset[str] = frozenset()

    def below(self, packages: Collection[str]) -> Mapping[str, tuple[CallSite, ...]]:
        """The targets in some packages."""
        return {
            name: sites
            for name, sites in self.targets.items()
            if any(name == each or name.startswith(f"{each}.") for each in packages)
        }


def find_replacements(captures: Captures, modules: Modules) -> Replacements:
    """What the calls name that rules found; `modules` are those of the whole tree."""
    flow = ValueFlow(modules)
    targets: dict[str, list[CallSite]] = {}
    uncertain: list[CallSite] = []
    reads: dict[str, frozenset[str]] = {}
    for path, found in captures.found.items():
        counting = [each for each in found if not each.allowed]
        for site, names, complete in _read(counting, path, modules, flow):
            for name in names:
                targets.setdefault(name, []).append(site)
            if not complete:
                uncertain.append(site)
    named = {name: tuple(dict.fromkeys(sites)) for name, sites in sorted(targets.items())}
    added = set[str]()
    for name, sites in named.items():
        files = {each.path for each in sites}
        reads |= {path: _read_attributes(modules.at(path)) for path in files - reads.keys()}
        if all(name.rpartition(".")[2] in reads[path] for path in files):
            added.add(name)
    return Replacements(named, tuple(uncertain), captures.findings, frozenset(added))


_OF_ITSELF = re.compile(r"\bself\.(\w+)")


def _read_attributes(module: Module | None) -> frozenset[str]:
    """The attributes that a module reads of anything, or asks for by `getattr` and `hasattr`."""
    found: set[str] = set()
    for node in walk(module.syntax) if module is not None else ():
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()):
                found.add(name)
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"),
                args=[_, ast.Constant(value=str() as name), *_],
            ):
                found.add(name)
            case ast.Constant(value=str() as text):  # code that is put into a function's source
                found.update(_OF_ITSELF.findall(text))
    return frozenset(found)


def _read(
    captures: Sequence[Captured], path: str, modules: Modules, flow: ValueFlow
) -> Iterator[tuple[CallSite, Collection[str], bool]]:
    """The calls of a file, what each names, and whether that is all."""
    literals = [_literal(captured.text) for captured in captures]
    module = modules.at(path) if None in literals else None
    lines = {captured.span[0][0] for captured in captures}
    nodes = {} if module is None else _expressions_of(module, lines)
    spots = [nodes.get(captured.span) for captured in captures]
    parts = {e: _naming(e, module) for e in spots if e is not None and module is not None}
    texts = {} if module is None else _texts(module, chain(*parts.values()), flow)
    brought: Mapping[str, Sequence[str]] = {}
    for captured, literal, node in zip(captures, literals, spots, strict=True):
        site = CallSite(path, captured.line, captured.within, captured.text)
        if literal is not None:
            yield site, [literal], True
        elif module is not None and isinstance(getattr(node, "ctx", None), ast.Store):
            # `package.module.name = ours`; of anything else it is no replacement
            brought = brought or _brought(module, flow.resolver)
            yield site, sorted(set(_given_to(node, brought))), True
        else:
            sets = [texts.get(part, {""}) for part in parts[node]] if node else [{""}]
            found = {".".join(chosen) if all(chosen) else "" for chosen in product(*sets)}
            yield site, sorted(found - {""}), "" not in found


def _naming(node: ast.expr, module: Module) -> Sequence[ast.expr]:
    """What gives the parts of a name: the node itself; of a call that is no argument of another one
    its first two arguments, or the only one and the name of what it decorates.
    """
    if not isinstance(node, ast.Call):
        return [node]
    decorated = list[ast.expr]()
    for other in walk(module.syntax):
        match other:
            case ast.Call(args=args) if node in args:
                return [node]
            case ast.FunctionDef() | ast.ClassDef() if node in other.decorator_list:
                decorated.append(ast.Constant(other.name))
    return [*node.args, *decorated][:2]


def _expressions_of(module: Module, lines: Collection[int]) -> dict[Span, ast.expr]:
    """The expressions that begin in these lines of a module by where they begin and end; the
    outermost of several.
    """
    found: dict[Span, ast.expr] = {}
    for node in walk(module.syntax):
        if isinstance(node, ast.expr) and node.lineno in lines:
            end = (node.end_lineno or 0, node.end_col_offset or 0)
            found.setdefault(((node.lineno, node.col_offset), end), node)
    return found


def _texts(module: Module, nodes: Iterable[ast.expr], flow: ValueFlow) -> dict[ast.expr, set[str]]:
    """The texts that each expression can have, "" among them where it may be something else."""
    asked = [e for e in nodes if not isinstance(getattr(e, "ctx", None), ast.Store)]
    flow.wanted = {e: [] for e in asked if not isinstance(e, ast.Constant)}
    if flow.wanted:
        try:
            flow.follow(module)
        except (UnreadableEditError, RecursionError):
            return {}
    found = {e: [e.value] if isinstance(e, ast.Constant) else flow.wanted[e] for e in asked}
    return {
        node: {_plain(one) for value in values for one in alternatives(value)} or {""}
        for node, values in found.items()
    }


def _plain(value: object) -> str:
    text = constant_text(value)
    return "" if UNKNOWN in text else text


def _given_to(node: ast.expr | None, brought: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The dotted names that an assignment to an attribute gives a thing of another package; nothing
    for what is the module's own, or is no attribute of what an import brought.
    """
    if not isinstance(node, ast.Attribute):
        return
    name, owner = node.attr, node.value
    while isinstance(owner, ast.Attribute):
        name, owner = f"{owner.attr}.{name}", owner.value
    if isinstance(owner, ast.Name):
        yield from (f"{each}.{name}" for each in brought.get(owner.id, ()))


def _brought(module: Module, resolver: Resolver) -> dict[str, list[str]]:
    """What imports of other packages bind in a module or in a function of it: name -> what."""
    found: dict[str, list[str]] = {}
    for node in walk(module.syntax):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name, imported in imported_names(node):
                things = resolver.imported(module, imported)
                found.setdefault(name, []).extend(
                    thing.name for thing in things if isinstance(thing, Outside)
                )
    return found


def _literal(text: str) -> str | None:
    """The text that a plain literal says."""
    if text[:1] not in "'\"":
        return None
    try:
        value = python_literal(text)
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, str) else None
