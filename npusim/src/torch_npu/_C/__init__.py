"""torch_npu's compiled part: the options of a process group are all of it here."""

from typing import Any

from torch_npu._C import _distributed_c10d

__all__ = ["_distributed_c10d"]


def __getattr__(name: str) -> Any:
    raise AttributeError(f"torch_npu._C.{name}: not known to this simulated NPU (npusim)")
