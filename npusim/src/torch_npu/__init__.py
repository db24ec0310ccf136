"""torch_npu on a machine without an NPU: see npusim."""

import os
import sys
import types
from typing import Any

import npusim

npusim.install()

import torch
from npusim.operators import TABLE as _TABLE

from npusim import extensions, profiling

extensions.install()
# What sourcing CANN's set_env.sh does; extensions are looked for, and not compiled, with it.
os.environ.setdefault("ASCEND_HOME_PATH", str(npusim.ENTRY))
os.environ.setdefault("ATB_HOME_PATH", str(npusim.ENTRY))

npu = torch.npu
profiler = profiling
__version__ = "2.8.0.post2+npusim"
unsupported_dtype: list[torch.dtype] = []

sys.modules.update({"torch_npu.npu": npu, "torch_npu.profiler": profiler})
for _name in ("amp", "memory", "random", "streams"):
    sys.modules[f"torch_npu.npu.{_name}"] = getattr(npu, _name)
globals().update(_TABLE)
vars(torch.ops.npu).update(_TABLE)
from torch_npu import _C, contrib, multiprocessing, utils

__all__ = ["_C", "contrib", "multiprocessing", "npu", "profiler", "unsupported_dtype", "utils"]


def _apply_patches(patches: list[list[Any]]) -> None:
    """Put each object, or each name of a module, into the place under torch that goes with it."""
    for place, what in patches:
        *parents, last = place.split(".")
        holder: Any = torch
        for name in parents:
            holder = getattr(holder, name)
        if not isinstance(what, types.ModuleType):
            setattr(holder, last, what)
            continue
        target = getattr(holder, last)
        for name in dir(what):
            if not name.startswith("__"):
                setattr(target, name, getattr(what, name))


def _autoload() -> None:
    """What torch calls at its import, where torch_npu is installed."""


def __getattr__(name: str) -> Any:
    raise AttributeError(f"torch_npu.{name}: not known to this simulated NPU (npusim)")
