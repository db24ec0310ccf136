"""Our verl patch, executed: what a worker of fully asynchronous training imports, and when.

The worker, verl's engine package and its Megatron helpers are the real files; what they import from
elsewhere is a stub that takes notes.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from stack_tests.conftest import Stack
from stack_tests.stubs import Stub

WORKER = "verl.experimental.separation.engine_workers"
REAL = {
    WORKER: "verl/experimental/separation/engine_workers.py",
    "verl.workers.engine": "verl/workers/engine/__init__.py",
    "verl.workers.engine.mindspeed": "verl/workers/engine/mindspeed/__init__.py",
    "verl.workers.engine.mindspeed.transformer_impl": (
        "verl/workers/engine/mindspeed/transformer_impl.py"
    ),
    "verl.utils.megatron_utils": "verl/utils/megatron_utils.py",
}
ADAPTOR = "mindspeed.megatron_adaptor"
STUBBED = ("megatron", "mindspeed", "omegaconf", "tensordict", "torch", "transformers", "verl")

pytestmark = pytest.mark.upstream


class Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes every module of the stubbed packages: from its source where there is one."""

    def __init__(self, sources: Mapping[str, str], given: Mapping[str, ModuleType]) -> None:
        self.sources = sources
        self.given = given
        self.imported: list[str] = []

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in STUBBED:
            return None
        package = REAL.get(fullname, "__init__.py").endswith("__init__.py")
        return importlib.machinery.ModuleSpec(fullname, self, is_package=package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        self.imported.append(spec.name)
        return self.given.get(spec.name) or Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        source = self.sources.get(module.__name__, "")
        module.__file__ = f"{module.__name__}.py"  # verl's modules name their loggers by it
        exec(compile(source, f"<{module.__name__}>", "exec"), module.__dict__)


class Worker:
    """What ActorRolloutRefWorker does in this story."""

    def __init__(self, config: Any, role: str) -> None:
        self.config = config

    def init_model(self) -> None:
        importlib.import_module("verl.workers.engine")
        self.actor = SimpleNamespace(engine=SimpleNamespace(module=()))


def given() -> dict[str, ModuleType]:
    """Stubs of which something is asked: decorators that change nothing, and the worker's base."""
    decorator: Any = Stub("verl.single_controller.base.decorator")
    decorator.register = lambda **options: lambda function: function
    registry: Any = Stub("verl.workers.engine.base")
    registry.EngineRegistry.register = decorator.register
    workers: Any = Stub("verl.workers.engine_workers")
    workers.ActorRolloutRefWorker = Worker
    torch: Any = Stub("torch")
    torch.no_grad = lambda: lambda function: function
    return {module.__name__: module for module in (decorator, registry, workers, torch)}


@contextmanager
def imports(read: Any) -> Iterator[Importer]:
    """The importer in place, everything as before afterwards; `read` gives a file of verl."""
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_stubbed(name)}
    importer = Importer({name: read(path) for name, path in REAL.items()}, given())
    sys.meta_path.insert(0, importer)
    try:
        yield importer
    finally:
        sys.meta_path.remove(importer)
        for name in [name for name in sys.modules if _is_stubbed(name)]:
            del sys.modules[name]
        sys.modules.update(hidden)


def _is_stubbed(name: str) -> bool:
    return name.partition(".")[0] in STUBBED


def worker(strategy: str) -> Any:
    """A worker with a model, as the trainer makes it."""
    config = SimpleNamespace(actor=SimpleNamespace(strategy=strategy))
    made = importlib.import_module(WORKER).DetachActorWorker(config, "actor")
    made.init_model()
    return made


def order(imported: list[str]) -> list[str]:
    """MindSpeed's adaptor and Megatron in the order in which they came."""
    seen = ["megatron" if name.startswith("megatron.") else name for name in imported]
    return [name for name in dict.fromkeys(seen) if name in ("megatron", ADAPTOR)]


class TestMindSpeedComesFirst:
    def test_patched(self, fully_async_stack: Stack) -> None:
        with imports(lambda path: fully_async_stack.after("verl", path)) as importer:
            made = worker("megatron")
            assert order(importer.imported)[0] == ADAPTOR
            assert "verl.utils.megatron_utils" not in importer.imported
            made.save_model_to_cpu("before the step")
            assert made.cpu_saved_models == {"before the step": {}}
        assert order(importer.imported) == [ADAPTOR, "megatron"]

    def test_upstream_has_megatron_first(self, fully_async_stack: Stack) -> None:
        with imports(lambda path: fully_async_stack.before("verl", path)) as importer:
            worker("megatron")
        assert order(importer.imported) == ["megatron", ADAPTOR]

    def test_the_engine_is_imported_when_the_model_is_built(self, fully_async_stack: Stack) -> None:
        tree = ast.parse(fully_async_stack.after("verl", "verl/workers/engine_workers.py"))
        [made] = [
            each
            for each in tree.body
            if isinstance(each, ast.ClassDef) and each.name == "TrainingWorker"
        ]
        [constructor] = [
            each
            for each in made.body
            if isinstance(each, ast.FunctionDef) and each.name == "__init__"
        ]
        found = [each.module for each in ast.walk(constructor) if isinstance(each, ast.ImportFrom)]
        assert found == ["verl.workers.engine"]


class TestModelsAreCopiedAsBefore:
    @pytest.mark.parametrize("strategy", ["fsdp", "fsdp2", "megatron"])
    def test_there_and_back(self, fully_async_stack: Stack, strategy: str) -> None:
        before, after = (
            copies(read, strategy)
            for read in (
                lambda path: fully_async_stack.before("verl", path),
                lambda path: fully_async_stack.after("verl", path),
            )
        )
        assert before == after
        assert [call[0] for call in after] == ["save", "restore"]

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_an_unknown_strategy_is_refused(self, fully_async_stack: Stack, when: str) -> None:
        read = getattr(fully_async_stack, when)
        refused = pytest.raises(NotImplementedError, match="other")
        with imports(lambda path: read("verl", path)), refused:
            worker("other").save_model_to_cpu("name")


def copies(read: Any, strategy: str) -> list[tuple[Any, ...]]:
    """What is called, with what, when a model is saved, restored and forgotten."""
    calls: list[tuple[Any, ...]] = []

    def save(module: Any) -> tuple[str, str]:
        calls.append(("save", module))
        return ("state", "specification")

    def restore(*arguments: Any) -> None:
        calls.append(("restore", *arguments))

    with imports(read):
        for name in ("fsdp2_sharded_save_to_cpu", "copy_megatron_model_to_cpu"):
            setattr(importlib.import_module(_home(name)), name, save)
        for name in ("fsdp2_sharded_load_from_cpu", "restore_megatron_model_from_cpu"):
            setattr(importlib.import_module(_home(name)), name, restore)
        made = worker(strategy)
        made.save_model_to_cpu("name")
        made.restore_model_from_cpu("another name")
        made.restore_model_from_cpu("name")
        made.clear_cpu_model("name")
        made.restore_model_from_cpu("name")
    return calls


def _home(name: str) -> str:
    return "verl.utils.fsdp_utils" if name.startswith("fsdp") else "verl.utils.megatron_utils"
