"""Patched functions with a real torch, on the CPU: numbers, not names.

Skipped where torch is not installed (`pip install torch`); what is around the functions stays
stubs.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from stack_tests.conftest import Stack
from stack_tests.sglang_scenarios import MODEL, utils
from stack_tests.stubs import Stub, execute, module, stubbed
from stack_tests.test_megatron import JIT, MODULE

pytestmark = [
    pytest.mark.upstream,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]

REAL = ("torch", "numpy")
SWIGLU = "megatron/core/fusions/fused_bias_swiglu.py"
PROVIDER = "slime/backends/megatron_utils/model_provider.py"


@pytest.fixture
def torch() -> Any:
    """The real one."""
    return importlib.import_module("torch")


@pytest.fixture
def npu(torch: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A torch.npu, as torch_npu would bring it; its tensor types are those of no tensor here."""
    kinds = {name: type(name, (), {}) for name in ("FloatTensor", "HalfTensor", "BFloat16Tensor")}
    monkeypatch.setattr(torch, "npu", SimpleNamespace(is_available=lambda: True, **kinds), False)
    return torch.npu


def run(source: str, name: str, *modules: ModuleType) -> Any:
    """The module of a source, with the real torch."""
    return execute(source, name, {each.__name__: each for each in modules}, real=REAL)


def swiglu(source: str, fusions: str) -> Any:
    """Megatron's fused SwiGLU, with the decorator of that jit.py."""
    helpers: Any = Stub("megatron.core.utils")
    helpers.is_torch_min_version = lambda version: True
    helpers.nvtx_decorator = lambda *arguments, **keywords: lambda function: function
    jit = run(source, "megatron.core.jit", helpers)
    return run(fusions, "megatron.core.fusions.fused_bias_swiglu", helpers, jit)


class TestMegatron:
    @pytest.fixture(autouse=True)
    def without_compiler(self, torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """torch.compile traces as ever, and needs no C++ compiler."""
        # torch asks once whether there is a Triton: not while a stand-in of it is there
        importlib.import_module("torch.utils._triton").has_triton_package()
        eager = functools.partial(torch.compile, backend="eager")
        monkeypatch.setattr(torch, "compile", eager)

    def test_swiglu_gives_the_same_numbers_uncompiled(
        self, git_stack: Stack, torch: Any, npu: Any
    ) -> None:
        fusions = git_stack.before("Megatron-LM", SWIGLU)
        upstream = swiglu(git_stack.before("Megatron-LM", JIT), fusions)
        patched = swiglu(git_stack.after("Megatron-LM", JIT), fusions)
        assert hasattr(upstream.swiglu, "_torchdynamo_orig_callable")
        assert not hasattr(patched.swiglu, "_torchdynamo_orig_callable")
        torch.manual_seed(1)
        for kind in (torch.float32, torch.bfloat16):
            y, bias = torch.randn(3, 4, 8).to(kind), torch.randn(8).to(kind)
            grad = torch.randn(3, 4, 4).to(kind)
            assert torch.equal(patched.swiglu(y), upstream.swiglu(y))
            assert torch.equal(patched.bias_swiglu(y, bias), upstream.bias_swiglu(y, bias))
            assert torch.equal(patched.swiglu_back(grad, y), upstream.swiglu_back(grad, y))

    def test_elsewhere_it_is_compiled_as_before(self, git_stack: Stack, torch: Any) -> None:
        fusions = git_stack.before("Megatron-LM", SWIGLU)
        patched = swiglu(git_stack.after("Megatron-LM", JIT), fusions)
        assert hasattr(patched.swiglu, "_torchdynamo_orig_callable")

    def test_tensors_of_the_cpu_are_converted_as_before(
        self, git_stack: Stack, torch: Any, npu: Any
    ) -> None:
        values = [torch.tensor([1.0, 1e-3]).to(kind) for kind in (torch.float32, torch.bfloat16)]
        outcome = []
        for source in (
            git_stack.before_ours("Megatron-LM", MODULE),
            git_stack.after("Megatron-LM", MODULE),
        ):
            module = run(source, "megatron.core.transformer.module")
            down = [module.fp32_to_float16(each, lambda value: value.half()) for each in values]
            up = [module.float16_to_fp32(each) for each in values]
            outcome.append([*down, *up])
        for before, after in zip(*outcome, strict=True):
            assert before.dtype == after.dtype
            assert torch.equal(before, after)
        assert outcome[1][0].dtype == torch.float16

    def test_tensors_of_an_npu_are_converted_too(
        self, git_stack: Stack, torch: Any, npu: Any
    ) -> None:
        class OnNpu(type):
            """isinstance() as torch_npu's types answer it; here float64 is the NPU's."""

            def __instancecheck__(cls, value: Any) -> bool:
                return bool(value.dtype == torch.float64)

        npu.FloatTensor = OnNpu("FloatTensor", (), {})
        value = torch.tensor([0.1], dtype=torch.float64)
        outcome = []
        for source in (
            git_stack.before_ours("Megatron-LM", MODULE),
            git_stack.after("Megatron-LM", MODULE),
        ):
            module = run(source, "megatron.core.transformer.module")
            outcome.append(module.fp32_to_float16(value, lambda given: given.half()).dtype)
        assert outcome == [torch.float64, torch.float16]


GRIDS = ([[1, 2, 2]], [[1, 4, 6], [3, 48, 2], [1, 50, 94]])


def interpolated(source: str, device: str, grids: list[list[int]], table: Any) -> Any:
    """The position embeddings of SGLang's Qwen3-VL for images of these grids."""
    torch: Any = importlib.import_module("torch")
    triton: Any = Stub("triton")
    module = run(source, "sglang.srt.models.qwen3_vl", triton, *utils(device).values())
    model = object.__new__(module.Qwen3VLMoeVisionModel)
    torch.nn.Module.__init__(model)
    model.num_position_embeddings, model.num_grid_per_side = 48 * 48, 48
    model.spatial_merge_size, model.pos_embed = 2, table
    return model.fast_pos_embed_interpolate(torch.tensor(grids, dtype=torch.int32))


@pytest.mark.parametrize("grids", GRIDS)
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_position_embeddings_have_the_same_numbers(
    git_stack: Stack, torch: Any, grids: list[list[int]], kind: str
) -> None:
    torch.manual_seed(2)
    table = torch.nn.Embedding(48 * 48, 8).to(getattr(torch, kind))
    upstream = interpolated(git_stack.before_ours("sglang", MODEL), "cuda", grids, table)
    assert upstream.shape == (sum(t * h * w for t, h, w in grids), 8)
    for device in ("cuda", "npu"):
        after = interpolated(git_stack.after("sglang", MODEL), device, grids, table)
        assert torch.equal(after, upstream)


def test_weights_come_back_as_the_bridge_took_them_in(git_stack: Stack, torch: Any) -> None:
    """Hugging Face -> Megatron by Megatron-Bridge, and back by slime's conversion."""
    bridge = run(
        git_stack.after(
            "Megatron-Bridge", "src/megatron/bridge/models/conversion/param_mapping.py"
        ),
        "megatron.bridge.models.conversion.param_mapping",
    )
    shape = SimpleNamespace(
        num_attention_heads=4, num_query_groups=2, kv_channels=8, hidden_size=16, vocab_size=9
    )
    torch.manual_seed(3)
    q, k, v = torch.randn(32, 16), torch.randn(16, 16), torch.randn(16, 16)
    convert = conversion(git_stack)
    prefix = "module.module.language_model.decoder.layers.2"
    attention = convert(
        shape,
        f"{prefix}.self_attention.linear_qkv.weight",
        bridge.merge_qkv_weights(shape, q, k, v),
    )
    for (name, value), (part, expected) in zip(
        attention, {"q": q, "k": k, "v": v}.items(), strict=True
    ):
        assert name == f"model.language_model.layers.2.self_attn.{part}_proj.weight"
        assert torch.equal(value, expected)
    gate, up = torch.randn(6, 16), torch.randn(6, 16)
    mlp = dict(convert(shape, f"{prefix}.mlp.linear_fc1.weight", torch.cat([gate, up])))
    assert torch.equal(mlp["model.language_model.layers.2.mlp.gate_proj.weight"], gate)
    assert torch.equal(mlp["model.language_model.layers.2.mlp.up_proj.weight"], up)


def conversion(stack: Stack) -> Callable[..., list[tuple[str, Any]]]:
    """slime's conversion of one parameter of Qwen3-VL."""
    package = "slime.backends.megatron_utils.megatron_to_hf"
    folder = package.replace(".", "/")
    processors: Any = Stub(f"{package}.processors")
    processors.remove_padding = lambda name, param, size: param
    qwen2 = run(stack.after("slime", f"{folder}/qwen2.py"), f"{package}.qwen2")
    qwen3_vl = run(
        stack.after("slime", f"{folder}/qwen3_vl.py"), f"{package}.qwen3_vl", processors, qwen2
    )
    convert: Callable[..., list[tuple[str, Any]]] = qwen3_vl.convert_qwen3vl_to_hf
    return convert


class Critic:
    """slime's model provider, with a bridge whose models are small and real."""

    def __init__(
        self,
        stack: Stack,
        torch: Any,
        *,
        nested: bool,
        patched: bool = True,
        parallel: bool = False,
    ) -> None:
        self.torch, self.parallel = torch, parallel
        bridge: Any = Stub("megatron.bridge")
        self.provider = SimpleNamespace(
            provide=self._model, finalize=lambda: None, share_embeddings_and_output_weights=True
        )
        bridge.AutoBridge.from_hf_pretrained = lambda *arguments, **keywords: SimpleNamespace(
            to_megatron_provider=lambda load_weights: self.provider
        )
        helpers: Any = Stub("slime.utils.megatron_bridge_utils")
        helpers.unwrap_model = lambda models: [each.module for each in models]
        device = module("slime.utils.device", is_npu=lambda: False)
        self.nested = nested
        show = stack.after if patched else stack.before
        self.modules = {each.__name__: each for each in (bridge, helpers, device)}
        self.slime = run(
            show("slime", PROVIDER),
            "slime.backends.megatron_utils.model_provider",
            *self.modules.values(),
        )

    def provide(self, role: str) -> Callable[..., Any]:
        """The provider for actor or critic."""
        arguments = SimpleNamespace(
            megatron_to_hf_mode="bridge",
            hf_checkpoint="",
            tensor_model_parallel_size=1,
            pipeline_model_parallel_size=1,
            expert_model_parallel_size=1,
            expert_tensor_parallel_size=1,
            sequence_parallel=False,
        )
        with stubbed(self.modules, real=REAL):
            provider: Callable[..., Any] = self.slime.get_model_provider_func(arguments, role)
        return provider

    def _model(
        self, pre_process: Any = None, post_process: Any = None, vp_stage: Any = None
    ) -> Any:
        module = self.torch.nn.Module()
        module.body = self.torch.nn.Linear(4, 4)
        if post_process:
            module.output_layer = self.torch.nn.Linear(4, 10)
        if self.nested:
            outer = self.torch.nn.Module()
            outer.vision_model, outer.language_model = self.torch.nn.Linear(4, 4), module
            module = outer
        module.config = SimpleNamespace(hidden_size=4, sequence_parallel=self.parallel)
        return module


@pytest.mark.parametrize("nested", [True, False])
class TestCritic:
    def test_it_gives_one_value_per_token(self, git_stack: Stack, torch: Any, nested: bool) -> None:
        critic = Critic(git_stack, torch, nested=nested)
        model = critic.provide("critic")(pre_process=True, post_process=True)
        owner = model.language_model if nested else model
        values, _ = owner.output_layer(torch.ones(3, 2, 4), weight=None)
        assert values.shape == (3, 2, 1)
        assert values.dtype == torch.float32
        assert critic.provider.share_embeddings_and_output_weights is False

    @pytest.mark.parametrize("parallel", [True, False])
    def test_gradients_of_the_head_are_added_up_over_the_sequence(
        self, git_stack: Stack, torch: Any, nested: bool, parallel: bool
    ) -> None:
        critic = Critic(git_stack, torch, nested=nested, parallel=parallel)
        model = critic.provide("critic")(pre_process=True, post_process=True)
        head = (model.language_model if nested else model).output_layer
        marks = [getattr(each, "sequence_parallel", False) for each in head.parameters()]
        assert marks == [parallel, parallel]

    def test_upstream_gives_logits(self, git_stack: Stack, torch: Any, nested: bool) -> None:
        critic = Critic(git_stack, torch, nested=nested, patched=False)
        assert critic.provide("critic") == critic.provider.provide

    def test_earlier_stages_have_no_head(self, git_stack: Stack, torch: Any, nested: bool) -> None:
        model = Critic(git_stack, torch, nested=nested).provide("critic")(post_process=False)
        assert not any("output_layer" in name for name, _ in model.named_parameters())

    def test_actors_are_the_bridges_own(self, git_stack: Stack, torch: Any, nested: bool) -> None:
        critic = Critic(git_stack, torch, nested=nested)
        assert critic.provide("actor") == critic.provider.provide
        assert critic.provider.share_embeddings_and_output_weights is True

    def test_the_head_is_hidden_while_weights_are_loaded(
        self, git_stack: Stack, torch: Any, nested: bool
    ) -> None:
        critic = Critic(git_stack, torch, nested=nested)
        models = [
            SimpleNamespace(module=critic.provide(role)(post_process=True))
            for role in ("critic", "actor")
        ]
        before = [list(each.module.state_dict()) for each in models]
        with pytest.raises(ZeroDivisionError), critic.slime.without_value_heads(models):
            hidden, kept = ([name for name, _ in each.module.named_parameters()] for each in models)
            assert not any("output_layer" in name for name in hidden)
            assert any("output_layer" in name for name in kept)
            raise ZeroDivisionError
        assert [list(each.module.state_dict()) for each in models] == before


QWEN3_VL = "src/megatron/bridge/models/qwen_vl/modelling_qwen3_vl"
IMAGE, VIDEO, START = 7, 8, 6


class TestPackedPositions:
    """Positions of Qwen3-VL's tokens, where slime packs several sequences into one row."""

    @pytest.fixture
    def rows(self, torch: Any) -> list[Any]:
        """An image of 2 x 2 blocks in text, text, two images, padding."""
        picture = [START, *[IMAGE] * 4]
        words = ([1, 2, *picture, 3], [4, 5, 4], [*picture, 2, START, IMAGE, IMAGE, 9], [0] * 5)
        return [torch.tensor([each]) for each in words]

    def positions(self, source: str, ids: Any, images: Any, packed: Any = None) -> Any:
        """[3, rows, tokens]"""
        name = "megatron.bridge.models.qwen_vl.modelling_qwen3_vl.utils"
        loaded = run(source, name)
        parameters = None if packed is None else SimpleNamespace(cu_seqlens_q=packed)
        made, _ = loaded.get_rope_index(
            2, IMAGE, VIDEO, START, ids, image_grid_thw=images, packed_seq_params=parameters
        )
        return made

    def test_each_sequence_is_counted_as_if_it_were_alone(
        self, git_stack: Stack, torch: Any, rows: list[Any]
    ) -> None:
        source = git_stack.after("Megatron-Bridge", f"{QWEN3_VL}/utils.py")
        images = torch.tensor([[1, 4, 4], [1, 4, 4], [1, 2, 4]])
        own = (images[:1], None, images[1:], None)
        alone = [
            self.positions(source, row, few, torch.tensor([0, row.shape[1]]))
            for row, few in zip(rows, own, strict=True)
        ]
        ends = torch.tensor([0, *(row.shape[1] for row in rows)]).cumsum(0)
        packed = self.positions(source, torch.cat(rows, dim=1), images, ends)
        assert torch.equal(packed, torch.cat(alone, dim=-1))
        assert packed[0, 0, ends[1]] == 0

    def test_upstream_looks_for_a_second_row(
        self, git_stack: Stack, torch: Any, rows: list[Any]
    ) -> None:
        source = git_stack.before("Megatron-Bridge", f"{QWEN3_VL}/utils.py")
        ends = torch.tensor([0, 3, 8])
        with pytest.raises(IndexError, match="index 1 is out of bounds"):
            self.positions(source, torch.cat([rows[1], rows[3]], dim=1), None, ends)

    def test_one_sequence_a_row_is_counted_as_before(
        self, git_stack: Stack, torch: Any, rows: list[Any]
    ) -> None:
        images = torch.tensor([[1, 4, 4]])
        two = torch.cat([rows[0], rows[0]])
        for ids, few, ends in (
            (rows[0], images, torch.tensor([0, 8])),
            (rows[1], None, torch.tensor([0, 3])),
            (two, images.repeat(2, 1), torch.tensor([0, 8, 16])),
            (rows[0], images, None),
        ):
            before, after = (
                self.positions(source, ids, few, ends)
                for source in (
                    git_stack.before("Megatron-Bridge", f"{QWEN3_VL}/utils.py"),
                    git_stack.after("Megatron-Bridge", f"{QWEN3_VL}/utils.py"),
                )
            )
            assert torch.equal(before, after)


def deepstack_gradient(source: str, torch: Any, *, parallel: bool) -> Any:
    """The gradient of the vision tower's deep-stack feature, of which this rank's part is half.

    The all-reduce of two ranks is a sum in which the other rank has the other half of ones.
    """

    class Copy(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, value: Any) -> Any:
            return value.view_as(value)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return torch.ones_like(gradient)

    parallels = module("megatron.core.tensor_parallel")
    parallels.copy_to_tensor_model_parallel_region = Copy.apply
    parallels.scatter_to_sequence_parallel_region = lambda value: value
    package = "megatron.bridge.models.qwen_vl.modelling_qwen3_vl"
    helpers = module(
        f"{package}.utils",
        get_rope_index=lambda *arguments, **more: ("positions", None),
        split_deepstack_embs=lambda masks, embeds, **more: (masks, [each[:2] for each in embeds]),
    )
    core = module("megatron.core", tensor_parallel=parallels)
    loaded = run(source, f"{package}.model", core, parallels, helpers)
    feature = torch.zeros(4, 3, requires_grad=True)

    class Language:
        def embedding(self, **more: Any) -> Any:
            return torch.zeros(4, 1, 3)

        def __call__(self, *, deepstack_visual_embeds: Any, **more: Any) -> Any:
            return deepstack_visual_embeds[0].sum()

    model = object.__new__(loaded.Qwen3VLModel)
    model.__dict__.update(
        pre_process=True,
        config=SimpleNamespace(sequence_parallel=parallel, spatial_merge_size=2),
        image_token_id=IMAGE,
        video_token_id=VIDEO,
        vision_start_token_id=START,
        vision_model=lambda hidden_states, grid_thw: (torch.ones(4, 3), [feature]),
        language_model=Language(),
    )
    grid = torch.tensor([[1, 4, 4]])
    model.forward(torch.full((1, 4), IMAGE), pixel_values="pixels", image_grid_thw=grid).backward()
    return feature.grad


def test_deep_stack_gradients_are_whole_on_every_rank(git_stack: Stack, torch: Any) -> None:
    whole = torch.ones(4, 3)
    before = git_stack.before("Megatron-Bridge", f"{QWEN3_VL}/model.py")
    after = git_stack.after("Megatron-Bridge", f"{QWEN3_VL}/model.py")
    assert torch.equal(deepstack_gradient(after, torch, parallel=True), whole)
    assert deepstack_gradient(before, torch, parallel=True).sum() == whole.sum() / 2
    for source in (before, after):
        assert torch.equal(deepstack_gradient(source, torch, parallel=False), whole)
