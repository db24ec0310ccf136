"""Packages that a stack imports and a machine without its device cannot have.

After `stand_in("decord")`, `import decord.anything` succeeds where decord is not installed. Every
name in it raises when it is called: what needs the package stops with the name of what it needs.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType
from typing import Any


class _Absent(type):
    """A name of an absent package: a class, so that others can derive from it."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{cls.__module__}.{cls.__qualname__} is not installed here")

    def __getattr__(cls, name: str) -> Any:
        return _absent(cls.__module__, f"{cls.__qualname__}.{name}")


def _absent(module: str, name: str) -> type:
    if name.rpartition(".")[2].startswith("__"):
        raise AttributeError(name)
    return _Absent(name.rpartition(".")[2], (), {"__module__": module, "__qualname__": name})


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        return _absent(self.__name__, name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages: tuple[str, ...]) -> None:
        self.packages = packages

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname.partition(".")[0] in self.packages:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def stand_in(*packages: str) -> tuple[str, ...]:
    """Make those of these packages importable that are not installed; which they were."""
    absent = tuple(name for name in packages if importlib.util.find_spec(name) is None)
    sys.meta_path.append(_Finder(absent))
    return absent
