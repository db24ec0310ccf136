"""torchair.ge: names that descriptions of operators are written with."""

from typing import Any


class Tensor:
    """A value in a graph."""


class TensorSpec:
    """What is known of a value in a graph."""


class DataType:
    """Types of a graph's values, by name: `DataType.DT_BF16`."""

    DT_FLOAT = "DT_FLOAT"
    DT_FLOAT16 = "DT_FLOAT16"
    DT_BF16 = "DT_BF16"
    DT_INT8 = "DT_INT8"
    DT_INT32 = "DT_INT32"
    DT_INT64 = "DT_INT64"
    DT_UINT8 = "DT_UINT8"
    DT_UINT64 = "DT_UINT64"
    DT_BOOL = "DT_BOOL"


def __getattr__(name: str) -> Any:
    raise AttributeError(f"torchair.ge.{name}: npusim has no compiler of graphs")
