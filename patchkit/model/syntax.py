"""What the syntax of a file says, without running it: whether it parses, what it defines, which of
its names have no binding, and what its constants are.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from hashlib import sha256
from importlib import import_module
from threading import RLock
from typing import Any, TypeVar

_Answer = TypeVar("_Answer")

#: Held by whoever has Python parse. CPython counts for all threads together how deep the tree is
#: that it makes: where a collection lets another one parse meanwhile, both counts are wrong and it
#: raises SystemError (3.11, and others). `warnings` has one list of filters for all, too.
_PARSING = RLock()

#: Ending -> what a file of that name is.
_LANGUAGES = {
    ".py": "Python",
    ".pyi": "Python",
    ".json": "JSON",
    ".toml": "TOML",
    ".yml": "YAML",
    ".yaml": "YAML",
}

#: Answers about contents that are kept: those of the sides of merges and of their pieces, which
#: meet again and again while a stack is carried to many versions of its files.
_KEPT = 16384


def kept(ask: Callable[..., _Answer]) -> Callable[..., _Answer]:
    """Cache a function of file contents, by their hashes and its keyword arguments."""
    known: dict[tuple[object, ...], _Answer] = {}

    @wraps(ask)
    def asked(*texts: bytes, **facts: object) -> _Answer:
        key = (*(sha256(text).digest() for text in texts), *facts.values())
        if key not in known:
            if len(known) >= _KEPT:
                known.clear()
            known[key] = ask(*texts, **facts)
        return known[key]

    return asked


# A Python file in pieces. Most versions of a file differ in a function or two: what is asked of a
# piece is asked once for all of them.


#: A line at the left edge that begins a definition, or (group 1) decorates one.
_EDGE = re.compile(rb"^(?:(@)|(?:async[ \t]+)?def\b|class\b)", re.MULTILINE)
#: What says that a file is not UTF-8, in one of its first two lines.
_ENCODED = re.compile(rb"(?:[^\n]*\n)?[ \t\f]*#[^\n]*coding[:=][ \t]*(?!utf-?8\b)", re.I)


def is_plain(data: bytes) -> bool:
    """Whether a file is UTF-8 with lines that end by a line feed, and nothing in it says else."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\r" not in data and _ENCODED.match(data) is None


def pieces_of(data: bytes) -> list[bytes]:
    """A Python file, cut before each definition at the left edge, or its first decorator.

    Invariant: where each piece parses by itself, the file's statements are those of the pieces, one
    after the other. For a piece that parses ends outside of strings and brackets, and no statement
    goes on with a definition. So where one does not, the cuts may be wrong, and the file is whole.
    """
    starts, is_decorated = [0], False
    for edge in _EDGE.finditer(data) if is_plain(data) else ():
        if not is_decorated and edge.start():
            starts.append(edge.start())
        is_decorated = edge[1] is not None
    return [data[begin:end] for begin, end in zip(starts, [*starts[1:], len(data)], strict=True)]


def language_of(path: str) -> str | None:
    """The language of a file whose syntax can be looked at, by its name."""
    return _LANGUAGES.get(path[path.rfind(".") :]) if "." in path else None


def syntax_problem(path: str, data: bytes) -> str:
    """Why a file is not what its name says, "" if it is, or if that cannot be known here."""
    match language_of(path):
        case "Python":
            # the compiler sees more than the parser, such as repeated arguments
            return _compile_problem(data)
        case "JSON":
            return _read_problem(json.loads, data)
        case "TOML":
            return _toml_problem(data)
    return ""


@kept
def _compile_problem(data: bytes) -> str:
    return _compiled(data, 0)[1]


def parse_python(data: bytes | str) -> tuple[ast.Module, str]:
    """A file's syntax, and why it could not be read ("" if it could)."""
    tree, problem = _compiled(data, ast.PyCF_ONLY_AST)
    return (ast.Module([], []) if problem else tree), problem


def parse_expression(text: str) -> ast.expr | None:
    """The syntax of an expression; None if it is none."""
    tree, problem = _compiled(text, ast.PyCF_ONLY_AST, "eval")
    return None if problem else tree.body


def python_literal(text: str) -> object:
    """The value that a literal has; SyntaxError or ValueError for anything else."""
    with _PARSING:
        return ast.literal_eval(text)


def _compiled(data: bytes | str, flags: int, mode: str = "exec") -> tuple[Any, str]:
    try:
        with _PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(data, "file", mode, flags, dont_inherit=True), ""
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)  # none of bytes that are no text
        return None, f"cannot be parsed in line {line}" if line else "cannot be parsed"


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


def unbound_names(data: bytes) -> frozenset[str] | None:
    """The names that have no binding in their scopes; None if that is not known.

    That is a file that does not parse, or that imports everything of another module.
    """
    if _EVERYTHING.search(data):
        return None
    names = _names_of(data)
    return None if names is None else names[1] - names[0] - _BOUND


@kept
def _names_of(data: bytes) -> tuple[frozenset[str], frozenset[str]] | None:
    """The names that are bound for a whole module, and those that are looked up there."""
    try:
        with _PARSING, warnings.catch_warnings():
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
    return frozenset(bound), frozenset(used)


# What the assignments of a module come to, without running it.


#: Characters of a text, elements of a list: adding one to itself doubles it.
_LONGEST = 1000


def module_constants(tree: ast.Module) -> dict[str, object]:
    """Name -> value, of the assignments at a module's top; the last one of a name counts."""
    known: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    known[target.id] = constant_value(node.value, known)
    return known


def constant_value(node: ast.expr, known: Mapping[str, object]) -> object:
    """The value of an expression of constants, names, slices, `+` and joins; None if unknown.

    Lists are tuples; `known` has names and dotted names.
    """
    value: object = None
    match node:
        case ast.Constant():
            value = node.value
        case ast.Name() | ast.Attribute():
            value = known.get(ast.unparse(node))
        case ast.Tuple() | ast.List():
            value = tuple(constant_value(each, known) for each in node.elts)
        case ast.Subscript():
            value = _sliced(constant_value(node.value, known), node.slice)
        case ast.BinOp(op=ast.Add()):
            value = _sum(constant_value(node.left, known), constant_value(node.right, known))
        case ast.JoinedStr():
            value = _joined("", [constant_value(each, known) for each in node.values])
        case ast.FormattedValue():
            value = constant_text(constant_value(node.value, known)) or None
        case ast.Call():
            value = _call(node, known)
    return value


def _call(node: ast.Call, known: Mapping[str, object]) -> object:
    """`str(x)`, `map(str, xs)` and `"".join(xs)`."""
    arguments = [constant_value(each, known) for each in node.args]
    if isinstance(node.func, ast.Attribute) and node.func.attr == "join" and len(arguments) == 1:
        between, parts = constant_value(node.func.value, known), arguments[0]
        if isinstance(between, str) and isinstance(parts, tuple):
            return _joined(between, parts)
    name = called_name(node)
    if name == "str" and len(arguments) == 1:
        return constant_text(arguments[0]) or None
    return arguments[1] if name == "map" and len(arguments) == 2 else None


def _sum(left: object, right: object) -> object:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return left + right if len(left) + len(right) <= _LONGEST else None
    return _joined("", [left, right])


def _joined(between: str, parts: Sequence[object]) -> str | None:
    texts = [constant_text(part) for part in parts if isinstance(part, str | int)]
    length = sum(map(len, texts)) + len(between) * len(texts)
    return between.join(texts) if len(texts) == len(parts) and length <= _LONGEST else None


def _sliced(value: object, part: ast.expr) -> object:
    if not isinstance(value, tuple | str):
        return None
    try:
        if isinstance(part, ast.Slice):
            bounds = [ast.literal_eval(e) if e else None for e in (part.lower, part.upper)]
            return value[bounds[0] : bounds[1]]
        return value[ast.literal_eval(part)]
    except (ValueError, TypeError, IndexError):
        return None


def constant_text(value: object) -> str:
    """A text or number as text, "" for anything else."""
    if isinstance(value, int) and value.bit_length() > 999:  # thousands of digits are no text
        return ""
    return str(value) if isinstance(value, str | int) else ""


def called_name(call: ast.Call) -> str:
    """What a call calls, without what stands before the last dot."""
    return last_name(call.func)


def last_name(node: ast.expr) -> str:
    """A name, or what stands after the last dot of a dotted one; "" for any other expression."""
    return getattr(node, "attr", getattr(node, "id", ""))


# How functions are called, as their definitions say.


FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

#: Decorators that change how a function is called.
_CALLED_OTHERWISE = ("staticmethod", "classmethod", "property", "cached_property", "setter")


def decorator_names(node: FunctionNode | ast.ClassDef) -> list[str]:
    """The last parts of the names of a definition's decorators, the outermost first."""
    inner = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return [last_name(name) for name in inner]


def signature_of(node: FunctionNode) -> str:
    """How a function is called: parameters with their order, kinds and defaults; no annotations.

    `@staticmethod (a, *, b=1)`: decorators that matter to a caller and `async` come first.
    """
    words = [f"@{name}" for name in decorator_names(node) if name in _CALLED_OTHERWISE]
    words += ["async"] if isinstance(node, ast.AsyncFunctionDef) else []
    return " ".join([*words, f"({ast.unparse(_bare(node.args))})"])


def _bare(arguments: ast.arguments) -> ast.arguments:
    """Parameters without their annotations."""

    def plain(several: Iterable[ast.arg | None]) -> list[ast.arg]:
        return [ast.arg(each.arg) for each in several if each is not None]

    return ast.arguments(
        posonlyargs=plain(arguments.posonlyargs),
        args=plain(arguments.args),
        vararg=next(iter(plain([arguments.vararg])), None),
        kwonlyargs=plain(arguments.kwonlyargs),
        kw_defaults=arguments.kw_defaults,
        kwarg=next(iter(plain([arguments.kwarg])), None),
        defaults=arguments.defaults,
    )
