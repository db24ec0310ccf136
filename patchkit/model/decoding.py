"""Values of a type from data: the only place that asks msgspec for them, as several threads may.

What msgspec knows of a Struct is made when a value of it is first read, and other threads see it
half made: one that reads by it ends the process. So all that a type consists of is made here, under
one lock for all types, as two of them may share a third.
"""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

import msgspec

T = TypeVar("T")

_lock = Lock()
#: Types of which msgspec knows everything. Invariant: a type is in here only after it is so.
_known: set[object] = set()


def from_builtins(data: object, kind: type[T], builtin_types: tuple[type, ...] = ()) -> T:
    """What JSON gave as values of `kind`; msgspec.ValidationError if it is not of it."""
    return msgspec.convert(data, _made_known(kind), builtin_types=builtin_types)


def from_json(data: bytes, kind: type[T]) -> T:
    """JSON as values of `kind`; msgspec.DecodeError if it is not of it."""
    return msgspec.json.decode(data, type=_made_known(kind))


def from_msgpack(data: bytes, kind: type[T]) -> T:
    """Msgpack as values of `kind`; msgspec.DecodeError if it is not of it."""
    return msgspec.msgpack.decode(data, type=_made_known(kind))


def _made_known(kind: type[T]) -> type[T]:
    if kind not in _known:
        with _lock:
            msgspec.msgpack.Decoder(kind)
            _known.add(kind)
    return kind
