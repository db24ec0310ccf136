"""Compare commands in paired, interleaved runs.

One round runs every command once, in turn, so that a slow moment of the machine hits all of them;
ratios are taken within a round, and the median and the quartiles of the rounds are reported. CPU
time (user and system, children too) is steadier than wall time on a busy machine.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from compileall import compile_dir
from dataclasses import dataclass
from math import log
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """One contestant; `prepare` sets its state back before each run, outside of the clock.

    With `missing` it cannot run here, and that says why.
    """

    name: str
    argv: Sequence[str | Path]
    folder: Path = Path("/")
    prepare: Callable[[], None] = lambda: None
    missing: str = ""


@dataclass(frozen=True)
class Cost:
    """What one run took: seconds, and the most memory that one of its processes held, in MiB."""

    cpu: float
    wall: float
    peak: float


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
    """A command against the first one: ratios of CPU and wall time, its own medians.

    `missing` says why there are none.
    """

    name: str
    cpu: Spread | None = None
    wall: Spread | None = None
    seconds: float = 0.0
    peak: float = 0.0
    missing: str = ""


#: A process of its own starts the command: what a process held before it became another program
#: counts as that one's memory, and this one holds whole histories.
_LAUNCH = """
import os, sys, time
start = time.perf_counter()
quiet = [(os.POSIX_SPAWN_DUP2, 2, 1)]
process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(process, 0)
wall = time.perf_counter() - start
code = os.waitstatus_to_exitcode(status)
print(code, usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)
"""


class FailedError(Exception):
    """A command that ended with another exit code than 0."""


def use_bytecode() -> None:
    """Let commands run from bytecode, as those that pip installs do, whatever the environment."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compile_dir(Path(__file__).parent.parent / "patchkit", quiet=2)


def compare(commands: Sequence[Command], rounds: int) -> list[Row]:
    """Run all commands `rounds` times, after one run each that is not counted.

    One that fails in that run is left out, and its row says how.
    """
    missing = {each.name: each.missing or _trial(each) for each in commands}
    able = [each for each in commands if not missing[each.name]]
    costs = [[run_once(command) for command in able] for _ in range(rounds)]
    rows = {
        command.name: Row(
            command.name,
            _spread([each[index].cpu / each[0].cpu for each in costs]),
            _spread([each[index].wall / each[0].wall for each in costs]),
            statistics.median(each[index].cpu for each in costs),
            max(each[index].peak for each in costs),
        )
        for index, command in enumerate(able)
    }
    return [
        rows[each.name] if each.name in rows else Row(each.name, missing=missing[each.name])
        for each in commands
    ]


def run_once(command: Command) -> Cost:
    """Run a command; FailedError if it does not succeed."""
    command.prepare()
    argv = [sys.executable, "-S", "-c", _LAUNCH, *(str(each) for each in command.argv)]
    with tempfile.TemporaryFile() as said:
        done = subprocess.run(
            argv, cwd=command.folder, stdin=subprocess.DEVNULL, stdout=-1, stderr=said, check=False
        )
        code, cpu, wall, peak = done.stdout.split()[-4:]
        if code != b"0":
            said.seek(0)
            last = said.read().decode(errors="replace").strip().splitlines()[-1:]
            raise FailedError(f"exit {code.decode()}: {' '.join(last)[:70]}")
    return Cost(float(cpu), float(wall), float(peak))


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """How a cost grows with a size: the exponent of the power law through the points."""
    return statistics.linear_regression([log(x) for x in sizes], [log(y) for y in costs]).slope


def _trial(command: Command) -> str:
    try:
        run_once(command)
    except (FailedError, FileNotFoundError) as error:
        return str(error)
    return ""


def _spread(values: list[float]) -> Spread:
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)
