"""Run 3: Qwen3-VL through Megatron-Bridge under MindSpeed, as slime's trainer has it.

The provider is what slime's own get_model_provider_func makes, with the launch's flags; the batch
is made by slime's get_batch; the model is called with the keywords of slime's train step.
Log probabilities, loss and gradients are compared with Hugging Face's model on the CPU.
"""

from __future__ import annotations

import argparse
import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulate import gpt, qwen3_vl
from simulate.steps import Figures, Place, step

STACK = "qwen3-vl-npu"
COMPONENTS = ["megatron-lm", "megatron-bridge", "mindspeed", "mbridge", "slime"]


def _arguments(place: Place, checkpoint: Path) -> argparse.Namespace:
    """The words of the launch that the trainer's model depends on."""
    return argparse.Namespace(
        hf_checkpoint=str(checkpoint),
        megatron_to_hf_mode="bridge",
        tensor_model_parallel_size=place.processes,
        sequence_parallel=place.processes > 1,
        pipeline_model_parallel_size=1,
        expert_model_parallel_size=1,
        expert_tensor_parallel_size=1,
        context_parallel_size=1,
        recompute_granularity="full",
        recompute_method="uniform",
        recompute_num_layers=1,
        recompute_modules=None,
        gradient_accumulation_fusion=False,
        num_layers=3,
        normalization="RMSNorm",
        swiglu=True,
        use_flash_attn=True,
        use_rotary_position_embeddings=True,
        qk_layernorm=True,
    )


def _forward_keywords(place: Place) -> set[str]:
    """The keywords that slime's train step gives the model, read from its source."""
    source = place.workspace / "slime/slime/backends/megatron_utils/model.py"
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "forward_kwargs":
            assert isinstance(node.value, ast.Dict)
            return {key.value for key in node.value.keys if isinstance(key, ast.Constant)}
    raise AssertionError(f"{source} has no forward_kwargs")


class _Iterator:
    """What slime's get_batch asks for samples."""

    def __init__(self, place: Place, samples: list[dict[str, Any]]) -> None:
        import torch

        self.rollout_data: dict[str, Any] = {}
        device = place.device
        self._batch = {
            "tokens": [sample["tokens"].to(device) for sample in samples],
            "loss_masks": [
                torch.ones(sample["response_length"], dtype=torch.int, device=device)
                for sample in samples
            ],
            "multimodal_train_inputs": [
                {name: value.to(device) for name, value in sample["multimodal"].items()}
                for sample in samples
            ],
            "total_lengths": [len(sample["tokens"]) for sample in samples],
            "response_lengths": [sample["response_length"] for sample in samples],
        }

    def get_next(self, keys: list[str]) -> dict[str, Any]:
        return {key: self._batch.get(key) for key in keys}


def _start(place: Place) -> tuple[argparse.Namespace, Any]:
    """Import in the launch's order; gives the arguments and Hugging Face's model."""
    place.use("slime", "MindSpeed", "Megatron-LM", "Megatron-Bridge/src", "mbridge")
    place.start()
    importlib.import_module("slime.backends.megatron_utils")  # imports MindSpeed's adaptor first
    from mindspeed.megatron_adaptor import repatch

    checkpoint = place.scratch / f"checkpoint-{place.rank}"
    model = qwen3_vl.checkpoint(checkpoint)
    args = _arguments(place, checkpoint)
    repatch(args)
    gpt.parallel(place)
    return args, model


def _build(args: argparse.Namespace, role: str = "actor") -> tuple[Any, Any]:
    """The provider's model in Megatron's data parallel wrapper, with its optimizer."""
    import torch
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from megatron.core.enums import ModelType
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.tensor_parallel import (
        set_defaults_if_not_set_tensor_model_parallel_attributes,
    )
    from slime.backends.megatron_utils.model_provider import get_model_provider_func

    provide = get_model_provider_func(args, role)
    module = provide(pre_process=True, post_process=True)
    module.model_type = ModelType.encoder_or_decoder  # as megatron.training's get_model
    for parameter in module.parameters():
        set_defaults_if_not_set_tensor_model_parallel_attributes(parameter)
    module.cuda(torch.cuda.current_device())
    wrapped = DistributedDataParallel(
        module.config, DistributedDataParallelConfig(grad_reduce_in_fp32=True), module
    )
    optimizer = get_megatron_optimizer(
        OptimizerConfig(optimizer="adam", lr=1e-2, clip_grad=1e9, weight_decay=0.0), [wrapped]
    )
    return wrapped, optimizer


def _log_probabilities(logits: Any, samples: list[dict[str, Any]]) -> Any:
    """Of the answers' tokens, one after the other; logits are [1, tokens, this rank's words]."""
    import torch
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel import vocab_parallel_cross_entropy

    wanted, places, start = [], [], 0
    for sample in samples:
        length, answer = len(sample["tokens"]), sample["response_length"]
        places += range(start + length - answer - 1, start + length - 1)
        wanted.append(sample["tokens"][-answer:])
        start += length
    rows = logits[0, places].float().unsqueeze(1)
    first = parallel_state.get_tensor_model_parallel_rank() * rows.shape[-1]
    rows[..., max(qwen3_vl.VOCABULARY - first, 0) :] = -1e9  # padding of the vocabulary
    targets = torch.cat(wanted).to(logits.device).unsqueeze(1)
    if parallel_state.get_tensor_model_parallel_world_size() > 1:
        return -vocab_parallel_cross_entropy(rows, targets).squeeze(1)
    return torch.log_softmax(rows[:, 0], -1).gather(1, targets).squeeze(1)


def _count_forwards(model: Any) -> list[int]:
    """How often each layer of the language model goes forward from here on."""
    from megatron.core.utils import unwrap_model

    layers = unwrap_model(model).language_model.decoder.layers
    counts = [0] * len(layers)
    for number, layer in enumerate(layers):

        def counted(
            *given: Any, number: int = number, forward: Any = layer.forward, **more: Any
        ) -> Any:
            counts[number] += 1
            return forward(*given, **more)

        layer.forward = counted
    return counts


def _export(args: argparse.Namespace, model: Any) -> dict[str, Any]:
    """Weights by Hugging Face's names, on the CPU, as slime's weight update takes them."""
    from megatron.bridge import AutoBridge
    from slime.utils.megatron_bridge_utils import patch_megatron_model

    bridge = AutoBridge.from_hf_pretrained(args.hf_checkpoint, trust_remote_code=True)
    with patch_megatron_model([model]):
        pairs = list(bridge.export_hf_weights([model], cpu=True, show_progress=False))
    return {pair[0]: pair[1].clone() for pair in pairs}


def _load(args: argparse.Namespace, model: Any, folder: str) -> None:
    from megatron.bridge import AutoBridge
    from slime.backends.megatron_utils.model_provider import without_value_heads
    from slime.utils.megatron_bridge_utils import patch_megatron_model

    with patch_megatron_model([model]), without_value_heads([model]):
        AutoBridge.from_hf_pretrained(folder, trust_remote_code=True).load_hf_weights([model])


def _same(found: dict[str, Any], expected: dict[str, Any], what: str) -> None:
    if missing := sorted(set(expected) - set(found)):
        raise AssertionError(f"{what}: {missing} are missing")
    differ = [name for name in expected if not found[name].equal(expected[name])]
    if differ:
        raise AssertionError(f"{what}: {differ} differ")


def _close(name: str, found: Any, expected: Any, relative: float) -> None:
    import torch

    found, expected = (torch.as_tensor(each, dtype=torch.float64) for each in (found, expected))
    worst = ((found - expected).abs() / expected.abs().clamp(min=1e-3)).max().item()
    if worst > relative:
        raise AssertionError(
            f"{name}: {found.tolist()}, Hugging Face's model has {expected.tolist()}"
        )


def _train(place: Place) -> Figures:
    args, hf = _start(place)
    from slime.backends.megatron_utils.data import get_batch

    def batch(data: Any) -> dict[str, Any]:
        names = ["tokens", "loss_masks", "multimodal_train_inputs", "total_lengths"]
        return get_batch(data, [*names, "response_lengths"], 32, "thd")

    return train_step(place, args, hf, batch, _load, _export)


def train_step(
    place: Place,
    args: argparse.Namespace,
    hf: Any,
    batch: Callable[[Any], dict[str, Any]],
    load: Callable[[argparse.Namespace, Any, str], None],
    export: Callable[[argparse.Namespace, Any], dict[str, Any]],
) -> Figures:
    """A step of slime's provider's model, beside Hugging Face's model `hf`; weights there and back.

    The slime of the stack makes the batch, loads weights and hands them out.
    """
    import torch
    from megatron.core.distributed import finalize_model_grads
    from megatron.core.pipeline_parallel import get_forward_backward_func

    model, optimizer = _build(args)
    load(args, model, args.hf_checkpoint)
    weights = {name: value.cpu() for name, value in hf.state_dict().items()}
    _same(export(args, model), weights, "exported before a step")
    samples = qwen3_vl.samples()
    counts = _count_forwards(model)
    config = model.config
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = optimizer.scale_loss
    wanted = _forward_keywords(place)
    seen: dict[str, Any] = {}

    def forward(data: Any, model: Any) -> Any:
        made = batch(data)
        given = {
            "input_ids": made["tokens"],
            "position_ids": None,
            "attention_mask": None,
            "labels": None,
            "packed_seq_params": made["packed_seq_params"],
            "loss_mask": made["full_loss_masks"],
        }
        if set(given) != wanted:
            raise AssertionError(f"slime passes {sorted(wanted)}")
        logits = model(**given, **made["multimodal_train_inputs"])
        scores = _log_probabilities(logits, samples)
        seen["scores"] = scores.detach().cpu()
        return logits, lambda _: (-scores.mean(), {"loss": -scores.detach().mean()})

    model.zero_grad_buffer()
    optimizer.zero_grad()
    made = get_forward_backward_func()(
        forward_step_func=forward,
        data_iterator=_Iterator(place, samples),
        model=[model],
        num_microbatches=1,
        seq_length=64,
        micro_batch_size=1,
        forward_only=False,
    )
    if counts != [2, 2, 2]:
        raise AssertionError(f"layers went forward {counts} times: they are not recomputed")
    done, norm, _ = optimizer.step()
    if not done:
        raise AssertionError("the optimizer left the step out")

    scores = torch.cat([qwen3_vl.reference(hf, sample) for sample in samples])
    (-scores.mean()).backward()
    expected = torch.stack([each.grad.norm() for each in hf.parameters() if each.grad is not None])
    _close("log probabilities", seen["scores"], scores.detach(), 2e-4)
    _close("norm of the gradients", float(norm), expected.norm(), 2e-4)

    moved = export(args, model)
    if all(moved[name].equal(weights[name]) for name in weights):
        raise AssertionError("no weight moved")
    stepped = place.scratch / f"stepped-{place.rank}"
    hf.load_state_dict(moved)
    hf.save_pretrained(stepped)
    again, _ = _build(args)
    load(args, again, str(stepped))
    _same(export(args, again), moved, "exported, loaded, exported")
    return {
        "loss": made[0]["loss"].item(),
        "norm": float(norm),
        "log_probabilities": seen["scores"].tolist(),
        "weights": len(weights),
        "operators": place.operators(),
    }


@step(STACK, components=COMPONENTS, minutes=20)
def train(place: Place) -> Figures:
    """One process: provider, forward, backward, a step, weights there and back."""
    return _train(place)


@step(STACK, components=COMPONENTS, processes=2, minutes=20)
def train_tp2_sequence_parallel(place: Place) -> Figures:
    """Two processes, tensor and sequence parallel, as in the launches."""
    return _train(place)
