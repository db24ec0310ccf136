"""Executes steps in processes of their own and compares their figures."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from simulate.steps import HERE, NPUSIM, Against, Figures, Step, one_step

# What a launch under one user must not hand to the processes of a run.
_LEFT_OUT = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


@dataclasses.dataclass
class Outcome:
    """What became of a step on a device: its figures, or the end of what it printed."""

    step: Step
    device: str
    seconds: float
    figures: Figures | None
    log: str

    @property
    def passed(self) -> bool:
        """Whether every process of it ended well."""
        return self.figures is not None


def execute(step: Step, device: str, workspaces: Path) -> Outcome:
    """Run a step; `workspaces` has one folder of checkouts per manifest."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="simulate-") as folder:
        scratch = Path(folder)
        output = scratch / "figures.json"
        processes = _start(step, device, workspaces / step.manifest, scratch, output)
        failed = _wait(processes, started + step.minutes * 60)
        logs = [
            (scratch / f"log.{rank}").read_text(errors="replace") for rank in range(len(processes))
        ]
        figures = None if failed or not output.exists() else json.loads(output.read_text())
        log = logs[failed[0]] if failed else logs[0]
    return Outcome(step, device, time.monotonic() - started, figures, log)


def _start(
    step: Step, device: str, workspace: Path, scratch: Path, output: Path
) -> list[subprocess.Popen[bytes]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (scratch / "own").mkdir()
    common = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
    paths = [str(HERE.parent)]
    if device == "npu" and not real_npu():
        paths.append(str(NPUSIM))
    elif device != "npu":
        common["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    common |= {
        **dict(step.environment),
        "PYTHONPATH": os.pathsep.join(paths),
        "SIMULATE_DEVICE": device,
        "SIMULATE_WORKSPACE": str(workspace.resolve()),
        "SIMULATE_SCRATCH": str(scratch / "own"),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(step.processes),
        "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", "lo"),
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONWARNINGS": "ignore",
    }
    processes = []
    for rank in range(step.processes):
        with (scratch / f"log.{rank}").open("wb") as log:
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "simulate.worker", step.title, str(output)],
                    cwd=scratch / "own",
                    env=common | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )
    return processes


def _wait(processes: list[subprocess.Popen[bytes]], until: float) -> list[int]:
    """The ranks that failed, the first one first; the others are ended when one has."""
    failed: list[int] = []
    try:
        while any(process.poll() is None for process in processes):
            failed = [rank for rank, process in enumerate(processes) if process.poll()]
            if failed:
                break
            if time.monotonic() > until:
                return [rank for rank, process in enumerate(processes) if process.poll() is None]
            time.sleep(0.05)
        return failed or [rank for rank, process in enumerate(processes) if process.poll()]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def real_npu() -> bool:
    """Whether this Python has Ascend's torch_npu, which then is used and not the simulated one."""
    import importlib.metadata

    try:
        version = importlib.metadata.version("torch_npu")
    except importlib.metadata.PackageNotFoundError:
        return False
    return "npusim" not in version


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One figure of a step beside another's; `worst` is the largest difference in it."""

    name: str
    found: Any
    expected: Any
    equal: bool
    worst: float


def compare(figures: Figures, other: Figures, how: Against) -> list[Comparison]:
    """Figures of the same name, one by one; words are for the reader."""
    return [
        Comparison(name, figures[name], other[name], *_equal(figures[name], other[name], how))
        for name in figures
        if name in other and not _words(figures[name])
    ]


def _words(figure: Any) -> bool:
    return isinstance(figure, str) or (
        isinstance(figure, list) and all(isinstance(each, str) for each in figure)
    )


def _equal(found: Any, expected: Any, how: Against) -> tuple[bool, float]:
    pairs = list(_numbers(found, expected))
    if not pairs:
        return found == expected, 0.0
    if any(a is None or b is None for a, b in pairs):
        return False, float("inf")
    return all(how.close(a, b) for a, b in pairs), max(abs(a - b) for a, b in pairs)


def _numbers(found: Any, expected: Any) -> Iterable[tuple[float | None, float | None]]:
    if isinstance(found, list) and isinstance(expected, list):
        if len(found) != len(expected):
            yield None, None
        for a, b in zip(found, expected, strict=False):
            yield from _numbers(a, b)
    elif isinstance(found, (int, float)) and isinstance(expected, (int, float)):
        yield float(found), float(expected)
    elif found != expected:
        yield None, None


def other_side(step: Step, device: str, how: Against) -> tuple[Step, str] | None:
    """The step and device that a comparison asks for; None where it is this one itself."""
    if "/" in how.other:
        return one_step(how.other), device
    return None if how.other == device else (step, how.other)
