"""`patchkit` for a shell, run by a process that has loaded all of it: a fork in place of a start.

The command is a line of shell, which tells its number to the server; the server reads directory,
arguments and environment of that process from /proc, and its child opens the same streams (so the
command may not redirect its own, even for a moment). The exit code comes back through a pipe of
the command's own. Python's start is what is left out, and tested by `tests/cli/test_startup.py`.
"""

from __future__ import annotations

import gc
import os
import pkgutil
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import patchkit
from patchkit.cli.main import main

_COMMAND = """\
#!/bin/sh
mkfifo {folder}/$$ && (echo $$ >{folder}/asked) && read code <{folder}/$$ && exit $code
"""


@contextmanager
def served_command(folder: Path) -> Iterator[str]:
    """The text of a program that is patchkit as long as the block lasts; `folder` is the server's.

    The server has no environment but PATH: what a command sees is its own.
    """
    folder.mkdir()
    os.mkfifo(folder / "asked")
    argv = [sys.executable, "-m", __name__, str(folder)]
    root = str(Path(__file__).parents[2])
    kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
    environment = kept | {"PATH": os.environ["PATH"], "PYTHONPATH": root, "LC_ALL": "C.UTF-8"}
    # no child of ours, so that a test may wait for all of its children; it ends with its input
    detached = ["sh", "-c", 'exec 3<&0; "$@" <&3 3<&- &', "sh", *argv]
    with subprocess.Popen(detached, env=environment, stdin=subprocess.PIPE) as started:
        started.wait()
        yield _COMMAND.format(folder=folder)


def _serve(folder: Path) -> None:
    for module in pkgutil.walk_packages(patchkit.__path__, "patchkit."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    gc.collect()
    gc.freeze()
    # a shell lets what it detaches ignore both
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    asked = os.open(folder / "asked", os.O_RDWR)  # for writing, too: it never ends
    while 0 not in select.select([asked, 0], [], [])[0]:
        for number in os.read(asked, select.PIPE_BUF).split():  # each came in one piece
            if os.fork() == 0:
                _answer(folder, int(number))
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def _answer(folder: Path, asking: int) -> None:
    """Run the command of the process that asks in a child, and write how it ended."""
    child = os.fork()
    if child == 0:
        _run(Path("/proc", str(asking)))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    pipe = folder / str(asking)
    with pipe.open("w") as answer:  # opens once the command reads it
        pipe.unlink()  # process numbers come again
        answer.write(f"{code if code >= 0 else 128 - code}\n")
    os._exit(0)


def _run(process: Path) -> None:
    code = 70
    try:
        for number, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
            stream = os.open(process / "fd" / str(number), flags | os.O_APPEND)
            os.dup2(stream, number)
            os.close(stream)
        os.chdir((process / "cwd").readlink())
        rows = (process / "environ").read_bytes().split(b"\0")[:-1]
        os.environb.clear()
        os.environb.update(dict(row.split(b"=", 1) for row in rows))
        time.tzset()
        # the interpreter of the command and its file come first
        words = (process / "cmdline").read_bytes().split(b"\0")[2:-1]
        sys.argv = ["patchkit", *map(os.fsdecode, words)]
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
