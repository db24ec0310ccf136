"""torchair, CANN's compiler of graphs, of which there is nothing here.

MindSpeed imports it where it describes operators to that compiler; a description that nobody reads
is harmless. Whatever would compile a graph stops with its name.
"""

from collections.abc import Callable
from typing import Any

from torchair import ge

__all__ = ["ge", "get_npu_backend", "register_fx_node_ge_converter"]


def register_fx_node_ge_converter(operator: Any) -> Callable[[Any], Any]:
    """A decorator that keeps the function as it is: there is no graph to convert to."""
    return lambda function: function


def get_npu_backend(compiler_config: Any = None) -> Callable[..., Any]:
    """A backend for torch.compile, which raises when something is compiled."""

    def compile_graph(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("torchair: this simulated NPU (npusim) has no compiler of graphs")

    return compile_graph


def __getattr__(name: str) -> Any:
    raise AttributeError(f"torchair.{name}: this simulated NPU (npusim) has no compiler of graphs")
