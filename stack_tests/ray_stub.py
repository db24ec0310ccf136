"""A Ray that takes notes, and refuses what Ray refuses."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType, SimpleNamespace
from typing import Any

from stack_tests.stubs import Stub

#: What the accelerators of the node are called, in the order in which Ray gives them out.
DEVICES = ("3", "10", "2", "0")


class Ray:
    """The modules of Ray on a node with four accelerators; `asked`: what actors asked for."""

    def __init__(self, device: str) -> None:
        self.resource = "NPU" if device == "npu" else "GPU"
        self.asked: list[dict[str, Any]] = []
        self.bundles: list[dict[str, int]] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._free = list(DEVICES)

    @property
    def modules(self) -> dict[str, ModuleType]:
        """To be put in the place of Ray's."""
        ray: Any = Stub("ray")
        ray.remote = self._remote
        ray.get = lambda value: value
        ray.wait = lambda references, timeout: (references, [])
        ray.kill = lambda actor: None
        ray.get_gpu_ids = lambda: self._ids("GPU")
        ray.get_runtime_context = lambda: SimpleNamespace(
            get_accelerator_ids=lambda: {"GPU": [], "NPU": self._ids("NPU")}
        )
        ray.util = Stub("ray.util")
        ray.util.get_node_ip_address = lambda: "10.0.0.1"
        groups: Any = Stub("ray.util.placement_group")
        groups.placement_group = self._group
        strategies: Any = Stub("ray.util.scheduling_strategies")
        strategies.PlacementGroupSchedulingStrategy = lambda **options: "in the group"
        return {each.__name__: each for each in (ray, ray.util, groups, strategies)}

    def _ids(self, resource: str) -> list[Any]:
        """The next accelerator: a number for a GPU, text for others; none where there is none."""
        if resource != self.resource:
            return []
        number = self._free.pop(0)
        return [number if resource == "NPU" else int(number)]

    def _group(self, bundles: Iterable[dict[str, int]], strategy: str) -> Any:
        self.bundles += bundles
        return SimpleNamespace(ready=lambda: None)

    def _remote(self, *target: Any, **options: Any) -> Any:
        if target:
            return _ActorClass(self, target[0], {})
        return lambda kind: _ActorClass(self, kind, options)


class _ActorClass:
    def __init__(self, ray: Ray, kind: Any, options: dict[str, Any]) -> None:
        self.ray, self.kind, self.made_with = ray, kind, options

    def options(self, **options: Any) -> _ActorClass:
        return _ActorClass(self.ray, self.kind, {**self.made_with, **options})

    def remote(self, *arguments: Any, **keywords: Any) -> Any:
        asked = {key: self.made_with[key] for key in _ASKED if key in self.made_with}
        if "GPU" in asked.get("resources", {}):
            raise ValueError("Use the 'num_cpus' and 'num_gpus' keyword instead of 'CPU' and 'GPU'")
        self.ray.asked.append(asked)
        return _Actor(self.ray, self.kind)


_ASKED = ("num_cpus", "num_gpus", "resources")


class _Actor:
    def __init__(self, ray: Ray, kind: Any) -> None:
        self._ray, self._kind = ray, kind

    def __getattr__(self, name: str) -> Any:
        def remote(*arguments: Any, **keywords: Any) -> Any:
            self._ray.calls.append((name, keywords))
            if name == "get_ip_and_gpu_id":
                return self._kind.get_ip_and_gpu_id(object.__new__(self._kind))
            return ("10.0.0.1", 20000)

        return SimpleNamespace(remote=remote)
