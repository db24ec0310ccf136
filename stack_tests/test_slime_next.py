"""What our patches for slime v0.3.1 add on every device: the dense Qwen3-VL without a bridge."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from stack_tests.conftest import Stack
from stack_tests.stubs import Stub, module, torch_for
from stack_tests.test_slime import FOLDER, loaded

LOADERS = f"{FOLDER}/hf_to_megatron"
PADDING = f"{FOLDER}/megatron_to_hf/processors/padding_remover.py"
INDICES = "slime_plugins/models/qwen3_5_vl_utils.py"
MODEL = "slime_plugins/models/qwen3_vl.py"

pytestmark = pytest.mark.upstream


# -- weights --------------------------------------------------------------------------------------


class Checkpoint:
    """A reader of any checkpoint that tells the names it is asked for."""

    def __contains__(self, name: str) -> bool:
        return name == "lm_head.weight" or ".language_model." in name

    def get_tensor(self, name: str) -> str:
        """The name in the place of its tensor."""
        return name


def modules_of(stack: Stack, *names: str) -> dict[str, ModuleType]:
    """slime's own conversions from Hugging Face, those in files of these names."""
    modules: dict[str, ModuleType] = {}
    for name in names:
        loaded(stack, f"{LOADERS}/{name}.py", modules)
    return modules


NAMES = {
    "module.module.language_model.embedding.word_embeddings.weight": (
        "model.language_model.embed_tokens.weight"
    ),
    "module.module.language_model.output_layer.weight": "lm_head.weight",
    "module.module.language_model.decoder.final_layernorm.weight": (
        "model.language_model.norm.weight"
    ),
    "module.module.language_model.decoder.layers.7.mlp.linear_fc2.weight": (
        "model.language_model.layers.7.mlp.down_proj.weight"
    ),
    "module.module.model.visual.blocks.3.attn.qkv.weight": "model.visual.blocks.3.attn.qkv.weight",
}


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_found_by_hugging_faces_names(next_stack: Stack, name: str) -> None:
    [*_, loader] = modules_of(next_stack, "common", "qwen", "qwen3_vl").values()
    config = SimpleNamespace(text_config=SimpleNamespace(tie_word_embeddings=False))
    found = loader.qwen3_vl_hf_tensor(name, Checkpoint(), config)
    assert found == NAMES[name]


def test_other_models_are_loaded_as_before(next_stack: Stack) -> None:
    """One more type of checkpoint has a loader, which upstream does not take."""
    found = []
    for patched in (False, True):
        modules: dict[str, ModuleType] = {}
        package = loaded(next_stack, f"{LOADERS}/__init__.py", modules, patched=patched)
        found.append({kind: loader.__name__ for kind, loader in package._LOADERS.items()})
    before, after = found
    assert after == before | {"qwen3_vl": "qwen3_vl_hf_tensor"}
    assert "qwen3_vl" not in before


@pytest.mark.parametrize("patched", [False, True])
def test_padding_of_the_vocabulary_is_taken_off(next_stack: Stack, patched: bool) -> None:
    """Upstream leaves it where the language model is a part of another."""
    modules: dict[str, ModuleType] = {}
    loaded(next_stack, f"{FOLDER}/misc_utils.py", modules)
    remove = loaded(next_stack, PADDING, modules, patched=patched).remove_padding
    for name in ("embedding.word_embeddings", "output_layer"):
        assert remove(f"module.module.{name}.weight", [1, 2, 0], 2) == [1, 2]
        inside = remove(f"module.module.language_model.{name}.weight", [1, 2, 0], 2)
        assert inside == ([1, 2] if patched else [1, 2, 0])
    assert remove("module.module.language_model.decoder.x.weight", [1, 2, 0], 2) == [1, 2, 0]


# -- packed sequences -----------------------------------------------------------------------------


def places(stack: Stack, ends: list[int], size: int, *, patched: bool) -> Any:
    """The places of the packed tokens that the first rank of `size` has."""
    torch = torch_for("cuda")
    torch.arange = lambda *given, device: list(range(*given))
    torch.cat = lambda parts: [place for part in parts for place in part]
    own = loaded(stack, INDICES, {"torch": torch}, patched=patched)
    try:
        return own.get_packed_cp_local_indices(ends, size, 0, "the device")
    except ValueError as error:
        return str(error)


def test_sequences_of_odd_length_without_context_parallelism(next_stack: Stack) -> None:
    stopped = "Packed sequence length 5 must be divisible by 2 * CP size 1"
    assert places(next_stack, [0, 5, 8], 1, patched=False) == stopped
    assert places(next_stack, [0, 5, 8], 1, patched=True) == list(range(8))


@pytest.mark.parametrize(("ends", "size"), [([0, 4, 10], 1), ([0, 4, 12], 2), ([0, 6], 2)])
def test_what_upstream_takes_is_as_before(next_stack: Stack, ends: list[int], size: int) -> None:
    before = places(next_stack, ends, size, patched=False)
    assert places(next_stack, ends, size, patched=True) == before


# -- the model ------------------------------------------------------------------------------------


def model(stack: Stack, kind: str = "qwen3_vl") -> Any:
    """The module of Qwen3-VL, where the checkpoint is of this type."""
    transformers: Any = Stub("transformers")
    config = SimpleNamespace(model_type=kind)
    transformers.AutoConfig.from_pretrained = lambda path, trust_remote_code: config
    base = module("slime_plugins.models.qwen3_5_vl", Qwen3_5VLModel=object)
    modules = {each.__name__: each for each in (transformers, base, torch_for("cuda"))}
    return loaded(stack, MODEL, modules)


def test_features_are_added_to_the_first_layers(next_stack: Stack) -> None:
    add = model(next_stack)._add_leaf
    packed = {"packed_seq_params": SimpleNamespace(deepstack=[10, 20])}
    given = (1, "context")
    assert [add(layer, None, (), packed, given)[0] for layer in range(3)] == [11, 21, 1]
    assert add(0, None, (), {}, given) == given
    assert add(0, None, (), {"packed_seq_params": SimpleNamespace()}, given) == given


def test_gradients_of_the_leaves_go_on_to_their_sources(next_stack: Stack) -> None:
    context = SimpleNamespace(leaves=[SimpleNamespace(grad=2), SimpleNamespace(grad=3)])
    assert model(next_stack)._GradientsOfLeaves.backward(context, 1) == (1, None, 2, 3)


def test_another_models_checkpoint_is_refused(next_stack: Stack) -> None:
    arguments = SimpleNamespace(hf_checkpoint="/model")
    refused = "/model is no dense Qwen3-VL: its type is qwen3_vl_moe"
    with pytest.raises(ValueError, match=refused):
        model(next_stack, "qwen3_vl_moe").get_qwen3_vl_model_provider(arguments, None, None)
    assert callable(model(next_stack).get_qwen3_vl_model_provider(arguments, None, None))
