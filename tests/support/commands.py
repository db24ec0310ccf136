"""Run patchkit: in this process (fast), or as a process of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patchkit.cli.main import run as run_main


@dataclass(frozen=True)
class Ran:
    """A command that ended: its exit code and what it wrote."""

    argv: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        """Standard output as text."""
        return self.stdout.decode("utf-8", "surrogateescape")

    @property
    def err(self) -> str:
        """Standard error as text."""
        return self.stderr.decode("utf-8", "surrogateescape")

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.stdout)

    @property
    def component(self) -> Any:
        """The first component of that JSON."""
        return self.json["components"][0]

    def ok(self) -> Ran:
        """Itself, if the exit code is 0."""
        return self.ends(0)

    def ends(self, code: int, *words: str) -> Ran:
        """Itself, if it ended with this exit code, and said these words on standard error."""
        assert self.code == code, f"exit {self.code}\n{self.out}\n{self.err}"
        return self.says(*words)

    def says(self, *words: str) -> Ran:
        """Itself, if these words are on standard error."""
        assert [each for each in words if each not in self.err] == [], self.err
        return self

    def shows(self, *words: str) -> Ran:
        """Itself, if these words are on standard output."""
        assert [each for each in words if each not in self.out] == [], self.out
        return self


def run(*argv: str, cwd: Path | None = None) -> Ran:
    """Run a command line in this process, in `cwd` (default: where we are)."""
    out, err = io.BytesIO(), io.BytesIO()
    with _streams(out, err), _folder(cwd or Path.cwd()):
        code = run_main(list(argv))
    return Ran(argv, code, out.getvalue(), err.getvalue())


def run_in_child(prepare: Callable[[], object], *argv: str, cwd: Path) -> Ran | None:
    """Run a command line in a fork of this process, after `prepare`; None if that failed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            prepare()
            with os.fdopen(writer, "wb") as stream:
                pickle.dump(run(*argv, cwd=cwd), stream)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    ran = pickle.loads(data) if data else None
    assert isinstance(ran, Ran | None)
    return ran


def run_process(
    *argv: str,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout: float = 60,
    program: Sequence[str | Path] = (sys.executable, "-m", "patchkit"),
) -> Ran:
    """Run a command line as a process; `environment` in place of the current one."""
    done = subprocess.run(
        [*program, *argv],
        cwd=cwd,
        env=environment,
        input=stdin,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    return Ran(argv, done.returncode, done.stdout, done.stderr)


@contextlib.contextmanager
def _streams(out: io.BytesIO, err: io.BytesIO) -> Iterator[None]:
    texts = [io.TextIOWrapper(each, "utf-8", write_through=True) for each in (out, err)]
    with contextlib.redirect_stdout(texts[0]), contextlib.redirect_stderr(texts[1]):
        try:
            yield
        finally:
            for text in texts:
                text.detach()


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[None]:
    # contextlib.chdir is not in Python 3.10
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)
