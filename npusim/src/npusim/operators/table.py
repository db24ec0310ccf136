"""Which of torch_npu's operators are known here, and which were called."""

import collections
import functools
import inspect
from collections.abc import Callable
from typing import Any

from npusim import graphs
from npusim.operators import declared

TABLE: dict[str, Callable[..., Any]] = {}
CALLS: collections.Counter[str] = collections.Counter()


def operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function `torch_npu.NAME` and `torch.ops.npu.NAME`; its name is the operator's."""
    name = function.__name__
    signature = inspect.signature(function)

    @functools.wraps(function)
    def counted(*given: Any, **more: Any) -> Any:
        CALLS[name] += 1
        declared.check(name, signature.bind(*given, **more).arguments)
        return function(*given, **more)

    TABLE[name] = functools.wraps(function)(graphs.recorded(counted))
    return TABLE[name]
