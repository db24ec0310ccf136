"""torch_npu's own operators, in plain torch: values as documented, in float32 inside.

Each is differentiable where the real one is, because torch's operators are. One that is not in the
table stops with its name: nothing here returns its argument for want of a better answer.
"""

from npusim.operators import attention, formats, grouped, pointwise, rotary, serving
from npusim.operators.table import CALLS, TABLE, operator

__all__ = [
    "CALLS",
    "TABLE",
    "attention",
    "formats",
    "grouped",
    "operator",
    "pointwise",
    "rotary",
    "serving",
]
