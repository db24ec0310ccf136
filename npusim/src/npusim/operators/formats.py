"""Formats in which a real NPU lays a tensor out in its memory.

Here every tensor lies as torch has it. The number is remembered on the tensor that a cast gave
back, for code that asks; values are the same in all formats.
"""

import torch

from npusim.operators.table import operator

ND = 2


@operator
def get_npu_format(self: torch.Tensor) -> int:
    """The number that the last cast gave this tensor; 2 is torch's own layout."""
    return getattr(self, "_npu_format", ND)


def _number(acl_format: int | torch.Tensor) -> int:
    return get_npu_format(acl_format) if isinstance(acl_format, torch.Tensor) else int(acl_format)


@operator
def npu_format_cast(
    self: torch.Tensor, acl_format: int | torch.Tensor, customize_dtype: int | None = None
) -> torch.Tensor:
    """A copy that says it is in a format."""
    _same_type(customize_dtype)
    made = self.clone()
    made._npu_format = _number(acl_format)  # type: ignore[attr-defined]
    return made


@operator
def npu_format_cast_(
    self: torch.Tensor, acl_format: int | torch.Tensor, customize_dtype: int | None = None
) -> torch.Tensor:
    """The tensor itself; with a tensor of that format, its values are copied in."""
    _same_type(customize_dtype)
    if isinstance(acl_format, torch.Tensor):
        self.copy_(acl_format)
    self._npu_format = _number(acl_format)  # type: ignore[attr-defined]
    return self


def _same_type(customize_dtype: int | None) -> None:
    if customize_dtype is not None:
        raise NotImplementedError("npu_format_cast: customize_dtype")
