"""The decisions about the device in Megatron's and mbridge's patches.

MindSpeed's and Megatron-Bridge's patches decide nothing: MindSpeed runs on NPUs only, and what is
changed in the bridge is the same on every device (test_mindspeed.py, test_bridge.py).
"""

from __future__ import annotations

from stack_tests import test_mbridge, test_megatron
from stack_tests.devices import Branch, Scenario, Side


def jit(checkout: str) -> Scenario:
    """What the decorator makes of a function."""
    return Scenario(
        f"{checkout}-jit-fuser",
        checkout,
        Branch(test_megatron.JIT, "    if _on_npu():", "    if not _on_npu():"),
        lambda side: test_megatron.jit_fuser(side.source(test_megatron.JIT), side.device),
        "f",
    )


def tensor_types(checkout: str) -> Scenario:
    """Which tensors are converted."""
    there = {"FloatTensor": ["down", "kept"], "HalfTensor": ["kept", "up"]}
    there["BFloat16Tensor"] = there["HalfTensor"]
    return Scenario(
        f"{checkout}-tensor-types",
        checkout,
        Branch(test_megatron.MODULE, 'if hasattr(torch, "npu"):', 'if not hasattr(torch, "npu"):'),
        lambda side: test_megatron.converted(side.source(test_megatron.MODULE), side.device),
        {
            f"{place}.{kind}": done
            for place in ("torch", "torch.cuda", "torch.npu")
            for kind, done in there.items()
        },
    )


def files_opened(checkout: str) -> Scenario:
    """The devices for which files of weights are opened."""
    return Scenario(
        f"{checkout}-files",
        checkout,
        Branch(
            test_mbridge.PATH,
            '"npu" if npu is not None and npu.is_available() else "cuda"',
            '"cuda" if npu is not None and npu.is_available() else "npu"',
        ),
        lambda side: test_mbridge.devices_opened(side.source(test_mbridge.PATH), side.device),
        ["npu", "npu"],
    )


def _finds_provider(side: Side) -> bool:
    module, _ = test_megatron.specs(
        side.source(test_megatron.SPECS), side.device, transformer_engine=False
    )
    return hasattr(module, "TESpecProvider")


def spec_provider(checkout: str) -> Scenario:
    """TESpecProvider is there although Transformer Engine is not."""
    text = '    if hasattr(torch, "npu"):'
    return Scenario(
        f"{checkout}-spec-provider",
        checkout,
        Branch(test_megatron.SPECS, text, text.replace("if ", "if not ")),
        _finds_provider,
        True,
        loaded_counts=True,
    )


SCENARIOS = (
    jit("Megatron-LM"),
    tensor_types("Megatron-LM"),
    spec_provider("Megatron-LM"),
    files_opened("mbridge"),
)
INDEX_SCENARIOS = (
    jit("megatron-core"),
    tensor_types("megatron-core"),
    spec_provider("megatron-core"),
    files_opened("mbridge"),
)
