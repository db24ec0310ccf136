"""System calls that change something, and the ways in which one can go wrong."""

from __future__ import annotations

import errno
import signal
from dataclasses import dataclass

#: By number on x86-64, the only machine that `tracing` knows.
OPENS = {2: "open", 85: "creat", 257: "openat"}
WRITES = {
    1: "write",
    18: "pwrite64",
    20: "writev",
    40: "sendfile",
    285: "fallocate",
    296: "pwritev",
    326: "copy_file_range",
}
MAKES = {
    83: "mkdir",
    258: "mkdirat",
    86: "link",
    265: "linkat",
    88: "symlink",
    266: "symlinkat",
    82: "rename",
    264: "renameat",
    316: "renameat2",
}
REMOVES = {87: "unlink", 263: "unlinkat", 84: "rmdir"}
CHANGES = {
    76: "truncate",
    77: "ftruncate",
    90: "chmod",
    91: "fchmod",
    268: "fchmodat",
    132: "utime",
    235: "utimes",
    280: "utimensat",
}
SYNCS = {74: "fsync", 75: "fdatasync"}
#: These take a file descriptor and change no file.
DESCRIPTORS = {22: "pipe", 293: "pipe2", 41: "socket"}

CHANGING = OPENS | WRITES | MAKES | REMOVES | CHANGES | SYNCS
ALL = CHANGING | DESCRIPTORS


@dataclass(frozen=True)
class Fault:
    """One way to go wrong.

    `error` is what the call returns, 0 for none; `signal` is sent just before it, to patchkit
    alone, or with `group` to the git processes it started, too. A `lasting` error hits every
    call from then on, as a full disk does.
    """

    name: str
    error: int = 0
    signal: int = 0
    group: bool = False
    lasting: bool = False
    calls: frozenset[int] = frozenset(CHANGING)
    reading: bool = False  # opening a file only to read it counts, too

    @property
    def kills(self) -> bool:
        """Whether patchkit gets no chance to tidy up."""
        return self.signal == signal.SIGKILL

    @property
    def tidies(self) -> bool:
        """Whether patchkit can tidy up after it: what it has begun is gone when it ends."""
        removing = self.calls & frozenset(REMOVES)
        return not self.kills and not (self.error and (removing or self.reading))


# a rename needs no space, so that a full disk does not keep anybody from putting things back
_NEEDS_SPACE = frozenset(OPENS | WRITES | MAKES) - {82, 264, 316}
_NEEDS_LEAVE = frozenset(OPENS | MAKES | REMOVES | CHANGES)
_NEEDS_DESCRIPTOR = frozenset(OPENS | DESCRIPTORS)

FAULTS = (
    Fault("kill", signal=signal.SIGKILL),
    Fault("kill-all", signal=signal.SIGKILL, group=True),
    Fault("term", signal=signal.SIGTERM),
    Fault("interrupt", signal=signal.SIGINT, group=True),
    Fault("full-once", error=errno.ENOSPC, calls=_NEEDS_SPACE),
    Fault("full", error=errno.ENOSPC, lasting=True, calls=_NEEDS_SPACE),
    Fault("io-error", error=errno.EIO),
    Fault("denied", error=errno.EACCES, calls=_NEEDS_LEAVE),
    Fault("denied-on", error=errno.EACCES, lasting=True, calls=_NEEDS_LEAVE),
    Fault("no-descriptor", error=errno.EMFILE, calls=_NEEDS_DESCRIPTOR, reading=True),
)


def fault_of(name: str) -> Fault:
    """The fault of that name."""
    return next(fault for fault in FAULTS if fault.name == name)
