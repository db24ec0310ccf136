"""Ask other programs of this machine: a Python what is installed in it, npu-smi for the driver."""

from __future__ import annotations

import json
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
with open(1, "w", closefd=False) as out:
    json.dump(answer, out)
"""


class TargetPython(Struct, frozen=True):
    """A Python and the packages that it would import: normal name -> version."""

    path: str
    version: str
    packages: Mapping[str, str]


def ask_python(program: str) -> TargetPython | str:
    """What is installed in a Python; or why it could not be asked."""
    # From the root folder: what lies where we stand is not what is installed.
    answer = _run([program, "-c", _QUESTION])
    if isinstance(answer, str):
        return answer
    try:
        data = json.loads(answer.stdout)
        return TargetPython(program, data["version"], data["packages"])
    except (ValueError, KeyError, TypeError):
        last = answer.stderr.strip().rpartition("\n")[2]
        return last or f"it gives no answer (exit code {answer.returncode})"


def ask_npu_smi(program: str) -> str | None:
    """What `npu-smi info` writes; None if it fails, as it does where no NPU is."""
    answer = _run([program, "info"])
    return None if isinstance(answer, str) or answer.returncode else answer.stdout


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[str] | str:
    try:
        return subprocess.run(
            argv,
            cwd=Path("/"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_PATIENCE} s"
    except OSError as error:
        return str(error.strerror)
