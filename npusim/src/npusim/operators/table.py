"""Which of torch_npu's operators are known here, and which were called."""

import collections
import functools
from collections.abc import Callable
from typing import Any

TABLE: dict[str, Callable[..., Any]] = {}
CALLS: collections.Counter[str] = collections.Counter()


def operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function `torch_npu.NAME` and `torch.ops.npu.NAME`; its name is the operator's."""
    name = function.__name__

    @functools.wraps(function)
    def counted(*given: Any, **more: Any) -> Any:
        CALLS[name] += 1
        return function(*given, **more)

    TABLE[name] = counted
    return counted
