"""The Python modules of a tree, parsed when they are asked for; nothing is imported or run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable

from msgspec import Struct

from patchkit.python.bindings import Imported, Namespace, read_namespace

#: Reads a file of the tree by its path; None if it cannot be had.
Read = Callable[[str], bytes | None]


class Module(Struct, frozen=True, eq=False):
    """A module; `path` is "" for a folder without `__init__.py`.

    `problem` says why it could not be read: then nothing is known of its names.
    """

    name: str
    path: str
    is_package: bool
    namespace: Namespace
    syntax: ast.Module
    problem: str = ""

    def absolute(self, imported: Imported) -> str:
        """The module that an import in this module names, "" if it leads out of the packages."""
        if not imported.level:
            return imported.module
        parts = self.name.split(".")
        kept = len(parts) - imported.level + self.is_package
        if kept <= 0:
            return ""
        return ".".join([*parts[:kept], *([imported.module] if imported.module else [])])


class Modules:
    """The modules below a folder of a tree (`root`, "" for the whole), by dotted name."""

    def __init__(self, paths: Iterable[str], read: Read, root: str = "") -> None:
        self._read = read
        self._prefix = f"{root}/" if root else ""
        self._files = frozenset(path for path in paths if path.endswith(".py"))
        self._folders = {
            path[:end] for path in self._files for end in _slashes(path) if path[:end] != ""
        }
        self._known: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """The module or package of that name; None if there is none."""
        if name not in self._known:
            self._known[name] = self._load(name)
        return self._known[name]

    def at(self, path: str) -> Module | None:
        """The module that a file is; None if it is below another folder, or no module."""
        inner = path.removeprefix(self._prefix).removesuffix(".py").removesuffix("/__init__")
        return self.module(inner.replace("/", "."))

    def with_file(self, path: str, data: bytes | None) -> Modules:
        """These modules, with another version of one file, or (None) without it."""
        return _OneOther(self, path, data)

    def text(self, module: Module) -> str:
        """A module's source."""
        return (self._read(module.path) or b"").decode("utf-8", "replace")

    def _load(self, name: str) -> Module | None:
        base = self._prefix + name.replace(".", "/")
        for path, is_package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
            if path in self._files:
                return _parsed(name, path, self._read(path), is_package)
        if base in self._folders:
            return Module(name, "", True, Namespace(), ast.Module([], []))
        return None


class _OneOther(Modules):
    """Modules of which one is another; all others are parsed once for both."""

    def __init__(self, others: Modules, path: str, data: bytes | None) -> None:
        super().__init__((), lambda asked: data if asked == path else others._read(asked))
        self._others = others
        home = others.at(path)
        self._name = home.name if home is not None else None
        if home is not None:
            is_there = data is not None
            made = _parsed(home.name, path, data, home.is_package) if is_there else None
            self._known[home.name] = made

    def module(self, name: str) -> Module | None:
        """See Modules."""
        return self._known[name] if name == self._name else self._others.module(name)

    def at(self, path: str) -> Module | None:
        """See Modules."""
        found = self._others.at(path)
        return self.module(found.name) if found is not None else None


def _slashes(path: str) -> Iterable[int]:
    return (index for index, character in enumerate(path) if character == "/")


def _parsed(name: str, path: str, data: bytes | None, is_package: bool) -> Module:
    syntax, problem = parse_python(data)
    return Module(name, path, is_package, read_namespace(syntax.body), syntax, problem)


def parse_python(data: bytes | None) -> tuple[ast.Module, str]:
    """A file's syntax, and why it could not be read ("" if it could)."""
    if data is None:
        return ast.Module([], []), "its contents cannot be had"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data), ""
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return ast.Module([], []), f"cannot be parsed{line}"
