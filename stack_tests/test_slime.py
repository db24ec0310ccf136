"""What our slime patches add on every device: Qwen3-VL's weights, and critics in bridge mode."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from stack_tests.conftest import Stack
from stack_tests.stubs import Stub, execute, stubbed, torch_for

PACKAGE = "slime.backends.megatron_utils"
FOLDER = "slime/backends/megatron_utils"
VOCABULARY = SimpleNamespace(
    vocab_size=3,
    q_lora_rank=None,
    kv_channels=8,
    hidden_size=16,
    num_attention_heads=2,
    num_query_groups=1,
)

pytestmark = pytest.mark.upstream


def loaded(stack: Stack, path: str, modules: dict[str, ModuleType], *, patched: bool = True) -> Any:
    """A module of slime; it joins `modules`, for those that come after it."""
    show = stack.after if patched else stack.before
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    source = show("slime", path)
    module = execute(source, name, modules)
    modules[name] = module
    return module


@pytest.mark.parametrize(
    ("npu", "cuda", "answer"),
    [
        (None, True, False),
        (None, False, False),  # the driver of a CUDA cluster, on a machine without a GPU
        (True, False, True),
        (True, True, True),  # torch.cuda is redirected
        (False, True, False),
        (False, False, True),  # Ray has hidden the NPUs: this process asked for none
    ],
)
@pytest.mark.parametrize("stack", ["git_stack", "next_stack"])
def test_every_process_of_a_job_gets_the_same_answer(
    request: pytest.FixtureRequest, stack: str, npu: bool | None, cuda: bool, answer: bool
) -> None:
    torch = torch_for("cuda" if npu is None else "npu")
    torch.cuda.is_available = lambda: cuda
    if npu is not None:
        torch.npu.is_available = lambda: npu
    source = request.getfixturevalue(stack).after("slime", "slime/utils/device.py")
    assert execute(source, "slime.utils.device", {"torch": torch}).is_npu() is answer


class Conversion:
    """slime's conversion to Hugging Face's names, before or after the patches."""

    def __init__(self, stack: Stack, *, patched: bool = True) -> None:
        modules: dict[str, ModuleType] = {}
        there = f"{FOLDER}/megatron_to_hf"
        loaded(stack, f"{FOLDER}/misc_utils.py", modules)
        padding = loaded(stack, f"{there}/processors/padding_remover.py", modules)
        processors: Any = Stub(f"{PACKAGE}.megatron_to_hf.processors")
        processors.remove_padding = padding.remove_padding
        processors.quantize_params = lambda args, name, converted, config: converted
        modules[processors.__name__] = processors
        package = ModuleType(f"{PACKAGE}.megatron_to_hf")
        package.__path__ = []
        modules[package.__name__] = package
        loaded(stack, f"{there}/qwen2.py", modules)
        if patched:
            loaded(stack, f"{there}/qwen3_vl.py", modules)
        # A package imports its own modules relatively
        show = stack.after if patched else stack.before
        package.__package__ = package.__name__
        with stubbed(modules):
            exec(show("slime", f"{there}/__init__.py"), package.__dict__)
        self._convert = package.convert_to_hf

    def __call__(self, model: str, name: str, param: Any = "the tensor") -> Any:
        try:
            return self._convert(VOCABULARY, model, name, param)
        except ValueError as error:
            return str(error)


DECODER = "module.module.language_model.decoder"
QWEN3VL = {
    f"{DECODER}.layers.7.self_attention.linear_proj.weight": (
        "model.language_model.layers.7.self_attn.o_proj.weight"
    ),
    f"{DECODER}.layers.7.self_attention.q_layernorm.weight": (
        "model.language_model.layers.7.self_attn.q_norm.weight"
    ),
    f"{DECODER}.layers.0.mlp.linear_fc1.layer_norm_weight": (
        "model.language_model.layers.0.post_attention_layernorm.weight"
    ),
    f"{DECODER}.final_layernorm.weight": "model.language_model.norm.weight",
    "module.module.vision_model.blocks.3.mlp.linear_fc1.weight": (
        "model.visual.blocks.3.mlp.linear_fc1.weight"
    ),
    "module.module.vision_model.pos_embed.weight": "model.visual.pos_embed.weight",
}
OTHERS = {
    "qwen3config": "module.module.decoder.layers.1.mlp.linear_fc2.weight",
    "qwen2config": "module.module.embedding.word_embeddings.weight",
    "qwen3vlmoeconfig": "module.module.language_model.decoder.final_layernorm.weight",
    "nobodysconfig": "module.module.decoder.final_layernorm.weight",
}


class TestConversion:
    @pytest.mark.parametrize("name", QWEN3VL)
    def test_qwen3_vl_gets_hugging_faces_names(self, git_stack: Stack, name: str) -> None:
        converted = Conversion(git_stack)("qwen3vlconfig", name)
        assert converted == [(QWEN3VL[name], "the tensor")]

    @pytest.mark.parametrize(
        ("name", "hf_name"),
        [
            ("embedding.word_embeddings", "model.language_model.embed_tokens"),
            ("output_layer", "lm_head"),
        ],
    )
    def test_padding_of_the_vocabulary_is_taken_off(
        self, git_stack: Stack, name: str, hf_name: str
    ) -> None:
        name = f"module.module.language_model.{name}.weight"
        converted = Conversion(git_stack)("qwen3vlconfig", name, [1, 2, 3, 0, 0])
        assert converted == [(f"{hf_name}.weight", [1, 2, 3])]

    def test_upstream_stops(self, git_stack: Stack) -> None:
        upstream = Conversion(git_stack, patched=False)
        for name in QWEN3VL:
            assert upstream("qwen3vlconfig", name) == f"Unknown parameter name: {name}"

    @pytest.mark.parametrize("model", OTHERS)
    def test_other_models_are_converted_as_before(self, git_stack: Stack, model: str) -> None:
        param = [1, 2, 3, 0]
        before = Conversion(git_stack, patched=False)(model, OTHERS[model], param)
        assert Conversion(git_stack)(model, OTHERS[model], param) == before


PLAIN = (
    *("decoder.layers.0.mlp.linear_fc2.weight", "decoder.final_layernorm.weight"),
    *("decoder.layers.1.mlp.experts.linear_fc1.weight3", "mtp.layers.0.enorm.weight"),
)


def global_names(stack: Stack, names: tuple[str, ...], *, patched: bool = True) -> list[str]:
    """Names of parameters on the second pipeline stage, whose first layer is the fifth."""
    mpu: Any = Stub("megatron.core.mpu")
    mpu.get_expert_model_parallel_world_size = lambda: 2
    mpu.get_expert_model_parallel_rank = lambda: 1
    core: Any = Stub("megatron.core")
    core.mpu = mpu
    layer: Any = Stub("megatron.core.transformer.transformer_layer")
    layer.get_transformer_layer_offset = lambda config, vp_stage=None: 4
    modules = {each.__name__: each for each in (core, mpu, layer)}
    path = f"{FOLDER}/update_weight/common.py"
    common = loaded(stack, path, modules, patched=patched)
    model = SimpleNamespace(
        config=None,
        named_parameters=lambda: [(f"module.module.{name}", None) for name in names],
        named_buffers=lambda: [(f"module.{name}.expert_bias", None) for name in names[:1]],
    )
    found = common._named_params_and_buffers_global(SimpleNamespace(num_experts=8), [model])
    return [name for name, _ in found]


class TestGlobalNames:
    def test_plain_models_keep_theirs(self, git_stack: Stack) -> None:
        names = global_names(git_stack, PLAIN)
        assert names == global_names(git_stack, PLAIN, patched=False)
        assert names[0] == "module.module.decoder.layers.4.mlp.linear_fc2.weight"

    def test_layers_inside_a_vision_language_model_are_numbered_alike(
        self, git_stack: Stack
    ) -> None:
        inside = tuple(f"language_model.{name}" for name in PLAIN[:3])
        expected = [
            name.replace("module.module.", "module.module.language_model.")
            for name in global_names(git_stack, PLAIN[:3])
        ]
        assert global_names(git_stack, inside) == expected
        upstream = global_names(git_stack, inside, patched=False)
        assert upstream[0] == "module.module.language_model.decoder.layers.0.mlp.linear_fc2.weight"
