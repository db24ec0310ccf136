"""The declared format as JSON Schema (draft 7, which the YAML language server reads best).

What JSON Schema cannot say (unique names, references between components, YAML's own traps) is left
to the loader: the schema accepts everything that the loader accepts, and refuses most of the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from patchkit import REPOSITORY
from patchkit.manifest.keys import record_of
from patchkit.manifest.types import (
    ByForm,
    Choice,
    DependentShape,
    Field,
    Later,
    ListOf,
    MapOf,
    Number,
    Record,
    Shape,
    Text,
    Unavailable,
)
from patchkit.manifest.values import Manifest

_TITLE = "patchkit manifest"
_PART_TITLE = "shared part of patchkit manifests"

#: What `extends` may supply; the shared parts themselves need none of it.
_INHERITABLE = ("components", "source", "pin", "base", "description", "command")


def schema_text(*, part: bool = False) -> str:
    """The schema as JSON text with a final newline; `part`: of a file that others extend."""
    return json.dumps(json_schema(part=part), indent=2, ensure_ascii=False) + "\n"


def json_schema(*, part: bool = False) -> dict[str, Any]:
    """The schema as plain data."""
    name = "manifest-part" if part else "manifest"
    schema = {**_head(name, _PART_TITLE if part else _TITLE), **_record(record_of(Manifest))}
    if not part:
        schema["if"] = {"required": ["extends"]}
        schema["else"] = _whole()
    return schema


def record_schema(record: Record, name: str, definitions: Mapping[str, Shape]) -> dict[str, Any]:
    """The schema of a file that `record` describes; `definitions`: shapes that contain themselves.

    Those are the `Later` shapes by name. `name` is what the file is.
    """
    shapes = {title: _shape(each) for title, each in definitions.items()}
    return {**_head(name, f"patchkit {name}"), **_record(record), "definitions": shapes}


def _head(name: str, title: str) -> dict[str, Any]:
    """What a schema says of itself; `name` is its file's, docs/<name>.schema.json."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": f"{REPOSITORY}/raw/main/docs/{name}.schema.json",
        "title": title,
    }


def _whole() -> dict[str, Any]:
    """What a manifest needs that extends nothing."""
    named: dict[str, Any] = {}
    for field in record_of(Manifest).fields:
        if isinstance(field.shape, Record):
            named[field.key] = {"required": _required(field.shape)}
        elif isinstance(field.shape, MapOf) and isinstance(field.shape.of, Record):
            needs: dict[str, Any] = {"required": _required(field.shape.of)}
            if field.shape.of.field("pins"):  # each of them may have all
                needs = {"anyOf": [needs, {"required": ["pins"]}]}
            named[field.key] = {
                "minProperties": field.shape.minimum,
                "additionalProperties": needs,
            }
    return {"required": ["components"], "properties": named}


def _required(record: Record) -> list[str]:
    return [field.key for field in record.fields if field.required]


def _shape(shape: Shape) -> dict[str, Any]:
    schema: dict[str, Any]
    match shape:
        case Text():
            schema = _text(shape)
        case Number():
            schema = {"type": "integer", "minimum": shape.minimum, "maximum": shape.maximum}
        case ListOf():
            schema = {"type": "array", "items": _shape(shape.of)}
        case MapOf():
            schema = {
                "type": "object",
                "propertyNames": _pattern(shape.key),
                "additionalProperties": _shape(shape.of),
            }
        case Record():
            schema = _record(shape)
        case Choice():
            schema = _choice(shape)
        case DependentShape():
            schema = {"anyOf": [_shape(each) for each in shape.shapes.values()]}
        case ByForm():
            schema = {"anyOf": [_shape(each) for each in shape.shapes]}
        case Unavailable():
            schema = {}
        case Later():
            schema = {"$ref": f"#/definitions/{shape.name}"}
    return schema


def _text(shape: Text) -> dict[str, Any]:
    text = {"type": "string", **({} if shape.empty else {"minLength": 1}), **_pattern(shape)}
    if shape.written:
        return {"anyOf": [{"type": ["number", "boolean"]}, text]}
    return {"anyOf": [{"type": "integer", "minimum": 0}, text]} if shape.number else text


def _pattern(shape: Text) -> dict[str, Any]:
    if not shape.pattern:
        return {}
    pattern = f"(?:{shape.pattern})?" if shape.empty else f"(?:{shape.pattern})"
    return {"pattern": f"^{pattern}$"}


def _record(record: Record) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "required": [key for key in _required(record) if key not in _INHERITABLE],
        "properties": {
            field.key: {"description": describe(field), **_shape(field.shape)}
            for field in record.all_fields
        },
    }
    agreements = [
        _agreement(each) for each in record.fields if isinstance(each.shape, DependentShape)
    ]
    if agreements:
        schema["allOf"] = [each for several in agreements for each in several]
    return schema


def _choice(choice: Choice) -> dict[str, Any]:
    """An object that fits exactly one option."""
    return {
        "type": "object",
        "oneOf": [{"title": key, **_shape(choice.option(key))} for key in choice.keys],
    }


def describe(field: Field) -> str:
    """A key's meaning in one text, with its default."""
    return f"{field.description} Default: {field.default}." if field.default else field.description


def _agreement(field: Field) -> list[dict[str, Any]]:
    """`if` the other key makes this choice, `then` this key has that shape."""
    assert isinstance(field.shape, DependentShape)
    other = field.shape.other
    return [
        {
            "if": {
                "required": [other],
                "properties": {other: {"type": "object", "required": [option]}},
            },
            "then": {"properties": {field.key: _shape(shape)}},
        }
        for option, shape in field.shape.shapes.items()
    ]
