"""The Python modules of a tree, parsed when they are asked for, and what the names in them are
bound to; nothing is imported or run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from msgspec import Struct

from patchkit.extensions.python_guards.bodies import Bodies, blocks_of, parse_folded
from patchkit.model.syntax import FunctionNode

# What the names in a Python module or class are bound to, read off its syntax; nothing is run.


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
    line: int  # from 1


class Namespace(Struct):
    """The names of a module or class, each with its bindings in order.

    `stars` are modules all of whose names are imported; `foreign` holds names that are given to
    another object from outside: (object, name) -> bindings.
    """

    names: dict[str, list[Binding]] = {}
    stars: list[Imported] = []
    foreign: dict[tuple[str, str], list[Binding]] = {}

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
        for name, meaning in _bound_by(statement):
            yield name, Binding(meaning, certain, statement.lineno)
        if not isinstance(statement, FunctionNode | ast.ClassDef):  # what runs where it stands
            inner_certain = certain and isinstance(statement, ast.With | ast.AsyncWith)
            for inner in blocks_of(statement):
                yield from _bindings(inner, inner_certain)


def _bound_by(statement: ast.stmt) -> Iterator[tuple[str, Meaning]]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, statement
        case ast.Import() | ast.ImportFrom():
            yield from imported_names(statement)
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


def imported_names(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Imported]]:
    """The names that an import binds, and what each is."""
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


#: Why nothing is known of a module whose file no server gives.
LACKING = "its contents cannot be fetched"

#: Reads a file of the tree by its path; None if it cannot be fetched.
Read = Callable[[str], bytes | None]


class Module(Struct, frozen=True, eq=False):
    """A module; `path` is "" for a folder without `__init__.py`, `tree` names where it is from.

    `problem` says why it could not be read: then nothing is known of its names.
    """

    name: str
    path: str
    is_package: bool  # it is an `__init__.py`
    namespace: Namespace
    syntax: ast.Module  # without statements where `problem` says why
    problem: str = ""
    tree: str = ""
    data: bytes | None = None  # its text; None where it has none, or where no server gives it

    @property
    def text(self) -> str:
        """Its text as far as it is one."""
        return (self.data or b"").decode("utf-8", "replace")

    def absolute(self, imported: Imported) -> str:
        """The module that an import in this module names, "" if it leads out of the packages."""
        if not imported.level:
            return imported.module
        parts = self.name.split(".")
        kept = len(parts) - imported.level + self.is_package
        if kept <= 0:
            return ""
        return ".".join([*parts[:kept], *([imported.module] if imported.module else [])])


#: The most bytes of functions that are held as syntax trees, which take some thirty times as much.
_WHOLE = 1_000_000


class ParsedModules:
    """Modules of the versions of several trees, each parsed once.

    `known` has them by tree, name, path and contents. When the functions that were looked into have
    more than `most` bytes they are closed, but not before `rest` is called: until then nobody loses
    a node.
    """

    def __init__(self, most: int = _WHOLE) -> None:
        self.known: dict[tuple[str, str, str, bytes | None], Module] = {}
        self._most = most
        self._bodies = Bodies()

    def module(self, name: str, path: str, data: bytes | None, tree: str) -> Module:
        """A module by its name, path and contents, of a tree."""
        key = tree, name, path, data
        if key not in self.known:
            syntax, problem = parse_folded(data or b"", self._bodies)
            self.known[key] = Module(
                name,
                path,
                path.endswith("/__init__.py"),
                read_namespace(syntax.body),
                syntax,
                LACKING if data is None else problem,
                tree,
                data,
            )
        return self.known[key]

    def rest(self) -> bool:
        """Close the functions, if they are much; then no node of a function's body may be held."""
        is_much = self._bodies.size > self._most
        if is_much:
            self.close()
        return is_much

    def close(self) -> None:
        """Close the functions that were looked into, which else hold each other in memory."""
        self._bodies.close()


class Modules:
    """The modules below a folder of a tree (`root`, "" for the whole), by dotted name.

    `tree` is a name for the tree, where modules of several are looked at. `parsed` keeps what was
    parsed by name, path and contents, for versions of one tree.
    """

    def __init__(
        self,
        paths: Iterable[str],
        read: Read,
        root: str = "",
        tree: str = "",
        parsed: ParsedModules | None = None,
    ) -> None:
        self._read = read
        self._parsed = parsed if parsed is not None else ParsedModules()
        self.tree = tree
        self._prefix = f"{root}/" if root else ""
        self._files = frozenset(path for path in paths if path.endswith(".py"))
        self._folders = set[str]()
        for path in self._files:
            folder = path.rpartition("/")[0]
            while folder and folder not in self._folders:
                self._folders.add(folder)
                folder = folder.rpartition("/")[0]
        self._known: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """The module or package of that name; None if there is none."""
        if name not in self._known:
            self._known[name] = self._load(name)
        return self._known[name]

    def at(self, path: str) -> Module | None:
        """The module that a file is; None if it is below another folder, or no module."""
        return self.module(self.name_of(path))

    def rest(self) -> None:
        """Close functions, if they are much: see ParsedModules."""
        self._parsed.rest()

    def source(self, name: str, path: str) -> bytes | None:
        """The text of a module, whose file `path` is, in memory where it is parsed; None if no
        server gives it.
        """
        known = self._known.get(name)
        return self._read(path) if known is None else known.data

    def path_of(self, name: str) -> str | None:
        """The file of a module, "" for a folder without `__init__.py`; None if there is none."""
        base = self._prefix + name.replace(".", "/")
        for path in (f"{base}/__init__.py", f"{base}.py"):
            if path in self._files:
                return path
        return "" if base in self._folders else None

    def name_of(self, path: str) -> str:
        """The dotted name that a file has as a module."""
        inner = path.removeprefix(self._prefix).removesuffix(".py").removesuffix("/__init__")
        return inner.replace("/", ".")

    def _load(self, name: str) -> Module | None:
        path = self.path_of(name)
        if path is None:
            return None
        if not path:
            return Module(name, "", True, Namespace(), ast.Module([], []), tree=self.tree)
        return self._parsed.module(name, path, self._read(path), self.tree)


class JoinedModules(Modules):
    """Modules of several trees as one program sees them; a package may lie in more than one.

    Beside each tree's modules are the packages that it gives, by dotted name. `asked` gets every
    name that is asked for: what is found of a module follows from what stands at these.
    """

    def __init__(self, parts: Sequence[tuple[Modules, Collection[str]]]) -> None:
        super().__init__((), lambda _: None)
        self._parts = parts
        self._places: dict[str, tuple[Modules | None, str | None]] = {}
        self.asked: set[str] = set()

    def module(self, name: str) -> Module | None:
        """See Modules."""
        self.asked.add(name)
        return super().module(name)

    def may_have(self, name: str) -> bool:
        """Whether a tree might have the module, by the packages that it gives."""
        return any(_is_given(name, packages) for _, packages in self._parts)

    def is_lacking(self, name: str) -> bool:
        """Whether the module was looked at, and its contents cannot be fetched."""
        known = self._known.get(name)
        return known is not None and known.problem == LACKING

    def home(self, name: str) -> Modules | None:
        """The tree that has the module; None if none has it as more than a folder."""
        return self._place(name)[0]

    def path_of(self, name: str) -> str | None:
        """See Modules."""
        return self._place(name)[1]

    def packages_beside(self, own: Modules) -> list[str]:
        """The packages that other trees give."""
        return [
            package for tree, packages in self._parts if tree is not own for package in packages
        ]

    def tree_around(self, name: str) -> str:
        """The tree of the module that a dotted name is in, by its longest head; "" for none."""
        parts = name.split(".")
        heads = (self.home(".".join(parts[:end])) for end in range(len(parts), 0, -1))
        return next((home.tree for home in heads if home is not None), "")

    def _place(self, name: str) -> tuple[Modules | None, str | None]:
        self.asked.add(name)
        if name not in self._places:
            place: tuple[Modules | None, str | None] = (None, None)
            for part, packages in self._parts:
                path = part.path_of(name) if _is_given(name, packages) else None
                if path:
                    place = (part, path)
                    break
                place = (None, path) if path is not None else place
            self._places[name] = place
        return self._places[name]

    def _load(self, name: str) -> Module | None:
        home = self.home(name)
        return super()._load(name) if home is None else home.module(name)


def _is_given(name: str, packages: Collection[str]) -> bool:
    """Whether a module is in one of the packages, or around one."""
    return any(f"{name}.".startswith(f"{p}.") or p.startswith(f"{name}.") for p in packages)
