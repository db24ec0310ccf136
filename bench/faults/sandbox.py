"""A folder to break things in: upstreams that nobody may touch, and a place put back every time."""

from __future__ import annotations

import compileall
import faulthandler
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import patchkit
from patchkit.cli.main import run
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

#: 2026-01-02 03:04:05 UTC
_NOW = "1767323045 +0000"
#: Seconds after which a command hangs.
_PATIENCE = 60


@dataclass
class Sandbox:
    """`outside` is whatever patchkit reads and may not write, `work` all that it may.

    Templates of `work` are kept by name, and come back at the same path.
    """

    root: Path
    templates: dict[str, Path] = field(default_factory=dict)

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def project(self) -> Project:
        return Project(self.work / "project")

    @property
    def cache(self) -> Path:
        return self.work / "home" / "cache"

    @property
    def temporary(self) -> Path:
        return self.work / "tmp"

    @property
    def hang(self) -> Path:
        """Where a command that hung tells where it stood."""
        return self.root / "hang"

    @property
    def outputs(self) -> tuple[Path, Path]:
        """Where stdout and stderr of the last command are."""
        return self.root / "stdout", self.root / "stderr"

    @property
    def stdin(self) -> Path:
        """What commands read from stdin, where a scene makes it."""
        return self.work / "stdin"

    def upstream(self, name: str) -> Upstream:
        """An upstream of that name, made if there is none."""
        path = self.outside / f"{name}.git"
        return Upstream(path) if path.exists() else Upstream.create(path)

    def begin(self) -> None:
        """An empty place to work in."""
        shutil.rmtree(self.work, ignore_errors=True)
        for folder in (self.project.root, self.cache.parent, self.temporary, self.outside):
            folder.mkdir(parents=True, exist_ok=True)

    def keep(self, name: str) -> None:
        """Keep the place as it is now as a template, instead of one of that name."""
        self.templates[name] = self.root / "templates" / name
        self.templates[name].parent.mkdir(exist_ok=True)
        shutil.rmtree(self.templates[name], ignore_errors=True)
        self.work.rename(self.templates[name])

    def restore(self, name: str) -> None:
        """Put a template back; hard links between files stay links."""
        shutil.rmtree(self.work, ignore_errors=True)
        subprocess.run(["cp", "-a", str(self.templates[name]), str(self.work)], check=True)

    def command(self, argv: Sequence[str]) -> Callable[[], int]:
        """Work for a forked child: a command line of patchkit in the project's folder."""

        def work() -> int:
            os.chdir(self.project.root)
            sys.dont_write_bytecode = True  # the command writes no modules of Python's own
            if self.stdin.exists():
                sys.stdin = self.stdin.open(encoding="utf-8")
            for place, target in zip(self.outputs, (1, 2), strict=True):
                os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), target)
            sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
            sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
            code = run(list(argv))
            _wait_for_threads()
            sys.stdout.flush()
            sys.stderr.flush()
            return code

        return work

    def run(self, argv: Sequence[str]) -> int:
        """Run a command line undisturbed; its exit code, negative for a signal."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                faulthandler.dump_traceback_later(_PATIENCE, exit=True, file=self.hang.open("w"))
                code = self.command(argv)()
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def said(self) -> tuple[str, str]:
        """What the last command wrote to stdout and stderr; where it stood, if it hung."""
        out, err = (path.read_text("utf-8", "replace") for path in self.outputs)
        return out, err + (self.hang.read_text() if self.hang.exists() else "")


@dataclass(frozen=True)
class Scene:
    """A command about to be run, in a project that `prepare` makes.

    `mine` are files of the user's in the checkout `demo`, with their bytes: untracked or edited,
    they must be there afterwards, or in a saved ref. `done` are exit codes that a second run may
    end with when the first one did its work: `new` cannot make the same patch twice. `parts` are
    commands that do some of the work, whole in itself: one component of several. A command that
    goes further when it is run again is struck by no fault, `once`. `pages` are files that tell of
    the run, and tell of a run that failed that it did.
    """

    name: str
    argv: tuple[str, ...]
    prepare: Callable[[Sandbox], object]
    mine: Mapping[str, bytes] = field(default_factory=dict)
    done: frozenset[int] = frozenset()
    parts: tuple[tuple[str, ...], ...] = ()
    once: bool = False
    pages: tuple[str, ...] = ()


@contextmanager
def sandbox(above: Path | None = None) -> Iterator[Sandbox]:
    """A sandbox below `above`, in an environment in which nothing of the user's is left."""
    # what a command loads late would be compiled into the place that it came from
    compileall.compile_dir(Path(patchkit.__file__).parent, quiet=1)
    make_patch({}, {"a": "one\n"})  # what makes patches keeps its own folder, and not one in here
    keeps = ("PATH", "LANG", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="patchkit-faults-", dir=above) as folder:
        made = Sandbox(Path(folder).resolve())
        for output in made.outputs:
            output.touch()
        environment = {name: before[name] for name in keeps if name in before} | _settings(made)
        try:
            _environ(environment)
            yield made
        finally:
            _environ(before)


def _settings(made: Sandbox) -> dict[str, str]:
    who = {
        f"GIT_{role}_{name}": value
        for role in ("AUTHOR", "COMMITTER")
        for name, value in (("NAME", "Ursula User"), ("EMAIL", "u@example.com"), ("DATE", _NOW))
    }
    return who | {
        "HOME": str(made.work / "home"),
        "TMPDIR": str(made.temporary),
        "PATCHKIT_CACHE": str(made.cache),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "SOURCE_DATE_EPOCH": _NOW.partition(" ")[0],
        "COLUMNS": "80",
        "NO_COLOR": "1",
        "EDITOR": "false",
    }


def _wait_for_threads() -> None:
    """As an interpreter that ends does."""
    shutdown = getattr(threading, "_shutdown")  # noqa: B009  (nobody tells mypy of it)
    shutdown()


def _environ(values: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(values)
    tempfile.tempdir = None
