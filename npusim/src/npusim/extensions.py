"""Extensions that others compile against CANN at run time: MindSpeed's are.

There is no CANN to compile against. `torch.utils.cpp_extension.load` gives the extension that is in
the table here under its name; one that is not stops with its name. Others are compiled as ever.
"""

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import cpp_extension

EXTENSIONS: dict[str, dict[str, Callable[..., Any]]] = {}


def extension(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function one of an extension's, under its own name."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        EXTENSIONS.setdefault(name, {})[function.__name__] = function
        return function

    return register


@extension("npu_matmul_add_fp32")
def npu_matmul_add_fp32(x: torch.Tensor, weight: torch.Tensor, grad: torch.Tensor) -> None:
    """grad += x^T weight: a weight's gradient, added up where it is kept."""
    with torch.no_grad():
        grad.addmm_(x.float().t(), weight.float())


def install() -> None:
    """Answer for what is linked against CANN."""
    load = cpp_extension.load

    @functools.wraps(load)
    def loaded(name: str, sources: Any, *given: Any, **more: Any) -> Any:
        if not any("torch_npu" in flag for flag in more.get("extra_ldflags") or ()):
            return load(name, sources, *given, **more)
        if name not in EXTENSIONS:
            raise RuntimeError(
                f"the extension {name} is written for a real NPU; this simulated one has no "
                "version of it (npusim/src/npusim/extensions.py)"
            )
        module = types.ModuleType(name)
        vars(module).update(EXTENSIONS[name])
        return module

    cpp_extension.load = loaded
