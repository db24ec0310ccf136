"""Compiles the device once for a version of torch, and keeps it in a cache.

The cache is `$NPUSIM_CACHE`, else `$XDG_CACHE_HOME/npusim`, else `~/.cache/npusim`. A finished
library is renamed into its place, so that processes that start together find all of it or none.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

SOURCE = Path(__file__).with_name("device.cpp")


class CannotBuildError(RuntimeError):
    """There is no C++ compiler, or it failed; the message holds what it said."""


def library() -> Path:
    """The compiled device for this torch, built if it is not there: 20 s on one idle core."""
    digest = hashlib.sha256(SOURCE.read_bytes() + torch.__version__.encode()).hexdigest()[:16]
    folder = _cache() / f"torch-{torch.__version__}-{digest}"
    made = folder / "device.so"
    if made.exists():
        return made
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            _compile(folder / f"device.{os.getpid()}.so")
            (folder / f"device.{os.getpid()}.so").replace(made)
    return made


def _cache() -> Path:
    if named := os.environ.get("NPUSIM_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "npusim"


def _compile(target: Path) -> None:
    compiler = next(
        (found for name in _compilers() if (found := shutil.which(name))),
        None,
    )
    if compiler is None:
        raise CannotBuildError("npusim: no C++ compiler found\nhint: install g++, or set CXX")
    root = Path(torch.__file__).parent
    print("npusim: compiling the device, once for this torch", file=sys.stderr, flush=True)
    command = [
        *(compiler, "-O1", "-w", "-fPIC", "-shared", "-std=c++20"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *("-I", str(root / "include"), str(SOURCE), "-o", str(target)),
        *("-L", str(root / "lib"), "-lc10", "-ltorch_cpu", "-ltorch"),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        target.unlink(missing_ok=True)
        raise CannotBuildError(f"npusim: {compiler} failed\n{run.stderr[-4000:]}")


def _compilers() -> list[str]:
    return [name for name in (os.environ.get("CXX"), "g++", "c++", "clang++") if name]
