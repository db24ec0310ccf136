"""sgl_kernel_npu without its compiled library: its own Triton kernels, in Triton's interpreter.

No function of the package is replaced, so a call with its arguments in the wrong order does here
what it does on a device. What is added is what the interpreter lacks: two functions that
triton-ascend adds to Triton's language, arithmetic in bfloat16 (done on the bits without it), and
tensors on "npu".
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

CORES = (1, 2)  # cube and vector cores: how kernels divide their work


def install(
    folder: Path,
    host: Callable[[Any], Any],
    recorded: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> None:
    """Make `sgl_kernel_npu` importable from the folder of that name in its checkout."""
    package = ModuleType(folder.name)
    package.__path__ = [str(folder)]
    sys.modules[folder.name] = package  # its own __init__ loads the compiled library
    interpret(host, recorded)


def interpret(
    host: Callable[[Any], Any],
    recorded: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> None:
    """Have the kernels of the package interpreted, before anything decorates one.

    host: an npu tensor as a CPU tensor in the same memory; recorded: what a graph that is captured
    keeps of a function.
    """
    os.environ["TRITON_INTERPRET"] = "1"
    import torch
    import triton.language
    from triton.runtime.interpreter import GridExecutor, InterpreterBuilder

    _extend(triton.language)
    for name in ("binary_op", "unary_op"):
        setattr(InterpreterBuilder, name, _in_float(getattr(InterpreterBuilder, name)))
    run = GridExecutor.__call__

    def on_host(value: Any) -> Any:
        there = isinstance(value, torch.Tensor) and value.device.type == "npu"
        return host(value) if there else value

    def run_on_host(self: Any, *given: Any, **more: Any) -> Any:
        return run(self, *map(on_host, given), **{name: on_host(more[name]) for name in more})

    GridExecutor.__call__ = recorded(run_on_host)
    from sgl_kernel_npu.utils import triton_utils

    triton_utils.get_device_properties = lambda: CORES


def _extend(language: ModuleType) -> None:
    """Where releases of triton-ascend have the two functions: in the language, or apart from it."""
    package = ModuleType("triton.language.extra.cann")
    package.extension = ModuleType(f"{package.__name__}.extension")  # type: ignore[attr-defined]
    for module in (language, package.extension):
        module.extract_slice, module.insert_slice = extract_slice, insert_slice
    for module in (package, package.extension):
        sys.modules[module.__name__] = module


def extract_slice(ful: Any, offsets: Any, sizes: Any, strides: Any) -> Any:
    """A part of a block, as in triton-ascend."""
    return _block(ful.handle.data[_window(offsets, sizes, strides)].copy(), ful.dtype.scalar)


def insert_slice(ful: Any, sub: Any, offsets: Any, sizes: Any, strides: Any) -> Any:
    """A block with a part of it replaced, as in triton-ascend."""
    data = ful.handle.data.copy()
    data[_window(offsets, sizes, strides)] = sub.handle.data
    return _block(data, ful.dtype.scalar)


def _window(*numbers: Sequence[Any]) -> tuple[slice, ...]:
    plain = [[int(getattr(each, "value", each)) for each in group] for group in numbers]
    return tuple(slice(at, at + n * by, by) for at, n, by in zip(*plain, strict=True))


def _block(data: Any, dtype: Any) -> Any:
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    return tl.tensor(TensorHandle(data, dtype), tl.block_type(dtype, list(data.shape)))


def _in_float(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of the interpreter; in bfloat16, done in float32 and rounded."""
    import numpy as np
    import torch
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def widened(handle: Any) -> Any:
        if handle.dtype.scalar != tl.bfloat16:
            return handle
        return TensorHandle((handle.data.astype(np.uint32) << 16).view(np.float32), tl.float32)

    def run(self: Any, *given: Any) -> Any:
        *handles, function = given
        if all(each.dtype.scalar != tl.bfloat16 for each in handles):
            return operation(self, *given)
        result = operation(self, *map(widened, handles), function)
        if result.data.dtype == np.bool_:
            return result
        rounded = torch.from_numpy(np.asarray(result.data, dtype=np.float32)).bfloat16()
        return TensorHandle(rounded.view(torch.uint16).numpy(), tl.bfloat16)

    return run
