"""Run 5: SGLang's Qwen3-VL, built by its model runner, a prefill and decode steps.

No server, no sampling of its own (the response's tokens are given).
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

from simulate import models, newer
from simulate.rollout import Engine, NewerEngine, importable
from simulate.steps import Figures, Place, step

TOLERANCE = 0.06
"""bfloat16: a logit near 4 has steps of 0.03. 0.02 was seen, and 0.45 without deep-stack."""


@step("qwen3-vl-npu", components=("sglang", "sgl-kernel-npu"))
def prefill_and_decode(place: Place) -> Figures:
    """Log probabilities of given responses: the first token by a prefill, the others by decoding.

    They are those of Hugging Face's model in float32, with the same weights.
    """
    return _run(place)


@step("qwen3-vl-npu", components=("sglang", "sgl-kernel-npu"))
def decode_in_graphs(place: Place) -> Figures:
    """Decode steps that are captured once and replayed, as in the launch."""
    return _run(place, graphs=4)


@step("qwen3-vl-npu-next", components=("sglang", "sgl-kernel-npu"))
def next_prefill_and_decode(place: Place) -> Figures:
    """SGLang 0.5.15 and transformers 5, of the stack of today."""
    newer.use()
    return _run(place, NewerEngine)


@step("qwen3-vl-npu-next", components=("sglang", "sgl-kernel-npu"))
def next_decode_in_graphs(place: Place) -> Figures:
    """SGLang 0.5.15: decode steps that are captured once and replayed."""
    newer.use()
    return _run(place, NewerEngine, graphs=4)


def _run(place: Place, kind: type[Engine] = Engine, *, graphs: int = 0) -> Figures:
    place.start()
    place.use("sglang/python")
    importable(place)
    folder = models.qwen3_vl(place.scratch / "model")
    expected = _by_transformers(folder)
    engine = kind(place, folder, graphs=graphs)
    if place.device == "npu":
        _chosen(engine, graphs)
    found = engine.log_probs(models.samples())
    pairs = zip(chain(*found), chain(*expected), strict=True)
    worst = max(abs(a - b) for a, b in pairs)
    if worst > TOLERANCE:
        raise AssertionError(f"log probabilities differ by {worst:.2f}")
    return {"log_probs": found, "worst": worst, "operators": place.operators()}


def _chosen(engine: Engine, graphs: int) -> None:
    """What the stack promises of an NPU: Ascend's attention for words and images, graphs."""
    runner = engine.runner
    found = {
        "words": type(runner.attn_backend).__name__,
        "images": type(runner.model.visual.blocks[0].attn.qkv_backend).__name__,
        "graphs": type(engine.graphs).__name__,
    }
    wanted = {
        "words": "AscendAttnBackend",
        "images": "VisionAscendAttention",
        "graphs": "NPUGraphRunner" if graphs else "NoneType",
    }
    if found != wanted:
        raise AssertionError(f"chosen are {found}")


def _by_transformers(folder: Path) -> list[list[float]]:
    import torch
    from transformers import AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
    result = []
    for sample in models.samples():
        tokens = torch.tensor([sample.tokens])
        seen: dict[str, Any] = {}
        if sample.pixels is not None:
            seen = {"pixel_values": sample.pixels, "image_grid_thw": torch.tensor(models.GRIDS)}
            seen |= models.kinds(model, tokens == models.IMAGE)
        with torch.no_grad():
            logits = model(input_ids=tokens, **seen).logits[0]
        at = logits.log_softmax(-1)[len(sample.prompt) - 1 : -1]
        chosen = at.gather(1, torch.tensor(sample.response)[:, None])
        result.append(chosen.flatten().tolist())
    return result
