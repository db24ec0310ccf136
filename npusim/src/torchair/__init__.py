"""torchair, CANN's compiler of graphs, of which there is nothing here.

MindSpeed imports it where it describes operators to that compiler; a description that nobody reads
is harmless. Whatever would compile a graph stops with its name.
"""

from collections.abc import Callable
from typing import Any

from torchair import ge

__all__ = ["ge", "register_fx_node_ge_converter"]


def register_fx_node_ge_converter(operator: Any) -> Callable[[Any], Any]:
    """A decorator that keeps the function as it is: there is no graph to convert to."""
    return lambda function: function


def __getattr__(name: str) -> Any:
    raise AttributeError(f"torchair.{name}: this simulated NPU (npusim) has no compiler of graphs")
