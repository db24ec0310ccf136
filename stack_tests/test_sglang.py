"""Our SGLang patches beyond the decisions of test_devices.py: what the NPU's own code computes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stack_tests.conftest import Stack
from stack_tests.devices import Side
from stack_tests.sglang_scenarios import (
    INDEX_ROOT,
    MODEL,
    QKV,
    QWEN3,
    ROOT,
    VISION,
    fallback_kernels,
    kernel_at_pin,
    query_and_key,
    telling,
    utils,
)
from stack_tests.stubs import Stub

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


class Ends:
    """Where images end in a sequence, as far as they are read."""

    is_npu = False

    def __getitem__(self, key: slice) -> Ends:
        return self

    def __sub__(self, other: Ends) -> Ends:
        return self

    def to(self, where: object) -> Ends:
        return self

    def tolist(self) -> list[int]:
        return [4]


def image_attention(stack: Stack, root: str, mask: object, *, patched: bool) -> list[str]:
    """Who computes the attention of images on an NPU: Ascend's operator, or with a mask SDPA."""
    taken: list[str] = []

    def operator(**given: object) -> list[str]:
        taken.append("the operator")
        return ["its output"]

    class Masked:
        def __init__(self, head_dim: int, num_heads: int, **more: int) -> None:
            self.sizes = (head_dim, num_heads)

        def __call__(self, q: Any, k: Any, v: Any, bsz: int, ends: Ends, **more: object) -> None:
            given = "".join(each.name for each in (q, k, v))
            taken.append(f"SDPA {self.sizes} {given} {bsz} with {more['attention_mask']}")
            assert ends.tolist()

    operators: Any = Stub("torch_npu")
    operators.npu_fused_infer_attention_score = operators._npu_flash_attention_unpad = operator
    side = Side(stack, "sglang", "npu", patched)
    loaded = side.load(f"{root}/{VISION}", {**utils("npu"), "torch_npu": operators})
    loaded.VisionSdpaAttention = Masked
    loaded.envs.SGLANG_VIT_ENABLE_CUDA_GRAPH = SimpleNamespace(get=lambda: False)
    loaded.resolve_seqlens = lambda ends, *given, **more: ends
    made = loaded.VisionAscendAttention(head_dim=72, num_heads=2, num_kv_heads=2)
    q, k, v = (SimpleNamespace(shape=(4, 2, 72), name=name) for name in "qkv")
    made.forward(q=q, k=k, v=v, bsz=1, seq_len=4, cu_seqlens=Ends(), attention_mask=mask)
    return taken


@pytest.mark.parametrize(
    ("of", "root"),
    [
        ("git_stack", ROOT),
        ("next_stack", ROOT),
        pytest.param("index_stack", INDEX_ROOT, marks=pytest.mark.index),
    ],
)
def test_masks_of_images_are_heeded(request: pytest.FixtureRequest, of: str, root: str) -> None:
    """Upstream has another default, and leaves the mask out where its operator is asked for."""
    stack = request.getfixturevalue(of)
    for patched in (True, False):
        assert image_attention(stack, root, None, patched=patched) == ["the operator"]
    with_mask = image_attention(stack, root, "the mask", patched=True)
    assert with_mask == ["SDPA (72, 2) qkv 1 with the mask"]
    assert image_attention(stack, root, "the mask", patched=False) == ["the operator"]


def head_after(stack: Stack, names: tuple[str, ...], *, tied: bool, patched: bool = True) -> Any:
    """Whose weights Qwen3-VL's head has, after weights of these names came in, in this order."""
    side = Side(stack, "sglang", "npu", patched)
    loaded = side.load(MODEL, utils("npu"))
    model = object.__new__(loaded.Qwen3VLForConditionalGeneration)
    held: dict[str, str] = {}
    parameters = {
        name: SimpleNamespace(
            weight_loader=lambda own, value, name=name: held.update({name: value})
        )
        for name in ("model.embed_tokens.weight", "lm_head.weight")
    }
    loaded.get_layer_id = lambda name: None
    model.__dict__.update(
        pp_group=SimpleNamespace(is_last_rank=True),
        config=SimpleNamespace(tie_word_embeddings=tied, encoder_only=False, language_only=False),
        named_parameters=lambda remove_duplicate: parameters.items(),
    )
    model.load_weights((name, name) for name in names)
    return held.get("lm_head.weight")


NPU = f"{ROOT}/hardware_backend/npu"
RUNNERS = ("npu_graph_runner", "eagle_draft_npu_graph_runner")


def captured(stack: Stack, *, patched: bool = True) -> dict[str, Any]:
    """The operators that a decode step of 8 tokens is captured with, and what they are given."""
    called: dict[str, Any] = {}

    def operator(name: str) -> Any:
        return lambda *arguments, **keywords: called.update({name: keywords})

    tensor = SimpleNamespace(shape=(8, 64), dtype="bf16", device="npu:0")
    tensor.view = tensor.reshape = lambda *shape: tensor
    operators: Any = Stub("torch_npu")
    operators._npu_paged_attention = operator("paged")
    operators.npu_fused_infer_attention_score = SimpleNamespace(out=operator("fused"))
    side = Side(stack, "sglang", "npu", patched)
    side.torch.empty = lambda *arguments, **keywords: tensor
    heads: Any = Stub("sglang.srt.layers.dp_attention")
    heads.get_attention_tp_size = lambda: 1
    modules = {**utils("npu"), operators.__name__: operators, heads.__name__: heads}
    loaded = side.load(f"{NPU}/attention/ascend_backend.py", modules)
    backend = object.__new__(loaded.AscendAttnBackend)
    lengths: Any = SimpleNamespace(cpu=lambda: lengths, int=lambda: lengths, tolist=lambda: [5] * 8)
    backend.__dict__.update(
        use_mla=False,
        page_size=128,
        forward_metadata=SimpleNamespace(seq_lens_cpu_int=lengths, block_tables="tables"),
    )
    sizes = ("tp_q_head_num", "tp_k_head_num", "tp_v_head_num", "qk_head_dim", "v_head_dim")
    layer = SimpleNamespace(layer_id=0, scaling=1.0, **dict.fromkeys(sizes, 8))
    pool = SimpleNamespace(
        get_key_buffer=lambda layer: tensor, get_value_buffer=lambda layer: tensor
    )
    batch = SimpleNamespace(token_to_kv_pool=pool)
    backend.forward_decode_graph(tensor, tensor, tensor, layer, batch, save_kv_cache=False)
    return called


def updated_at_replay(stack: Stack, runner: str, *, patched: bool = True) -> tuple[str, type]:
    """The argument that a graph of 8 tokens is updated by for a model like Qwen3, and its type."""
    config: Any = Stub("sglang.srt.configs.model_config")
    config.AttentionArch = SimpleNamespace(MLA="mla", MHA="mha")
    heads: Any = Stub("sglang.srt.layers.dp_attention")
    heads.get_attention_tp_size = lambda: 1
    side = Side(stack, "sglang", "npu", patched)
    side.torch.Tensor = type("Tensor", (), {})
    modules = {config.__name__: config, heads.__name__: heads, **utils("npu")}
    loaded = side.load(f"{NPU}/graph_runner/{runner}.py", modules)
    [kind] = [
        each for name, each in vars(loaded).items() if name.lower().endswith("npugraphrunner")
    ]
    made = object.__new__(kind)
    made.bs, made.use_fia = 8, False
    made._init_arch_map()
    model = SimpleNamespace(model_config=SimpleNamespace(attention_arch="mha"))
    batch = SimpleNamespace(forward_mode=SimpleNamespace(is_target_verify=lambda: False))
    arguments = (model, batch) if runner == RUNNERS[0] else (model,)
    update = made._get_update_attr_type(*arguments)
    return made._get_update_attr_name(*arguments), type(update)


class TestGraphs:
    @pytest.mark.parametrize("runner", RUNNERS)
    def test_replay_updates_what_decode_was_captured_with(
        self, git_stack: Stack, runner: str
    ) -> None:
        [(operator, keywords)] = captured(git_stack).items()
        name, kind = updated_at_replay(git_stack, runner)
        assert operator == "fused"
        assert isinstance(keywords[name], kind)

    @pytest.mark.parametrize("runner", RUNNERS)
    def test_upstream_captures_what_torch_npu_2_8_0_does_not_update(
        self, git_stack: Stack, runner: str
    ) -> None:
        assert list(captured(git_stack, patched=False)) == ["paged"]
        assert updated_at_replay(git_stack, runner, patched=False)[0] == "context_lens"


EMBEDDINGS, HEAD = "model.language_model.embed_tokens.weight", "lm_head.weight"


class TestHead:
    def test_its_own_weights_stay_whatever_the_order(self, git_stack: Stack) -> None:
        for order in ((EMBEDDINGS, HEAD), (HEAD, EMBEDDINGS)):
            assert head_after(git_stack, order, tied=False) == HEAD

    def test_upstream_puts_embeddings_over_them(self, git_stack: Stack) -> None:
        for order in ((EMBEDDINGS, HEAD), (HEAD, EMBEDDINGS)):
            assert head_after(git_stack, order, tied=False, patched=False) == order[1]

    def test_where_they_are_tied_the_head_gets_the_embeddings(self, git_stack: Stack) -> None:
        for patched in (False, True):
            got = head_after(git_stack, (EMBEDDINGS,), tied=True, patched=patched)
            assert got == EMBEDDINGS


def test_upstream_wants_vllm_for_the_vision_towers_heads(git_stack: Stack) -> None:
    side = Side(git_stack, "sglang", "npu", patched=False)
    assert fallback_kernels(side) == ["", "No module named 'vllm'"]


#: The parameters of split_qkv_rmsnorm_rope before 2025-12-26
OLDER = (
    "input, sin, cos, q_weight, k_weight, q_hidden_size, kv_hidden_size, head_dim, eps, "
    "q_bias, k_bias"
)


@pytest.mark.parametrize("path", QWEN3)
class TestQueryAndKey:
    def test_both_orders_of_the_kernels_parameters_are_served(
        self, git_stack: Stack, path: str
    ) -> None:
        side = Side(git_stack, "sglang", "npu")
        for kernel in (kernel_at_pin(git_stack), telling(OLDER)):
            assert query_and_key(side, path, kernel) == QKV

    def test_upstream_hands_a_weight_over_as_a_size(self, git_stack: Stack, path: str) -> None:
        side = Side(git_stack, "sglang", "npu", patched=False)
        assert query_and_key(side, path, telling(OLDER)) == QKV
        given = query_and_key(side, path, kernel_at_pin(git_stack))
        assert (given["q_hidden_size"], given["head_dim"]) == ("weight of q", 32)


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
