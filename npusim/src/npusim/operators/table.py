"""Which of torch_npu's operators are known here."""

from collections.abc import Callable
from typing import Any

TABLE: dict[str, Callable[..., Any]] = {}


def operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function `torch_npu.NAME` and `torch.ops.npu.NAME`; its name is the operator's."""
    TABLE[function.__name__] = function
    return function
