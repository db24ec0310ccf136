"""Run a command in a child that permissions bind, also where the tests run as root."""

from __future__ import annotations

import ctypes
import os
import pickle
import struct
from pathlib import Path

import pytest

from tests.support.commands import Ran, run

_DROP_BOUND = 24  # PR_CAPBSET_DROP
_OVERRIDES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_VERSION = 0x20080522


def run_bound(*argv: str, cwd: Path) -> Ran:
    """A command line by somebody whom the modes of files and folders bind."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            _bind()
            with os.fdopen(writer, "wb") as stream:
                pickle.dump(run(*argv, cwd=cwd), stream)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    if not data:
        pytest.skip("the right to pass over permissions cannot be given up here")
    ran = pickle.loads(data)
    assert isinstance(ran, Ran)
    return ran


def _bind() -> None:
    """Give up the right to pass over permissions, also for the programs that are started."""
    if os.getuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for number in _OVERRIDES:
        if libc.prctl(_DROP_BOUND, number, 0, 0, 0) < 0:
            raise OSError(ctypes.get_errno(), "prctl")
    header = ctypes.create_string_buffer(struct.pack("Ii", _VERSION, 0))
    sets = ctypes.create_string_buffer(24)
    if libc.capget(header, sets) < 0:
        raise OSError(ctypes.get_errno(), "capget")
    words = list(struct.unpack("6I", sets.raw))
    mask = ~sum(1 << number for number in _OVERRIDES) & 0xFFFFFFFF
    for place in (0, 1, 2):
        words[place] &= mask
    if libc.capset(header, struct.pack("6I", *words)) < 0:
        raise OSError(ctypes.get_errno(), "capset")
