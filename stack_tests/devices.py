"""Scenarios: what a patched function does, seen from outside, on CUDA and on an NPU.

Each runs a function as it stands in a checkout, among stubs, and tells in plain values what it did:
what it asked Ray for, which backend it named, what it imported. So one table serves three tests: on
CUDA the patched tree does what upstream does; on an NPU it does what is promised; and where the
decision about the device is turned round, both of these fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from stack_tests.conftest import Stack
from stack_tests.stubs import execute, torch_for


@dataclass(frozen=True)
class Branch:
    """Where a patch decides about the device: `text` of the file, and the same turned round."""

    path: str
    text: str
    inverted: str


@dataclass(frozen=True)
class Side:
    """A checkout on one device, before or after the patches; those in `inverted` turned round."""

    stack: Stack
    checkout: str
    device: str
    patched: bool = True
    inverted: tuple[Branch, ...] = ()
    torch: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "torch", torch_for(self.device))

    def source(self, path: str) -> str:
        """A file of the checkout, as it is on this side."""
        if not self.patched:
            return self.stack.before_ours(self.checkout, path)
        source = self.stack.after(self.checkout, path)
        for branch in self.inverted:
            if branch.path == path:
                assert branch.text in source, f"{path} does not decide by {branch.text!r}"
                source = source.replace(branch.text, branch.inverted)
        return source

    def load(
        self,
        path: str,
        modules: Mapping[str, ModuleType] | None = None,
        missing: Sequence[str] = (),
    ) -> Any:
        """The module in a file, executed among stubs with this side's torch."""
        inside = path.removeprefix("python/").removesuffix(".py").removesuffix("/__init__")
        name = inside.replace("/", ".")
        given = {"torch": self.torch, "torch.cuda": self.torch.cuda, **(modules or {})}
        return execute(self.source(path), name, given, missing)


@dataclass(frozen=True)
class Scenario:
    """What one patched function does; `npu` is what it has to do there, as `run` tells it.

    `loaded_counts`: it goes by whether torch_npu is loaded, with or without a device.
    """

    name: str
    checkout: str
    branch: Branch
    run: Callable[[Side], Any]
    npu: Any
    loaded_counts: bool = False

    def __str__(self) -> str:
        return self.name

    def on(self, stack: Stack, device: str, *, patched: bool = True, inverted: bool = False) -> Any:
        """What happens on a device; where it cannot even run, the error."""
        branches = (self.branch,) if inverted else ()
        side = Side(stack, self.checkout, device, patched, branches)
        try:
            return self.run(side)
        except Exception as error:
            if not inverted:
                raise
            return error
