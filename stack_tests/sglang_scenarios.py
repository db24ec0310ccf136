"""What SGLang chooses by device: a scenario per patched function, or per file of decorated ones."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from stack_tests.conftest import Stack
from stack_tests.devices import Branch, Scenario, Side
from stack_tests.stubs import Stub, module, stubbed

ROOT = "python/sglang/srt"
#: The same folder in a source distribution
INDEX_ROOT = "sglang/srt"
VISION = "layers/attention/vision.py"
ROTARY = "layers/rotary_embedding.py"
MODEL = f"{ROOT}/models/qwen3_vl.py"
#: Models whose attention calls split_qkv_rmsnorm_rope
QWEN3 = tuple(f"{ROOT}/models/{name}.py" for name in ("qwen3", "qwen3_moe"))
KERNELS = "python/sgl_kernel_npu/sgl_kernel_npu"
Kernel = Callable[..., dict[str, Any]]
#: What the kernel is to be given
QKV: dict[str, Any] = {
    **{"input": "qkv", "sin": "sin", "cos": "cos"},
    **{"q_hidden_size": 32, "kv_hidden_size": 8, "head_dim": 4, "eps": 1e-6},
    **{"q_weight": "weight of q", "k_weight": "weight of k", "q_bias": None, "k_bias": None},
}
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
    made.is_cpu = made.is_xpu = made.is_musa = made.is_blackwell = made.cpu_has_amx_support = (
        lambda: False
    )
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
        kernels = {name: module(name) for name in ("flashinfer", "flashinfer.prefill")}
        modules = {**utils(side.device, **platform), server.__name__: server, **kernels}
        loaded = side.load(f"{root}/{VISION}", modules)
        attention = object.__new__(loaded.VisionAttention)
        taken.append(attention._determine_attention_backend(None))
        taken.append(attention._determine_attention_backend("the model's"))
        arguments.mm_attention_backend = "sdpa"
        taken.append(attention._determine_attention_backend(None))
    return taken


def server_arguments(**values: Any) -> dict[str, ModuleType]:
    """sglang.srt.server_args with these arguments."""
    arguments = SimpleNamespace(**values)
    made = module("sglang.srt.server_args", get_global_server_args=lambda: arguments)
    return {made.__name__: made}


def fallback_kernels(side: Side) -> list[str]:
    """Where RotaryEmbedding gets a second kernel from for heads of 128 and of 72 elements.

    On CUDA, HIP and neither, or on an NPU; vllm cannot be imported.
    """
    platforms = [{"cuda": True}, {"cuda": False, "hip": True}, {"cuda": False}]
    found = []
    for platform in platforms[:1] if side.device == "npu" else platforms:
        modules = {
            **utils(side.device, **platform),
            **server_arguments(rl_on_policy_target=None),
            "sgl_kernel": module("sgl_kernel", rotary_embedding="sgl_kernel"),
        }
        side.torch.compile = lambda **options: lambda function: function
        loaded = side.load(f"{ROOT}/{ROTARY}", modules)
        cache = SimpleNamespace(to=lambda kind: None)
        methods = {
            "_compute_cos_sin_cache": lambda self, made=cache: made,
            "register_buffer": lambda self, name, buffer, persistent: None,
        }
        rotary = type("Rotary", (loaded.RotaryEmbedding,), methods)
        for size in (128, 72):
            with stubbed(modules, missing=["vllm"]):
                try:
                    made = rotary(size, size // 2, 8192, 10000, True, "bfloat16")
                except ModuleNotFoundError as error:
                    found.append(str(error))
                else:
                    found.append(made.fallback_rotary_embedding if made.use_fallback_kernel else "")
    return found


def telling(parameters: str) -> Kernel:
    """A function with these parameters, as Python writes them, that tells what it is given."""
    names: dict[str, Any] = {}
    exec(f"def kernel({parameters}): return locals()", names)
    kernel: Kernel = names["kernel"]
    return kernel


def kernel_at_pin(stack: Stack) -> Kernel:
    """split_qkv_rmsnorm_rope with the parameters that it has in the stack's kernel package."""
    source = stack.before("sgl-kernel-npu", f"{KERNELS}/norm/split_qkv_rmsnorm_rope.py")
    [found] = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == "split_qkv_rmsnorm_rope"
    ]
    return telling(ast.unparse(found.args))


def query_and_key(side: Side, path: str, kernel: Kernel) -> Any:
    """Who prepares query and key: SGLang itself, or the kernel with what it is given."""
    taken: list[Any] = []

    def native(**keywords: Any) -> tuple[str, str, str]:
        taken.append("native")
        return "q", "k", "v"

    def fused(*arguments: Any, **keywords: Any) -> tuple[str, str, str]:
        taken.append(kernel(*arguments, **keywords))
        return "q", "k", "v"

    class Core:
        layer_id = 0

        def __call__(self, *arguments: Any) -> str:
            return "output"

    name = "sgl_kernel_npu.norm.split_qkv_rmsnorm_rope"
    modules = {
        **utils(side.device),
        **server_arguments(rl_on_policy_target=None),
        name: module(name, split_qkv_rmsnorm_rope=fused),
    }
    loaded = side.load(path, modules)
    kind = loaded.Qwen3MoeAttention if path.endswith("_moe.py") else loaded.Qwen3Attention
    attention = object.__new__(kind)
    attention.__dict__.update(
        forward_prepare_native=native,
        qkv_proj=lambda hidden: ("qkv", None),
        o_proj=lambda output: (output, None),
        attn=Core(),
        rotary_emb=SimpleNamespace(
            get_cos_sin_with_position=lambda positions: None, position_sin="sin", position_cos="cos"
        ),
        q_norm=SimpleNamespace(weight="weight of q", variance_epsilon=1e-6),
        k_norm=SimpleNamespace(weight="weight of k"),
        q_size=32,
        kv_size=8,
        head_dim=4,
    )
    batch = SimpleNamespace(token_to_kv_pool=SimpleNamespace(start_layer=0))
    prepare = getattr(attention, "forward_prepare", attention.forward)
    prepare("positions", SimpleNamespace(shape=(5, 16)), batch)
    return taken[0]


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


def compiled(side: Side, path: str) -> list[tuple[str, dict[str, Any]]]:
    """The functions in a file that go through torch.compile, and how."""
    found: list[tuple[str, dict[str, Any]]] = []

    def compile_(*, disable: bool = False, **options: Any) -> Any:
        def decorator(function: Any) -> Any:
            if not disable:
                found.append((getattr(function, "__func__", function).__name__, options))
            return function

        return decorator

    side.torch.compile = compile_
    side.torch.library = Stub("torch.library")
    side.torch.library.register_fake = lambda name: lambda function: function
    patches: Any = Stub("sglang.srt.utils.patch_torch")
    patches.register_fake_if_exists = side.torch.library.register_fake
    operators = module("sglang.srt.utils.custom_op")
    operators.register_custom_op = lambda **options: lambda function: function
    modules = {
        **utils(side.device),
        "torch.library": side.torch.library,
        **{each.__name__: each for each in (patches, operators)},
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


def _query_and_key(path: str) -> Scenario:
    return Scenario(
        f"sglang-query-and-key-{path.rpartition('/')[2].removesuffix('.py')}",
        "sglang",
        Branch(path, "        if not _is_npu:\n", "        if _is_npu:\n"),
        lambda side: query_and_key(side, path, kernel_at_pin(side.stack)),
        QKV,
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
    Scenario(
        "sglang-rotary-embedding",
        "sglang",
        Branch(f"{ROOT}/{ROTARY}", "            and not _is_npu ", "            and _is_npu "),
        fallback_kernels,
        ["", ""],
    ),
    *(_query_and_key(path) for path in QWEN3),
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
#: Files with functions that are compiled for the platform in 0.5.15
COMPILED_0_5_15 = (
    *("layers/moe/kt_ep_wrapper.py", "layers/moe/topk.py", "layers/rotary_embedding/utils.py"),
    *("models/cohere2_moe.py", "models/commandr.py", "models/llama4.py", "models/minimax_m2.py"),
)
SCENARIOS_0_5_15 = (_vision(ROOT), *(_compiled(path) for path in COMPILED_0_5_15))
