"""Other programs of this machine that are asked something: a Python, what is installed in it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

#: How long a program may take; a Python on a slow disk has hundreds of packages to look through.
_PATIENCE = 60

_QUESTION = """\
import json, re, sys
from importlib.metadata import distributions
packages = {}
for each in distributions(path=[folder for folder in sys.path if folder]):
    name = each.metadata["Name"]
    if name:
        packages.setdefault(re.sub("[-_.]+", "-", name).lower(), each.version)
answer = {"version": "%d.%d.%d" % sys.version_info[:3], "packages": packages}
answer["folders"] = [folder for folder in sys.path if folder]
with open(1, "w", closefd=False) as out:
    json.dump(answer, out)
"""


class TargetPython(Struct, frozen=True):
    """A Python and the packages that it would import: normal name -> version.

    `folders` is where it looks for modules, in order.
    """

    path: str  # of the interpreter
    version: str
    packages: Mapping[str, str]
    folders: tuple[str, ...]


def ask_python(program: str) -> TargetPython | str:
    """What is installed in a Python; or why it could not be asked."""
    # From the root folder: what lies where we stand is not what is installed.
    answer = run_program([program, "-c", _QUESTION])
    if isinstance(answer, str):
        return answer
    try:
        data = json.loads(answer.stdout)
        folders = tuple(map(str, data["folders"]))
        return TargetPython(program, data["version"], data["packages"], folders)
    except (ValueError, KeyError, TypeError):
        last = answer.stderr.strip().rpartition("\n")[2]
        return last or f"no answer (exit code {answer.returncode})"


def run_program(
    argv: Sequence[str], variables: Mapping[str, str] | None = None, patience: int = _PATIENCE
) -> subprocess.CompletedProcess[str] | str:
    """Run a program to its end, `patience` in seconds; or why that was not possible."""
    try:
        return subprocess.run(
            argv,
            cwd=Path("/"),
            env=os.environ | (variables or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {patience} s"
    except OSError as error:
        return str(error.strerror)
