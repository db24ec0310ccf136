"""Our mbridge patch, executed with a safetensors that only takes notes."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import pytest

from stack_tests.conftest import TREES, Tree, tree
from stack_tests.stubs import Stub, execute, torch_for

PATH = "mbridge/models/ext/deepseek_v3/dequant_fp8_safetensor_io.py"


class OpenFile:
    """An open safetensors file; every tensor is of one byte per element."""

    def __init__(self, devices: list[str], device: str) -> None:
        devices.append(device)

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def get_tensor(self, name: str) -> Any:
        tensor: Any = Stub(name)
        tensor.element_size = lambda: 1
        return tensor


def devices_opened(source: str, device: str) -> list[str]:
    """The devices for which the weight's file and its scale's file are opened."""
    opened: list[str] = []
    safetensors: Any = Stub("safetensors")

    def safe_open(file: str, framework: str, device: str) -> OpenFile:
        assert framework == "pt"
        return OpenFile(opened, device)

    safetensors.safe_open = safe_open
    modules = {"torch": torch_for(device), "safetensors": safetensors}
    module = execute(source, "mbridge.models.ext.deepseek_v3.dequant_fp8_safetensor_io", modules)
    reader = object.__new__(module.DequantFP8SafeTensorIO)
    reader.hf_dir = "model"
    reader.index = {"w": "one.safetensors", "w_scale_inv": "two.safetensors"}
    assert set(reader.load_some_hf_weight(["w"])) == {"w"}
    return opened


@pytest.fixture(scope="session", params=TREES)
def mbridge(request: pytest.FixtureRequest) -> Tree:
    """mbridge of either stack, which are two releases with a patch each."""
    return tree(request, "mbridge", "mbridge")


@pytest.mark.parametrize(
    ("device", "expected"), [("cuda", "cuda"), ("npu", "npu"), ("npu-hidden", "cuda")]
)
def test_files_are_opened_on_the_accelerator(mbridge: Tree, device: str, expected: str) -> None:
    assert devices_opened(mbridge.before(PATH), device) == ["cuda", "cuda"]
    assert devices_opened(mbridge.after(PATH), device) == [expected, expected]
