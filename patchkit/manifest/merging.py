"""`extends`: lay one file's nodes over those of the parts that it shares.

Mappings with keys of their own (environments, the components by name, a component) are merged key
by key; every other value (a text, a list, a source, a pin) is taken whole from the file that says
it last. Nodes keep their places, so a problem is told where it was written.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from patchkit.manifest.nodes import Node, Scalar, Table
from patchkit.manifest.shapes import MapOf, Record, Shape

#: What a file says of itself, not of those who share it.
_OWN = ("version", "description", "extends")


def shared(table: Table) -> Table:
    """What others take from a part."""
    entries = tuple(entry for entry in table.entries if entry[0].text not in _OWN)
    return replace(table, entries=entries)


def merge(under: Node, over: Node, shape: Shape) -> Node:
    """`over` laid on `under`; keys of `under` come first, in its order."""
    if not isinstance(under, Table) or not isinstance(over, Table):
        return over
    match shape:
        case MapOf(of=of):
            return _merge_tables(under, over, lambda key: of)
        case Record():
            return _merge_tables(under, over, lambda key: _field_shape(shape, key))
        case _:
            return over


def _merge_tables(under: Table, over: Table, shape_of: Callable[[str], Shape | None]) -> Table:
    ours = dict(reversed([(key.text, (key, value)) for key, value in over.entries]))
    merged: list[tuple[Scalar, Node]] = []
    for key, value in under.entries:
        if key.text in ours:
            our_key, our_value = ours[key.text]
            shape = shape_of(key.text)
            merged.append((our_key, our_value if shape is None else merge(value, our_value, shape)))
        else:
            merged.append((key, value))
    inherited = {key.text for key, _ in under.entries}
    merged += (entry for entry in over.entries if entry[0].text not in inherited)
    return replace(over, entries=tuple(merged))


def _field_shape(record: Record, key: str) -> Shape | None:
    field = record.field(key)
    return None if field is None else field.shape
