"""What SGLang chooses by device: a scenario per patched function, or per file of decorated ones."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

from tests.stacks.devices import Branch, Scenario, Side
from tests.stacks.stubs import Stub

ROOT = "python/sglang/srt"
#: The same folder in a source distribution
INDEX_ROOT = "sglang/srt"
VISION = "layers/attention/vision.py"
MODEL = f"{ROOT}/models/qwen3_vl.py"
#: Files with functions that are compiled for the platform
COMPILED = (
    *("layers/moe/kt_ep_wrapper.py", "layers/moe/topk.py", "layers/rotary_embedding.py"),
    *("layers/vocab_parallel_embedding.py", "managers/overlap_utils.py", "models/commandr.py"),
    *("models/llama4.py", "models/minimax_m2.py"),
)


def utils(device: str, *, cuda: bool = True, hip: bool = False) -> dict[str, ModuleType]:
    """sglang.srt.utils on a device; without NPU the platform is CUDA, HIP or neither."""
    npu = device == "npu"
    made: Any = Stub("sglang.srt.utils")
    made.is_npu = lambda: npu
    made.is_cuda = lambda: cuda and not npu
    made.is_hip = lambda: hip
    made.is_cpu = made.is_xpu = made.is_blackwell = made.cpu_has_amx_support = lambda: False
    made.is_sm100_supported = made.is_sm90_supported = made.is_blackwell_supported = lambda: False
    made.get_bool_env_var = lambda name, default="false": False
    made.get_device_capability = lambda: (9, 0) if cuda else (9, 4)
    made.get_compiler_backend = lambda mode=None: "the platform's"
    made.print_info_once = lambda text: None
    return {made.__name__: made}


def vision_attention(side: Side, root: str) -> list[str]:
    """The implementation taken, on CUDA, HIP and neither, or on an NPU; also by model, by flag."""
    platforms = [{"cuda": True}, {"cuda": False, "hip": True}, {"cuda": False}]
    taken = []
    for platform in platforms[:1] if side.device == "npu" else platforms:
        arguments = SimpleNamespace(mm_attention_backend=None)
        server: Any = Stub("sglang.srt.server_args")
        server.get_global_server_args = lambda found=arguments: found
        loaded = side.load(
            f"{root}/{VISION}", {**utils(side.device, **platform), server.__name__: server}
        )
        attention = object.__new__(loaded.VisionAttention)
        taken.append(attention._determine_attention_backend(None))
        taken.append(attention._determine_attention_backend("the model's"))
        arguments.mm_attention_backend = "sdpa"
        taken.append(attention._determine_attention_backend(None))
    return taken


class Grid:
    """Images' sizes; who looks at a column of them is upstream's function."""

    def __getitem__(self, key: object) -> Any:
        raise LookupError("as upstream does it")


def position_embeddings(side: Side) -> str:
    """Who interpolates the position embeddings."""
    loaded = side.load(MODEL, utils(side.device))
    model = SimpleNamespace(_interpolate_pos_embed_on_device=lambda grid: "on the device")
    try:
        return str(loaded.Qwen3VLMoeVisionModel.fast_pos_embed_interpolate(model, Grid()))
    except LookupError as told:
        return str(told)


def compiled(side: Side, path: str) -> list[str]:
    """The functions in a file that go through torch.compile."""
    found: list[str] = []

    def compile_(*, disable: bool = False, **options: Any) -> Any:
        def decorator(function: Any) -> Any:
            if not disable:
                found.append(getattr(function, "__func__", function).__name__)
            return function

        return decorator

    side.torch.compile = compile_
    side.torch.library = Stub("torch.library")
    side.torch.library.register_fake = lambda name: lambda function: function
    patches: Any = Stub("sglang.srt.utils.patch_torch")
    patches.register_fake_if_exists = side.torch.library.register_fake
    modules = {
        **utils(side.device),
        "torch.library": side.torch.library,
        patches.__name__: patches,
    }
    side.load(path, modules, missing=["kt_kernel"])
    return found


def _vision(root: str) -> Scenario:
    return Scenario(
        "sglang-vision-attention",
        "sglang",
        Branch(f"{root}/{VISION}", "elif _is_npu:", "elif not _is_npu:"),
        lambda side: vision_attention(side, root),
        ["ascend_attn", "the model's", "sdpa"],
    )


def _compiled(path: str, root: str = ROOT) -> Scenario:
    return Scenario(
        f"sglang-compiled-{path.rpartition('/')[2].removesuffix('.py')}",
        "sglang",
        Branch(f"{root}/{path}", "disable=is_npu()", "disable=not is_npu()"),
        lambda side: compiled(side, f"{root}/{path}"),
        [],
    )


SCENARIOS = (
    _vision(ROOT),
    Scenario(
        "sglang-position-embeddings",
        "sglang",
        Branch(MODEL, "        if is_npu():\n", "        if not is_npu():\n"),
        position_embeddings,
        "on the device",
    ),
    *(_compiled(path) for path in COMPILED),
)
#: Where upstream switched compiling off itself between slime's pin and 0.5.8
NPU_ALREADY = "layers/vocab_parallel_embedding.py"
SCENARIOS_0_5_8 = tuple(_compiled(path, INDEX_ROOT) for path in COMPILED if path != NPU_ALREADY)
SCENARIOS_0_5_9 = (
    _vision(INDEX_ROOT),
    *(
        _compiled(path, INDEX_ROOT)
        for path in COMPILED
        if path not in {NPU_ALREADY, "managers/overlap_utils.py"}
    ),
)
