"""A small GPT in Megatron, with fixed seeds and data, and training steps on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simulate.steps import Figures, Place

LENGTH, BATCH, VOCABULARY = 16, 2, 64


def configuration(place: Place, *, bf16: bool = False, **more: Any) -> Any:
    """Two layers of 32, four heads in two groups, SwiGLU, RMSNorm, no dropout."""
    import torch
    from megatron.core.transformer.transformer_config import TransformerConfig

    dtype = torch.bfloat16 if bf16 else torch.float32
    given: dict[str, Any] = {
        "num_layers": 2,
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_query_groups": 2,
        "ffn_hidden_size": 64,
        "use_cpu_initialization": True,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
        "tensor_model_parallel_size": place.processes,
        "gated_linear_unit": True,
        "activation_func": torch.nn.functional.silu,
        "bias_activation_fusion": True,
        "bias_dropout_fusion": True,
        "add_bias_linear": False,
        "normalization": "RMSNorm",
        "masked_softmax_fusion": False,
        "gradient_accumulation_fusion": False,
        "pipeline_dtype": dtype,
        "params_dtype": dtype,
        "bf16": bf16,
    }
    return TransformerConfig(**given | more)


def train(
    place: Place,
    config: Any,
    spec: Any,
    *,
    steps: int = 3,
    distributed_optimizer: bool = False,
    packed: tuple[int, ...] = (),
    masked: bool = True,
    apart: bool = False,
) -> Figures:
    """Take steps on the same batch; losses before each step, norms of the gradients.

    packed: lengths of sequences that are one row of the batch, as slime's trainer packs them.
    apart: the same sequences go through the model one by one, and their losses are one row.
    masked: the causal mask is given; else the layers make their own, as in the launches.
    """
    import torch
    from megatron.core.distributed import (
        DistributedDataParallel,
        DistributedDataParallelConfig,
        finalize_model_grads,
    )
    from megatron.core.models.gpt import GPTModel
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
    from megatron.core.pipeline_parallel import get_forward_backward_func
    from megatron.core.transformer.module import Float16Module

    length = sum(packed) or LENGTH
    torch.manual_seed(7)
    model = GPTModel(
        config,
        spec,
        vocab_size=VOCABULARY,
        max_sequence_length=length,
        position_embedding_type="rope",
        share_embeddings_and_output_weights=False,
        parallel_output=True,
    )
    before = {name: set(vars(parameter)) for name, parameter in model.named_parameters()}
    model = model.to(place.device)
    for name, parameter in model.named_parameters():
        if lost := before[name] - set(vars(parameter)):
            raise AssertionError(f"{name} lost {sorted(lost)} on its way to {place.device}")
    module = Float16Module(config, model) if config.bf16 else model
    wrapped = DistributedDataParallel(
        config,
        DistributedDataParallelConfig(
            grad_reduce_in_fp32=True, use_distributed_optimizer=distributed_optimizer
        ),
        module,
    )
    optimizer = get_megatron_optimizer(
        OptimizerConfig(
            optimizer="adam",
            lr=1e-2,
            bf16=config.bf16,
            params_dtype=config.params_dtype,
            use_distributed_optimizer=distributed_optimizer,
            clip_grad=1.0,
        ),
        [wrapped],
    )
    config.finalize_model_grads_func = finalize_model_grads
    config.grad_scale_func = optimizer.scale_loss
    inputs = _batch(place, length, packed, masked)

    def forward(_: Any, model: Any) -> Any:
        output = _one_by_one(model, inputs, packed) if apart else model(**inputs)
        return output, lambda losses: (
            losses.float().mean(),
            {"loss": losses.detach().float().mean()},
        )

    losses, norms = [], []
    for _ in range(steps):
        wrapped.zero_grad_buffer()
        optimizer.zero_grad()
        made = get_forward_backward_func()(
            forward_step_func=forward,
            data_iterator=iter([0] * 9),
            model=[wrapped],
            num_microbatches=1,
            seq_length=length,
            micro_batch_size=1 if packed else BATCH,
            forward_only=False,
        )
        done, norm, _ = optimizer.step()
        if not done:
            raise AssertionError("the optimizer left the step out")
        losses.append(made[0]["loss"].item())
        norms.append(float(norm))
    first = next(model.parameters())
    if first.device.type != place.device:
        raise AssertionError(f"the model is on {first.device}")
    return {"loss": losses, "norm": norms, "operators": place.operators()}


def _one_by_one(model: Any, inputs: dict[str, Any], lengths: tuple[int, ...]) -> Any:
    import torch

    made, start = [], 0
    for length in lengths:
        here = slice(start, start + length)
        cut = {name: inputs[name][:, here] for name in ("input_ids", "labels", "position_ids")}
        made.append(model(**cut, attention_mask=None))
        start += length
    return torch.cat(made, 1)


def _batch(place: Place, length: int, packed: tuple[int, ...], masked: bool) -> dict[str, Any]:
    import torch

    rows = 1 if packed else BATCH
    random = torch.Generator(device="cpu").manual_seed(1)
    data = torch.randint(0, VOCABULARY, (rows, length + 1), generator=random, device="cpu")
    inputs: dict[str, Any] = {
        "input_ids": data[:, :-1].contiguous().to(place.device),
        "labels": data[:, 1:].contiguous().to(place.device),
        "attention_mask": None,
    }
    if packed:
        from megatron.core.packed_seq_params import PackedSeqParams

        ends = torch.tensor([0, *torch.tensor(packed).cumsum(0).tolist()], dtype=torch.int32)
        ends = ends.to(place.device)
        inputs["packed_seq_params"] = PackedSeqParams(
            qkv_format="thd",
            cu_seqlens_q=ends,
            cu_seqlens_kv=ends,
            max_seqlen_q=max(packed),
            max_seqlen_kv=max(packed),
        )
        positions = torch.cat([torch.arange(each) for each in packed]).unsqueeze(0)
    else:
        if masked:
            mask = torch.triu(torch.ones(1, 1, length, length, dtype=torch.bool), 1)
            inputs["attention_mask"] = mask.to(place.device)
        positions = torch.arange(length).expand(rows, length)
    inputs["position_ids"] = positions.contiguous().to(place.device)
    return inputs


def parallel(place: Place, **more: Any) -> None:
    """Join the step's processes; all of them are one tensor parallel group."""
    from megatron.core import parallel_state, tensor_parallel

    place.join()
    parallel_state.initialize_model_parallel(tensor_model_parallel_size=place.processes, **more)
    tensor_parallel.model_parallel_cuda_manual_seed(123)
