"""Our Megatron patches, executed: on CUDA what upstream does, on an NPU what the patch promises."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from stack_tests.conftest import Stack
from stack_tests.stubs import Stub, execute, stubbed, torch_for

JIT = "megatron/core/jit.py"
MODULE = "megatron/core/transformer/module.py"
SPECS = "megatron/core/models/gpt/gpt_layer_specs.py"


def jit_fuser(source: str, device: str, *, old_torch: bool = False) -> Any:
    """What `@jit_fuser` makes of a function called "f"."""
    utils: Any = Stub("megatron.core.utils")
    utils.is_torch_min_version = lambda version: not old_torch
    modules = {"torch": torch_for(device), "megatron.core.utils": utils}
    return execute(source, "megatron.core.jit", modules).jit_fuser("f")


@pytest.mark.index
class TestJitFuser:
    def test_functions_stay_uncompiled_on_an_npu(self, index_stack: Stack) -> None:
        assert jit_fuser(index_stack.before("megatron-core", JIT), "npu") == ("compiled", "f")
        assert jit_fuser(index_stack.after("megatron-core", JIT), "npu") == "f"

    @pytest.mark.parametrize("device", ["cuda", "npu-hidden"])
    @pytest.mark.parametrize("old_torch", [False, True])
    def test_nothing_changes_elsewhere(
        self, index_stack: Stack, device: str, old_torch: bool
    ) -> None:
        before, after = (
            jit_fuser(source, device, old_torch=old_torch)
            for source in (
                index_stack.before("megatron-core", JIT),
                index_stack.after("megatron-core", JIT),
            )
        )
        assert before == after == ("scripted" if old_torch else "compiled", "f")


def converted(source: str, device: str) -> dict[str, list[str]]:
    """Type of a tensor -> what fp32_to_float16 and float16_to_fp32 do to it."""
    torch = torch_for(device)
    places = [torch, torch.cuda] + ([torch.npu] if device == "npu" else [])
    module = execute(source, "megatron.core.transformer.module", {"torch": torch})
    outcome = {}
    for place in places:
        for kind in ("FloatTensor", "HalfTensor", "BFloat16Tensor"):
            tensor = getattr(place, kind)()
            tensor.float = lambda: "up"
            down = module.fp32_to_float16((tensor, [tensor]), lambda value: "down")
            up = module.float16_to_fp32(tensor)
            outcome[f"{place.__name__}.{kind}"] = [
                "down" if down == ("down", ["down"]) else "kept",
                "up" if up == "up" else "kept",
            ]
    return outcome


@pytest.mark.index
class TestTensorTypes:
    def test_npu_tensors_are_converted_like_cuda_tensors(self, index_stack: Stack) -> None:
        done = converted(index_stack.after("megatron-core", MODULE), "npu")
        for kind in ("FloatTensor", "HalfTensor", "BFloat16Tensor"):
            assert done[f"torch.npu.{kind}"] == done[f"torch.cuda.{kind}"] != ["kept", "kept"]

    def test_upstream_passes_npu_tensors_through(self, index_stack: Stack) -> None:
        done = converted(index_stack.before("megatron-core", MODULE), "npu")
        assert done["torch.npu.FloatTensor"] == ["kept", "kept"]

    def test_nothing_changes_on_cuda(self, index_stack: Stack) -> None:
        before, after = (
            converted(source, "cuda")
            for source in (
                index_stack.before("megatron-core", MODULE),
                index_stack.after("megatron-core", MODULE),
            )
        )
        assert before == after
        assert after["torch.cuda.FloatTensor"] == ["down", "kept"]


def specs(source: str, device: str, *, transformer_engine: bool) -> tuple[Any, dict[str, Any]]:
    """gpt_layer_specs, and the module from which it takes TESpecProvider."""
    extension: Any = Stub("megatron.core.extensions.transformer_engine_spec_provider")
    extension.TESpecProvider = lambda **kwargs: "Transformer Engine's"
    extensions: Any = Stub("megatron.core.extensions")
    extensions.transformer_engine_spec_provider = extension
    modules: dict[str, ModuleType] = {
        "torch": torch_for(device),
        "megatron.core.extensions": extensions,
        extension.__name__: extension,
    }
    missing = ["nvidia_kitchen"] if transformer_engine else ["nvidia_kitchen", "transformer_engine"]
    module = execute(source, "megatron.core.models.gpt.gpt_layer_specs", modules, missing)
    return module, modules


@pytest.mark.upstream
class TestSpecProvider:
    def test_what_mindspeed_put_there_later_is_found(self, git_stack: Stack) -> None:
        source = git_stack.after("Megatron-LM", SPECS)
        module, modules = specs(source, "npu", transformer_engine=False)
        extension: Any = modules["megatron.core.extensions.transformer_engine_spec_provider"]
        extension.TESpecProvider = lambda **kwargs: ("MindSpeed's", kwargs)
        with stubbed(modules):
            made = module.TESpecProvider(fallback_to_eager_attn=True)
        assert made == ("MindSpeed's", {"fallback_to_eager_attn": True})

    def test_upstream_has_no_such_name_then(self, git_stack: Stack) -> None:
        source = git_stack.before("Megatron-LM", SPECS)
        module, _ = specs(source, "npu", transformer_engine=False)
        assert not hasattr(module, "TESpecProvider")

    @pytest.mark.parametrize("transformer_engine", [True, False])
    def test_nothing_changes_on_cuda(self, git_stack: Stack, transformer_engine: bool) -> None:
        before, after = (
            specs(source, "cuda", transformer_engine=transformer_engine)[0]
            for source in (
                git_stack.before("Megatron-LM", SPECS),
                git_stack.after("Megatron-LM", SPECS),
            )
        )
        assert hasattr(before, "TESpecProvider") == hasattr(after, "TESpecProvider")
        assert before.HAVE_TE == after.HAVE_TE == transformer_engine
