"""Run a piece of work, and all processes that it starts, under ptrace; strike at the n-th call.

A seccomp filter stops only the calls of `calls.ALL`, so that the rest runs at full speed. Calls are
counted over all processes and threads in the order in which they come. Everything that is written
to is noted.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.faults.calls import ALL, DESCRIPTORS, MAKES, OPENS, REMOVES, SYNCS, WRITES, Fault

_TRACEME, _CONT, _SETOPTIONS, _GETREGS, _SETREGS = 0, 7, 0x4200, 12, 13
_FORK, _VFORK, _CLONE, _EXEC, _SECCOMP = 1, 2, 3, 4, 7
_OPTIONS = 1 << _FORK | 1 << _VFORK | 1 << _CLONE | 1 << _EXEC | 1 << _SECCOMP | 1 << 20
_ALL_CHILDREN = 0x40000000  # __WALL: threads, too
_ORIG_RAX, _RAX, _RDI, _RSI, _RDX = 15, 10, 14, 13, 12
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_AT_FDCWD = -100

# Which argument is a path, and which the folder that it is relative to (None: where we are).
_PATHS = {
    "open": ((0, None),),
    "creat": ((0, None),),
    "openat": ((1, 0),),
    "mkdir": ((0, None),),
    "mkdirat": ((1, 0),),
    "link": ((1, None),),
    "linkat": ((3, 2),),
    "symlink": ((1, None),),
    "symlinkat": ((2, 1),),
    "rename": ((0, None), (1, None)),
    "renameat": ((1, 0), (3, 2)),
    "renameat2": ((1, 0), (3, 2)),
    "unlink": ((0, None),),
    "unlinkat": ((1, 0),),
    "rmdir": ((0, None),),
}
_ARGUMENTS = (14, 13, 12, 7, 9, 8)  # rdi rsi rdx r10 r8 r9

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Traced:
    """How a traced run ended; `code` is negative for a signal.

    `counts` says how often each call came, reading opens under "read"; `struck` is the call that
    was hit, "" if the run ended before; `written` are the paths that were changed.
    """

    code: int = 0
    struck: str = ""
    hung: bool = False
    counts: dict[int, int] = field(default_factory=dict)
    reads: int = 0
    written: set[str] = field(default_factory=set)

    def points(self, fault: Fault) -> int:
        """How many points of this run the fault can strike."""
        found = sum(count for number, count in self.counts.items() if number in fault.calls)
        return found + (self.reads if fault.reading else 0)


def unavailable() -> str:
    """Why processes cannot be traced here; "" if they can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"the tracer knows Linux on x86-64, not {sys.platform} on {platform.machine()}"
    try:
        seen = Tracer(None, 0, timeout=10).run(os.pipe)
    except OSError as error:
        return f"processes cannot be traced here: {error}"
    return "" if seen.counts else "seccomp filters do not work here"


class Tracer:
    """Strikes with `fault` at the `point`-th call that counts for it; never with fault None.

    `ignored` are files whose writing is not patchkit's own doing: where its output goes. With
    `act` the call goes well, and that is done just before it.
    """

    def __init__(
        self,
        fault: Fault | None,
        point: int,
        *,
        ignored: frozenset[str] = frozenset(),
        timeout: int = 60,
        act: Callable[[], object] | None = None,
    ) -> None:
        self._fault = fault
        self._act = act
        self._left = point
        self._ignored = ignored
        self._timeout = timeout
        self._main = 0
        self._known: set[int] = set()
        self._all_killed = False
        self._traced = Traced()

    def run(self, work: Callable[[], object]) -> Traced:
        """Run the work in a child of its own process group, until all that it started has ended."""
        child = os.fork()
        if child == 0:
            _be_traced(work)
        self._main = child
        self._known = {child}
        os.waitpid(child, 0)
        _ptrace(_SETOPTIONS, child, _OPTIONS)
        _ptrace(_CONT, child, 0)
        before = signal.signal(signal.SIGALRM, self._hang)
        signal.alarm(self._timeout)
        try:
            self._follow()
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        return self._traced

    def _hang(self, *_: object) -> None:
        self._traced.hung = True
        self._kill_all()

    def _kill_all(self) -> None:
        self._all_killed = True
        for process in list(self._known):
            _send(process, signal.SIGKILL)

    def _follow(self) -> None:
        # not until all that are known have ended: one that is just being born is not known yet
        while True:
            try:
                process, status = os.waitpid(-1, _ALL_CHILDREN)
            except ChildProcessError:
                return
            if os.WIFSTOPPED(status):
                self._stopped(process, status)
            elif process == self._main:
                self._traced.code = os.waitstatus_to_exitcode(status)

    def _stopped(self, process: int, status: int) -> None:
        event, number = status >> 16, os.WSTOPSIG(status)
        pass_on = 0
        if event == _SECCOMP:
            self._call(process)
        elif event == 0 and process not in self._known:
            self._known.add(process)  # a new process begins with a SIGSTOP of the tracer's
            if self._all_killed:
                _send(process, signal.SIGKILL)
        elif event == 0:
            pass_on = number
        with suppress(ProcessLookupError):  # killed meanwhile
            _ptrace(_CONT, process, pass_on)

    def _call(self, process: int) -> None:
        self._known.add(process)
        try:
            registers = _registers(process)
            counts = self._note(process, registers)
        except (ProcessLookupError, FileNotFoundError):
            return
        fault = self._fault
        if not counts or fault is None:
            return
        number = registers[_ORIG_RAX]
        self._left -= 1
        if self._left == 0 or (self._left < 0 and fault.lasting):
            self._traced.struck = self._traced.struck or ALL[number]
            self._strike(process, registers, fault)

    def _strike(self, process: int, registers: list[int], fault: Fault) -> None:
        if self._act is not None:
            self._act()
        elif fault.error:
            registers[_ORIG_RAX] = 2**64 - 1  # no call at all
            registers[_RAX] = 2**64 - fault.error
            _set_registers(process, registers)
        elif fault.kills and fault.group:
            self._kill_all()
        elif fault.group:
            os.killpg(self._main, fault.signal)
        else:
            _send(self._main, fault.signal)

    def _note(self, process: int, registers: list[int]) -> bool:
        """Count the call; whether it is one that the fault can strike."""
        number, traced = registers[_ORIG_RAX], self._traced
        name = ALL[number]
        if number in OPENS and not _opens_to_write(name, registers):
            traced.reads += 1
            return self._fault is not None and self._fault.reading
        paths = _paths(process, name, registers)
        if number in WRITES or number in SYNCS:
            path = _of_descriptor(process, registers[_RDX if name == "sendfile" else _RDI])
            if path is None or path in self._ignored:
                return False
        passed_over = {os.devnull, *self._ignored}
        if any(path in passed_over or path.startswith("/proc/") for path in paths):
            return False
        if number in OPENS or number in MAKES or number in REMOVES:
            traced.written.update(paths)
        if number in DESCRIPTORS and (self._fault is None or number not in self._fault.calls):
            traced.counts[number] = traced.counts.get(number, 0) + 1
            return False
        traced.counts[number] = traced.counts.get(number, 0) + 1
        return self._fault is not None and number in self._fault.calls


def _be_traced(work: Callable[[], object]) -> None:
    """In the child: stop for the tracer, then work; never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        # a shell lets what it runs in the background ignore ^C
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _ptrace(_TRACEME, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        _install_filter()
        answer = work()
        code = answer if isinstance(answer, int) else 0
    finally:
        os._exit(code)


def _install_filter() -> None:
    """Stop at every call of ALL, let all others through."""
    arch, trace, allow = 0xC000003E, 0x7FF00000, 0x7FFF0000
    program = [(0x20, 0, 0, 4), (0x15, 1, 0, arch), (0x06, 0, 0, allow), (0x20, 0, 0, 0)]
    program += [(0x15, len(ALL) - place, 0, number) for place, number in enumerate(ALL)]
    program += [(0x06, 0, 0, allow), (0x06, 0, 0, trace)]
    code = b"".join(struct.pack("HBBI", *row) for row in program)
    buffer = ctypes.create_string_buffer(code)
    rules = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    _check(_libc.prctl(38, 1, 0, 0, 0))  # PR_SET_NO_NEW_PRIVS
    _check(_libc.prctl(22, 2, ctypes.c_char_p(rules), 0, 0))  # PR_SET_SECCOMP, by filter


def _ptrace(request: int, process: int, data: int) -> None:
    _check(_call_ptrace(request, process, 0, data))


def _registers(process: int) -> list[int]:
    buffer = (ctypes.c_ulong * 27)()
    _check(_call_ptrace(_GETREGS, process, 0, ctypes.addressof(buffer)))
    return list(buffer)


def _set_registers(process: int, values: list[int]) -> None:
    buffer = (ctypes.c_ulong * 27)(*values)
    _check(_call_ptrace(_SETREGS, process, 0, ctypes.addressof(buffer)))


def _call_ptrace(request: int, process: int, address: int, data: int) -> int:
    _libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    _libc.ptrace.restype = ctypes.c_long
    answer: int = _libc.ptrace(request, process, address, data)
    return answer


def _check(answer: int) -> None:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _send(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def _opens_to_write(name: str, registers: list[int]) -> bool:
    if name == "creat":
        return True
    return bool(registers[_RDX if name == "openat" else _RSI] & _WRITING)


def _paths(process: int, name: str, registers: list[int]) -> list[str]:
    arguments = [registers[place] for place in _ARGUMENTS]
    found = []
    for path, folder in _PATHS.get(name, ()):
        text = os.fsdecode(_text(process, arguments[path]))
        above = "" if text.startswith("/") else _folder(process, folder, arguments)
        found.append(os.path.normpath(f"{above}/{text}" if above else text))
    return found


def _folder(process: int, place: int | None, arguments: list[int]) -> str:
    descriptor = ctypes.c_int(arguments[place] & 0xFFFFFFFF).value if place is not None else None
    if descriptor is None or descriptor == _AT_FDCWD:
        return str(Path(f"/proc/{process}/cwd").readlink())
    return str(Path(f"/proc/{process}/fd/{descriptor}").readlink())


def _text(process: int, address: int) -> bytes:
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        data = b""
        while b"\0" not in data and len(data) < 65536:
            # never beyond a page, the next one may not be there
            at = address + len(data)
            memory.seek(at)
            data += memory.read(4096 - at % 4096)
    return data.split(b"\0", 1)[0]


def _of_descriptor(process: int, descriptor: int) -> str | None:
    """The path of a regular file that is open; None for pipes and the like."""
    place = Path(f"/proc/{process}/fd/{descriptor & 0xFFFFFFFF}")
    return str(place.readlink()) if place.is_file() else None
