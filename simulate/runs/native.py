"""Run 7: Qwen3-VL as slime v0.3.1 has it with our patches: no bridge, the tower of transformers.

The provider is the one that the launch's --spec names, by slime's own get_model_provider_func; the
configuration comes from the launch's words, by slime's parser; weights are loaded and handed out by
slime's own conversions. Compared with Hugging Face's model on the CPU, as in the run `bridge`.
"""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
from pathlib import Path
from typing import Any

from simulate import gpt, newer, qwen3_vl
from simulate.runs import bridge
from simulate.steps import Figures, Place, step

STACK = "qwen3-vl-npu-next"
COMPONENTS = ["megatron-lm", "mindspeed", "slime"]
# What the model and its training depend on, of the launch's words; sizes are the small model's.
WORDS = shlex.split("""
    --spec slime_plugins.models.qwen3_vl get_qwen3_vl_model_provider
    --num-layers 3 --hidden-size 64 --ffn-hidden-size 96 --num-attention-heads 4 --kv-channels 128
    --group-query-attention --num-query-groups 2 --vocab-size 128 --rotary-base 5000000 --swiglu
    --use-rotary-position-embeddings --disable-bias-linear --normalization RMSNorm
    --norm-epsilon 1e-6 --qk-layernorm --untie-embeddings-and-output-weights
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
    --attention-dropout 0.0 --hidden-dropout 0.0 --attention-backend flash --use-flash-attn
    --no-gradient-accumulation-fusion --pipeline-model-parallel-size 1 --micro-batch-size 1
""")


def _arguments(place: Place, checkpoint: Path) -> argparse.Namespace:
    """The launch's words, read by slime's parser; parameters are in float32."""
    import torch
    from slime.backends.megatron_utils.arguments import megatron_parse_args

    def of_slime(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
        parser.add_argument("--hf-checkpoint")
        parser.set_defaults(actor_num_nodes=1, actor_num_gpus_per_node=place.processes)
        return parser

    parallel = ["--tensor-model-parallel-size", str(place.processes)]
    parallel += ["--sequence-parallel"] * (place.processes > 1)
    sys.argv = ["train.py", *WORDS, *parallel, "--hf-checkpoint", str(checkpoint)]
    args = megatron_parse_args(of_slime)
    args.bf16, args.params_dtype = False, torch.float32
    return args


def _start(place: Place) -> tuple[argparse.Namespace, Any]:
    """Import in the launch's order; gives the arguments and Hugging Face's model."""
    newer.use()
    place.use("slime", "MindSpeed", "Megatron-LM")
    place.start()
    importlib.import_module("slime.backends.megatron_utils")  # imports MindSpeed's adaptor first
    from mindspeed.megatron_adaptor import repatch

    checkpoint = place.scratch / f"checkpoint-{place.rank}"
    model = qwen3_vl.checkpoint(checkpoint)
    args = _arguments(place, checkpoint)
    repatch(args)
    gpt.parallel(place)
    return args, model


def _export(args: argparse.Namespace, model: Any) -> dict[str, Any]:
    """Weights by Hugging Face's names, on the CPU, as slime's weight update sends them."""
    from slime.backends.megatron_utils.megatron_to_hf import convert_to_hf
    from slime.backends.megatron_utils.update_weight import common

    found = {}
    for name, parameter in common.named_params_and_buffers(args, [model]):
        whole = common.all_gather_param(name, parameter)
        for hf_name, weight in convert_to_hf(args, "qwen3vlconfig", name, whole):
            found[hf_name] = weight.detach().cpu().clone()
    return found


def _load(args: argparse.Namespace, model: Any, folder: str) -> None:
    from slime.backends.megatron_utils.hf_to_megatron import load_hf_weights

    load_hf_weights(args, [model], folder)


def _train(place: Place) -> Figures:
    args, hf = _start(place)
    from slime.backends.megatron_utils.data import get_batch

    def batch(data: Any) -> dict[str, Any]:
        names = ["tokens", "loss_masks", "multimodal_train_inputs", "total_lengths"]
        return get_batch(data, [*names, "response_lengths"], 32, False)

    return bridge.train_step(place, args, hf, batch, _load, _export)


@step(STACK, components=COMPONENTS, minutes=20)
def train(place: Place) -> Figures:
    """One process: provider, forward, backward, a step, weights there and back."""
    return _train(place)


@step(STACK, components=COMPONENTS, processes=2, minutes=20)
def train_tp2_sequence_parallel(place: Place) -> Figures:
    """Two processes: tensor and sequence parallel, and a vocabulary that is padded."""
    return _train(place)
