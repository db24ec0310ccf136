"""slime's placement group, training actors and engines on a real Ray, without accelerators.

Ray is told that this machine has four: GPUs, or of the custom resource NPU, by the variable
PATCHKIT_TEST_DEVICE. Prints as JSON what slime made of it.
"""

import json
import os
import sys
import types
from importlib import import_module
from typing import Any

ray: Any = import_module("ray")


def counted() -> dict[str, int]:
    """How many accelerators of each kind Ray gave to this worker."""
    ids = ray.get_runtime_context().get_accelerator_ids()
    return {name: len(ids[name]) for name in ("GPU", "NPU")}


def main(device: str) -> None:
    """Start Ray, let slime ask it, print what came of it."""
    accelerators = {"resources": {"NPU": 4}} if device == "npu" else {"num_gpus": 4}
    # "local": never join what another test, or the user of this machine, has running
    ray.init("local", num_cpus=4, include_dashboard=False, logging_level="ERROR", **accelerators)
    placement_group: Any = import_module("slime.ray.placement_group")
    rollout: Any = import_module("slime.ray.rollout")
    train_actor: Any = import_module("slime.ray.train_actor")

    class Trainer(train_actor.TrainRayActor):  # type: ignore[misc]
        """A training actor without a model."""

        def place(self) -> tuple[int, str, dict[str, int]]:
            """Its device, what it told torch of it, what Ray counts."""
            return train_actor.get_local_gpu_id(), os.environ["LOCAL_RANK"], counted()

    trainer: Any = types.ModuleType("slime.backends.megatron_utils.actor")
    trainer.MegatronTrainRayActor = Trainer
    for name in ("slime.backends.megatron_utils", "slime.backends.megatron_utils.actor"):
        sys.modules[name] = trainer

    group = placement_group._create_placement_group(4)
    arguments = types.SimpleNamespace(
        train_env_vars={},
        offload_train=False,
        train_backend="megatron",
        use_routing_replay=False,
        debug_train_only=False,
        rollout_num_gpus_per_engine=1,
        num_gpus_per_node=4,
        rollout_num_gpus=2,
        prefill_num_servers=None,
        rollout_external=False,
    )
    trainers = placement_group.allocate_train_group(arguments, 1, 2, group)
    rollout._allocate_rollout_engine_addr_and_ports_normal = lambda **keywords: [{}, {}]
    engines: list[Any] = [None, None]
    rollout.init_rollout_engines(arguments, (group[0], group[1][2:], group[2][2:]), engines)
    told = {
        "bundles": [dict(each) for each in group[0].bundle_specs],
        "devices": [int(each) for each in group[2]],
        "trainers": ray.get([each.place.remote() for each in trainers._actor_handlers]),
        "engines": ray.get([each.place.remote() for each in engines]),
    }
    ray.shutdown()
    print(json.dumps(told))


if __name__ == "__main__":
    main(os.environ["PATCHKIT_TEST_DEVICE"])
