"""Run 6: verl's training workers under MindSpeed and MindSpeed-LLM, in one process without Ray.

verl falls back without a word where an import fails, so each step asks whether the engine is there.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import yaml

from simulate import absent, models
from simulate.steps import HERE, Figures, Place, step

TOLERANCE = 0.06
"""bfloat16: see runs/sglang.py."""


@step("verl-qwen3-235b-fully-async-npu", components=("verl", "mindspeed", "megatron-lm", "mbridge"))
def fully_async_imports(place: Place) -> Figures:
    """The worker of fully asynchronous training: MindSpeed is imported before Megatron."""
    place.start()
    place.use("verl", "MindSpeed", "Megatron-LM", "mbridge")
    absent.stand_in("vllm")
    order: list[str] = []
    sys.meta_path.insert(0, _Watch(order))
    from omegaconf import OmegaConf
    from verl.experimental.separation.engine_workers import DetachActorWorker

    replay = {"router_replay": {"mode": "disabled"}}
    config = {"actor": {"strategy": "megatron", "megatron": replay, "profiler": {}}}
    DetachActorWorker(OmegaConf.create(config), "actor")
    from verl.workers import engine  # what the worker imports when the model is built

    if engine.MindspeedEngineWithLMHead is None:
        from verl.workers.engine import mindspeed  # noqa: F401 - says what is missing
    if order[:1] != ["mindspeed.megatron_adaptor"]:
        raise AssertionError(f"imported in this order: {order}")
    from megatron.core import jit

    return {"order": order, "jit_fuser": jit.jit_fuser.__name__}


class _Watch:
    """The first imports of MindSpeed's adaptor and of Megatron's core, in their order."""

    def __init__(self, order: list[str]) -> None:
        self.order = order

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Only looks."""
        if fullname in {"mindspeed.megatron_adaptor", "megatron.core"}:
            self.order.append(fullname)


@step(
    "verl-mindspeedllm-npu",
    components=("verl", "mindspeed", "mindspeed-llm", "megatron-lm", "mbridge"),
)
def mindspeed_llm(place: Place) -> Figures:
    """MindSpeed-LLM's engine with the launch's settings: log probabilities, and two steps."""
    place.start()
    place.use("verl", "MindSpeed-LLM", "MindSpeed", "Megatron-LM", "mbridge")
    folder = models.qwen3(place.scratch / "model")
    expected = _by_transformers(folder)
    from verl.utils import tensordict_utils
    from verl.workers.config import HFModelConfig, TrainingWorkerConfig
    from verl.workers.engine_workers import TrainingWorker
    from verl.workers.utils.losses import sft_loss

    chosen = _launched(place, "grpo-qwen3-8b")
    engine = chosen.engine
    for kind in ("", "infer_"):  # as the actor's worker does
        setattr(engine, f"{kind}micro_batch_size_per_gpu", chosen.ppo_micro_batch_size_per_gpu)
        setattr(engine, f"{kind}max_token_len_per_gpu", chosen.ppo_max_token_len_per_gpu)
    engine.use_dynamic_bsz = chosen.use_dynamic_bsz
    worker = TrainingWorker(
        TrainingWorkerConfig(
            model_type="language_model",
            model_config=HFModelConfig(path=str(folder)),
            engine_config=engine,
            optimizer_config=chosen.optim,
            checkpoint_config=chosen.checkpoint,
        )
    )
    worker.reset()
    found = tensordict_utils.get(worker.infer_batch(_batch()), "log_probs").cpu()
    pairs = [
        abs(a - b)
        for row, other in zip(found.unbind(), expected, strict=True)
        for a, b in zip(row.tolist(), other, strict=False)
    ]
    if max(pairs) > TOLERANCE:
        raise AssertionError(f"log probabilities differ by {max(pairs):.2f}")
    worker.set_loss_fn(functools.partial(sft_loss, chosen))
    steps = [tensordict_utils.get(worker.train_batch(_batch()), "metrics") for _ in range(2)]
    return {
        "worst": max(pairs),
        "loss": [float(each["loss"]) for each in steps],
        "norm": [float(each["grad_norm"]) for each in steps],
    }


def _launched(place: Place, launch: str) -> Any:
    """The actor's configuration as verl's own reader makes it of the launch's arguments."""
    from hydra import compose, initialize_config_dir
    from verl.utils.config import omega_conf_to_dataclass

    manifest = yaml.safe_load((HERE.parent / "manifests/verl-mindspeedllm-npu.yaml").read_text())
    groups = manifest["launch"][launch]["arguments"]
    given = {name: value for group in groups.values() for name, value in group.items()}
    chosen = {
        name: value
        for name, value in given.items()
        if name.lstrip("+").startswith("actor_rollout_ref.actor.")
    } | {
        "model_engine": "mindspeed",
        "actor_rollout_ref.actor.mindspeed.tensor_model_parallel_size": place.processes,
        "actor_rollout_ref.actor.mindspeed.pipeline_model_parallel_size": 1,
        "+actor_rollout_ref.actor.mindspeed.llm_kwargs.num_query_groups": 2,
        "actor_rollout_ref.actor.optim.lr": 1e-3,
        "actor_rollout_ref.actor.optim.total_training_steps": 10,
        "actor_rollout_ref.rollout.n": 1,
    }
    folder = str(place.workspace / "verl/verl/trainer/config")
    with initialize_config_dir(folder, version_base=None):
        overrides = [f"{name}={value}" for name, value in chosen.items()]
        return omega_conf_to_dataclass(compose("ppo_trainer", overrides).actor_rollout_ref.actor)


def _tokens() -> list[models.Sample]:
    return [each for each in models.samples() if each.pixels is None]


def _batch() -> Any:
    """As verl's workers get it: sequences without padding, and what the controller adds."""
    import torch
    from verl.utils import tensordict_utils

    def nested(rows: list[list[int]]) -> Any:
        return torch.nested.as_nested_tensor([torch.tensor(r) for r in rows], layout=torch.jagged)

    made = _tokens()
    masks = [[0] * len(each.prompt) + [1] * len(each.response) for each in made]
    return tensordict_utils.get_tensordict(
        {
            "input_ids": nested([each.tokens for each in made]),
            "position_ids": nested([list(range(len(each.tokens))) for each in made]),
            "loss_mask": nested(masks),
        },
        {
            "temperature": 1.0,
            "global_token_num": [len(each.tokens) for each in made],
            "global_batch_size": len(made),
        },
    )


def _by_transformers(folder: Any) -> list[list[float]]:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    result = []
    for sample in _tokens():
        tokens = torch.tensor([sample.tokens])
        with torch.no_grad():
            scores = model(input_ids=tokens).logits[0].log_softmax(-1)[:-1]
        result.append(scores.gather(1, tokens[0, 1:, None]).flatten().tolist())
    return result
