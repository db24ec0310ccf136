"""Results as JSON: one envelope for all commands, shapes that follow the results' classes.

```json
{"schema": "patchkit/apply/2", "patchkit": "0.1.0", "exit_code": 0, ...fields of the result...}
```

A value becomes an object with its fields in order, a mapping an object, a sequence an array, an
enum its value, a path its POSIX form. Bytes and paths are text; a byte that is not UTF-8 is
written as `\\xNN`. The number in `schema` goes up when a field goes away or changes its meaning;
new fields may come at any time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from patchkit import __version__
from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem
from patchkit.model.decoding import from_builtins

SCHEMA_VERSION = 2

_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def envelope(command: str, result: object, code: ExitCode) -> str:
    """The JSON text of a command's result; without a final newline."""
    head = {
        "schema": f"patchkit/{one_word(command)}/{SCHEMA_VERSION}",
        "patchkit": __version__,
        "exit_code": int(code),
    }
    body = plain(result)
    assert isinstance(body, dict)
    return _written(head | body)


def one_word(command: str) -> str:
    """A command's name in `schema`: "check-only-manifest" for `check --only manifest`."""
    return command.replace(" --", "-").replace(" ", "-")


def error_envelope(error: PatchkitError) -> str:
    """The JSON text for a command that ended in an error."""
    head = {
        "schema": f"patchkit/error/{SCHEMA_VERSION}",
        "patchkit": __version__,
        "exit_code": int(error.exit_code),
        "problems": plain(error.problems),
    }
    return _written(head)


def _written(document: Mapping[str, object]) -> str:
    text = json.dumps(document, indent=2, ensure_ascii=False)
    # JSON leaves them alone, a terminal does not
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plain(value: object) -> object:
    """The value in terms of what JSON has; raises TypeError for what has no form."""
    if value is None or isinstance(value, bool | float) or type(value) is int:
        return value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, str):
        return text(value.encode("utf-8", "surrogateescape"))
    if isinstance(value, bytes):
        return text(value)
    if isinstance(value, PurePath):
        return plain(value.as_posix())
    return _container(value)


def fields_in_json(kind: type[Struct]) -> list[str]:
    """The fields that the JSON has, in order: all but what the class names in `not_in_json`."""
    left_out = getattr(kind, "not_in_json", ())
    return [name for name in kind.__struct_fields__ if name not in left_out]


def text(data: bytes) -> str:
    """Bytes as text that every JSON reader takes."""
    return data.decode("utf-8", "backslashreplace")


def _container(value: object) -> object:
    if isinstance(value, Struct):
        return {name: plain(getattr(value, name)) for name in fields_in_json(type(value))}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | frozenset | set):
        items = sorted(value) if isinstance(value, frozenset | set) else value
        return [plain(each) for each in items]
    raise TypeError(f"{type(value).__name__} has no JSON form")


# Results read back from the JSON that `report.json` wrote: the way that shards of a run meet.
#
# What a newer patchkit added is passed over; what is missing or of another kind is told by its
# place in the file.


Result = TypeVar("Result")

_HINT = "merge what `patchkit ci`, `check` or `drift` writes with --format json"
_PLACED = re.compile(r"(?P<what>.*) - at `\$\.?(?P<place>.*)`")  # how msgspec says what is wrong


def read_envelope(data: bytes, name: str) -> tuple[str, Mapping[str, Any]]:
    """(command, the whole object) of a result's file; BadInputError for anything else."""
    try:
        found = json.loads(data, object_hook=_with_lines)
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets
        raise BadInputError(Problem(f"is not JSON: {error}", name, _HINT)) from error
    schema = found.get("schema") if isinstance(found, dict) else None
    parts = schema.split("/") if isinstance(schema, str) else []
    if len(parts) != 3 or parts[0] != "patchkit":
        raise BadInputError(Problem("is not a patchkit result", name, _HINT))
    if parts[2] != str(SCHEMA_VERSION):
        what = f"has version {parts[2]} of the schema, this patchkit knows {SCHEMA_VERSION}"
        raise BadInputError(Problem(what, name, "use one patchkit for all jobs"))
    return parts[1], found


def read_result(kind: type[Result], data: object, name: str) -> Result:
    """A result's value from its JSON; BadInputError, with the place, if it does not fit."""
    try:
        return from_builtins(data, kind, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        said = str(error)[:1].lower() + str(error)[1:]
        placed = _PLACED.fullmatch(said)
        what = ": ".join(filter(None, (placed["place"], placed["what"]))) if placed else said
        raise BadInputError(Problem(what, name, "use one patchkit for all jobs")) from error


def _with_lines(found: dict[str, Any]) -> dict[str, Any]:
    """An object of the JSON; the lines of files in it (`Clash`, `Mismatch`) as the bytes they are.

    msgspec would take base64 for them, which nobody could read in a report.
    """
    if "found_at" in found:
        for key in ("expected", "found"):
            lines = found.get(key, [])
            if isinstance(lines, list) and all(isinstance(each, str) for each in lines):
                found[key] = [each.encode("utf-8", "surrogateescape") for each in lines]
    return found
