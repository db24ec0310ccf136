"""Rotary position embedding."""

import torch

from npusim.extensions import extension
from npusim.operators.table import operator

_MODES = {"half": 0, "interleave": 1}


def _turned(x: torch.Tensor, mode: int) -> torch.Tensor:
    if mode == _MODES["half"]:
        first, second = x.chunk(2, -1)
        return torch.cat((-second, first), -1)
    if mode == _MODES["interleave"]:
        return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    raise NotImplementedError(f"rotary mode {mode} is not known to this simulated NPU")


def _rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mode: int) -> torch.Tensor:
    if cos.shape[-1] != x.shape[-1]:
        raise ValueError(f"cos has {cos.shape[-1]} values for a head of {x.shape[-1]}")
    wide = x.float()
    return (wide * cos.float() + _turned(wide, mode) * sin.float()).to(x.dtype)


@operator
def npu_rotary_mul(
    self: torch.Tensor, r1: torch.Tensor, r2: torch.Tensor, rotary_mode: str = "half"
) -> torch.Tensor:
    """x * cos + turned(x) * sin; cos and sin (r1, r2) have x's rank and broadcast to it."""
    return _rotated(self, r1, r2, _MODES[rotary_mode])


@extension("npu_rotary_position_embedding")
@operator
def npu_rotary_position_embedding(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mode: int = 0
) -> torch.Tensor:
    """The same, with a number for the mode: 0 half, 1 interleave. MindSpeed's: four dimensions."""
    if {x.dim(), cos.dim(), sin.dim()} != {4}:
        raise ValueError(f"four dimensions expected, found {x.dim()}, {cos.dim()}, {sin.dim()}")
    return _rotated(x, cos, sin, mode)


@operator
def npu_apply_rotary_pos_emb(
    query: torch.Tensor,
    key: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    layout: str = "BSND",
    rotary_mode: str = "half",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Query and key turned; four dimensions (BSND), or TND with three."""
    if layout not in ("BSND", "BSH", "TND", "1"):
        raise NotImplementedError(f"npu_apply_rotary_pos_emb: layout {layout}")
    mode = _MODES[rotary_mode]
    return _rotated(query, cos, sin, mode), _rotated(key, cos, sin, mode)
