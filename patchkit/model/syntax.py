"""What the syntax of a file says, without running it: whether it parses, what it defines, and which
of its names have no binding.

Asked of merged files, of files under a whole stack and of what recipes make. YAML is not read here:
its parser has a home of its own (`manifest/yaml_nodes.py`).
"""

from __future__ import annotations

import ast
import builtins
import json
import re
import symtable
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from hashlib import sha256
from importlib import import_module
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")

#: Ending -> what a file of that name is.
_LANGUAGES = {
    ".py": "Python",
    ".pyi": "Python",
    ".json": "JSON",
    ".toml": "TOML",
    ".yml": "YAML",
    ".yaml": "YAML",
}

#: Answers about files' contents that are kept: those of the sides of merges, which meet again and
#: again while a stack is carried to many versions of its files.
_KEPT = 4096


def kept(ask: Callable[[bytes], _Answer]) -> Callable[[bytes], _Answer]:
    """The same question, asked once about the same contents, which are not held."""
    known: dict[bytes, _Answer] = {}

    @wraps(ask)
    def asked(data: bytes) -> _Answer:
        key = sha256(data).digest()
        if key not in known:
            if len(known) >= _KEPT:
                known.clear()
            known[key] = ask(data)
        return known[key]

    return asked


def language_of(path: str) -> str | None:
    """The language of a file whose syntax can be looked at, by its name."""
    return _LANGUAGES.get(path[path.rfind(".") :]) if "." in path else None


def syntax_problem(path: str, data: bytes) -> str:
    """Why a file is not what its name says, "" if it is, or if that cannot be known here."""
    match language_of(path):
        case "Python":
            # the compiler sees more than the parser, such as repeated arguments
            return _compiled(data, 0)[1]
        case "JSON":
            return _read_problem(json.loads, data)
        case "TOML":
            return _toml_problem(data)
    return ""


def parse_python(data: bytes) -> tuple[ast.Module, str]:
    """A file's syntax, and why it could not be read ("" if it could)."""
    tree, problem = _compiled(data, ast.PyCF_ONLY_AST)
    return (ast.Module([], []) if problem else tree), problem


def _compiled(data: bytes, flags: int) -> tuple[Any, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(data, "file", "exec", flags, dont_inherit=True), ""
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        return None, f"cannot be parsed{line}"


def _read_problem(read: Callable[[bytes], object], data: bytes) -> str:
    try:
        read(data)
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""


def _toml_problem(data: bytes) -> str:
    try:
        tomllib = import_module("tomllib")
    except ImportError:
        return ""  # before Python 3.11 nothing reads it
    return _read_problem(lambda text: tomllib.loads(text.decode()), data)


@kept
def definitions(data: bytes) -> Counter[tuple[str, str]]:
    """(scope, name) of what is defined, annotated or imported, with how often it is there."""
    tree, _ = parse_python(data)
    found = Counter[tuple[str, str]]()
    todo: list[tuple[str, Sequence[ast.stmt]]] = [("", tree.body)]
    while todo:
        scope, body = todo.pop()
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                # an overload, a property's setter: told apart by their decorators
                marks = ",".join(ast.dump(each) for each in node.decorator_list)
                found[scope, f"{node.name} {marks}"] += 1
                todo.append((f"{scope}.{node.name}", node.body))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[scope, node.target.id] += 1
            elif isinstance(node, ast.Import | ast.ImportFrom):
                names = (each.asname or each.name for each in node.names)
                found.update((scope, f"import {name}") for name in names)
    return found


# Names that a file uses and nothing in it binds: a NameError later. The compiler's own tables of
# scopes tell, so that a name that another function binds is no help, and strings, comments and
# attributes are no names.


#: Bound in every module, besides the built-in ones.
_MODULE = frozenset(("__file__", "__path__", "__builtins__", "__annotations__", "__class__"))
_BOUND = frozenset(dir(builtins)) | _MODULE
_EVERYTHING = re.compile(rb"(?m)^[ \t]*from[ \t]+\S+[ \t]+import[ \t]*\*")


@kept
def unbound_names(data: bytes) -> frozenset[str] | None:
    """The names that have no binding in their scopes; None if that is not known.

    That is a file that does not parse, or that imports everything of another module.
    """
    if _EVERYTHING.search(data):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # it takes bytes as `compile` does, a line that names their encoding included
            module = symtable.symtable(data, "file", "exec")  # type: ignore[arg-type]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    bound, used = set[str](), set[str]()
    todo = [module]
    while todo:
        scope = todo.pop()
        todo += scope.get_children()
        for symbol in scope.get_symbols():
            everywhere = scope is module or symbol.is_declared_global()
            if everywhere and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
            if symbol.is_referenced() and (scope is module or symbol.is_global()):
                used.add(symbol.get_name())
    return frozenset(used - bound - _BOUND)
