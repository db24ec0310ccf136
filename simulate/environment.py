"""`python -m simulate.environment VENV`: a virtual environment that the runs can use.

Standard library alone: it is what makes the others importable. torch is a build without CUDA, from
whatever index pip is configured with; where that has none, it is said and nothing is downloaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
TORCH = os.environ.get("SIMULATE_TORCH", "torch==2.13.0+cpu")


class NoTorchError(RuntimeError):
    """pip found no build of torch for a CPU."""


def make(folder: Path) -> None:
    """The environment at `folder`, complete when this returns; what is there already is kept."""
    python = folder / "bin" / "python"
    stamp = folder / ".simulates"
    wanted = f"{TORCH}\n{(HERE / 'requirements.txt').read_text()}"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    if not python.exists():
        venv.create(folder, with_pip=True)
    constraints = folder / "constraints.txt"
    constraints.write_text(f"{TORCH}\n")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    found = subprocess.run([*pip, TORCH], capture_output=True, text=True, check=False)
    if found.returncode:
        last = found.stderr.strip().splitlines()[-1:] or ["pip failed"]
        raise NoTorchError(
            f"{TORCH}: {last[0]}\n"
            "hint: set PIP_EXTRA_INDEX_URL to an index with PyTorch's builds for CPUs, or "
            "SIMULATE_TORCH to what your index calls one"
        )
    requirements = str(HERE / "requirements.txt")
    subprocess.run([*pip, "-c", str(constraints), "-r", requirements], check=True)
    stamp.write_text(wanted)


if __name__ == "__main__":
    try:
        make(Path(sys.argv[1]))
    except NoTorchError as error:
        print(f"simulate: {error}", file=sys.stderr)
        sys.exit(3)
    except subprocess.CalledProcessError as error:
        print(f"simulate: {' '.join(error.cmd)} failed", file=sys.stderr)
        sys.exit(1)
