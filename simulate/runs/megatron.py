"""Run 1: Megatron-LM at the pin with our patches, its own layers, without MindSpeed.

Every step's losses and norms equal a CPU's to six digits: the same kernels run in the same order.
Sequence parallel is in MindSpeed's run: Megatron's own norm (torch's) refuses it.
"""

from __future__ import annotations

from typing import Any

from simulate import gpt, newer
from simulate.steps import Against, Figures, Place, step

STACK = "qwen3-vl-npu"
NEXT = "qwen3-vl-npu-next"
CPU = Against("cpu", digits=6)


def _types_named_as_on_cuda(place: Place) -> None:
    """Megatron's clipping asserts a gradient's type by its name, torch.cuda.FloatTensor.

    In a launch MindSpeed's adaptor renames what Tensor.type() says; without it, this does.
    """
    if place.device != "npu":
        return
    import torch

    kind = torch.Tensor.type
    torch.Tensor.type = lambda *given, **more: (
        made.replace("npu", "cuda") if isinstance(made := kind(*given, **more), str) else made
    )


def _train(place: Place, *, config: dict[str, Any] | None = None, **more: Any) -> Figures:
    place.use("Megatron-LM")
    place.start(transfer=True)
    _types_named_as_on_cuda(place)
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec

    gpt.parallel(place)
    spec = get_gpt_layer_local_spec(normalization="RMSNorm")
    return gpt.train(place, gpt.configuration(place, **config or {}), spec, **more)


_RECOMPUTE = {
    "recompute_granularity": "full",
    "recompute_method": "uniform",
    "recompute_num_layers": 1,
}


@step(STACK, components=["megatron-lm"], quick=True, against=[CPU])
def tp1_fp32(place: Place) -> Figures:
    """One process, fp32."""
    return _train(place)


@step(STACK, components=["megatron-lm"], against=[CPU, Against("megatron/tp1-fp32", digits=6)])
def tp1_fp32_recompute(place: Place) -> Figures:
    """One process, every layer recomputed in the backward pass: no figure moves."""
    return _train(place, config=_RECOMPUTE)


@step(STACK, components=["megatron-lm"], against=[CPU])
def tp1_bf16(place: Place) -> Figures:
    """One process, bf16 under Float16Module."""
    return _train(place, config={"bf16": True})


@step(STACK, components=["megatron-lm"], processes=2, against=[CPU])
def tp2_fp32(place: Place) -> Figures:
    """Two processes, tensor parallel."""
    return _train(place)


@step(STACK, components=["megatron-lm"], processes=2, against=[CPU])
def tp2_bf16_distributed_optimizer(place: Place) -> Figures:
    """Two processes, bf16, optimizer states divided."""
    return _train(place, config={"bf16": True}, distributed_optimizer=True)


@step(STACK, components=["megatron-lm"])
def tp1_fp32_apart(place: Place) -> Figures:
    """Three sequences of 5, 8 and 3 tokens one by one: what packing them must equal."""
    return _train(place, packed=(5, 8, 3), apart=True)


@step(STACK, components=["megatron-lm"], processes=2)
def tp2_fp32_apart(place: Place) -> Figures:
    """Three sequences one by one, two processes, tensor parallel: another model than with one."""
    return _train(place, packed=(5, 8, 3), apart=True)


@step(NEXT, components=["megatron-lm"], against=[CPU])
def next_tp1_fp32(place: Place) -> Figures:
    """Megatron-LM 1dcf0daf, of the stack of today: one process, fp32."""
    newer.use()
    return _train(place)


@step(NEXT, components=["megatron-lm"])
def next_tp1_fp32_apart(place: Place) -> Figures:
    """Megatron-LM 1dcf0daf: three sequences one by one."""
    newer.use()
    return _train(place, packed=(5, 8, 3), apart=True)


@step(NEXT, components=["megatron-lm"], processes=2)
def next_tp2_fp32_apart(place: Place) -> Figures:
    """Megatron-LM 1dcf0daf: three sequences one by one, two processes, tensor parallel."""
    newer.use()
    return _train(place, packed=(5, 8, 3), apart=True)
