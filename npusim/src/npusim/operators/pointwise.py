"""Norms and activations."""

import torch
from torch.nn import functional

from npusim.operators.table import operator


@operator
def npu_rms_norm(
    self: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-06
) -> tuple[torch.Tensor, torch.Tensor]:
    """(x / rms(x) * gamma in x's type, 1 / rms(x) in float32), over gamma's dimensions."""
    dims = tuple(range(-gamma.dim(), 0))
    wide = self.float()
    rstd = torch.rsqrt(wide.square().mean(dims, keepdim=True) + epsilon)
    return (wide * rstd * gamma.float()).to(self.dtype), rstd.detach()


@operator
def npu_add_rms_norm(
    x1: torch.Tensor, x2: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-06
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(rms norm of x1 + x2, 1 / rms, x1 + x2)."""
    total = x1 + x2
    normed, rstd = npu_rms_norm(total, gamma, epsilon)
    return normed, rstd, total


@operator
def npu_gemma_rms_norm(
    self: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-06
) -> tuple[torch.Tensor, torch.Tensor]:
    """As npu_rms_norm with 1 + gamma."""
    return npu_rms_norm(self, 1 + gamma.float(), epsilon)


@operator
def npu_swiglu(self: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """silu(a) * b for the two halves a, b along a dimension."""
    gate, value = self.float().chunk(2, dim)
    return (functional.silu(gate) * value).to(self.dtype)


@operator
def npu_geglu(
    self: torch.Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """(a * gelu(b), gelu(b)); approximate 1 is tanh's form; activate_left swaps the halves."""
    value, gate = self.float().chunk(2, dim)
    if activate_left:
        value, gate = gate, value
    activated = functional.gelu(gate, approximate="tanh" if approximate else "none")
    return (value * activated).to(self.dtype), activated.to(self.dtype)


@operator
def npu_fast_gelu(self: torch.Tensor) -> torch.Tensor:
    """x * sigmoid(1.702 x)."""
    wide = self.float()
    return (wide * torch.sigmoid(1.702 * wide)).to(self.dtype)


@operator
def npu_gelu(self: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """As torch.nn.functional.gelu."""
    return functional.gelu(self, approximate=approximate)


@operator
def npu_scaled_masked_softmax(
    x: torch.Tensor, mask: torch.Tensor, scale: float = 1.0, fixed_triu_mask: bool = False
) -> torch.Tensor:
    """Softmax of scale * x in x's type; where the mask is true, -10000 takes the value's place.

    fixed_triu_mask: the mask is the strict upper triangle, whatever is given.
    """
    if fixed_triu_mask:
        mask = torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
    scores = (x.float() * scale).masked_fill(mask.bool(), -10000.0)
    return torch.softmax(scores, -1).to(x.dtype)
