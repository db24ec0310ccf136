"""Which modules of a tree may get hold of anything that another tree defines, by names alone.

Most modules of a large upstream never do; what their calls lead to need not be followed.

A value comes from another tree by an import, or as an attribute that another tree gives a class or
module; from there it goes on by the name that it is bound to. So a set of identifiers is grown: it
begins with the names at which other trees' modules are met, of packages where these are imported,
and of the attributes that they give; it takes up what is bound to an expression with one of these
in it, whose annotation or base has one, or that is imported under one. Invariant: where an
expression leads to something of another tree, the identifier at which it leaves its own tree is in
the set, or is a local name of the module. So a module without any of them in its text, which
imports no other tree, leads nowhere else.

Locals of a function stay in it: they come into the text of a module only with the identifiers that
they are bound to. What a function stores in an attribute follows from its locals, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from hashlib import sha256
from itertools import chain
from unicodedata import normalize

from msgspec import Struct

from patchkit.disk.result_cache import ResultCache
from patchkit.extensions.python_guards.bodies import children_of, walk
from patchkit.extensions.python_guards.modules import JoinedModules, Module, Modules, Namespace
from patchkit.extensions.python_guards.resolve import Rebound
from patchkit.extensions.python_guards.traversal import absolute_name
from patchkit.gitcmd.trees import TreeView
from patchkit.model.syntax import FunctionNode, parse_python

#: A space for each byte that is in no identifier.
_APART = bytes(e if e > 127 or chr(e).isalnum() or e == ord("_") else ord(" ") for e in range(256))
#: Stands for a name of another tree's among those that lead to a value; no name is spelled so.
_OTHER = "<other>"
#: A line that may import one of the packages.
_IMPORTING = rb"\b(?:import|from)\b(?:[^\n]|\\\r?\n)*\b(?:%s)\b"
_DOT = re.compile(r"\.")
_ANY_NAME = re.compile(r"[^\W\d]\w*")
#: If more of a tree's modules meet others than one in so many, all are taken to.
_FEW = 5


class Contacts(Struct):
    """Which modules of each tree may lead to another one; found once for a look at all trees.

    It follows from a tree, from the packages of the others, and from what these give to anybody: so
    it is kept for the next look. To be asked when the modules that take part are loaded.
    """

    views: Mapping[str, TreeView]  # the trees, by component
    trees: Mapping[str, Modules]  # their modules, by component
    modules: JoinedModules  # of all
    names: Mapping[str, Sequence[str]]  # component -> all its modules, by dotted name
    rebound: Rebound  # what the trees give to each other
    answers: ResultCache
    _known: dict[str, frozenset[str] | None] = {}
    _lacking: bool = False  # the contents of a module cannot be fetched

    def may_lead_out(self, tree: str, name: str) -> bool:
        """Whether anything in a module of a tree may lead to another tree."""
        if tree not in self._known:
            self._known[tree] = self._asked(tree)
        known = self._known[tree]
        return known is None or name in known

    def _asked(self, tree: str) -> frozenset[str] | None:
        """The modules that may; None: any may."""
        heads, given = self._heads(tree), self._given(tree)
        facts = [self.views[tree].oid, sorted(heads), sorted(given)]
        digest = sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()
        question = f"contact {tree} {digest[:24]}"
        kept = self.answers.known(question)
        if kept is None:
            found = self._found(tree, heads, given)
            kept = [None if found is None else sorted(found)]
            if not self._lacking:
                self.answers.note(question, kept)
        (these,) = kept
        return None if these is None else frozenset(these)

    def _given(self, tree: str) -> frozenset[str]:
        """The attributes that other trees give to modules and classes of a tree."""
        return frozenset(
            name
            for (place, name), bindings in self.rebound.items()
            if any(module.tree != tree for module, _ in bindings)
            and self.modules.tree_around(place) == tree
        )

    def _heads(self, tree: str) -> frozenset[str]:
        """The shortest heads of other trees' packages that are no modules of the tree's own."""
        own, found = self.trees[tree], set[str]()
        for package in self.modules.packages_beside(own):
            heads = [package[: dot.start()] for dot in _DOT.finditer(package)]
            found.add(next((head for head in heads if own.path_of(head) is None), package))
        return frozenset(found)

    def _found(self, tree: str, heads: Set[str], given: Set[str]) -> frozenset[str] | None:
        known = {_OTHER, *given, *(e.rpartition(".")[2] for e in heads if "." in e)}
        imports = _importer([head for head in heads if "." not in head])
        left = dict(self._texts(tree))
        most = len(left) // _FEW
        taken, groups = list[str](), list[list[_Flow]]()
        near = [name for name, data in left.items() if imports(data) or _has(data, known)]
        while near and len(taken) + len(near) <= most:
            taken += near
            try:
                for name in near:
                    groups += self._flows(tree, name, left.pop(name), heads)
            except RecursionError:
                return None
            before = frozenset(known)
            _grow(known, groups)
            if "*" in known:
                return None
            more = known - before  # what is left has none of the others
            near = [name for name, data in left.items() if _has(data, more)]
        return None if near else frozenset(taken)

    def _flows(self, tree: str, name: str, data: bytes, heads: Set[str]) -> list[list[_Flow]]:
        """What a module binds, apart for each function that is in no other one."""
        is_package = str(self.trees[tree].path_of(name)).endswith("/__init__.py")
        module = Module(name, "", is_package, Namespace(), parse_python(data)[0])
        imported = partial(_imported, module, heads)
        top = [*_outside_functions(module.syntax)]
        functions = ((walk(node), False) for node in top if isinstance(node, FunctionNode))
        return [
            [flow for node in nodes for flow in _flows_of(node, imported, shown=shown)]
            for nodes, shown in ((top, True), *functions)
        ]

    def _texts(self, tree: str) -> Iterator[tuple[str, bytes]]:
        """A tree's modules with their sources, those around its packages as well."""
        own = self.trees[tree]
        heads = (name[: dot.start()] for name in self.names[tree] for dot in _DOT.finditer(name))
        for name in dict.fromkeys((*self.names[tree], *heads)):
            path, home = self.modules.path_of(name), self.modules.home(name)
            if path and home is own:
                data = own.source(name, path)
                self._lacking |= data is None
                yield name, data or b""


def _importer(tops: Sequence[str]) -> Callable[[bytes], bool]:
    """What tells whether a text may import one of these packages."""
    names = [top.encode() for top in tops]
    pattern = re.compile(_IMPORTING % b"|".join(map(re.escape, names)))
    return lambda data: any(n in data for n in names) and pattern.search(data) is not None


def _has(data: bytes, names: Set[str]) -> bool:
    """Whether one of the names is an identifier in a text, as Python spells it."""
    text = data if data.isascii() else normalize("NFKC", data.decode("utf-8", "replace")).encode()
    words = {name.encode() for name in names if name.encode() in text}
    return bool(words) and not words.isdisjoint(text.translate(_APART).split())


# What is bound to what in a module.


class _Flow(Struct, frozen=True):
    """A name, and the identifiers that lead to its value; `shown`: it is no local of a function."""

    name: str
    leads: frozenset[str]
    shown: bool


def _grow(known: set[str], groups: Iterable[Sequence[_Flow]]) -> None:
    """Take up what is bound to something that is known, by way of locals of the group as well."""
    size = 0
    while size < len(known):  # what one group shows, another one may lead on
        size = len(known)
        for group in groups:
            local, before = set(known), 0
            while before < len(local):
                before = len(local)
                met = [flow for flow in group if not flow.leads.isdisjoint(local)]
                local |= {flow.name for flow in met}
            known |= {flow.name for flow in met if flow.shown}


_Import = Callable[[ast.Import | ast.ImportFrom], Iterable[tuple[str, frozenset[str]]]]


def _imported(
    module: Module, heads: Collection[str], node: ast.Import | ast.ImportFrom
) -> Iterator[tuple[str, frozenset[str]]]:
    """What an import binds, and what leads to that; "*" for all names of another tree's module."""

    def is_other(name: str) -> bool:
        ends = (*(dot.start() for dot in _DOT.finditer(name)), len(name))
        return any(name[:end] in heads for end in ends)

    for alias in node.names:
        if isinstance(node, ast.Import):
            bound = alias.name if alias.asname is not None else alias.name.partition(".")[0]
            name, from_other = bound, is_other(bound)
        else:
            target, name = absolute_name(module, node), alias.name
            from_other = is_other(target) or (name != "*" and is_other(f"{target}.{name}"))
        if from_other:
            yield alias.asname or name, frozenset((_OTHER,))
        elif isinstance(node, ast.ImportFrom) and alias.asname is not None:
            yield alias.asname, frozenset((name,))


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module, functions among them, but not what is in these."""
    for child in children_of(node):
        yield child
        if not isinstance(child, FunctionNode):
            yield from _outside_functions(child)


def _flows_of(node: ast.AST, imported: _Import, *, shown: bool) -> Iterator[_Flow]:
    """What a node binds; plain names are `shown`, or locals."""
    targets: Sequence[ast.expr] = ()
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from (_Flow(name, leads, shown) for name, leads in imported(node))
        case ast.arg(arg=name, annotation=annotation):
            yield _Flow(name, _annotated(annotation), False)
        case (
            ast.FunctionDef(name=name, returns=returns)
            | ast.AsyncFunctionDef(name=name, returns=returns)
        ):
            yield _Flow(name, _annotated(returns), True)
        case ast.ClassDef(name=name, bases=bases, body=body):
            yield _Flow(name, frozenset(chain.from_iterable(map(_names, bases))), True)
            for inner in () if shown else chain.from_iterable(map(walk, body)):
                yield from _flows_of(inner, imported, shown=True)
        case ast.Assign(targets=targets, value=value):
            leads = _names(value)
        case ast.AnnAssign(target=target, annotation=annotation, value=given):
            targets, leads = [target], _annotated(annotation) | _names(given)
    for each in (part for target in targets for part in walk(target)):
        match each:
            case ast.Name(id=name, ctx=ast.Store()):
                yield _Flow(name, leads, shown)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield _Flow(name, leads, True)


def _names(
    node: ast.expr | None, read: Callable[[str], Iterable[str]] = lambda _text: ()
) -> frozenset[str]:
    """The identifiers in an expression, and those that `read` finds in its texts."""
    found = set[str]()
    for part in walk(node) if node else ():
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                found.add(name)
            case ast.Constant(value=str() as text):
                found.update(read(text))
    return frozenset(found)


def _annotated(node: ast.expr | None) -> frozenset[str]:
    """The identifiers in an annotation, those in texts as well."""
    return _names(node, _ANY_NAME.findall)
