"""A simulated NPU: the device "npu" on the host's memory, for machines without one.

    import npusim

    npusim.install()      # torch.npu, device "npu", torch_npu, "hccl"

After that, code written for an Ascend NPU runs: tensors on "npu" live in the host's memory, and an
operator is the CPU's kernel. `torch_npu`'s own operators are computed as their documentation says;
one that is not known here stops with its name.
"""

__all__ = ["ENTRY", "environment", "host", "install"]

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

ENTRY = Path(__file__).resolve().parent.parent  # what PYTHONPATH needs

_installed = False


def install() -> None:
    """Make the device known to torch, once a process. Builds it at first use."""
    global _installed  # noqa: PLW0603 - torch itself can do this once a process
    if _installed:
        return
    _installed = True
    import torch

    from npusim import building

    torch.utils.rename_privateuse1_backend("npu")
    torch.ops.load_library(str(building.library()))
    from npusim import accelerator, hccl

    accelerator.register()
    hccl.register()


def host(tensor: "torch.Tensor") -> "torch.Tensor":
    """A tensor of the device as one of the CPU, over the same memory and without a gradient."""
    import torch

    return torch.ops.npusim.host(tensor.detach()) if tensor.device.type == "npu" else tensor


def environment() -> dict[str, str]:
    """This process's environment with `npusim` and `torch_npu` importable, to start others."""
    paths = [str(ENTRY), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
