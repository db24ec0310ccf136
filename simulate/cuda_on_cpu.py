"""torch.cuda for a run on a CPU: sources written for CUDA get the CPU wherever they ask for it.

It is the other side of a comparison: it changes where tensors are, and nothing of what is computed.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo  # tells torch's functions apart by identity: before any is replaced

_FACTORIES = (
    *("arange", "as_tensor", "empty", "empty_like", "empty_strided", "eye", "full", "full_like"),
    *("linspace", "ones", "ones_like", "rand", "rand_like", "randint", "randn", "randn_like"),
    *("randperm", "tensor", "zeros", "zeros_like"),
)


class _Stream:
    """Nothing is under way on a CPU."""

    device = torch.device("cpu")
    cuda_stream = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def install() -> None:
    """Do it, for the rest of the process."""
    cuda = torch.cuda
    nothing: Callable[..., None] = lambda *_, **__: None  # noqa: E731
    for name in ("set_device", "synchronize", "empty_cache", "manual_seed", "manual_seed_all"):
        setattr(cuda, name, nothing)
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved"):
        setattr(cuda, name, lambda *_, **__: 0)
    cuda.current_device = lambda: torch.device("cpu")
    cuda.device_count = lambda: 1
    cuda.Stream = cuda.Event = _Stream
    cuda.current_stream = cuda.default_stream = _Stream
    cuda.stream = cuda.device = lambda *_: contextlib.nullcontext()
    for module in (cuda, cuda.random):
        module.get_rng_state = lambda *_, **__: torch.get_rng_state()
        module.set_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
    for name in _FACTORIES:
        setattr(torch, name, _on_cpu(getattr(torch, name)))
    torch.Tensor.to = _on_cpu(torch.Tensor.to)
    torch.nn.Module.to = _on_cpu(torch.nn.Module.to)
    torch.Tensor.cuda = lambda self, *_, **__: self
    torch.nn.Module.cuda = lambda self, *_, **__: self
    torch.compile = lambda function=None, *_, **__: function or (lambda each: each)
    torch.jit.script = lambda function, *_, **__: function
    kind = torch.Tensor.type

    @functools.wraps(kind)
    def named(*given: Any, **more: Any) -> Any:
        """Megatron tells types apart by the names that they have on CUDA."""
        made = kind(*given, **more)
        return made.replace("torch.", "torch.cuda.") if isinstance(made, str) else made

    torch.Tensor.type = named


def _on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*given: Any, **more: Any) -> Any:
        if "device" in more:
            more["device"] = _named(more["device"])
        return function(*(_named(value) for value in given), **more)

    return call


def _named(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("cuda"):
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value
