"""What the annotations of Structs say about a format: shapes to read, merge and describe it by, and
the way back from values to data.

An extension declares keys of its own as fields of a Struct, named as them and each with a default;
entry points lead to it (`KEYS`). A manifest or a component keeps their values in `more`. The Struct
is loaded only where such a key is met; a static method `problems` of it, if there is one, is given
the manifest's Table and says what is wrong between its values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin

from msgspec import NODEFAULT, Struct
from msgspec.structs import replace

from patchkit import entry_points
from patchkit.errors import SurroundingsError
from patchkit.manifest.types import (
    KEYS,
    ByForm,
    ByName,
    Choice,
    DependentShape,
    Field,
    Follows,
    Key,
    Later,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Record,
    Shape,
    Text,
    Unavailable,
    plain_path,
)
from patchkit.manifest.values import Location

Data: TypeAlias = "str | int | list[Data] | dict[str, Data]"

_SHAPES = (Text, Number, ListOf, MapOf, Record, Choice, DependentShape, ByForm, Later)


def shape_of(hint: Any) -> Shape:
    """The shape that a type, with what is noted beside it, stands for."""
    notes = {type(note): note for note in reversed(getattr(hint, "__metadata__", ()))}
    if shape := next((note for kind, note in notes.items() if kind in _SHAPES), None):
        return shape  # type: ignore[no-any-return]
    kind = hint.__origin__ if notes else hint
    parts = [part for part in get_args(kind) if part not in (NoneType, Ellipsis)]
    if OneOf in notes:
        return _one_of([shape_of(part) for part in notes[OneOf].types or parts], notes)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _struct_shape(kind)
    if get_origin(kind) in (Union, UnionType):
        return shape_of(*parts)  # or None, where the key is not there
    if get_origin(kind) is tuple:
        of, names = shape_of(*parts), notes.get(ByName)
        return MapOf(names.key, of, names.minimum, named=True) if names else ListOf(of)
    key, value = map(shape_of, parts)
    assert isinstance(key, Text)
    return MapOf(key, value)


def _one_of(shapes: list[Shape], notes: Mapping[type, Any]) -> Shape:
    """What is one of several: told by another key, by its first key, or by how it is written."""
    name = notes[OneOf].name
    if Follows in notes:
        follows = notes[Follows]
        return DependentShape(name, follows.other, dict(zip(follows.options, shapes, strict=True)))
    records = tuple(shape for shape in shapes if isinstance(shape, Record))
    if len(records) == len(shapes):
        added = {key: partial(_added, place) for key, place in added_keys(name).items()}
        return Choice(name, records, added)
    forms: dict[str, Shape] = {}
    for shape in shapes:
        form = {ListOf: "items", Text: "scalar"}.get(type(shape), "table")
        forms[form] = shape
    return ByForm(name, **forms)


def _struct_shape(kind: type[Struct]) -> Shape:
    record = record_of(kind)
    only = record.fields[0].shape
    if record.first or not isinstance(only, Text):
        return record
    return replace(only, meant=lambda text, _: kind(text))


@cache
def record_of(kind: type[Struct]) -> Record:
    """The keys of a Struct: its own first, then those of what it is made from."""
    hints: dict[str, Any] = {}
    for base in kind.__mro__:
        for name, hint in vars(base).get("__annotations__", {}).items():
            hints.setdefault(name, hint)
    defaults = kind.__struct_defaults__
    given = dict(zip(reversed(kind.__struct_fields__), reversed(defaults), strict=False))
    fields = [_field(name, hint, given.get(name, NODEFAULT)) for name, hint in hints.items()]
    title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower()
    return Record(
        title,
        tuple(field for field in fields if field is not None),
        " ".join((kind.__doc__ or "").partition("\n\n")[0].split()),
        kind,
        {name: key for name, hint in hints.items() if (key := _place(hint)) is not None},
        {key: partial(_added_field, key, place) for key, place in added_keys(title).items()},
    )


def added_keys(title: str) -> Mapping[str, str]:
    """What extensions add to what the reference calls so: key -> the place of its class."""
    named, begin = entry_points.named(KEYS), f"{title.replace(' ', '-')}."
    return {n.removeprefix(begin): place for n, place in named.items() if n.startswith(begin)}


def _added(place: str) -> Record | Unavailable:
    try:
        return record_of(entry_points.load(place))
    except SurroundingsError as error:
        return Unavailable(error.problems[0])


def _added_field(key: str, place: str) -> Field:
    record = _added(place)
    if isinstance(record, Unavailable):
        return Field(key, record, record.problem.what)
    field = record.field(key)
    assert field is not None, f"{place} has no {key}"
    return replace(field, attribute="")


def _field(name: str, hint: Any, default: Any) -> Field | None:
    notes = {type(note): note for note in getattr(hint, "__metadata__", ())}
    if str not in notes:
        return None
    key = notes.get(Key, Key())
    return Field(
        key=name if key.name is None else key.name,
        shape=shape_of(hint),
        description=notes[str],
        required=default is NODEFAULT,
        default=key.default,
        synonyms=notes.get(tuple, ()),
        attribute=name,
        initial=default.factory() if hasattr(default, "factory") else default,
        always=key.always or default is NODEFAULT,
    )


def _place(hint: Any) -> str | None:
    """The key whose place a field has, "" for that of the whole; None if it is no place."""
    notes = getattr(hint, "__metadata__", ())
    if (hint.__origin__ if notes else hint) is not Location:
        return None
    return str(notes[0].name) if notes else ""


def as_data(value: Any, shape: Shape | None = None) -> Data:
    """A value as a file says it, less what is as it is by default; `shape` is what it was read by.

    A Struct knows its own.
    """
    match value, shape:
        case Struct(), _:
            data = struct_data(value)
            return data.get("", data)
        case tuple(), MapOf(of=of):
            return {item.name: as_data(item, of) for item in value}
        case tuple(), _:
            return [
                as_data(item, shape.of if isinstance(shape, ListOf) else shape) for item in value
            ]
        case Mapping(), MapOf(key=key, of=of):
            return {str(as_data(name, key)): as_data(item, of) for name, item in value.items()}
        case "", Text(meant=meant) if meant is plain_path:
            return "."
    return value  # type: ignore[no-any-return]  # a text or a number


def struct_data(value: Any) -> dict[str, Data]:
    """A Struct in the keys of its format, in their order."""
    data: dict[str, Data] = {}
    kind: type[Struct] = type(value)
    record = record_of(kind)
    for field in record.fields:
        item = getattr(value, field.attribute)
        if field.always or item != field.initial:
            data[field.key] = as_data(item, field.shape)
    for key, added in record.added.items():
        if key in value.more:
            data[key] = as_data(value.more[key], added().shape)
    return data
