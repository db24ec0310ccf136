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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from sys import intern
from unicodedata import normalize

from msgspec import Struct, field

from patchkit.disk.result_cache import ResultCache
from patchkit.extensions.python_guards.bodies import walk
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

    It follows from a tree, from the names of the others' modules, and from what these give to
    anybody: so it is kept for the next look.
    """

    views: Mapping[str, TreeView]  # the trees, by component
    trees: Mapping[str, Modules]  # their modules, by component
    modules: JoinedModules  # of all
    names: Mapping[str, Sequence[str]]  # component -> all its modules, by dotted name
    given: Mapping[str, Collection[str]]  # component -> attributes that others give to its modules
    answers: ResultCache | None  # None: nothing is kept
    _known: dict[str, frozenset[str] | None] = field(default_factory=dict)
    _lacking: bool = False  # the contents of a module cannot be fetched

    @classmethod
    def of(
        cls,
        views: Mapping[str, TreeView],
        trees: Mapping[str, Modules],
        modules: JoinedModules,
        rebound: Rebound,
        everything: Iterable[tuple[str, str]],
        *,
        answers: ResultCache | None,
    ) -> Contacts:
        """With all modules, each with its component, when those that take part are loaded."""
        names: dict[str, list[str]] = {each: [] for each in trees}
        for name, component in everything:
            names[component].append(name)
        given: dict[str, set[str]] = {each: set() for each in trees}
        for (place, name), bindings in rebound.items():
            tree = modules.tree_around(place)
            if any(module.tree != tree for module, _ in bindings):
                given.setdefault(tree, set()).add(name)
        return cls(views, trees, modules, names, given, answers)

    def may_lead_out(self, tree: str, name: str) -> bool:
        """Whether anything in a module of a tree may lead to another tree."""
        if tree not in self._known:
            self._known[tree] = self._asked(tree)
        known = self._known[tree]
        return known is None or name in known

    def _asked(self, tree: str) -> frozenset[str] | None:
        """The modules that may; None: any may."""
        heads = self._heads(tree)
        if self.answers is None:
            return self._found(tree, heads)
        facts = [self.views[tree].oid, sorted(heads), sorted(self.given[tree])]
        digest = sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()
        question = f"contact {tree} {digest[:24]}"
        kept = self.answers.known(question)
        if isinstance(kept, list):
            return frozenset(kept[1:]) if kept[:1] == ["these"] else None
        found = self._found(tree, heads)
        if not self._lacking:
            self.answers.note(question, ["any"] if found is None else ["these", *sorted(found)])
        return found

    def _found(self, tree: str, heads: frozenset[str]) -> frozenset[str] | None:
        own = self.trees[tree]
        contact = _Contact(heads)
        contact.known |= set(self.given[tree])
        contact.known |= {head.rpartition(".")[2] for head in heads if "." in head}
        left = dict(self._texts(tree))
        most = len(left) // _FEW
        words: dict[str, frozenset[str]] = {}
        tops = frozenset(head for head in heads if "." not in head)
        importing = re.compile(_IMPORTING % b"|".join(re.escape(each).encode() for each in tops))
        near: list[str] = []
        for name, data in left.items():
            words[name] = there = _words(data)
            meets = not there.isdisjoint(contact.known)
            if meets or (not there.isdisjoint(tops) and importing.search(data)):
                near.append(name)
            if len(near) > most:
                return None
        while near and not contact.is_open and len(contact.taken) + len(near) <= most:
            for name in near:
                is_package = str(own.path_of(name)).endswith("/__init__.py")
                contact.take(name, left.pop(name), is_package=is_package)
            near = [name for name in left if not words[name].isdisjoint(contact.known)]
        return None if near or contact.is_open else frozenset(contact.taken)

    def _texts(self, tree: str) -> Iterator[tuple[str, bytes]]:
        """A tree's modules with their sources, those around its packages as well."""
        own = self.trees[tree]
        heads = (name[: dot.start()] for name in self.names[tree] for dot in _DOT.finditer(name))
        for name in dict.fromkeys((*self.names[tree], *heads)):
            path, home = self.modules.path_of(name), self.modules.home(name)
            if path and home is own:
                data = self.views[tree].data(path)
                self._lacking = self._lacking or data is None
                yield name, data or b""

    def _heads(self, tree: str) -> frozenset[str]:
        """The shortest heads of other modules' names that are no modules of the tree's own."""
        own, found = self.trees[tree], set[str]()
        own_ones: dict[str, bool] = {}
        for name in (n for other, several in self.names.items() if other != tree for n in several):
            head = ""
            for part in name.split("."):
                head = f"{head}.{part}" if head else part
                if head not in own_ones:
                    home = self.modules.home(head)
                    is_other = home is not None and home is not own
                    own_ones[head] = not is_other and own.path_of(head) is not None
                if not own_ones[head]:
                    found.add(head)
                    break
        return frozenset(found)


def _words(data: bytes) -> frozenset[str]:
    """All in a text that may be an identifier, as Python spells it; held once for all texts."""
    found = list[str]()
    for each in set(data.translate(_APART).split()):
        text = each.decode("utf-8", "replace")
        found += (text,) if text.isascii() else _ANY_NAME.findall(normalize("NFKC", text))
    return frozenset(map(intern, found))


class _Contact(Struct):
    """The identifiers so far, and what waits for others to be among them."""

    heads: frozenset[str]  # of the names of other trees' modules
    known: set[str] = field(default_factory=lambda: {_OTHER})  # at which values leave the tree
    taken: dict[str, None] = field(default_factory=dict)  # modules, by name
    is_open: bool = False  # every name may be one
    _waiting: dict[str, list[str]] = field(default_factory=dict)  # identifier -> what it leads to

    def take(self, name: str, data: bytes, *, is_package: bool) -> None:
        """Follow what a module binds."""
        self.taken[name] = None
        syntax, _ = parse_python(data)
        module = Module(name, "", is_package, Namespace(), syntax)
        try:
            for bound, leads in _in_block(syntax.body, partial(self._imported, module)):
                self._lead(bound, leads)
        except RecursionError:
            self.is_open = True

    def _imported(
        self, module: Module, node: ast.Import | ast.ImportFrom
    ) -> Iterator[tuple[str, frozenset[str]]]:
        """What an import binds, and what leads to that."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.name if alias.asname is not None else alias.name.partition(".")[0]
                if self._is_other(bound):
                    yield alias.asname or bound, frozenset((_OTHER,))
            return
        target = absolute_name(module, node)
        is_other = self._is_other(target)
        for alias in node.names:
            if alias.name == "*":
                self.is_open = self.is_open or is_other
            elif is_other or self._is_other(f"{target}.{alias.name}"):
                yield alias.asname or alias.name, frozenset((_OTHER,))
            elif alias.asname is not None:
                yield alias.asname, frozenset((alias.name,))

    def _is_other(self, name: str) -> bool:
        """Whether a module would be another tree's."""
        ends = (*(dot.start() for dot in _DOT.finditer(name)), len(name))
        return any(name[:end] in self.heads for end in ends)

    def _lead(self, name: str, leads: Collection[str]) -> None:
        if name in self.known:
            return
        if not self.known.isdisjoint(leads):
            self._know(name)
            return
        for each in leads:
            self._waiting.setdefault(each, []).append(name)

    def _know(self, name: str) -> None:
        todo = [name]
        while todo:
            each = todo.pop()
            self.known.add(each)
            todo += (e for e in self._waiting.pop(each, ()) if e not in self.known)


# What is bound to what in a module: (name, the identifiers that lead to its value).

_Flow = tuple[str, frozenset[str]]
_Import = Callable[[ast.Import | ast.ImportFrom], Iterable[_Flow]]


def _in_block(body: Iterable[ast.stmt], imported: _Import) -> Iterator[_Flow]:
    """Of the names and attributes of a module or class, and of what is in it."""
    for statement in body:
        match statement:
            case ast.Import() | ast.ImportFrom():
                yield from imported(statement)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _in_function(statement, imported)
            case ast.ClassDef(name=name, bases=bases, body=inner):
                yield name, _all_names(bases)
                yield from _in_block(inner, imported)
            case _:
                yield from _bound_by(statement)
                yield from _in_block(_statements_in(statement), imported)


def _in_function(function: FunctionNode, imported: _Import) -> Iterator[_Flow]:
    """Of a function, what it stores in attributes, and the classes and functions in it."""
    inside: dict[str, set[str]] = {}
    shown: list[_Flow] = []
    local: list[_Flow] = []
    for node in walk(function):
        match node:
            case ast.arg(arg=name, annotation=annotation):
                local.append((name, _annotated(annotation)))
            case ast.Import() | ast.ImportFrom():
                local += imported(node)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                shown.append((name, _annotated(node.returns)))
            case ast.ClassDef(name=name, bases=bases, body=body):
                shown += [(name, _all_names(bases)), *_in_class(body)]
            case ast.stmt():
                local += _bound_by(node, local=True)
                shown += _bound_by(node, local=False)
    for name, leads in (*local, *shown):
        inside.setdefault(name, set()).update(leads)
    for name, leads in shown:
        yield name, _closed(leads, inside)


def _in_class(body: Iterable[ast.stmt]) -> Iterator[_Flow]:
    """Of the names of a class that stands in a function."""
    for node in (each for statement in body for each in walk(statement)):
        if isinstance(node, ast.stmt):
            yield from _bound_by(node)


def _closed(leads: Iterable[str], inside: Mapping[str, Iterable[str]]) -> frozenset[str]:
    """All that identifiers lead to through locals, with themselves."""
    found = set(leads)
    todo = list(found)
    while todo:
        for each in inside.get(todo.pop(), ()):
            if each not in found:
                found.add(each)
                todo.append(each)
    return frozenset(found)


def _bound_by(node: ast.stmt, *, local: bool | None = None) -> Iterator[_Flow]:
    """What a statement binds: names if `local`, attributes if not, both for None."""
    match node:
        case ast.Assign(targets=targets, value=value):
            leads = _names(value)
        case ast.AnnAssign(target=target, annotation=annotation, value=given):
            targets, leads = [target], _annotated(annotation) | _names(given)
        case _:
            return
    for each in (part for target in targets for part in walk(target)):
        if not isinstance(getattr(each, "ctx", None), ast.Store):
            continue
        if isinstance(each, ast.Name) and local is not False:
            yield each.id, leads
        elif isinstance(each, ast.Attribute) and local is not True:
            yield each.attr, leads


def _statements_in(statement: ast.stmt) -> Iterator[ast.stmt]:
    """The statements right inside of one that is no definition."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def _all_names(nodes: Iterable[ast.expr]) -> frozenset[str]:
    return frozenset(name for node in nodes for name in _names(node))


def _names(node: ast.expr | None) -> frozenset[str]:
    """The identifiers in an expression."""
    return frozenset(_each_name(node, lambda _text: ()))


def _annotated(node: ast.expr | None) -> frozenset[str]:
    """The identifiers in an annotation, those in texts as well."""
    return frozenset(_each_name(node, _ANY_NAME.findall))


def _each_name(node: ast.expr | None, read: Callable[[str], Iterable[str]]) -> Iterator[str]:
    for each in walk(node) if node is not None else ():
        match each:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.Constant(value=str() as text):
                yield from read(text)
