"""Our SGLang patches beyond the decisions of test_devices.py: what the NPU's own code computes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stacks.conftest import Stack
from tests.stacks.devices import Side
from tests.stacks.sglang_scenarios import ROOT, utils
from tests.stacks.stubs import Stub

pytestmark = pytest.mark.upstream


def norm(stack: Stack, *, patched: bool = True) -> Any:
    """RMSNorm as on an NPU; its fused operator gives the sum, and the sum again as the residual."""
    operators: Any = Stub("torch_npu")
    operators.npu_add_rms_norm = lambda residual, x, weight, eps: (residual + x, None, residual + x)
    operators.npu_rms_norm = lambda x, weight, eps: (x, None)
    modules = {**utils("npu"), "torch_npu": operators}
    side = Side(stack, "sglang", "npu", patched)
    layers = side.load(f"{ROOT}/layers/layernorm.py", modules)
    made = object.__new__(layers.RMSNorm)
    made.weight, made.variance_epsilon = Stub("weight"), 1e-6
    return made


class TestDeepStack:
    def test_features_of_the_image_are_added_to_the_residual(self, git_stack: Stack) -> None:
        assert norm(git_stack).forward_npu(1, 10, post_residual_addition=100) == (111, 111)

    def test_upstream_drops_them(self, git_stack: Stack) -> None:
        made = norm(git_stack, patched=False)
        assert made.forward_npu(1, 10, post_residual_addition=100) == (11, 11)

    def test_without_features_nothing_changes(self, git_stack: Stack) -> None:
        before, after = norm(git_stack, patched=False), norm(git_stack)
        for arguments in [(1,), (1, 10)]:
            assert before.forward_npu(*arguments) == after.forward_npu(*arguments)
        assert after.forward_npu(1, 10, post_residual_addition=None) == (11, 11)


def test_the_metadata_asks_for_what_upstreams_file_for_npus_asks_for(git_stack: Stack) -> None:
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    ours, theirs = (
        tomllib.loads(git_stack.after("sglang", f"python/{name}.toml"))["project"]
        for name in ("pyproject", "pyproject_other")
    )
    extras = theirs["optional-dependencies"]
    assert extras["srt_npu"] == ["sglang[runtime_common]"]
    assert set(ours["dependencies"]) == {*theirs["dependencies"], *extras["runtime_common"]}
    assert ours["optional-dependencies"]["srt_npu"] == []
