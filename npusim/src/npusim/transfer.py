"""What `import torch_npu.contrib.transfer_to_npu` changes in torch, for code written for CUDA.

The same places as the real module: torch.cuda's names, devices in arguments, nccl in
init_process_group (not in new_group: there, too, it stays), torch.jit.script, has_triton.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed
from torch.utils import _triton
from torch.utils._device import DeviceContext, _device_constructors

_FACTORIES = (
    *(
        "Generator",
        "arange",
        "as_tensor",
        "autocast",
        "bartlett_window",
        "blackman_window",
        "empty",
    ),
    *("empty_like", "empty_quantized", "empty_strided", "eye", "from_file", "frombuffer", "full"),
    *(
        "full_like",
        "hamming_window",
        "hann_window",
        "kaiser_window",
        "linspace",
        "load",
        "logspace",
    ),
    *("normal", "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn"),
    *(
        "randn_like",
        "randperm",
        "range",
        "scalar_tensor",
        "set_default_device",
        "sparse_coo_tensor",
    ),
    *("sparse_csr_tensor", "tensor", "tril_indices", "triu_indices", "zeros", "zeros_like"),
)
_METHODS = (
    *("new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros"),
    *("pin_memory", "to"),
)
_KEYWORDS = ("device", "device_id", "device_type", "map_location")
# Names of the module behind torch.npu that are its machinery.
_OWN = {"register", "building", "annotations"}

_done = False


def transfer() -> None:
    """Do it, once a process."""
    global _done  # noqa: PLW0603 - torch is changed once a process
    if _done:
        return
    _done = True
    _device_constructors()  # remembers torch's functions before they are wrapped
    _cuda_is_npu()
    for name in _FACTORIES:
        setattr(torch, name, _wrapped(getattr(torch, name)))
    for name in _METHODS:
        setattr(torch.Tensor, name, _wrapped(getattr(torch.Tensor, name)))
    for name in ("to", "to_empty"):
        setattr(torch.nn.Module, name, _wrapped(getattr(torch.nn.Module, name)))
    torch.Tensor.cuda = torch.Tensor.npu
    torch.Tensor.is_cuda = torch.Tensor.is_npu
    torch.nn.Module.cuda = torch.nn.Module.npu
    DeviceContext.__init__ = _wrapped(DeviceContext.__init__)
    _distributed()
    torch.jit.script = _as_it_is
    torch.jit.script_method = _as_it_is
    _triton.has_triton = lambda: False


def _cuda_is_npu() -> None:
    import torch_npu

    npu = torch_npu.npu
    for name in dir(npu):
        if not name.startswith("__") and name not in _OWN:
            setattr(torch.cuda, name, getattr(npu, name))
    for part in ("amp", "memory", "random"):
        real = __import__(f"torch.cuda.{part}", fromlist=["_"])
        for name, value in vars(getattr(npu, part)).items():
            if not name.startswith("__"):
                setattr(real, name, value)
        setattr(torch.cuda, part, real)
    torch.cuda.DoubleTensor = npu.FloatTensor
    for name in ("set_device", "synchronize", "get_device_properties", "get_device_name"):
        setattr(torch.cuda, name, _wrapped(getattr(npu, name)))
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "mem_get_info"):
        setattr(torch.cuda, name, _wrapped(getattr(npu, name)))
    for name in (
        "max_memory_reserved",
        "memory_stats",
        "reset_peak_memory_stats",
        "memory_summary",
    ):
        setattr(torch.cuda, name, _wrapped(getattr(npu, name)))
    for name in ("current_stream", "default_stream"):
        setattr(torch.cuda, name, _wrapped(getattr(npu, name)))
    for name in ("get_rng_state", "set_rng_state"):
        setattr(torch.cuda, name, _wrapped(getattr(npu, name)))
        setattr(torch.cuda.random, name, _wrapped(getattr(npu, name)))

    class device(npu.device):  # type: ignore[name-defined, misc]
        """torch.cuda.device, of an NPU."""

        __init__ = _wrapped(npu.device.__init__)

    torch.cuda.device = device


def _distributed() -> None:
    dist = torch.distributed
    dist.init_process_group = _hccl(dist.init_process_group)
    dist.is_nccl_available = dist.is_hccl_available
    dist.ProcessGroup._get_backend = _wrapped(dist.ProcessGroup._get_backend)
    parallel = torch.nn.parallel.DistributedDataParallel
    parallel.__init__ = _wrapped(parallel.__init__)


def _named(value: Any, numbers: bool = False) -> Any:
    if isinstance(value, str):
        return value.replace("cuda", "npu")
    if isinstance(value, torch.device):
        return torch.device(str(value).replace("cuda", "npu")) if value.type == "cuda" else value
    if isinstance(value, dict):
        return {_named(key): _named(each) for key, each in value.items()}
    if numbers and isinstance(value, int) and not isinstance(value, bool):
        return f"npu:{value}"
    return value


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with devices named cuda in its arguments renamed."""
    if isinstance(function, type):
        return _wrapped_class(function)
    numbers = getattr(function, "__name__", "") in ("to", "to_empty")

    @functools.wraps(function)
    def call(*given: Any, **more: Any) -> Any:
        given = tuple(
            _named(value, numbers) if isinstance(value, (str, torch.device, dict, int)) else value
            for value in given
        )
        for name in _KEYWORDS:
            if isinstance(more.get(name), (str, torch.device, dict, int)):
                more[name] = _named(more[name], numbers=not isinstance(more[name], bool))
        return function(*given, **more)

    return call


def _wrapped_class(real: type) -> Any:
    """A class that is called like one, and still answers isinstance: Generator, autocast."""

    class Kind(type):
        def __call__(cls, *given: Any, **more: Any) -> Any:
            if cls is Renamed:
                return _wrapped_call(real, given, more)
            return super().__call__(*given, **more)

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, real)

    Renamed = Kind(real.__name__, (), {"__module__": real.__module__, "__doc__": real.__doc__})
    return Renamed


def _wrapped_call(function: Callable[..., Any], given: Any, more: dict[str, Any]) -> Any:
    for name in _KEYWORDS:
        if name in more:
            more[name] = _named(more[name])
    return function(*map(_named, given), **more)


def _hccl(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*given: Any, **more: Any) -> Any:
        given = tuple(
            value.replace("nccl", "hccl") if isinstance(value, str) else value for value in given
        )
        if isinstance(more.get("backend"), str):
            more["backend"] = more["backend"].replace("nccl", "hccl")
        return function(*given, **more)

    return call


def _as_it_is(obj: Any, *_: Any, **__: Any) -> Any:
    return obj
