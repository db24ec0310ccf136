"""`torch.npu.NPUGraph`: what is called in a capture is done again at each replay, in its memory.

Recorded are ATen's operators that have to do with the device, and whole calls of torch_npu's
operators and of kernels. A result is written over the one of the capture, as on a device, so what
is kept of a capture shows the replay. Lengths that an operator was called with are numbers: they
stay those of the capture unless `update` changes them, which torch_npu 2.8 can do for one operator.
A replay waits for its update, as the device's event does.
"""

import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

PATIENCE = 60.0  # seconds that a replay waits for its update; a device waits for ever
UPDATED = "npu_fused_infer_attention_score"  # the operator whose lengths torch_npu 2.8 updates
_LENGTHS = ("actual_seq_lengths", "actual_seq_lengths_kv")
_READS = (torch.ops.aten._local_scalar_dense.default,)

_capturing: "NPUGraph | None" = None


@dataclasses.dataclass
class _Call:
    function: Callable[..., Any]
    given: tuple[Any, ...]
    more: dict[str, Any]
    result: Any

    def again(self) -> None:
        made = self.function(*self.given, **self.more)
        memory = {_address(each) for each in _tensors((self.given, self.more))}
        for old, new in zip(_tensors(self.result), _tensors(made), strict=True):
            if _address(old) not in memory and old.numel():
                old.copy_(new)


def _tensors(values: Any) -> list[torch.Tensor]:
    return [each for each in tree_leaves(values) if isinstance(each, torch.Tensor)]


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class _Recorder(TorchDispatchMode):
    """Keeps operators with a tensor of the device."""

    def __init__(self, calls: list[_Call]) -> None:
        super().__init__()
        self.calls = calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        there = [each.device.type for each in _tensors((args, kwargs))]
        here = [each.device.type for each in _tensors(result)]
        if "npu" in there and (func in _READS or "cpu" in here):
            raise RuntimeError(f"{func}: the host reads from the device while a graph is captured")
        if "npu" in there + here:
            self.calls.append(_Call(func, args, kwargs or {}, result))
        return result


def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """In a capture a call of the function is kept as one, whatever it does."""

    @functools.wraps(function)
    def called(*given: Any, **more: Any) -> Any:
        if _capturing is None:
            return function(*given, **more)
        with _disable_current_modes():
            result = function(*given, **more)
        _capturing.calls.append(_Call(function, given, more, result))
        return result

    return called


class NPUGraph:
    """Calls in the order of their capture."""

    def __init__(self) -> None:
        self.calls: list[_Call] = []
        self.updates = threading.Semaphore(0)
        self.dispatched = False

    def replay(self) -> None:
        """All calls again, on the same memory."""
        if self._waiting() and not self.updates.acquire(timeout=PATIENCE):
            raise RuntimeError("NPUGraph: a replay without an update of its lengths never ends")
        with torch.inference_mode():
            for call in self.calls:
                call.again()

    def update(self, cpu_update_input: list[dict[str, Any]]) -> None:
        """Other numbers for the operators that were captured with auto_dispatch_capture."""
        calls = self._waiting()
        if len(cpu_update_input) == 1:
            cpu_update_input = cpu_update_input * len(calls)
        if len(cpu_update_input) != len(calls):
            raise RuntimeError(f"NPUGraph: {len(cpu_update_input)} updates of {len(calls)} calls")
        for call, changed in zip(calls, cpu_update_input, strict=True):
            if unknown := sorted(set(changed) - set(_LENGTHS)):
                raise RuntimeError(f"NPUGraph: {UPDATED} has nothing to update in {unknown}")
            call.more.update(changed)
        self.updates.release()

    def _waiting(self) -> list[_Call]:
        return [
            call
            for call in self.calls
            if self.dispatched and getattr(call.function, "__name__", "") == UPDATED
        ]

    def reset(self) -> None:
        """Forget what was captured."""
        self.calls = []

    def pool(self) -> tuple[int, int]:
        """Memory is not pooled."""
        return graph_pool_handle()


@contextmanager
def graph(
    npu_graph: NPUGraph,
    pool: Any = None,
    stream: Any = None,
    capture_error_mode: str = "global",
    auto_dispatch_capture: bool = False,
    report_shape: bool = True,
) -> Iterator[None]:
    """Capture what is called in here."""
    global _capturing  # noqa: PLW0603 - a device captures one graph at a time
    if _capturing is not None:
        raise RuntimeError("NPUGraph: a capture within a capture")
    npu_graph.calls, npu_graph.dispatched = [], auto_dispatch_capture
    _capturing = npu_graph
    try:
        with torch.npu.stream(stream), _Recorder(npu_graph.calls):
            yield
    finally:
        _capturing = None


def graph_pool_handle() -> tuple[int, int]:
    """Memory is not pooled."""
    return (0, 0)


def is_current_stream_capturing() -> bool:
    """Whether a graph is captured."""
    return _capturing is not None
