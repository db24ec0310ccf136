"""Somebody else at work: change a file while a command is in the middle of its own work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.support.commands import Ran, run_in_child


def run_meanwhile(*argv: str, cwd: Path, git: str, change: Callable[[], object]) -> Ran:
    """Run a command line; `change` is called just before it first starts `git <git>`.

    It runs in a forked child, as an audit hook stays for as long as its process.
    """
    ran = run_in_child(partial(_hook, git, change), *argv, cwd=cwd)
    assert ran is not None
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
