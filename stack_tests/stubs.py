"""Just enough of torch, Megatron and friends to execute one upstream file without them.

A module below a stubbed package is made when it is imported; whatever is asked of it is a new class
that can be subclassed, called and subscripted. What a test cares about it sets itself. So a patched
file runs as it stands, once as on CUDA and once as on an NPU.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_PACKAGES = (
    *("apex", "deep_ep", "einops", "mbridge", "megatron", "mindspeed", "numpy", "pynvml"),
    *("ray", "requests", "safetensors", "sgl_kernel", "sgl_kernel_npu", "sglang"),
    *("sglang_router", "slime", "slime_plugins", "tools", "torch", "torch_memory_saver"),
    *("torch_npu", "tqdm", "transformer_engine", "transformers", "triton", "urllib3", "vllm"),
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
    """Makes stub modules; those below `missing` cannot be imported. `imported` takes notes."""

    def __init__(
        self, missing: Sequence[str], imported: list[str], packages: Sequence[str] = _PACKAGES
    ) -> None:
        self.missing = missing
        self.imported = imported
        self.packages = packages

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self.packages:
            return None
        if any(fullname == each or fullname.startswith(each + ".") for each in self.missing):
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        self.imported.append(spec.name)
        return Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run."""


@contextmanager
def stubbed(
    modules: Mapping[str, ModuleType], missing: Sequence[str] = (), real: Sequence[str] = ()
) -> Iterator[list[str]]:
    """Upstream packages are stubs, these modules are the given ones, all as before afterwards.

    Packages in `real` are what is installed. Gives the names of the stubs that are imported, in
    their order.
    """
    packages = tuple(name for name in _PACKAGES if name not in real)
    hidden = {name: sys.modules.pop(name) for name in _loaded(packages)}
    finder = _Finder(missing, [], packages)
    sys.meta_path.insert(0, finder)
    sys.modules.update(modules)
    for name in modules:
        _import_parent(name)
    try:
        yield finder.imported
    finally:
        sys.meta_path.remove(finder)
        for name in _loaded(packages):
            del sys.modules[name]
        sys.modules.update(hidden)


def pretend(packages: Sequence[str], modules: Mapping[str, ModuleType]) -> None:
    """For the rest of this process, these packages are stubs, with these modules in them."""
    sys.meta_path.insert(0, _Finder((), [], packages))
    sys.modules.update(modules)
    for name in modules:
        _import_parent(name)


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
    real: Sequence[str] = (),
) -> Any:
    """The module that `source` makes when imported as `name` among stubs."""
    module: Any = ModuleType(name)
    module.__package__ = name.rpartition(".")[0]
    module.__file__ = f"/upstream/{name.replace('.', '/')}.py"
    with stubbed({**(modules or {}), name: module}, missing, real):
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


def torch_for(device: str) -> Any:
    """A torch as on `device`: "cuda" (no torch_npu), "npu", or "npu-hidden" (loaded, no device)."""
    torch: Any = _CudaTorch("torch") if device == "cuda" else Stub("torch")
    torch.compile = lambda function: ("compiled", function)
    torch.no_grad = lambda: lambda function: function
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


class Stop(Exception):  # noqa: N818 (no error: the function has done what is looked at)
    """Ends a function that has done what is looked at."""


def stop(*arguments: Any, **keywords: Any) -> None:
    """Stands for the first function that does not matter any more."""
    raise Stop


def notes(kept: list[Any], *, gives: Any = None) -> Callable[..., Any]:
    """A function that notes the keywords it is called with."""

    def function(*arguments: Any, **keywords: Any) -> Any:
        kept.append(keywords)
        return gives

    return function


def module(name: str, **attributes: Any) -> Any:
    """A stub with these attributes."""
    made: Any = Stub(name)
    made.__dict__.update(attributes)
    return made


def decorators(name: str, *functions: str) -> Any:
    """A module whose decorators leave functions as they are."""
    made = module(name)
    for function in functions:
        setattr(made, function, lambda target: target)
    made.with_defer = lambda deferred: lambda target: target
    return made


def _loaded(packages: Sequence[str]) -> list[str]:
    """The modules of these packages that are imported by now."""
    return [name for name in sys.modules if name.partition(".")[0] in packages]
