"""What a receiving process calls; memory of the simulated device is not shared."""

from typing import Any


def rebuild_npu_tensor(*arguments: Any) -> None:
    """No: it would be a handle of another process's memory."""
    raise NotImplementedError("torch_npu: tensors on npu are not shared between processes (npusim)")
