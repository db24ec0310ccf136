"""Our MindSpeed patches, executed."""

from __future__ import annotations

from argparse import Namespace
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from stack_tests.conftest import Stack
from stack_tests.stubs import Stub, execute, module, notes, stubbed, torch_for

ADAPTOR = "mindspeed/megatron_adaptor.py"
ROPE = "mindspeed/core/fusions/fused_rope.py"
LINEAR = "mindspeed/te/pytorch/module/layernorm_column_parallel_linear.py"
ATTENTION = "mindspeed/te/pytorch/attention/dot_product_attention/dot_product_attention.py"


def repatched(source: str, arguments: object) -> SimpleNamespace:
    """The arguments with which MindSpeed's features are applied again."""
    own = SimpleNamespace(kept=1, changed=1)
    utils: Any = Stub("mindspeed.args_utils")
    utils.get_full_args = lambda: own
    deprecate: Any = Stub("mindspeed.deprecate")
    deprecate.AutoExecuteFunction = lambda function: lambda: None
    features: Any = Stub("mindspeed.features_manager.features_manager")
    manager = features.MindSpeedFeaturesManager
    manager.remove_patches = staticmethod(lambda: None)
    manager.apply_features_pre_patches = staticmethod(lambda args: None)
    seen: list[Any] = []
    manager.apply_features_patches = staticmethod(seen.append)
    modules = {each.__name__: each for each in (utils, deprecate, features)}
    execute(source, "mindspeed.megatron_adaptor", modules).repatch(arguments)
    assert isinstance(seen[0], SimpleNamespace)
    return seen[0]


@pytest.mark.upstream
class TestRepatch:
    @pytest.mark.parametrize("stack", ["git_stack", "next_stack"])
    def test_a_namespace_is_as_good_as_a_dict(
        self, stack: str, request: pytest.FixtureRequest
    ) -> None:
        source = request.getfixturevalue(stack).after("MindSpeed", ADAPTOR)
        for arguments in (Namespace(changed=2), {"changed": 2}):
            assert repatched(source, arguments) == SimpleNamespace(kept=1, changed=2)

    def test_upstream_takes_a_dict_only(self, git_stack: Stack) -> None:
        source = git_stack.before("MindSpeed", ADAPTOR)
        assert repatched(source, {"changed": 2}) == SimpleNamespace(kept=1, changed=2)
        with pytest.raises(AttributeError, match="items"):
            repatched(source, Namespace(changed=2))


ARGUMENTS = "mindspeed/core/megatron_basic/arguments_basic.py"


class Configuration:
    """A transformer configuration; `fields` are what it has before __post_init__."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def after_post_init(source: str, made: Configuration, **arguments: Any) -> dict[str, Any]:
    """The fields of a configuration after MindSpeed's __post_init__, whose features check them."""
    given = {"hidden_size": 8, "use_ascend_mc2": False, "layers_saved": None, **arguments}
    utils: Any = Stub("mindspeed.args_utils")
    utils.get_full_args = lambda: Namespace(**given)
    features: Any = Stub("mindspeed.features_manager.features_manager")
    manager = features.MindSpeedFeaturesManager
    manager.pre_validate_features_args = staticmethod(lambda args: args.use_ascend_mc2)
    manager.post_validate_features_args = staticmethod(lambda args: args.derived)
    manager.validate_features_args = staticmethod(lambda args: args.layers_saved)
    modules = {each.__name__: each for each in (utils, features)}
    module = execute(source, "mindspeed.core.megatron_basic.arguments_basic", modules)

    def post_init(self: Any) -> None:
        self.derived = self.hidden_size * 4

    module.transformer_config_post_init_wrapper(post_init)(made)
    return vars(made)


@pytest.mark.upstream
class TestFields:
    def test_a_configuration_with_its_own_init_gets_them(self, git_stack: Stack) -> None:
        source = git_stack.after("MindSpeed", ARGUMENTS)
        assert after_post_init(source, Configuration(hidden_size=16)) == {
            "hidden_size": 16,
            "derived": 64,
            "use_ascend_mc2": False,
            "layers_saved": None,
        }

    def test_upstream_stops_at_the_first(self, git_stack: Stack) -> None:
        with pytest.raises(AttributeError, match="use_ascend_mc2"):
            after_post_init(git_stack.before("MindSpeed", ARGUMENTS), Configuration(hidden_size=16))

    def test_mindspeeds_own_stay_as_they_are(self, git_stack: Stack) -> None:
        fields = {"hidden_size": 16, "use_ascend_mc2": True, "layers_saved": 3, "mine": "kept"}
        before, after = (
            after_post_init(source, Configuration(**fields))
            for source in (
                git_stack.before("MindSpeed", ARGUMENTS),
                git_stack.after("MindSpeed", ARGUMENTS),
            )
        )
        assert before == after == {**fields, "derived": 64}


def rope_call(source: str, **arguments: object) -> dict[str, Any]:
    """The keywords with which Megatron's RoPE for packed sequences is called."""
    seen: dict[str, Any] = {}
    rope: Any = Stub("megatron.core.models.common.embeddings.rope_utils")
    rope._apply_rotary_pos_emb_thd = lambda *args, **kwargs: seen.update(kwargs)
    rope._apply_rotary_pos_emb_bshd = lambda *args, **kwargs: seen.update(kwargs)
    state: Any = Stub("megatron.core.parallel_state")
    state.get_context_parallel_group = lambda: "the current group"
    core: Any = Stub("megatron.core")
    core.parallel_state = state
    embeddings: Any = Stub("megatron.core.models.common.embeddings")
    embeddings.rope_utils = rope
    modules = {each.__name__: each for each in (rope, core, embeddings, state)}
    module = execute(source, "mindspeed.core.fusions.fused_rope", modules, missing=["apex"])
    config = SimpleNamespace(
        apply_rope_fusion=False, rotary_interleaved=False, multi_latent_attention=False
    )
    with stubbed(modules):
        module.apply_rotary_pos_emb("t", "freqs", config, **arguments)
    return seen


@pytest.mark.upstream
class TestFusedRope:
    def test_the_group_is_passed_on(self, git_stack: Stack) -> None:
        source = git_stack.after("MindSpeed", ROPE)
        assert rope_call(source, cu_seqlens="c", cp_group="g")["cp_group"] == "g"
        assert rope_call(source, cu_seqlens="c")["cp_group"] == "the current group"

    def test_upstream_drops_it(self, git_stack: Stack) -> None:
        source = git_stack.before("MindSpeed", ROPE)
        assert "cp_group" not in rope_call(source, cu_seqlens="c", cp_group="g")

    def test_whole_batches_are_as_before(self, git_stack: Stack) -> None:
        before = rope_call(git_stack.before("MindSpeed", ROPE), cp_group="g")
        assert rope_call(git_stack.after("MindSpeed", ROPE), cp_group="g") == before


def strides(source: str, *, on_cpu: bool, **more: Any) -> list[Any]:
    """How a layer behind a norm divides its weight, and its bias, among the ranks."""
    kept: list[dict[str, Any]] = []
    layers: Any = Stub("megatron.core.tensor_parallel.layers")
    layers._initialize_affine_weight_cpu = layers._initialize_affine_weight_gpu = notes(kept)
    layers.set_tensor_model_parallel_attributes = lambda tensor, parallel, dim, stride: kept.append(
        {"stride": stride}
    )
    state: Any = Stub("megatron.core.parallel_state")
    state.get_tensor_model_parallel_world_size = lambda: 2
    utils = module("megatron.core.utils", divide=lambda whole, part: whole // part)
    torch = torch_for("npu")
    torch.no_grad = nullcontext
    torch.nn = Stub("torch.nn")

    class Module:
        def register_parameter(self, name: str, parameter: Any) -> None:
            setattr(self, name, parameter)

    torch.nn.Module = Module
    torch.nn.Parameter = lambda tensor: SimpleNamespace(zero_=lambda: None)
    torch.ones = torch.empty = torch.cuda.current_device = lambda *given, **options: None
    modules = {each.__name__: each for each in (layers, state, utils, torch, torch.nn)}
    made = execute(source, "layernorm_column_parallel_linear", modules)
    config = SimpleNamespace(
        sequence_parallel=True,
        gradient_accumulation_fusion=False,
        normalization="RMSNorm",
        params_dtype=None,
        use_cpu_initialization=on_cpu,
        perform_initialization=True,
    )
    flags = {"gather_output": False, "bias": True, "skip_bias_add": False}
    made.TELayerNormColumnParallelLinear(4, 8, config=config, init_method=None, **flags, **more)
    return [each["stride"] for each in kept]


@pytest.mark.upstream
@pytest.mark.parametrize("on_cpu", [True, False])
class TestStride:
    """Of weight and bias: that of a gated layer, and of one that is not."""

    def test_it_is_the_layers(self, next_stack: Stack, on_cpu: bool) -> None:
        source = next_stack.after("MindSpeed", LINEAR)
        assert strides(source, on_cpu=on_cpu, stride=2) == [2, 2]
        assert strides(source, on_cpu=on_cpu) == [1, 1]

    def test_upstream_drops_it(self, next_stack: Stack, on_cpu: bool) -> None:
        source = next_stack.before("MindSpeed", LINEAR)
        assert strides(source, on_cpu=on_cpu, stride=2) == [1, 1]
        assert strides(source, on_cpu=on_cpu) == [1, 1]


CAUSAL = "causal"


class Attention:
    """MindSpeedTEDotProductAttention of a source, without running its constructor."""

    def __init__(self, source: str, mask_type: str = CAUSAL, **config: Any) -> None:
        torch = torch_for("npu")
        torch.npu.Stream = object
        torch.distributed = Stub("torch.distributed")
        torch.distributed.get_process_group_ranks = lambda group: ["ranks of", group]
        enums: Any = Stub("megatron.core.transformer.enums")
        enums.AttnMaskType = SimpleNamespace(causal=CAUSAL)
        package = "mindspeed.te.pytorch.attention.dot_product_attention"
        utils: Any = Stub(f"{package}.utils")
        utils.get_distributed_world_size = len
        masks: Any = Stub("mindspeed.core.transformer.flash_attention.generate_mask.generate_mask")
        masks.get_attention_mask = lambda config: "MindSpeed's mask"
        modules = {each.__name__: each for each in (torch, torch.distributed, enums, utils, masks)}
        module = execute(source, f"{package}.dot_product_attention", modules)
        self.layer = object.__new__(module.MindSpeedTEDotProductAttention)
        self.layer.__dict__.update(
            config=SimpleNamespace(**config),
            attn_mask_type=mask_type,
            kept_packed_seq_params={"local_cp_size", "cp_group"},
            qkv_format="sbhd",
            hidden_size_per_attention_head_k=8,
            hidden_size_per_attention_head_v=8,
            num_gqa_groups_per_partition=2,
            context_parallel=False,
            cp_size=1,
            core_attention=lambda *args, **kwargs: (args, kwargs),
        )

    def __call__(self, mask: object = None, mask_type: str = CAUSAL, **packed: Any) -> Any:
        tensor = SimpleNamespace(dtype="bf16", shape=(4, 1, 2, 8), device="npu:0")
        parameters = SimpleNamespace(**packed) if packed else None
        return self.layer.forward(
            tensor, tensor, tensor, mask, mask_type, packed_seq_params=parameters
        )


MINDSPEED: dict[str, Any] = {"use_flash_attn": True, "attention_mask_type": "causal"}


@pytest.mark.upstream
class TestAttention:
    def test_packed_batches_are_accepted(self, git_stack: Stack) -> None:
        packed: dict[str, Any] = {"local_cp_size": None, "cp_group": None}
        with pytest.raises(TypeError, match="unexpected keyword"):
            Attention(git_stack.before("MindSpeed", ATTENTION), **MINDSPEED)(**packed)
        arguments, _ = Attention(git_stack.after("MindSpeed", ATTENTION), **MINDSPEED)(**packed)
        assert arguments[3] == "MindSpeed's mask"

    def test_the_batch_chooses_its_group(self, git_stack: Stack) -> None:
        attention = Attention(git_stack.after("MindSpeed", ATTENTION), **MINDSPEED)
        attention.layer.__dict__.update(
            context_parallel=True, cp_size=2, cp_group="ab", cp_global_ranks=[0], cp_stream=None
        )
        _, keywords = attention(local_cp_size=2, cp_group="cd")
        assert keywords["cp_group"] == "cd"
        assert keywords["cp_global_ranks"] == ["ranks of", "cd"]
        _, keywords = attention(local_cp_size=2, cp_group=None)
        assert keywords["cp_group"] == "ab"

    @pytest.mark.parametrize("packed", [{"cp_group": "abcd"}, {"local_cp_size": 4}])
    def test_another_size_is_refused(self, git_stack: Stack, packed: dict[str, Any]) -> None:
        attention = Attention(git_stack.after("MindSpeed", ATTENTION), **MINDSPEED)
        with pytest.raises(NotImplementedError, match="size 1, the batch asks for 4"):
            attention(**{"local_cp_size": None, "cp_group": None, **packed})

    def test_the_mask_is_mindspeeds_own(self, git_stack: Stack) -> None:
        for source in (
            git_stack.before("MindSpeed", ATTENTION),
            git_stack.after("MindSpeed", ATTENTION),
        ):
            arguments, _ = Attention(source, **MINDSPEED)()
            assert (arguments[3], arguments[7]) == ("MindSpeed's mask", "causal")
            arguments, _ = Attention(source, **MINDSPEED)(mask="given")
            assert arguments[3] == "given"


@pytest.mark.upstream
@pytest.mark.filterwarnings("ignore:Flash Attention is highly")
def test_the_mask_of_a_launch_is_the_compressed_one(git_stack: Stack) -> None:
    """With the fields that the bridge's configuration has after __post_init__, and without."""
    path = "mindspeed/core/transformer/flash_attention/generate_mask/generate_mask.py"
    torch = torch_for("npu")
    torch.ones = lambda shape, dtype, device: ("ones", shape, device)
    torch.triu = lambda ones, diagonal: ("compressed", ones[1], ones[2])
    modules = {"torch": torch}
    source = git_stack.after("MindSpeed", path)
    fields = after_post_init(
        git_stack.after("MindSpeed", ARGUMENTS), Configuration(), use_flash_attn=True
    )
    masks = execute(source, "generate_mask", modules)
    made = masks.get_attention_mask(SimpleNamespace(**fields))
    assert made == ("compressed", (2048, 2048), "npu")
    masks = execute(source, "generate_mask", modules)
    with pytest.raises(RuntimeError, match="micro_batch_size"):
        masks.get_attention_mask(SimpleNamespace())


#: What Megatron's configuration has that MindSpeed-LLM's wrapper looks at
MEGATRONS: dict[str, Any] = {
    **dict.fromkeys(("apply_rope_fusion", "variable_seq_lengths", "add_bias_linear"), False),
    **dict.fromkeys(("gated_linear_unit", "moe_router_enable_expert_bias"), False),
    **{"moe_router_pre_softmax": False, "moe_router_score_function": "softmax"},
    **{"moe_router_topk": 2, "moe_router_load_balancing_type": "aux_loss"},
    **dict.fromkeys(("moe_token_dispatcher_type", "num_moe_experts", "activation_func")),
}


@pytest.mark.upstream
def test_a_class_that_ends_the_chain_gets_no_fields_of_mindspeed_llm(
    mindspeedllm_stack: Stack,
) -> None:
    path = "mindspeed_llm/core/transformer/transformer_config.py"
    training: Any = Stub("megatron.training")
    training.get_args = lambda: Namespace(use_fused_swiglu=True)
    loaded: Any = ModuleType("transformer_config")
    with stubbed({training.__name__: training}):
        exec(mindspeedllm_stack.before("MindSpeed-LLM", path), loaded.__dict__)

    def post_init(self: Any) -> None:
        self.derived = True

    wrapped = loaded.transformer_config_post_init_wrapper(post_init)
    base = type("TransformerConfig", (), {**MEGATRONS, "__post_init__": wrapped})

    class Calling(base):  # type: ignore[misc, valid-type]
        """A configuration that calls its parent's."""

        def __post_init__(self) -> None:
            super().__post_init__()

    class Ending(base):  # type: ignore[misc, valid-type]
        """A configuration that puts it off, as Megatron-Bridge's do."""

        def __post_init__(self) -> None:
            pass

    seen = []
    for kind in (base, Calling, Ending):
        made: Any = kind()
        made.__post_init__()
        seen.append((hasattr(made, "derived"), hasattr(made, "use_fused_swiglu")))
    assert seen == [(True, True), (True, True), (False, False)]
