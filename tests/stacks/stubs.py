"""Just enough of torch, Megatron and friends to execute one upstream file without them.

A module below a stubbed package is made when it is imported; whatever is asked of it is a new class
that can be subclassed, called, subscripted and used as a decorator. What a test cares about it sets
itself. So a patched file runs as it stands, once as on CUDA and once as on an NPU.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_PACKAGES = (
    *("apex", "einops", "mbridge", "megatron", "mindspeed", "numpy", "safetensors"),
    *("torch", "torch_npu", "transformer_engine"),
)


class _Anything(type):
    """The type of every name that nobody has set."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = anything(name)
        setattr(cls, name, made)
        return made

    def __getitem__(cls, item: object) -> Any:
        return cls

    def __or__(cls, other: object) -> Any:
        return cls


def anything(name: str) -> Any:
    """A class that stands for whatever `name` is upstream."""
    return _Anything(name, (), {"__init__": lambda self, *args, **kwargs: None})


class Stub(ModuleType):
    """A module in which every name exists."""

    __path__: list[str] = []  # noqa: RUF012 (a package without files)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = anything(name)
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes stub modules; those below `missing` cannot be imported."""

    def __init__(self, missing: Sequence[str]) -> None:
        self.missing = missing

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in _PACKAGES:
            return None
        if any(fullname == each or fullname.startswith(each + ".") for each in self.missing):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


@contextmanager
def stubbed(modules: Mapping[str, ModuleType], missing: Sequence[str] = ()) -> Iterator[None]:
    """Upstream packages are stubs, these modules are the given ones, all as before afterwards."""
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_upstream(name)}
    finder = _Finder(missing)
    sys.meta_path.insert(0, finder)
    sys.modules.update(modules)
    for name in modules:
        _import_parent(name)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _is_upstream(name)]:
            del sys.modules[name]
        sys.modules.update(hidden)


def _import_parent(name: str) -> None:
    # import takes a module that is there already without a look at the packages it is in
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(importlib.import_module(parent), child, sys.modules[name])


def execute(
    source: str,
    name: str,
    modules: Mapping[str, ModuleType] | None = None,
    missing: Sequence[str] = (),
) -> Any:
    """The module that `source` makes when imported as `name` among stubs."""
    module: Any = ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    with stubbed({**(modules or {}), name: module}, missing):
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


def torch_for(device: str) -> Any:
    """A torch as on `device`: "cuda" (no torch_npu), "npu", or "npu-hidden" (loaded, no device)."""
    torch: Any = _CudaTorch("torch") if device == "cuda" else Stub("torch")
    torch.compile = lambda function: ("compiled", function)
    torch.jit = Stub("torch.jit")
    torch.jit.script = lambda function: ("scripted", function)
    torch.cuda = Stub("torch.cuda")
    if device != "cuda":
        torch.npu = Stub("torch.npu")
        torch.npu.is_available = lambda: device == "npu"
    return torch


class _CudaTorch(Stub):
    """A torch that knows no NPU."""

    def __getattr__(self, name: str) -> Any:
        if name == "npu":
            raise AttributeError("module 'torch' has no attribute 'npu'")
        return super().__getattr__(name)


def _is_upstream(name: str) -> bool:
    return name.partition(".")[0] in _PACKAGES
