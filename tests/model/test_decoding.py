"""Values read from data; by many threads, of types that none has read before."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
from msgspec import Struct

from patchkit.model.decoding import from_builtins, from_json, from_msgpack
from tests.support.laws import SHARE


class Inner(Struct, frozen=True):
    number: int


class Outer(Struct, frozen=True):
    inner: tuple[Inner, ...]
    text: bytes = b""


def test_what_was_written_is_read_again() -> None:
    value = Outer((Inner(1), Inner(2)), b"\xff")
    assert from_msgpack(msgspec.msgpack.encode(value), Outer) == value
    assert from_json(msgspec.json.encode(value), Outer) == value
    assert from_builtins(msgspec.to_builtins(value), Outer) == value
    raw = {"inner": [{"number": 1}], "text": b"\xff"}
    assert from_builtins(raw, Outer, builtin_types=(bytes,)) == Outer((Inner(1),), b"\xff")


def test_what_is_of_another_type_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        from_builtins({"inner": 1}, Outer)
    with pytest.raises(msgspec.ValidationError):
        from_json(b'{"inner": [{"number": ""}]}', Outer)
    with pytest.raises(ValueError, match="truncated"):
        from_msgpack(b"", Outer)


# Forks of a process that has loaded all modules and read nothing: each begins as a command does.
_READERS = """
import os, pkgutil, sys
from contextlib import suppress
from importlib import import_module
from threading import Barrier, Thread
import msgspec
import patchkit
from patchkit.model.decoding import from_builtins, from_json, from_msgpack

def structs(of):
    for each in of.__subclasses__():
        yield each
        yield from structs(each)

for module in pkgutil.walk_packages(patchkit.__path__, "patchkit."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
rows = []
for number, kind in enumerate(structs(msgspec.Struct)):
    data = dict.fromkeys(kind.__struct_encode_fields__, 1)
    readers = (
        (from_builtins, data, kind),
        (from_json, msgspec.json.encode(data), kind),
        (from_msgpack, msgspec.msgpack.encode([data]), tuple[kind, ...]),
    )
    rows.append(readers[number % 3])

def read_all(first, barrier):
    barrier.wait()
    for read, data, kind in rows[first:] + rows[:first]:
        # TypeError, NameError: a type that is never read, as one with functions in it
        with suppress(msgspec.ValidationError, TypeError, NameError):
            read(data, kind)

def child(number):
    sys.setswitchinterval(1e-6)
    barrier = Barrier(8)
    # all threads read one type at once, or types that may share another one
    starts = [n * (number % 2) * len(rows) // 8 for n in range(8)]
    threads = [Thread(target=read_all, args=(each, barrier)) for each in starts]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

died = 0
for number in range(int(sys.argv[1])):
    process = os.fork()
    if process == 0:
        child(number)
        os._exit(0)
    died += os.waitpid(process, 0)[1] != 0
print(len(rows), died)
"""


@pytest.mark.hypothesis  # by this mark `make faults` selects laws
@pytest.mark.slow
def test_law_threads_may_read_any_type_first() -> None:
    processes = 200 if SHARE >= 1 else 3
    command = [sys.executable, "-c", _READERS, str(processes)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    read, died = map(int, done.stdout.split())
    assert read > 400
    assert died == 0
