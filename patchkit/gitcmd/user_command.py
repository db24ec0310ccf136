"""Run a shell command that the user, or a manifest that the user has read, asks for.

Nothing here runs unless it was asked for by an option. A command gets a process group of its own,
and the whole group is ended with it: on ^C, when its time is over, and when it leaves something
running. Invariant: a signal ends the group at once, or, where it comes before the group's id is
known, as soon as it is; it raises only when nothing runs any more.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

from msgspec import Struct

from patchkit.gitcmd.process import signals_held
from patchkit.model.objects import lines_of
from patchkit.model.progress import Stop

#: So many of a command's last lines are shown.
_LINES = 5
_TAIL = 1 << 16  # bytes in which these are looked for
_BLOCK = 512  # bytes: the unit of `ulimit -f`
#: Codes from here on are a shell's own: the command was killed, or is not there.
_NO_VERDICT = 126


class CommandEnd(Struct, frozen=True):
    """How a command ended: its exit code, None where it did not end by itself.

    `problem` says what went wrong, "" for exit code 0; `output` are its last lines on one line, ""
    where they were shown.
    """

    code: int | None
    problem: str = ""
    output: str = ""

    @property
    def is_verdict(self) -> bool:
        """Whether it ran to its end, and the code is its own."""
        return self.code is not None and 0 <= self.code < _NO_VERDICT


def run_command(
    command: str,
    folder: Path,
    *,
    patience: float | None = None,
    variables: Mapping[str, str] | None = None,
    shown_on: int | None = None,
    largest: int | None = None,
    stop: Stop | None = None,
) -> CommandEnd:
    """Run `command` by `sh -e` in a folder, with more environment `variables`.

    `patience` is in seconds, None for no end. `shown_on` is a descriptor that what it writes goes
    to as it comes. `largest` is the most bytes that a file it writes may have, what it prints
    included. `stop` ends a command that runs in another thread than the main one, StoppedError
    follows. On disk: whatever the command does.
    """
    if largest is not None:
        command = f"ulimit -f {largest // _BLOCK}\n{command}"
    group, stop = _Group(), stop or Stop()
    # a pipe would keep us as long as anything it started lives
    with TemporaryFile() as output, signals_held(group.end), stop.killing(group.end):
        try:
            process = group.started(
                subprocess.Popen(
                    ["sh", "-e", "-c", command],
                    cwd=folder,
                    env={**os.environ, **(variables or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=output if shown_on is None else shown_on,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
            code = process.wait(patience)
        except OSError as error:
            return CommandEnd(None, f"cannot be started: {error.strerror}")
        except subprocess.TimeoutExpired:
            return CommandEnd(None, f"does not end within {patience or 0:.0f} seconds")
        finally:
            group.end()
            group.reap()
        stop.check()
        if code == 0:
            return CommandEnd(0)
        output.seek(max(0, output.seek(0, os.SEEK_END) - _TAIL))
        lines = lines_of(output.read().decode("utf-8", "replace").strip())[-_LINES:]
        how = f"exits with {code}" if code > 0 else f"is killed by signal {-code}"
        return CommandEnd(code, how, " / ".join(lines))


class _Group(Struct):
    """The process group of a command; `end` may be called at any time, also by a signal."""

    _process: subprocess.Popen[bytes] | None = None
    _ended: bool = False

    def started(self, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        """The group is there; it ends at once where `end` was called meanwhile."""
        self._process = process
        if self._ended:
            self.end()
        return process

    def end(self) -> None:
        """Kill whatever is in the group."""
        self._ended = True
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def reap(self) -> None:
        """Take note of the command's end, so that no zombie is left."""
        if self._process is not None:
            self._process.wait()
