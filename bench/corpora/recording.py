"""Run somebody's test scripts from their own tree, with the recorder in the way."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.corpora import recorder

#: Seconds for one script; some of them wait for each other.
_PATIENCE = 60
_WRAPPER = """#!/bin/sh
case {first} in
{passed}) exec {python} {recorder} {real} {cases} "$@" ;;
*) exec {real} "$@" ;;
esac
"""


@dataclass(frozen=True)
class Case:
    """One call: the script that made it, its arguments, the patch, the files it met (path ->
    mode, contents), and the exit code of the real program.
    """

    script: str
    argv: tuple[str, ...]
    patch: bytes
    files: Mapping[str, tuple[int, bytes]]
    code: int


def unpacked(clone: str, folders: Sequence[str], target: Path) -> Path:
    """Some folders of the newest commit of a clone (bare or not), as files."""
    target.mkdir(parents=True)
    archive = ["git", "-C", clone, "archive", "HEAD", *folders]
    with subprocess.Popen(archive, stdout=subprocess.PIPE) as made:
        subprocess.run(["tar", "-x", "-C", str(target)], stdin=made.stdout, check=True)
    if made.returncode:
        raise SystemExit(f"{clone}: git archive failed; is it a clone of the right repository?")
    return target


def head(clone: str) -> str:
    """The newest commit of a clone, short, with its date."""
    command = ["git", "-C", clone, "log", "-1", "--format=%h of %cs"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def wrapper(folder: Path, name: str, cases: Path, *, only: str = "") -> Path:
    """A program of that name that records its calls, with `only` those of a subcommand."""
    real = shutil.which(name)
    if real is None:
        raise SystemExit(f"{name} is not installed")
    folder.mkdir(exist_ok=True)
    cases.mkdir(exist_ok=True)
    path = folder / name
    text = _WRAPPER.format(
        first='"$1"' if only else "x",
        passed=only or "x",
        python=sys.executable,
        recorder=recorder.__file__,
        real=real,
        cases=cases,
    )
    path.write_text(text)
    path.chmod(0o755)
    return path


def run_script(script: Path, folder: Path, environment: Mapping[str, str]) -> int:
    """Run a test script to its end, whatever that is; its exit code."""
    surroundings = {**os.environ, **environment, "PATCHKIT_SCRIPT": script.name}
    with subprocess.Popen(
        ["bash", str(script)],
        cwd=folder,
        env=surroundings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # and what it started
            return 124


def recorded(cases: Path) -> Iterator[Case]:
    """What was recorded, in the order of the calls."""
    for path in sorted(cases.iterdir()):
        text = json.loads(path.read_text())
        files = {
            os.fsdecode(base64.b64decode(name)): (mode, base64.b64decode(data))
            for name, (mode, data) in text["files"].items()
        }
        patch = base64.b64decode(text["patch"])
        yield Case(text["script"], tuple(text["argv"]), patch, files, text["code"])
