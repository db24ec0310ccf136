"""Run something in a child with fewer powers: bound by permissions, or without system calls."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.commands import Ran, run_in_child

_DROP_BOUND = 24  # PR_CAPBSET_DROP
_OVERRIDES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_VERSION = 0x20080522


def run_bound(*argv: str, cwd: Path) -> Ran:
    """A command line by somebody whom the modes of files and folders bind."""
    ran = run_in_child(_bind, *argv, cwd=cwd)
    if ran is None:
        pytest.skip("the right to pass over permissions cannot be given up here")
    return ran


_NUMBERS = {"renameat2": 316, "link": 86, "linkat": 265}


def without_calls(names: Sequence[str], work: Callable[[], bool]) -> bool:
    """What the work says in a child whose kernel does not know these system calls."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("the filter is for Linux on x86-64")
    child = os.fork()
    if child == 0:
        code = 2
        try:
            _forbid([_NUMBERS[name] for name in names])
            code = 0 if work() else 1
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1), "the work failed"
    return code == 0


def _forbid(numbers: Sequence[int]) -> None:
    """Let these calls fail with ENOSYS, by a seccomp filter."""
    libc = ctypes.CDLL(None, use_errno=True)
    refuse, allow = 0x00050000 | errno.ENOSYS, 0x7FFF0000
    program = [(0x20, 0, 0, 0)]
    program += [(0x15, len(numbers) - place, 0, each) for place, each in enumerate(numbers)]
    program += [(0x06, 0, 0, allow), (0x06, 0, 0, refuse)]
    code = b"".join(struct.pack("HBBI", *row) for row in program)
    buffer = ctypes.create_string_buffer(code)
    rules = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, ctypes.c_char_p(rules), 0, 0) == 0  # PR_SET_SECCOMP, by filter


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
