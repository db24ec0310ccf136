"""`python -m simulate.environment [--quick] VENV`: a virtual environment that the runs can use.

Standard library alone: it is what makes the others importable. torch is a build without CUDA, from
whatever index pip is configured with; where that has none, it is said. uv installs: its cache then
has what is large for the run `install`. --quick: what the short form needs, a fifth of the rest.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
TORCH = os.environ.get("SIMULATE_TORCH", "torch==2.13.0+cpu")


class NoTorchError(RuntimeError):
    """There is no build of torch for a CPU."""


def make(folder: Path, *, quick: bool = False) -> None:
    """The environment at `folder`, complete when this returns; what is there already is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _make(folder, quick)


def _make(folder: Path, quick: bool) -> None:
    stamp = folder / ".simulates"
    names = [f"requirements{each}.txt" for each in ("-quick", "", "-alone", "-next")]
    whole = "\n".join([TORCH, *((HERE / name).read_text() for name in names)])
    wanted = f"{TORCH}\n{(HERE / names[0]).read_text()}" if quick else whole
    if stamp.exists() and stamp.read_text() in (wanted, whole):
        return
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
    python = str(folder.absolute() / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "uv", "--editable", "."], cwd=HERE.parent, check=True)
    uv = [python, "-m", "simulate.linked", str(folder.absolute()), "--quiet"]
    found = subprocess.run(
        [*uv, TORCH], cwd=HERE.parent, capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise NoTorchError(
            f"{TORCH}: {found.stderr.strip() or 'not installed'}\n"
            "hint: set PIP_EXTRA_INDEX_URL to an index with PyTorch's builds for CPUs, or "
            "SIMULATE_TORCH to what your index calls one"
        )
    constraints = folder.absolute() / "constraints.txt"
    constraints.write_text(f"{TORCH}\n")
    listed = ["--constraint", str(constraints), "-r", str(HERE / (names[0] if quick else names[1]))]
    subprocess.run([*uv, *listed], cwd=HERE.parent, check=True)
    if not quick:
        subprocess.run([*uv, "--no-deps", "-r", str(HERE / names[2])], cwd=HERE.parent, check=True)
        apart = ["--target", str(folder.absolute() / "next")]  # beside other versions
        alone = ["--no-deps", "--upgrade", *apart, "-r", str(HERE / names[3])]
        subprocess.run([*uv, *alone], cwd=HERE.parent, check=True)
    stamp.write_text(wanted)


if __name__ == "__main__":
    try:
        make(Path(sys.argv[-1]), quick="--quick" in sys.argv[1:-1])
    except NoTorchError as error:
        print(f"simulate: {error}", file=sys.stderr)
        sys.exit(3)
    except subprocess.CalledProcessError as error:
        print(f"simulate: {' '.join(error.cmd)} failed", file=sys.stderr)
        sys.exit(1)
