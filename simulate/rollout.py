"""SGLang without a server: its model runner, and the log probabilities that it gives to samples.

All of it is SGLang's: server arguments, model runner, batches, paged cache, attention backend.
"""

from __future__ import annotations

import importlib.util
from array import array
from pathlib import Path
from typing import Any

from simulate import absent, kernels, models
from simulate.steps import Place


def importable(place: Place) -> None:
    """Provide what SGLang imports and a machine without its device cannot have."""
    absent.stand_in("decord", "sgl_kernel", "soundfile", "timm", "torchao", "torchvision")
    if place.device == "npu" and importlib.util.find_spec("sgl_kernel_npu") is None:
        from npusim.graphs import recorded

        import npusim

        folder = place.workspace / "sgl-kernel-npu/python/sgl_kernel_npu/sgl_kernel_npu"
        kernels.install(folder, npusim.host, recorded)


class Engine:
    """The model in a folder, on the place's device, in bfloat16.

    graphs: decode steps are captured for that many requests, and replayed.
    """

    def __init__(self, place: Place, folder: Path, *, graphs: int = 0) -> None:
        from sglang.srt.configs.model_config import ModelConfig
        from sglang.srt.entrypoints.engine import _set_envs_and_config
        from sglang.srt.model_executor.model_runner import ModelRunner
        from sglang.srt.server_args import PortArgs, ServerArgs

        given = ServerArgs(
            model_path=str(folder),
            device=place.device,
            dtype="bfloat16",
            mem_fraction_static=0.5,
            max_total_tokens=1024,
            max_running_requests=4,
            disable_cuda_graph=not graphs,
            skip_tokenizer_init=True,
            log_level="warning",
            **self._batches([graphs] if graphs else None),
        )
        _set_envs_and_config(given)
        self.runner = ModelRunner(
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

    def _batches(self, sizes: list[int] | None) -> dict[str, Any]:
        """The option with the sizes of batches that graphs are captured for."""
        return {"cuda_graph_bs": sizes}

    @property
    def graphs(self) -> Any:
        """What replays graphs, or None."""
        return self.runner.graph_runner

    def log_probs(self, samples: list[models.Sample]) -> list[list[float]]:
        """Of each token of the responses: the first by a prefill, the others by decode steps."""
        import torch
        from sglang.bench_one_batch import decode, extend
        from sglang.srt.managers.mm_utils import init_mm_embedding_cache

        init_mm_embedding_cache(1 << 20)  # empty: weights may have changed
        self.runner.req_to_token_pool.clear()
        self.runner.token_to_kv_pool_allocator.clear()
        # One batch: a response that has ended goes on with its last token, which does not count
        longest = max(len(each.response) for each in samples)
        ahead = torch.tensor(
            [(each.response + each.response[-1:] * longest)[:longest] for each in samples]
        ).to(self.runner.device)
        requests = [self._request(number, each) for number, each in enumerate(samples)]
        _, logits, batch = extend(requests, self.runner)
        steps = []
        for number in range(longest):
            if number:
                _, logits = decode(ahead[:, number - 1], batch, self.runner)
            chosen = logits.float().log_softmax(-1).gather(1, ahead[:, number, None])
            steps.append(chosen.flatten().tolist())
        return [
            [steps[number][row] for number in range(len(each.response))]
            for row, each in enumerate(samples)
        ]

    def _request(self, number: int, sample: models.Sample) -> Any:
        """What the scheduler makes of the tokenizer's request; slime sends pixels like this."""
        from sglang.srt.managers.schedule_batch import Req
        from sglang.srt.sampling.sampling_params import SamplingParams

        tokens, seen = list(sample.prompt), None
        if sample.pixels is not None:
            seen = self._seen(_images(sample))
            tokens = self.runner.model.pad_input_ids(tokens, seen)
        given = SamplingParams(temperature=0, max_new_tokens=len(sample.response))
        request = Req(number, "", self._tokens(tokens), given)
        request.multimodal_inputs = seen
        request.logprob_start_len = -1
        self._to_prefill(request)
        return request

    def _seen(self, images: dict[str, Any]) -> Any:
        from sglang.srt.managers.schedule_batch import MultimodalInputs

        return MultimodalInputs.from_dict(images)

    def _tokens(self, tokens: list[int]) -> Any:
        return tokens

    def _to_prefill(self, request: Any) -> None:
        """All of the prompt goes into the first batch."""
        request.fill_ids = request.origin_input_ids
        request.set_extend_input_len(len(request.fill_ids))


class NewerEngine(Engine):
    """SGLang 0.5.15: tokens in arrays, and pools and graphs that are made after the runner."""

    def __init__(self, place: Place, folder: Path, *, graphs: int = 0) -> None:
        super().__init__(place, folder, graphs=graphs)
        self.runner.alloc_memory_pool()
        self.runner.init_attention_backends()
        self.runner.init_cuda_graphs()

    @property
    def graphs(self) -> Any:
        """What replays graphs, or None."""
        return self.runner.decode_cuda_graph_runner

    def _batches(self, sizes: list[int] | None) -> dict[str, Any]:
        return {"cuda_graph_bs_decode": sizes}

    def _seen(self, images: dict[str, Any]) -> Any:
        from sglang.srt.managers.mm_utils import get_new_expanded_mm_items
        from sglang.srt.managers.schedule_batch import MultimodalInputs, MultimodalProcessorOutput

        images["mm_items"] = get_new_expanded_mm_items(images["mm_items"])  # one for each image
        return MultimodalInputs.from_processor_output(MultimodalProcessorOutput(**images))

    def _tokens(self, tokens: list[int]) -> Any:
        return array("q", tokens)

    def _to_prefill(self, request: Any) -> None:
        request.full_untruncated_fill_ids = request.origin_input_ids
        request.set_extend_range(0, len(request.origin_input_ids))


def _images(sample: models.Sample) -> dict[str, Any]:
    """What SGLang's processor gives for a prompt with images."""
    import torch
    from sglang.srt.layers.rotary_embedding import MRotaryEmbedding
    from sglang.srt.managers.schedule_batch import Modality, MultimodalDataItem

    grids = torch.tensor(models.GRIDS)
    positions, delta = MRotaryEmbedding.get_rope_index(
        spatial_merge_size=2,
        image_token_id=models.IMAGE,
        video_token_id=models.VIDEO,
        vision_start_token_id=models.START,
        model_type="qwen3_vl",
        input_ids=torch.tensor([sample.prompt]),
        image_grid_thw=grids,
    )
    image = MultimodalDataItem(
        modality=Modality.IMAGE,
        feature=sample.pixels,
        offsets=models.images(sample),
        model_specific_data={"image_grid_thw": grids},
    )
    return {
        "mm_items": [image],
        "im_token_id": models.IMAGE,
        "im_start_id": models.START,
        "im_end_id": models.END,
        "video_token_id": models.VIDEO,
        "mrope_positions": positions.squeeze(1),
        "mrope_position_delta": delta,
    }
