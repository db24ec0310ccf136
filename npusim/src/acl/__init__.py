"""acl, CANN's own interface: the name of the card is all of it here."""

from typing import Any


def get_soc_name() -> str:
    """As torch.npu.get_device_name."""
    import torch  # noqa: F401 - where it loads torch_npu by itself, that comes first
    from npusim.accelerator import NAME

    return NAME


def __getattr__(name: str) -> Any:
    raise AttributeError(f"acl.{name}: not known to this simulated NPU (npusim)")
