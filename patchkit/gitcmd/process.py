"""Run git in one of two environments.

*Sealed*: for every command whose output or effect we depend on. Nothing of the user's
configuration, environment or locale reaches git, no hook runs, no question is asked.
*Network*: for clone and fetch. The user's configuration stays in force (proxies, credentials,
`url.*.insteadOf`, certificates), only what could redirect git to another repository is removed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from msgspec import Struct

from patchkit.errors import SHORTAGES, SurroundingsError
from patchkit.model.objects import lines_of

#: The oldest git that patchkit works with; the only place that says so.
MINIMUM_GIT = (2, 34)

# Kept in the sealed environment: where programs and temporary files are, nothing that steers git.
_SEALED_KEEPS = ("PATH", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH", "LD_PRELOAD")

_SEALED_SETS = {
    "LC_ALL": "C",  # messages that we parse, and the order of names
    "TZ": "UTC",
    "HOME": os.devnull,
    "XDG_CONFIG_HOME": os.devnull,  # $XDG_CONFIG_HOME/git/attributes changes diffs
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",  # refs/replace would change trees behind their ids
    "GIT_NO_LAZY_FETCH": "1",  # a missing object is an error, never a surprise download
    "GIT_OPTIONAL_LOCKS": "0",  # looking must not write the index
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_FLUSH": "0",  # a log goes through the pipe in large pieces, not commit by commit
}

_SEALED_CONFIG = (
    "core.hooksPath=" + os.devnull,
    "core.attributesFile=" + os.devnull,
    "core.excludesFile=" + os.devnull,
    "core.quotePath=false",
    "core.fsmonitor=false",
    "core.splitIndex=false",  # an index is one file, which can be copied and renamed
    "core.precomposeUnicode=false",
    "safe.directory=*",  # the path is one that patchkit was given or made, not one it came upon
    "gc.auto=0",  # a collection in the background would outlive the lock
    "maintenance.auto=false",
    "submodule.recurse=false",
    "protocol.allow=never",  # what GIT_NO_LAZY_FETCH says, for gits that do not know it
    "advice.detachedHead=false",
)

# Removed for network commands: these would point git at another repository, object store or index,
# or trace into files; GIT_SSH*, GIT_ASKPASS, GIT_CONFIG_* and proxies stay, they are the user's.
_NETWORK_DROPS = re.compile(
    r"GIT_(DIR|WORK_TREE|INDEX_FILE|PREFIX|NAMESPACE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES"
    r"|COMMON_DIR|CEILING_DIRECTORIES|SHALLOW_FILE|GRAFT_FILE|QUARANTINE_PATH|REPLACE_REF_BASE"
    r"|DIFF_OPTS|EXTERNAL_DIFF|TRACE.*|INTERNAL_.*)"
)


# How git ends a line of stderr where the system kept it from looking. It goes on without what it
# could not open, and its exit code is often 0.
_SHORTAGE = re.compile(rb"(?m)^.*: (?:%b)$" % "|".join(map(os.strerror, SHORTAGES)).encode())


class Finished(Struct, frozen=True):
    """A git command that ran to its end."""

    code: int  # its exit status
    out: bytes  # the standard output
    err: bytes  # the standard error

    @property
    def message(self) -> str:
        """What git said on stderr, as text."""
        return self.err.decode("utf-8", "replace").strip()


class GitFailureError(SurroundingsError):
    """A git command that should have worked and did not."""

    def __init__(self, args: Sequence[str], finished: Finished) -> None:
        said = lines_of(finished.message)
        why = said[-1] if said else f"exit {finished.code}"
        super().__init__(f"git {_verb(args)} failed: {why}")


class NoAnswerError(SurroundingsError):
    """A git that could not look: it says nothing of what is in the repository and what is not."""


class UntoldVersionError(SurroundingsError):
    """What is called git does not say which version it is."""


def _verb(args: Sequence[str]) -> str:
    return next(each for each in args if not each.startswith("-"))


def sealed_environment() -> dict[str, str]:
    """The environment of commands whose result we depend on."""
    kept = {name: os.environ[name] for name in _SEALED_KEEPS if name in os.environ}
    return kept | _SEALED_SETS


def network_environment() -> dict[str, str]:
    """The user's environment for clone and fetch, less what redirects git; never asks."""
    kept = {k: v for k, v in os.environ.items() if not _NETWORK_DROPS.fullmatch(k)}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def sealed_command(args: Sequence[str], git_dir: Path | None) -> list[str]:
    """The argument list of a sealed git command."""
    command = [git_program()]
    for setting in _SEALED_CONFIG:
        command += ["-c", setting]
    if git_dir is not None:
        command.append(f"--git-dir={git_dir}")
    return [*command, *args]


def run_sealed(
    args: Sequence[str],
    *,
    git_dir: Path | None = None,
    work_tree: Path | None = None,
    stdin: bytes = b"",
    accept: Sequence[int] = (0,),
    extra: Mapping[str, str] | None = None,
) -> Finished:
    """Run `git ARGS` sealed; raises GitFailureError on an exit code that is not in `accept`.

    Whatever its exit code, NoAnswerError where it says that the system let it open no file.
    `work_tree` is also where git runs; without it git runs in the root folder, so that it can
    never come upon a repository by itself. `extra` adds environment variables (GIT_INDEX_FILE).
    """
    environment = sealed_environment() | dict(extra or {})
    if work_tree is not None:
        environment["GIT_WORK_TREE"] = str(work_tree)
    done = subprocess.run(
        sealed_command(args, git_dir),
        input=stdin,
        capture_output=True,
        env=environment,
        cwd=work_tree or "/",
        check=False,
    )
    require_uninterrupted(done)
    finished = Finished(done.returncode, done.stdout, done.stderr)
    if short := _SHORTAGE.search(done.stderr):
        raise NoAnswerError(f"git {_verb(args)}: {os.fsdecode(short[0])}", hint="run it again")
    if done.returncode not in accept:
        with suppress(OSError, UntoldVersionError):  # gone, or ended by the same signal
            require_git()
        raise GitFailureError(args, finished)
    return finished


def require_uninterrupted(
    git: subprocess.CompletedProcess[bytes] | subprocess.Popen[bytes],
) -> None:
    """KeyboardInterrupt where ^C ended a git, in whatever thread: it says nothing of what it was
    asked.
    """
    if git.returncode == -signal.SIGINT:
        raise KeyboardInterrupt


@cache
def git_program() -> str:
    """The path of git; raises SurroundingsError if there is none."""
    found = shutil.which("git")
    if found is None:
        raise SurroundingsError("git is not installed", hint="install git, or put it on PATH")
    return found


@cache
def git_version() -> tuple[int, int]:
    """(major, minor) of the installed git."""
    out = subprocess.run([git_program(), "version"], capture_output=True, text=True, check=False)
    match = re.search(r"(\d+)\.(\d+)", out.stdout)
    if match is None:
        raise UntoldVersionError(f"{git_program()} does not report its version")
    return int(match[1]), int(match[2])


def require_git() -> None:
    """Raise SurroundingsError if git is missing or older than MINIMUM_GIT.

    Asked where a repository is made, where the network is, and when a git command failed, so that
    what goes well costs no process more.
    """
    if git_version() < MINIMUM_GIT:
        have = ".".join(map(str, git_version()))
        need = ".".join(map(str, MINIMUM_GIT))
        hint = f"patchkit needs git {need}"
        raise SurroundingsError(f"git {have} is too old ({git_program()})", hint=hint)


# Processes in sessions of their own: ^C on a terminal does not reach them, we have to end them.


@contextmanager
def signals_held(on_signal: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Put off ^C, and every signal that ends patchkit as ^C does, until the block ends.

    `on_signal` is called as soon as one comes; the exception follows when the block is left.
    Start a process and note its id inside the block: otherwise a signal between fork and the return
    of Popen raises before the id is noted, and the process is left running. Only the main thread
    gets signals; in another one nothing is held.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {each: signal.getsignal(each) for each in _ENDING}

    def note(number: int, _frame: object) -> None:
        came.append(number)
        on_signal()

    try:
        for number, handler in handlers.items():
            if callable(handler):  # not one that is ignored, or that ends the process at once
                signal.signal(number, note)
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
        for each in came[:1]:
            handler = handlers[signal.Signals(each)]
            assert callable(handler)
            handler(each, None)


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
