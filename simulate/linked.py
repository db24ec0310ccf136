"""`python -m simulate.linked ENVIRONMENT WORD ...`: what `pip install WORD ...` does in a virtual
environment, done by uv: it has a cache, and links files that are there already.

Packages come from where pip is configured to look.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from patchkit.upstream.index import index_configuration


def install(environment: Path, words: Sequence[str]) -> int:
    """The exit code."""
    python = str(environment / "bin" / "python3")
    own = str(Path(sys.executable).parent)
    uv = shutil.which("uv", path=os.pathsep.join((os.environ.get("PATH", os.defpath), own)))
    if uv is None:
        raise SystemExit(f"simulate: uv is missing: {sys.executable} -m pip install uv")
    found = index_configuration()
    variables = {
        "UV_DEFAULT_INDEX": "".join(found.indexes[:1]),
        "UV_INDEX": " ".join(found.indexes[1:]),
        "UV_FIND_LINKS": ",".join(found.find_links),
        "UV_INDEX_STRATEGY": "unsafe-best-match",  # as pip: the newest of all indexes
    }
    once = "--no-deps"  # pip takes it twice
    words = [word for at, word in enumerate(words) if word != once or once not in words[:at]]
    command = [uv, "pip", "install", "--no-config", "--python", python, *words]
    return subprocess.run(command, env=os.environ | variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[1]), sys.argv[2:]))
