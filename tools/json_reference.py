"""docs/reference/json.md: what `--json` prints, told by the results' classes."""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from pathlib import PurePath
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

import patchkit.report.json

_SCALARS: dict[Any, str] = {
    str: "string",
    bytes: "string",
    int: "number",
    float: "number",
    bool: "true or false",
}
_SCALARS |= {object: "any value", Any: "any value"}
#: A field or member in a class, with the comment behind it, and a line of a comment above one.
_FIELD = re.compile(r"    (\w+)(?:: [^#]*?)?(?: = [^#]*?)?(?:  # (.+))?")
_ABOVE = re.compile(r"    #:? (.+)")


#: What a command writes in the name of another one.
_STANDS_FOR = {"ci --merge": "ci"}


def json_reference(results: Mapping[str, str]) -> str:
    """The page for commands whose result class is named by "module:class"."""
    parts = ["# JSON", inspect.cleandoc(patchkit.report.json.__doc__ or ""), _ERRORS]
    shapes: dict[str, type] = {}
    for name, place in results.items():
        shape = _load(place)
        word = patchkit.report.json.one_word(_STANDS_FOR.get(name, name))
        schema = f"patchkit/{word}/{patchkit.report.json.SCHEMA_VERSION}"
        parts.append(f"## {name}\n\n`{schema}`. {_text(shape)}\n\n{_fields(shape)}")
        _collect(shape, shapes, top=True)
    parts.append("# Shapes")
    for name in sorted(shapes):
        parts.append(_section(shapes[name]))
    return "\n\n".join(parts) + "\n"


_ERRORS = """## Errors

A command that ends in an error prints `patchkit/error/2` in place of its result: `problems` is an
array of Problem, each with `what` is wrong, `where` and a `hint`, the last two possibly empty."""


def _load(place: str) -> type:
    module, name = place.split(":")
    shape: type = getattr(import_module(module), name)
    return shape


def _section(shape: type) -> str:
    if issubclass(shape, Enum):
        comments = _comments(shape)
        rows = [f"| `{each.value}` | {comments.get(each.name, '')} |" for each in shape]
        return "\n".join(
            [f"## {shape.__name__}\n\n{_text(shape)}\n", "| value | |", "|---|---|", *rows]
        )
    return f"## {shape.__name__}\n\n{_text(shape)}\n\n{_fields(shape)}"


def _fields(shape: type) -> str:
    comments = {**_notes(shape), **_comments(shape)}
    rows = [
        f"| `{name}` | {_describe(hint)} | {comments.get(name, '')} |"
        for name, hint in _members(shape).items()
    ]
    return "\n".join(["| field | type | |", "|---|---|---|", *rows])


def _members(shape: type) -> dict[str, Any]:
    assert issubclass(shape, Struct)
    hints = get_type_hints(shape, localns=_loaded_late(import_module(shape.__module__)))
    return {name: hints[name] for name in patchkit.report.json.fields_in_json(shape)}


def _notes(shape: type) -> dict[str, str]:
    """Field -> what its annotation says of the key of a file that it stands for."""
    notes = {
        name: getattr(hint, "__metadata__", ()) for name, hint in shape.__annotations__.items()
    }
    return {name: text for name, some in notes.items() for text in some if isinstance(text, str)}


def _loaded_late(module: types.ModuleType) -> dict[str, Any]:
    """What a module imports for its annotations alone."""
    blocks = [
        each for each in ast.parse(inspect.getsource(module)).body if isinstance(each, ast.If)
    ]
    imports = [
        each
        for block in blocks
        if ast.unparse(block.test) == "TYPE_CHECKING"
        for each in block.body
        if isinstance(each, ast.ImportFrom)
    ]
    return {
        name.asname or name.name: getattr(import_module(each.module or ""), name.name)
        for each in imports
        for name in each.names
    }


def _collect(hint: Any, shapes: dict[str, type], *, top: bool = False) -> None:
    """Add every value and enum that a type leads to."""
    for each in get_args(hint):
        _collect(each, shapes)
    if not isinstance(hint, type) or hint.__name__ in shapes:
        return
    if issubclass(hint, Enum):
        shapes[hint.__name__] = hint
    elif issubclass(hint, Struct):
        if not top:
            shapes[hint.__name__] = hint
        for member in _members(hint).values():
            _collect(member, shapes)


def _describe(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_describe(each) for each in arguments)
    if origin is not None and issubclass(origin, Mapping):
        return f"object of {_describe(arguments[1])}"
    if origin is tuple and arguments[-1:] != (...,):
        return f"array of {', '.join(_describe(each) for each in arguments)}"
    if origin is not None:
        return f"array of {_describe(arguments[0])}"
    if hint is type(None):
        return "null"
    return _simple(hint)


def _simple(hint: Any) -> str:
    hint = getattr(hint, "__supertype__", hint)  # an id is a text
    if hint in _SCALARS:
        return _SCALARS[hint]
    if issubclass(hint, PurePath):
        return "string"
    if issubclass(hint, Struct | Enum):
        return f"[{hint.__name__}](#{hint.__name__.lower()})"
    raise TypeError(f"{hint} has no JSON form")


def _text(shape: type) -> str:
    return inspect.getdoc(shape) or ""


def _comments(shape: type) -> dict[str, str]:
    """Field or member -> the comment behind it in the source, or the lines above it."""
    found: dict[str, str] = {}
    above: list[str] = []
    for line in inspect.getsource(shape).split("\n"):
        if comment := _ABOVE.fullmatch(line):
            above.append(comment[1])
            continue
        if (field := _FIELD.fullmatch(line)) and (said := field[2] or " ".join(above)):
            found[field[1]] = re.sub(r"\bNone\b", "null", said)
        above = []
    return found
