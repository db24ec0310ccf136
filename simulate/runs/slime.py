"""Run 4: slime's trainer, its actors on a real Ray, its weights in a real SGLang model.

slime's own: command line (the launch's, made small), placement, actors, conversion of samples,
losses, steps, weight updates. Made by hand: the samples and their rewards, and an engine that is
SGLang's model runner without its server.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from patchkit.model.names import filled
from simulate import absent, models, newer
from simulate.rollout import Engine, NewerEngine, importable
from simulate.steps import HERE, Figures, Place, place_of_this_process, step

STACK = "qwen3-vl-npu"
NEXT = "qwen3-vl-npu-next"
LAUNCHES = {
    STACK: HERE.parent / "manifests/profiles/slime-qwen3-vl.yaml",
    NEXT: HERE.parent / "manifests/qwen3-vl-npu-next.yaml",
}
FOLDERS = {
    STACK: ("slime", "sglang/python", "MindSpeed", "Megatron-Bridge/src", "Megatron-LM"),
    NEXT: ("slime", "sglang/python", "MindSpeed", "Megatron-LM"),
}
TRAINERS = 2  # tensor parallel, with sequence parallel as in the launch
REWARDS = [1.0, 0.0, 0.25, 1.0]
TOLERANCE = 0.08
"""bfloat16 on both sides: log probabilities near -6 have steps of 0.03."""

SMALL = {
    "--num-layers": 2,
    "--hidden-size": 64,
    "--ffn-hidden-size": 96,
    "--num-attention-heads": 4,
    "--num-query-groups": 2,
    "--vocab-size": models.VOCABULARY,
    "--tensor-model-parallel-size": TRAINERS,
    "--actor-num-gpus-per-node": TRAINERS,
    "--rollout-num-gpus": 1,
    "--num-gpus-per-node": 8,
    "--num-rollout": 2,
    "--rollout-batch-size": 2,
    "--n-samples-per-prompt": 2,
    "--global-batch-size": 4,
    "--max-tokens-per-gpu": 64,
    "--lr": 1e-3,
    "--train-env-vars": '{"SIMULATE_TRAINER": "1"}',
}


@step(STACK, minutes=20)
def grpo(place: Place) -> Figures:
    """Two rollouts of GRPO: rollout and trainer agree before and after an update of the weights."""
    return _train(place, "grpo-qwen3-vl-8b", {})


@step(NEXT, minutes=20)
def next_grpo(place: Place) -> Figures:
    """slime v0.3.1 and SGLang 0.5.15, without Megatron-Bridge."""
    # Padding counts in the trainer's softmax, with logits of 0: for TP 2 as much as the vocabulary
    return _train(place, "grpo-qwen3-vl-8b", {"--make-vocab-size-divisible-by": 64})


@step(STACK, minutes=20)
def ppo(place: Place) -> Figures:
    """Two rollouts of PPO, the first for the critic alone as in the launch."""
    return _train(place, "ppo-qwen3-vl-8b", {"--critic-num-gpus-per-node": TRAINERS})


def _train(place: Place, launch: str, more: dict[str, Any]) -> Figures:
    prepare(place)
    os.chdir(place.workspace / "slime")  # as the launch; configurations are named from there
    folder = models.qwen3_vl(place.scratch / "model")
    launches = LAUNCHES[place.workspace.name]
    sys.argv = ["train.py", *_command_line(launches, launch, {**SMALL, **more}, folder)]
    import ray
    from slime.ray.placement_group import create_placement_groups, create_training_models
    from slime.utils.arguments import parse_args

    args = parse_args()
    workers = {"worker_process_setup_hook": "simulate.runs.slime.prepare_worker"}
    resource = {"npu": {"resources": {"NPU": 8}}, "cuda": {}}[place.device]
    # "local": not the one that a launch has left word of
    ray.init("local", num_cpus=16, include_dashboard=False, runtime_env=workers, **resource)
    try:
        placed = create_placement_groups(args)
        rollouts = ray.remote(_made_rollouts()).options(num_cpus=1).remote(args, placed["rollout"])
        actor, critic = create_training_models(args, placed, rollouts)
        groups = {"actor": actor, "critic": critic}
        ranks = {name: group._actor_handlers for name, group in groups.items() if group}
        for handle in chain(*ranks.values()):
            ray.get(handle.__ray_call__.remote(_record))
        figures = _rollouts(args, rollouts, actor, critic)
        for name, handles in ranks.items():
            recorded = ray.get(
                [each.__ray_call__.remote(lambda self: self.recorded) for each in handles]
            )
            figures |= {f"{name}/{key}": values for key, values in recorded[0].items()}
        if critic:
            biases = ray.get([each.__ray_call__.remote(_bias) for each in ranks["critic"]])
            if len(set(biases)) > 1:
                raise AssertionError(f"the value head's bias differs between ranks: {biases}")
            figures["critic/bias"] = biases[0]
        return figures
    finally:
        ray.shutdown()


def _rollouts(args: Any, rollouts: Any, actor: Any, critic: Any) -> Figures:
    """The loop of slime's train.py."""
    import ray

    figures: Figures = {}
    actor.update_weights()
    for number in range(args.num_rollout):
        engine = ray.get(rollouts.log_probs.remote())
        data = ray.get(rollouts.generate.remote(number))
        if critic:
            training = critic.async_train(number, data)
            if number >= args.num_critic_only_steps:
                ray.get(actor.async_train(number, data))
            ray.get(training)
        else:
            ray.get(actor.async_train(number, data))
        actor.update_weights()
        figures[f"log_probs/rollout-{number}"] = engine
        seen = ray.get(actor._actor_handlers[0].__ray_call__.remote(lambda self: self.seen))
        if seen:
            figures[f"log_probs/trainer-{number}"] = seen
            pairs = zip(chain(*engine), chain(*seen), strict=True)
            worst = max(abs(a - b) for a, b in pairs)
            figures[f"log_probs/worst-{number}"] = worst
            if worst > TOLERANCE:
                raise AssertionError(
                    f"log probabilities of rollout {number} differ by {worst:.2f}: the engine has "
                    f"{engine}, the trainer {seen}"
                )
    return figures


def _command_line(path: Path, launch: str, changed: dict[str, Any], model: Path) -> list[str]:
    """The launch's arguments, with those that are changed in their place."""
    profile = yaml.safe_load(path.read_text())
    groups = profile["launch"][launch]["arguments"]
    given = {name: value for group in groups.values() for name, value in group.items()}
    site = {name: str(value.get("default", "")) for name, value in profile["values"].items()}
    site |= {"model_path": str(model), "checkpoint_dir": str(model.parent / "checkpoints")}
    line = []
    for name, value in {**given, **changed}.items():
        values = value if isinstance(value, list) else [value] if value != "" else []
        line += [name, *(filled(str(text), site) for text in values)]
    return line


def _next() -> bool:
    return place_of_this_process().workspace.name == NEXT


def prepare_worker() -> None:
    """What each of Ray's processes does first."""
    prepare(place_of_this_process())
    if "SIMULATE_TRAINER" in os.environ:
        _mindspeed_with_newer_torch()


def _mindspeed_with_newer_torch() -> None:
    """Later releases than the stack's torch 2.8 ask for a named device's capability in a broadcast.

    MindSpeed puts a function without arguments in that place.
    """
    importlib.import_module("slime.backends.megatron_utils")  # imports MindSpeed before Megatron
    fusions = importlib.import_module("mindspeed.core.fusions.grouped_matmul")
    capability = fusions.get_device_capability
    fusions.get_device_capability = lambda device=None: capability()


def prepare(place: Place) -> None:
    """Make the device and the stack importable, here and in processes that inherit from here."""
    folders = FOLDERS[place.workspace.name]
    if _next():
        newer.use()
    place.start()
    place.use(*folders)
    paths = [str(place.workspace / each) for each in folders]
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
    _groups_with_newer_torch()
    absent.stand_in("ring_flash_attn", "sglang_router", "torch_memory_saver", "wandb")
    importable(place)


def _groups_with_newer_torch() -> None:
    """Two things in the sources that later releases than the stack's torch 2.8 do not go with.

    slime and SGLang compare releases as strings, and take 2.13 for one before 2.6. slime's group
    that can be made again forwards collectives by name, and some have other names since.
    """
    from torch.distributed import distributed_c10d

    made = distributed_c10d._new_process_group_helper

    @functools.wraps(made)
    def make(*given: Any, pg_options: Any = None, **more: Any) -> Any:
        return made(*given, **{"backend_options": pg_options, **more})

    distributed_c10d._new_process_group_helper = make
    groups = importlib.import_module("slime.utils.reloadable_process_group")

    def forwarded(name: str) -> Any:
        return lambda self, *given, **more: self._fwd(name, *given, **more)

    for name in ("all_gather_single", "all_to_all_single", "reduce_scatter_single"):
        if hasattr(groups.ReloadableProcessGroup, name):
            setattr(groups.ReloadableProcessGroup, name, forwarded(name))


def _made_rollouts() -> type:
    """slime's RolloutManager with made samples, and one engine in the place of servers."""
    import ray
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
    from slime.ray.rollout import RolloutManager
    from slime.ray.utils import Lock, ask_for_accelerators
    from slime.utils.types import Sample

    class MadeRollouts(RolloutManager.__ray_metadata__.modified_class):  # type: ignore[misc]
        def __init__(self, args: Any, placed: Any) -> None:
            self.args = args
            self.custom_reward_post_process_func = None
            self.custom_convert_samples_to_train_data_func = None
            group, bundles, _ = placed
            where = PlacementGroupSchedulingStrategy(group, bundles[0])
            made = ray.remote(UpdatedEngine).options(
                num_cpus=0.2, **ask_for_accelerators(0.2), scheduling_strategy=where
            )
            self.all_rollout_engines = [made.remote()]
            self.nodes_per_engine = self.num_new_engines = 1
            self.rollout_engine_lock = Lock.options(num_cpus=1, num_gpus=0).remote()

        def load(self, rollout_id: int | None = None) -> None:
            """There is no dataset."""

        def log_probs(self) -> list[list[float]]:
            return ray.get(self.all_rollout_engines[0].log_probs.remote())

        def generate(self, number: int) -> Any:
            made = [_sample(Sample, *each) for each in enumerate(models.samples())]
            if not _next():
                data = self._convert_samples_to_train_data(made)
                return self._split_train_data_by_dp(data, self.train_parallel_config["dp_size"])
            for sample, seen in zip(made, self.log_probs(), strict=True):
                sample.rollout_log_probs = seen
            return self._split_train_data_by_dp(self._convert_samples_to_train_data(made))

        def get_updatable_engines_and_lock(self) -> tuple[Any, ...]:
            """v0.3.1 asks for this, and for how each engine is divided."""
            sizes = {"tp_size": 1, "pp_size": 1, "ep_size": 1, "moe_dp_size": 1}
            engines = self.all_rollout_engines
            return engines, self.rollout_engine_lock, self.num_new_engines, [1], [0], [sizes]

        def clear_updatable_num_new_engines(self) -> None:
            """The engine is known."""
            self.num_new_engines = 0

    return MadeRollouts


def _sample(kind: Any, number: int, made: models.Sample) -> Any:
    import torch

    seen = None
    if made.pixels is not None:
        seen = {"pixel_values": made.pixels, "image_grid_thw": torch.tensor(models.GRIDS)}
    return kind(
        group_index=number // 2,
        index=number,
        tokens=made.tokens,
        multimodal_train_inputs=seen,
        response_length=len(made.response),
        reward=REWARDS[number],
        status=kind.Status.COMPLETED,
    )


class UpdatedEngine:
    """What slime's actors call of an engine, on SGLang's model runner."""

    def __init__(self) -> None:
        place = place_of_this_process()
        kind = NewerEngine if _next() else Engine
        self.engine = kind(place, models.qwen3_vl(place.scratch / "engine", seed=1))

    def init_weights_update_group(self, *given: Any, **more: Any) -> None:
        """Join the trainer's group."""
        self._done(self.engine.runner.init_weights_update_group(*given, **more))

    def update_weights_from_distributed(self, weight_version: str, **more: Any) -> None:
        """Receive a bucket of weights."""
        more["dtypes"] = [str(each).removeprefix("torch.") for each in more["dtypes"]]
        self._done(self.engine.runner.update_weights_from_distributed(**more))

    def pause_generation(self) -> None:
        """Nothing is generated meanwhile."""

    flush_cache = continue_generation = pause_generation

    def log_probs(self) -> list[list[float]]:
        """Of the samples' responses, with the weights of now."""
        return self.engine.log_probs(models.samples())

    @staticmethod
    def _done(result: tuple[bool, str]) -> None:
        if not result[0]:
            raise RuntimeError(result[1])


def _record(actor: Any) -> None:
    """In an actor: keep what slime logs of its steps, and the log probabilities it computes."""
    from slime.utils import logging_utils

    actor.recorded, actor.seen = {}, []

    def log(args: Any, metrics: dict[str, Any], step_key: str) -> None:
        for name, value in metrics.items():
            if name.startswith("train/") and isinstance(value, float):
                actor.recorded.setdefault(name.removeprefix("train/"), []).append(value)

    logging_utils.log = log
    computed = actor.compute_log_prob

    def compute(*given: Any, store_prefix: str = "") -> Any:
        result = computed(*given, store_prefix=store_prefix)
        if not store_prefix:
            actor.seen = [each.tolist() for each in result["log_probs"]]
        return result

    actor.compute_log_prob = compute
    if _next():
        _in_the_loss(actor)


def _in_the_loss(actor: Any) -> None:
    """v0.3.1 computes the actor's log probabilities there where a rollout has one step only."""
    loss = importlib.import_module("slime.backends.megatron_utils.loss")
    computed = loss.get_log_probs_and_entropy

    def compute(*given: Any, **more: Any) -> Any:
        result = computed(*given, **more)
        actor.seen = [each.detach().tolist() for each in result[1]["log_probs"]]
        return result

    loss.get_log_probs_and_entropy = compute


def _bias(critic: Any) -> float:
    """In a critic: the value head's bias."""
    [bias] = [
        p for name, p in critic.model[0].named_parameters() if name.endswith("output_layer.bias")
    ]
    return float(bias)
