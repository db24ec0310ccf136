"""Run 5: SGLang's Qwen3-VL, built by its model runner, a prefill and decode steps.

All of it is SGLang's: server arguments, model runner, scheduling of batches, paged cache, attention
backend. No server, no sampling of its own (the response's tokens are given), no graphs.
"""

from __future__ import annotations

import importlib.util
import types
from itertools import chain
from pathlib import Path
from typing import Any

from simulate import absent, models
from simulate.steps import Figures, Place, step

TOLERANCE = 0.06
"""bfloat16: a logit near 4 has steps of 0.03. 0.02 was seen, and 0.4 without deep-stack."""


@step("qwen3-vl-npu", quick=True, components=("sglang", "sgl-kernel-npu"))
def prefill_and_decode(place: Place) -> Figures:
    """Log probabilities of given responses: the first token by a prefill, the others by decoding.

    They are those of Hugging Face's model in float32, with the same weights.
    """
    torch = place.start()
    place.use("sglang/python")
    absent.stand_in("decord", "sgl_kernel", "soundfile", "timm", "torchao", "torchvision")
    if place.device == "npu":
        _npu_packages(place)
    folder = models.qwen3_vl(place.scratch / "model")
    expected = _by_transformers(folder)
    runner = _runner(place, str(folder))
    samples = models.samples()
    requests = [_request(runner, number, each) for number, each in enumerate(samples)]
    found = _log_probs(torch, runner, requests, [each.response for each in samples])
    pairs = zip(chain(*found), chain(*expected), strict=True)
    worst = max(abs(a - b) for a, b in pairs)
    if worst > TOLERANCE:
        raise AssertionError(f"log probabilities differ by {worst:.2f}")
    return {"log_probs": found, "worst": worst}


def _by_transformers(folder: Path) -> list[list[float]]:
    import torch
    from transformers import AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32)
    result = []
    for sample in models.samples():
        seen: dict[str, Any] = {}
        if sample.pixels is not None:
            seen = {"pixel_values": sample.pixels, "image_grid_thw": torch.tensor([models.GRID])}
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([sample.tokens]), **seen).logits[0]
        at = logits.log_softmax(-1)[len(sample.prompt) - 1 : -1]
        chosen = at.gather(1, torch.tensor(sample.response)[:, None])
        result.append(chosen.flatten().tolist())
    return result


def _npu_packages(place: Place) -> None:
    """What SGLang imports on an NPU beside torch_npu, where it is simulated."""
    if importlib.util.find_spec("sgl_kernel_npu") is None:
        import npusim
        from simulate import kernels

        folder = place.workspace / "sgl-kernel-npu/python/sgl_kernel_npu/sgl_kernel_npu"
        kernels.install(folder, npusim.host)
    if "torchair" in absent.stand_in("torchair"):
        import torchair
        import torchair.configs.compiler_config

        # Made at import for each function that might be compiled
        torchair.configs.compiler_config.CompilerConfig = types.SimpleNamespace
        torchair.get_npu_backend = lambda compiler_config: _nothing_is_compiled


def _nothing_is_compiled(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("torchair: a function was compiled for the NPU")


def _runner(place: Place, model: str) -> Any:
    from sglang.srt.configs.model_config import ModelConfig
    from sglang.srt.entrypoints.engine import _set_envs_and_config
    from sglang.srt.managers.mm_utils import init_mm_embedding_cache
    from sglang.srt.model_executor.model_runner import ModelRunner
    from sglang.srt.server_args import PortArgs, ServerArgs

    given = ServerArgs(
        model_path=model,
        device=place.device,
        dtype="bfloat16",
        mem_fraction_static=0.5,
        max_total_tokens=1024,
        max_running_requests=4,
        disable_cuda_graph=True,
        skip_tokenizer_init=True,
        log_level="warning",
    )
    _set_envs_and_config(given)
    init_mm_embedding_cache(1 << 20)
    return ModelRunner(
        model_config=ModelConfig.from_server_args(given),
        mem_fraction_static=given.mem_fraction_static,
        gpu_id=place.rank,
        tp_rank=0,
        tp_size=1,
        moe_ep_rank=0,
        moe_ep_size=1,
        pp_rank=0,
        pp_size=1,
        nccl_port=PortArgs.init_new(given).nccl_port,
        server_args=given,
    )


def _request(runner: Any, number: int, sample: models.Sample) -> Any:
    """What the scheduler makes of a request of the tokenizer's; slime sends pixels the same way."""
    import torch
    from sglang.srt.layers.rotary_embedding import MRotaryEmbedding
    from sglang.srt.managers.schedule_batch import (
        Modality,
        MultimodalDataItem,
        MultimodalInputs,
        Req,
    )
    from sglang.srt.sampling.sampling_params import SamplingParams

    tokens, seen = list(sample.prompt), None
    if sample.pixels is not None:
        grid = torch.tensor([models.GRID])
        positions, delta = MRotaryEmbedding.get_rope_index(
            spatial_merge_size=2,
            image_token_id=models.IMAGE,
            video_token_id=models.VIDEO,
            vision_start_token_id=models.START,
            model_type="qwen3_vl",
            input_ids=torch.tensor([tokens]),
            image_grid_thw=grid,
        )
        start = tokens.index(models.IMAGE)
        image = MultimodalDataItem(
            modality=Modality.IMAGE,
            feature=sample.pixels,
            offsets=[(start, start + tokens.count(models.IMAGE) - 1)],
            model_specific_data={"image_grid_thw": grid},
        )
        seen = MultimodalInputs.from_dict(
            {
                "mm_items": [image],
                "im_token_id": models.IMAGE,
                "im_start_id": models.START,
                "im_end_id": models.END,
                "video_token_id": models.VIDEO,
                "mrope_positions": positions.squeeze(1),
                "mrope_position_delta": delta,
            }
        )
        tokens = runner.model.pad_input_ids(tokens, seen)
    given = SamplingParams(temperature=0, max_new_tokens=len(sample.response))
    request = Req(number, "", tokens, given)
    request.multimodal_inputs = seen
    request.fill_ids = request.origin_input_ids
    request.logprob_start_len = -1
    request.set_extend_input_len(len(tokens))
    return request


def _log_probs(
    torch: Any, runner: Any, requests: list[Any], responses: list[list[int]]
) -> list[list[float]]:
    """One batch; a response that has ended goes on with its last token, which does not count."""
    from sglang.bench_one_batch import decode, extend

    longest = max(map(len, responses))
    ahead = torch.tensor([each + each[-1:] * (longest - len(each)) for each in responses])
    ahead = ahead.to(runner.device)
    _, logits, batch = extend(requests, runner)
    steps = []
    for number in range(longest):
        if number:
            _, logits = decode(ahead[:, number - 1], batch, runner)
        chosen = ahead[:, number, None]
        steps.append(logits.float().log_softmax(-1).gather(1, chosen).flatten().tolist())
    return [
        [steps[number][row] for number in range(len(response))]
        for row, response in enumerate(responses)
    ]
