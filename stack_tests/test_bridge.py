"""Our Megatron-Bridge patches, executed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from stack_tests.conftest import TREES, Stack, Tree, tree
from stack_tests.stubs import Stub, execute, module, notes, torch_for

MAPPING = "src/megatron/bridge/models/conversion/param_mapping.py"
BLOCK = "src/megatron/bridge/models/qwen_vl/modelling_qwen3_vl/transformer_block.py"
QWEN3_VL = "src/megatron/bridge/models/qwen_vl/modelling_qwen3_vl/model.py"

FUSED = "MindSpeedTELayerNormColumnParallelLinear"
MINDSPEED = {
    ("MindSpeedTEColumnParallelLinear", "weight"): "column",
    (FUSED, "weight"): "column",
    (FUSED, "layer_norm_weight"): "replicated",
    ("MindSpeedTEColumnParallelGroupedLinear", "weight0"): "column",
    ("MindSpeedTERowParallelGroupedLinear", "weight0"): "row",
    ("MindSpeedTEDotProductAttention", "softmax_offset"): "column",
    ("MindSpeedTELinear", "weight"): "replicated",
}
TRANSFORMER_ENGINE = {
    ("TEColumnParallelLinear", "weight"): "column",
    ("TELayerNormColumnParallelLinear", "weight"): "column",
    ("TELayerNormColumnParallelLinear", "layer_norm_bias"): "replicated",
    ("TERowParallelGroupedLinear", "weight0"): "row",
    ("TERowParallelLinear", "weight"): "row",
    ("TENorm", "weight"): "replicated",
}


def parallelism(source: str, kind: str, parameter: str, **attributes: object) -> str:
    """What AutoMapping says about a parameter of a layer of that class."""
    module = execute(source, "megatron.bridge.models.conversion.param_mapping")
    mapping = object.__new__(module.AutoMapping)
    mapping.megatron_param = f"decoder.layers.0.{parameter}"
    layer = type(kind, (), attributes)()
    return str(mapping._detect_parallelism_type(layer))


@pytest.fixture(scope="session", params=TREES)
def bridge(request: pytest.FixtureRequest) -> Tree:
    """Megatron-Bridge of either stack, which are two releases with patches of their own."""
    return tree(request, "megatron-bridge", "Megatron-Bridge")


class TestModuleTypes:
    @pytest.mark.parametrize(("kind", "parameter"), MINDSPEED)
    def test_mindspeed_classes_are_known(self, bridge: Tree, kind: str, parameter: str) -> None:
        source = bridge.after(MAPPING)
        assert parallelism(source, kind, parameter) == MINDSPEED[kind, parameter]

    def test_upstream_does_not_know_them(self, bridge: Tree) -> None:
        source = bridge.before(MAPPING)
        for kind in {kind for kind, _ in MINDSPEED} - {FUSED}:
            with pytest.raises(ValueError, match="Cannot determine parallelism type"):
                parallelism(source, kind, "weight")

    def test_upstream_takes_the_fused_layers_weight_for_replicated(self, bridge: Tree) -> None:
        assert parallelism(bridge.before(MAPPING), FUSED, "weight") == "replicated"

    @pytest.mark.parametrize(("kind", "parameter"), TRANSFORMER_ENGINE)
    def test_transformer_engine_classes_stay(self, bridge: Tree, kind: str, parameter: str) -> None:
        for source in (bridge.before(MAPPING), bridge.after(MAPPING)):
            assert parallelism(source, kind, parameter) == TRANSFORMER_ENGINE[kind, parameter]

    @pytest.mark.parametrize("mode", ["column", "row", "duplicated"])
    def test_te_linear_is_read_as_before(self, bridge: Tree, mode: str) -> None:
        before, after = (
            parallelism(source, "TELinear", "weight", parallel_mode=mode)
            for source in (bridge.before(MAPPING), bridge.after(MAPPING))
        )
        assert before == after == ("replicated" if mode == "duplicated" else mode)


class Tensor(str):
    """Stands for a tensor: its value says what was done to it."""

    __slots__ = ()


def checkpoint(function: Callable[..., Any], distribute: bool, *arguments: object) -> Any:
    """Megatron's activation checkpointing, as far as its arguments go (save_for_backward)."""
    for argument in arguments:
        if not (argument is None or isinstance(argument, Tensor)):
            raise TypeError(f"save_for_backward can only save variables, not {argument!r}")
    return function(*arguments)


def forward(source: str, embeds: list[Tensor] | None, method: str) -> str:
    """The block's checkpointed forward over three layers; what came out tells the story."""
    parallel: Any = Stub("megatron.core.tensor_parallel")
    parallel.checkpoint = checkpoint
    core: Any = Stub("megatron.core")
    core.tensor_parallel = parallel
    modules = {
        "torch": torch_for("cuda"),
        "megatron.core": core,
        "megatron.core.tensor_parallel": parallel,
    }
    name = "megatron.bridge.models.qwen_vl.modelling_qwen3_vl.transformer_block"
    module = execute(source, name, modules, missing=["transformer_engine"])
    block = object.__new__(module.Qwen3VLTransformerBlock)
    block.config = SimpleNamespace(
        fp8=None,
        distribute_saved_activations=False,
        recompute_method=method,
        recompute_num_layers=3 if method == "uniform" else 2,
    )
    block.num_layers_per_pipeline_rank = 3
    block.pre_process = True
    block._get_layer = lambda index: _Layer(index + 1)
    block._deepstack_process = lambda hidden, mask, embed: Tensor(f"{hidden}+{embed}")
    return str(
        block._checkpointed_forward(
            Tensor("h"), None, None, None, None, None, None, False, Tensor("mask"), embeds
        )
    )


class _Layer:
    def __init__(self, number: int) -> None:
        self.layer_number = number

    def __call__(self, *, hidden_states: Tensor, **kwargs: object) -> tuple[Tensor, None]:
        return Tensor(f"{hidden_states}>{self.layer_number}"), None


@pytest.mark.parametrize("method", ["uniform", "block"])
class TestDeepStack:
    def test_embeddings_reach_their_layers(self, bridge: Tree, method: str) -> None:
        source = bridge.after(BLOCK)
        embeds = [Tensor("a"), Tensor("b")]
        assert forward(source, embeds, method) == "h>1+a>2+b>3"

    def test_upstream_hands_over_a_list(self, bridge: Tree, method: str) -> None:
        source = bridge.before(BLOCK)
        with pytest.raises(TypeError, match="save_for_backward"):
            forward(source, [Tensor("a")], method)

    def test_without_images_nothing_changes(self, bridge: Tree, method: str) -> None:
        before, after = (
            forward(source, None, method) for source in (bridge.before(BLOCK), bridge.after(BLOCK))
        )
        assert before == after == "h>1>2>3"


def slimes_keywords(source: str) -> list[set[str]]:
    """The keywords of slime's calls of a model: to compute log probabilities, and to train."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "model":
            found.append({each.arg for each in node.keywords if each.arg})
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "forward_kwargs":
            assert isinstance(node.value, ast.Dict)
            found.append({ast.literal_eval(key) for key in node.value.keys if key})
    return [each for each in found if each]


def language_model_is_given(source: str, *arguments: str, **keywords: str) -> dict[str, Any]:
    """What the language model inside Qwen3-VL is called with, on a later pipeline stage."""
    kept: list[dict[str, Any]] = []
    package = "megatron.bridge.models.qwen_vl.modelling_qwen3_vl"
    helpers = module(f"{package}.utils", get_rope_index=lambda *args, **more: ("positions", None))
    loaded = execute(source, f"{package}.model", {helpers.__name__: helpers})
    model = object.__new__(loaded.Qwen3VLModel)
    model.__dict__.update(
        pre_process=False,
        config=SimpleNamespace(sequence_parallel=False, spatial_merge_size=2),
        **dict.fromkeys(("image_token_id", "video_token_id", "vision_start_token_id"), 0),
        language_model=notes(kept),
    )
    model.forward(*arguments, **keywords)
    return kept[0]


@pytest.mark.upstream
class TestLossMask:
    def test_slimes_calls_are_taken(self, git_stack: Stack) -> None:
        caller = git_stack.after("slime", "slime/backends/megatron_utils/model.py")
        calls = slimes_keywords(caller)
        assert len(calls) == 2
        for keywords in calls:
            assert "loss_mask" in keywords
            given = {name: name for name in keywords}
            source = git_stack.after("Megatron-Bridge", QWEN3_VL)
            assert language_model_is_given(source, **given)["loss_mask"] == "loss_mask"
            with pytest.raises(TypeError, match="unexpected keyword argument 'loss_mask'"):
                language_model_is_given(git_stack.before("Megatron-Bridge", QWEN3_VL), **given)

    def test_other_callers_are_served_as_before(self, git_stack: Stack) -> None:
        positions = ("ids", "positions", "mask", "labels")
        before, after = (
            language_model_is_given(source, *positions, packed_seq_params="packed")
            for source in (
                git_stack.before("Megatron-Bridge", QWEN3_VL),
                git_stack.after("Megatron-Bridge", QWEN3_VL),
            )
        )
        assert after == {**before, "loss_mask": None}
