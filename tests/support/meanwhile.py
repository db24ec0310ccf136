"""Somebody else at work: change a file while a command is in the middle of its own work."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.commands import Ran, run


def run_meanwhile(*argv: str, cwd: Path, git: str, change: Callable[[], object]) -> Ran:
    """Run a command line; `change` is called just before it first starts `git <git>`.

    It runs in a forked child, as an audit hook stays for as long as its process.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            _hook(git, change)
            ran = run(*argv, cwd=cwd)
            with os.fdopen(writer, "wb") as stream:
                pickle.dump(ran, stream)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        ran = pickle.load(stream)
    os.waitpid(child, 0)
    assert isinstance(ran, Ran)
    return ran


def _hook(git: str, change: Callable[[], object]) -> None:
    waiting = True

    def look(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal waiting
        words = str(arguments[1]) if event == "subprocess.Popen" else ""
        # the history of operations is read before the project is
        if waiting and git in words and "history.git" not in words:
            waiting = False
            change()

    sys.addaudithook(look)
