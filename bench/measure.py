"""Compare commands in paired, interleaved runs.

One round runs every command once, in turn, so that a slow moment of the machine hits all of them;
ratios are taken within a round, and the median and the quartiles of the rounds are reported. CPU
time (user and system, children too) is steadier than wall time on a busy machine.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """One contestant; `prepare` sets its state back before each run, outside of the clock."""

    name: str
    argv: Sequence[str | Path]
    folder: Path = Path("/")
    prepare: Callable[[], None] = lambda: None
    stdin: Path | None = None


@dataclass(frozen=True)
class Cost:
    """What one run took, in seconds."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Spread:
    """The median and the quartiles of a ratio."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}-{self.high:.2f})"


@dataclass(frozen=True)
class Row:
    """A command against the first one: ratios of CPU and wall time, and its own median CPU time."""

    name: str
    cpu: Spread
    wall: Spread
    seconds: float


def compare(commands: Sequence[Command], rounds: int) -> list[Row]:
    """Run all commands `rounds` times, after one run each that is not counted."""
    for command in commands:
        run_once(command)
    costs = [[run_once(command) for command in commands] for _ in range(rounds)]
    return [
        Row(
            command.name,
            _spread([each[index].cpu / each[0].cpu for each in costs]),
            _spread([each[index].wall / each[0].wall for each in costs]),
            statistics.median(each[index].cpu for each in costs),
        )
        for index, command in enumerate(commands)
    ]


def run_once(command: Command) -> Cost:
    """Run a command; it has to succeed."""
    command.prepare()
    with (command.stdin or Path(os.devnull)).open("rb") as stdin:
        before, start = _children_cpu(), time.perf_counter()
        done = subprocess.run(
            [str(each) for each in command.argv],
            cwd=command.folder,
            stdin=stdin,
            capture_output=True,
            check=False,
        )
        wall, after = time.perf_counter() - start, _children_cpu()
    if done.returncode != 0:
        raise RuntimeError(f"{command.name}: exit {done.returncode}\n{done.stderr.decode()}")
    return Cost(after - before, wall)


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _spread(values: list[float]) -> Spread:
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)
