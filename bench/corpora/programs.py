"""Run other programs, patchkit and git among them, and read what they say."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path


def attempt(
    *command: str,
    cwd: Path,
    patience: float,
    given: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program for at most `patience` seconds; `given` is what it reads."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C.UTF-8", **(variables or {})},
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=patience,
        check=False,
    )


def first_error(text: str) -> str:
    """The first error that patchkit says, else the first line; "" for nothing."""
    rows = [row for row in text.splitlines() if row.startswith("error: ")] or text.splitlines()
    return rows[0].removeprefix("error: ") if rows else ""
