"""The module `torch.npu`: devices, memory, streams, events, random numbers.

Work on the host is finished when a call returns, so streams and events order nothing but copies to
the host that do not block: those are there when their stream, or an event after them, was waited
for. Memory is counted where it is allocated, so that its figures mean something.
"""

import ctypes
import sys
import time
import types
from typing import Any

import torch

from npusim import building
from npusim.graphs import (  # noqa: F401 - names of torch.npu
    NPUGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
)

NAME = "Ascend910B3"  # what code that asks for the name of a card expects; see README.md
MEMORY = 64 << 30

_library = ctypes.CDLL(str(building.library()))
for _name in ("npusim_allocated", "npusim_peak"):
    getattr(_library, _name).restype = ctypes.c_int64

# ---- devices


def is_available() -> bool:
    """Always: the device is the host."""
    return True


def is_initialized() -> bool:
    """Always: there is nothing to initialise."""
    return True


def init() -> None:
    """Nothing to do."""


_lazy_init = init


def _is_in_bad_fork() -> bool:
    return False


def _lazy_call(function: Any, **_: Any) -> None:
    function()


def device_count() -> int:
    """`$NPUSIM_DEVICES`, or 8."""
    return int(_library.npusim_count())


def current_device() -> int:
    """The index of this thread's current device."""
    return int(_library.npusim_current())


def _index(of: Any = None) -> int:
    if of is None:
        return current_device()
    if isinstance(of, int):
        index = of
    else:
        named = torch.device(of)
        if named.type != "npu":
            raise ValueError(f"expected a device npu, found {named}")
        index = current_device() if named.index is None else named.index
    if index >= device_count():
        raise RuntimeError(f"npu:{index}: there are {device_count()} devices")
    return index


def set_device(device: Any) -> None:
    """The current device of this thread; an index below zero changes nothing, as on CUDA."""
    index = _index(device)
    if index >= 0:
        _library.npusim_set(index)


class device:
    """A context in which another device is current."""

    def __init__(self, device: Any) -> None:
        self.idx = _index(device)

    def __enter__(self) -> None:
        self.prev_idx = current_device()
        if self.idx >= 0:
            _library.npusim_set(self.idx)

    def __exit__(self, *_: object) -> None:
        _library.npusim_set(self.prev_idx)


class device_of(device):
    """A context in which a tensor's device is current."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.device.index if tensor.device.type == "npu" else -1)


def get_device_name(device: Any = None) -> str:
    """The name of a card of the generation that the stacks are for."""
    return NAME


def get_device_capability(device: Any = None) -> None:
    """None, as torch_npu: an NPU has no compute capability."""
    return


def get_device_properties(device: Any = None) -> types.SimpleNamespace:
    """Name and memory."""
    return types.SimpleNamespace(
        name=NAME,
        total_memory=MEMORY,
        multi_processor_count=24,
        cube_core_num=24,
        vector_core_num=48,
    )


def get_soc_version() -> int:
    """torch_npu's number for the name above."""
    return 222


def synchronize(device: Any = None) -> None:
    """What non-blocking copies bring to the host is there now."""
    _library.npusim_synchronize(_index(device))


def can_device_access_peer(device: Any, peer: Any) -> bool:
    """All devices are the same memory."""
    return True


def is_bf16_supported() -> bool:
    """Yes."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """What torch.autocast("npu") takes."""
    return [torch.float16, torch.bfloat16, torch.float32]


def set_compile_mode(jit_compile: bool = False) -> None:
    """No operator is compiled."""


def is_jit_compile_false() -> bool:
    """No operator is compiled."""
    return True


def set_option(option: dict[str, Any]) -> None:
    """Options are for a real device's compiler."""


config = types.SimpleNamespace(allow_internal_format=False)

# ---- memory


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors of the device hold."""
    return int(_library.npusim_allocated(_index(device)))


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes since the last reset_peak_memory_stats."""
    return int(_library.npusim_peak(_index(device)))


memory_reserved = memory_cached = memory_allocated
max_memory_reserved = max_memory_cached = max_memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """The peak is what is held now."""
    _library.npusim_reset_peak(_index(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def memory_stats(device: Any = None) -> dict[str, int]:
    """The figures that trainers log."""
    now, most = memory_allocated(device), max_memory_allocated(device)
    named = {"allocated_bytes.all": (now, most), "reserved_bytes.all": (now, most)}
    values = {
        f"{name}.{kind}": value
        for name, pair in named.items()
        for kind, value in zip(("current", "peak"), pair, strict=True)
    }
    return {**values, "num_alloc_retries": 0, "num_ooms": 0}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The same figures, to read."""
    return "\n".join(f"{name}: {value}" for name, value in memory_stats(device).items())


def memory_snapshot() -> list[Any]:
    """Allocations are not recorded one by one."""
    return []


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and all bytes of a card of 64 GB."""
    return MEMORY - memory_allocated(device), MEMORY


def empty_cache() -> None:
    """Freed memory went back to the host already."""


def ipc_collect() -> None:
    """Nothing to collect."""


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """There is no limit to take a part of."""


# ---- streams and events


class Stream(torch.Stream):
    """A stream; what is enqueued has been done, but for copies to the host that do not block."""

    def __new__(cls, device: Any = None, priority: int = 0, **given: Any) -> "Stream":
        """`device` may be an index, as in torch.npu; stream_id and others as torch.Stream's."""
        if "stream_id" in given:
            return super().__new__(cls, priority=priority, **given)
        return super().__new__(cls, device=torch.device("npu", _index(device)), priority=priority)

    @property
    def npu_stream(self) -> int:
        """The number of the stream."""
        return int(self.stream_id)

    cuda_stream = npu_stream

    def set_data_preprocess_stream(self, is_data_preprocess_stream: bool = False) -> None:
        """For a real device's queue."""


class Event(torch.Event):
    """A moment on the host's clock."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, **_: Any) -> "Event":
        """As torch.npu.Event; interprocess and others are accepted."""
        return super().__new__(cls, device="npu", enable_timing=enable_timing, blocking=blocking)

    _at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Now."""
        self._at = time.perf_counter()
        super().record(stream or current_stream())

    def wait(self, stream: Any = None) -> None:
        """What this stream does from here on is after it."""
        super().wait(stream or current_stream())

    def elapsed_time(self, end_event: "Event") -> float:
        """Milliseconds between two recorded events."""
        if self._at is None or end_event._at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end_event._at - self._at) * 1000


ExternalEvent = Event


def current_stream(device: Any = None) -> Stream:
    """The stream that is current on a device."""
    plain = torch._C._accelerator_getStream(_index(device))
    return _as_stream(plain)


def default_stream(device: Any = None) -> Stream:
    """The stream 0."""
    index = _index(device)
    return Stream(stream_id=0, device_index=index, device_type=_device_type())


def _as_stream(plain: torch.Stream) -> Stream:
    return Stream(
        stream_id=plain.stream_id, device_index=plain.device_index, device_type=plain.device_type
    )


def _device_type() -> int:
    return int(Stream(device=0).device_type)


def set_stream(stream: torch.Stream) -> None:
    """Make a stream current on its device, and the device current, as on CUDA."""
    torch._C._accelerator_setStream(stream)


class StreamContext:
    """A context in which a stream is current; it can be entered again, as torch.cuda's."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self._before = current_stream(self.stream.device), current_device()
            set_stream(self.stream)

    def __exit__(self, *_: object) -> None:
        if self.stream is not None:
            before, index = self._before
            set_stream(before)
            _library.npusim_set(index)


stream = StreamContext


# ---- random numbers

# The first generator that is made for a device is its default one; see device.cpp.
default_generators = tuple(torch.Generator(f"npu:{index}") for index in range(device_count()))


def manual_seed(seed: int) -> None:
    """Seed the current device."""
    default_generators[current_device()].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed all devices."""
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> None:
    """Seed the current device by chance."""
    default_generators[current_device()].seed()


def seed_all() -> None:
    """Seed all devices alike, by chance."""
    manual_seed_all(torch.Generator().seed())


def initial_seed() -> int:
    """What the current device was seeded with."""
    return int(default_generators[current_device()].initial_seed())


def get_rng_state(device: Any = "npu") -> torch.Tensor:
    """The state of a device's generator, on the host."""
    return default_generators[_index(device)].get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "npu") -> None:
    """The other way."""
    default_generators[_index(device)].set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """Of all devices."""
    return [generator.get_state() for generator in default_generators]


def set_rng_state_all(new_states: list[torch.Tensor]) -> None:
    """Of all devices."""
    for generator, state in zip(default_generators, new_states, strict=False):
        generator.set_state(state)


# ---- types of tensors, for isinstance


def _kind(name: str, dtype: torch.dtype) -> type:
    class Kind(type):
        def __instancecheck__(cls, value: object) -> bool:
            return (
                isinstance(value, torch.Tensor)
                and value.device.type == "npu"
                and value.dtype == dtype
            )

    def made(cls: type, *given: Any) -> torch.Tensor:
        if given and not isinstance(given[0], int):
            return torch.tensor(given[0], dtype=dtype, device="npu")
        return torch.empty(given or (0,), dtype=dtype, device="npu")

    return Kind(name, (), {"__new__": made, "__module__": "torch.npu", "dtype": dtype})


_KINDS = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}
globals().update({name: _kind(name, dtype) for name, dtype in _KINDS.items()})


def _submodule(name: str, *names: str, **more: Any) -> types.ModuleType:
    module = types.ModuleType(f"torch.npu.{name}")
    vars(module).update({each: globals()[each] for each in names}, **more)
    sys.modules[module.__name__] = module
    return module


def register() -> None:
    """Make this module torch.npu."""
    module = sys.modules[__name__]
    torch._register_device_module("npu", module)
    sys.modules["torch.npu"] = module
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    module.random = _submodule(  # type: ignore[attr-defined]
        "random",
        *("manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed"),
        *("get_rng_state", "set_rng_state", "get_rng_state_all", "set_rng_state_all"),
    )
    module.memory = _submodule(  # type: ignore[attr-defined]
        "memory",
        *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
        *("memory_stats", "memory_summary", "memory_snapshot", "mem_get_info", "empty_cache"),
        *("reset_peak_memory_stats", "set_per_process_memory_fraction"),
    )
    module.streams = _submodule("streams", "Stream", "Event")  # type: ignore[attr-defined]
    module.amp = _submodule(  # type: ignore[attr-defined]
        "amp",
        autocast=lambda *given, **more: torch.amp.autocast("npu", *given, **more),
        GradScaler=lambda *given, **more: torch.amp.GradScaler("npu", *given, **more),
    )
    module.nvtx = module.mstx = types.SimpleNamespace(  # type: ignore[attr-defined]
        range_push=lambda message="": 0,
        range_pop=lambda: 0,
        range_start=lambda message="", stream=None: 0,
        range_end=lambda range_id=0: None,
        mark=lambda message="": None,
    )
