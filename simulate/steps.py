"""What a run is made of: steps, the place they run at, what their figures must equal."""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import types

HERE = Path(__file__).resolve().parent
RUNS = HERE / "runs"
NPUSIM = HERE.parent / "npusim" / "src"

Figures = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Against:
    """Figures that a step's must equal, name by name; those that only one of them has do not count.

    `other` is a device, for the same step there, or another step, "RUN/STEP", on the same device.
    `digits` counts digits after the point, as in a log; `relative` is a part of the larger value.
    A tolerance that is not a matter of rounding has its reason in `why`.
    """

    other: str
    digits: int | None = None
    relative: float | None = None
    why: str = ""

    def close(self, a: float, b: float) -> bool:
        """Whether two figures are equal within the tolerance."""
        if self.digits is not None:
            return abs(a - b) <= 0.5 * 10**-self.digits
        return abs(a - b) <= (self.relative or 0) * max(abs(a), abs(b))

    def tolerance(self) -> str:
        """The tolerance in words."""
        return f"{self.digits} digits" if self.digits is not None else f"relative {self.relative}"


@dataclasses.dataclass(frozen=True)
class Step:
    """One function of a run, which processes of its own execute.

    `environment` is what the launch sets for them. A quick step is in the short form, too; one that
    is apart runs only where it is named.
    """

    run: str
    name: str
    function: Callable[[Place], Figures]
    manifest: str
    components: tuple[str, ...] = ()  # of the manifest; none named: all
    processes: int = 1
    quick: bool = False
    apart: bool = False
    against: tuple[Against, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    minutes: float = 10

    @property
    def title(self) -> str:
        """RUN/STEP."""
        return f"{self.run}/{self.name}"

    @property
    def beside(self) -> list[str]:
        """The other steps that it is compared with, as RUN/STEP."""
        return [how.other for how in self.against if "/" in how.other]


_found: dict[str, dict[str, Step]] = {}


def step(
    manifest: str,
    *,
    components: Sequence[str] = (),
    processes: int = 1,
    quick: bool = False,
    apart: bool = False,
    against: Sequence[Against] = (),
    environment: dict[str, str] | None = None,
    minutes: float = 10,
) -> Callable[[Callable[[Place], Figures]], Callable[[Place], Figures]]:
    """Make a function a step of the module's run, under its own name with dashes."""

    def register(function: Callable[[Place], Figures]) -> Callable[[Place], Figures]:
        run = function.__module__.rpartition(".")[2]
        made = Step(
            run=run,
            name=function.__name__.replace("_", "-"),
            function=function,
            manifest=manifest,
            components=tuple(components),
            processes=processes,
            quick=quick,
            apart=apart,
            against=tuple(against),
            environment=tuple(sorted((environment or {}).items())),
            minutes=minutes,
        )
        _found.setdefault(run, {})[made.name] = made
        return function

    return register


def every_step() -> list[Step]:
    """All steps, run by run, in the order of their files."""
    for path in sorted(RUNS.glob("*.py")):
        if path.stem != "__init__":
            importlib.import_module(f"simulate.runs.{path.stem}")
    return [step for run in _found.values() for step in run.values()]


def one_step(title: str) -> Step:
    """The step named RUN/STEP."""
    run, _, name = title.partition("/")
    importlib.import_module(f"simulate.runs.{run}")
    return _found[run][name]


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a step runs: the device, the checkouts, this process among the step's."""

    device: str  # npu, cuda or cpu
    workspace: Path  # the checkouts of the step's manifest
    rank: int = 0
    processes: int = 1
    scratch: Path = Path()  # a folder of this step's own, empty at its start

    @property
    def backend(self) -> str:
        """The collective backend that goes with the device."""
        return {"npu": "hccl", "cuda": "nccl", "cpu": "gloo"}[self.device]

    def use(self, *folders: str) -> None:
        """Folders of the workspace that are imported from, the first before the others."""
        for folder in reversed(folders):
            path = self.workspace / folder
            if not path.is_dir():
                raise FileNotFoundError(f"{path} is not there")
            sys.path.insert(0, str(path))

    def start(self, *, transfer: bool = False) -> types.ModuleType:
        """Bring the device up and make it current; gives torch.

        transfer: "cuda" means "npu" from here on, as MindSpeed's adaptor has it. On a CPU, the
        names of torch.cuda that the sources call answer for the CPU.
        """
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
        if self.device == "npu":
            importlib.import_module("torch_npu")
            if transfer:
                importlib.import_module("torch_npu.contrib.transfer_to_npu")
            torch.npu.set_device(self.rank % torch.npu.device_count())
        elif self.device == "cuda":
            torch.cuda.set_device(self.rank % torch.cuda.device_count())
        else:
            from simulate import cuda_on_cpu

            cuda_on_cpu.install()
        return torch

    def operators(self) -> list[str]:
        """The names of torch_npu's operators that this process called; known of a simulated NPU."""
        table = sys.modules.get("npusim.operators.table")
        return sorted(table.CALLS) if table else []

    def join(self) -> None:
        """Start torch.distributed among this step's processes."""
        import torch.distributed

        torch.distributed.init_process_group(
            self.backend, rank=self.rank, world_size=self.processes, init_method="env://"
        )


def place_of_this_process() -> Place:
    """The place that the runner described in the environment."""
    return Place(
        device=os.environ["SIMULATE_DEVICE"],
        workspace=Path(os.environ["SIMULATE_WORKSPACE"]),
        rank=int(os.environ["RANK"]),
        processes=int(os.environ["WORLD_SIZE"]),
        scratch=Path(os.environ["SIMULATE_SCRATCH"]),
    )
