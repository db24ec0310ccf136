"""What slime does with devices, process groups and Ray: one scenario per patched function."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock
from warnings import catch_warnings, simplefilter

from stack_tests.devices import Branch, Scenario, Side
from stack_tests.ray_stub import Ray
from stack_tests.stubs import Stop, decorators, module, notes, stop, stubbed

DEVICE = "slime/utils/device.py"
IS_NPU = Branch(
    DEVICE,
    "return npu is not None and (npu.is_available() or not torch.cuda.is_available())",
    "return not (npu is not None and (npu.is_available() or not torch.cuda.is_available()))",
)
MEGATRON = "slime/backends/megatron_utils"


def ours(side: Side) -> dict[str, ModuleType]:
    """The patches' own module, where there is one."""
    return {"slime.utils.device": side.load(DEVICE)} if side.patched else {}


# -- MindSpeed ------------------------------------------------------------------------------------


def first_imports(side: Side) -> list[str]:
    """Of MindSpeed and Megatron: what the package of the Megatron back end imports, in order."""
    modules = {"torch": side.torch, **ours(side)}
    source = side.source(f"{MEGATRON}/__init__.py")
    with stubbed(modules) as imported:
        name = "slime.backends.megatron_utils"
        exec(compile(source, "<package>", "exec"), {"__name__": name, "__package__": name})
    return [name for name in imported if name in ("mindspeed.megatron_adaptor", "megatron.bridge")]


def _actor(side: Side, **more: ModuleType) -> tuple[Any, dict[str, ModuleType]]:
    modules = {
        **ours(side),
        "slime.utils.timer": decorators("slime.utils.timer", "timer"),
        **more,
    }
    return side.load(f"{MEGATRON}/actor.py", modules), modules


def start_of_init(side: Side) -> list[str]:
    """What the training actor does before its process groups are made."""
    done: list[str] = []

    def monkey_patch() -> None:
        done.append("wrap torch.distributed")
        raise Stop

    groups = module("slime.utils.reloadable_process_group", monkey_patch_torch_dist=monkey_patch)
    adaptor = module(
        "mindspeed.megatron_adaptor", repatch=lambda args: done.append(f"repatch({args.said})")
    )
    actor, modules = _actor(
        side,
        **{groups.__name__: groups, adaptor.__name__: adaptor, "mindspeed": module("mindspeed")},
    )
    trainer = object.__new__(actor.MegatronTrainRayActor)
    with stubbed(modules):
        try:
            trainer.init(SimpleNamespace(said="arguments", debug_rollout_only=False), "actor")
        except Stop:
            return done
    raise AssertionError("init did not wrap torch.distributed")


def imports_of_tool(side: Side) -> list[str]:
    """Whether the conversion tool's first import beyond torch brings MindSpeed in."""
    modules = {"torch": side.torch, **ours(side)}
    package = side.source(f"{MEGATRON}/__init__.py")
    with stubbed(modules) as imported:
        head, _, _ = side.source("tools/convert_hf_to_torch_dist.py").partition("\ndef ")
        made = ModuleType("slime.backends.megatron_utils")
        exec(compile(head, "<tool>", "exec"), {"__name__": "tool"})
        order = [name for name in imported if name.startswith(("megatron", "slime.backends.m"))]
        first = order[0]
        if first == made.__name__:
            made.__package__ = made.__name__
            exec(compile(package, "<package>", "exec"), made.__dict__)
        return [name for name in imported if name == "mindspeed.megatron_adaptor"]


# -- process groups -------------------------------------------------------------------------------


def _backends(kept: list[dict[str, Any]]) -> list[Any]:
    return [keywords["backend"] for keywords in kept]


def actor_and_critic(side: Side) -> list[Any]:
    """The backend of the group of actor and critic."""
    kept: list[dict[str, Any]] = []
    distributed = module("slime.utils.distributed_utils", init_process_group=notes(kept))
    actor, modules = _actor(side, **{distributed.__name__: distributed})
    trainer = object.__new__(actor.MegatronTrainRayActor)
    trainer.role = "critic"
    with stubbed(modules):
        trainer.connect_actor_critic(master_address="a", master_port=1)
    return _backends(kept)


class Engine:
    """A rollout engine's handle."""

    def __init__(self, kept: list[dict[str, Any]]) -> None:
        self.init_weights_update_group = SimpleNamespace(remote=notes(kept))


def _sharing_weights(side: Side, path: str) -> tuple[Any, list[dict[str, Any]], list[Engine]]:
    kept: list[dict[str, Any]] = []
    distributed = module("slime.utils.distributed_utils", init_process_group=notes(kept))
    loaded = side.load(path, {**ours(side), distributed.__name__: distributed})
    return loaded, kept, [Engine(kept), Engine(kept)]


def weights_to_engines(side: Side) -> list[Any]:
    """The backends that two engines are told, and the trainer's own, with Megatron."""
    path = f"{MEGATRON}/update_weight/update_weight_from_distributed.py"
    loaded, kept, engines = _sharing_weights(side, path)
    arguments = SimpleNamespace(rollout_num_gpus_per_engine=1)
    loaded.connect_rollout_engines_from_distributed(arguments, "group", engines)
    return _backends(kept)


def weights_to_engines_fsdp(side: Side) -> list[Any]:
    """The same with FSDP."""
    path = "slime/backends/fsdp_utils/update_weight_utils.py"
    loaded, kept, engines = _sharing_weights(side, path)
    loaded.dist.get_rank = lambda: 0
    updater = object.__new__(loaded.UpdateWeightFromDistributed)
    updater.args = SimpleNamespace(rollout_num_gpus=2, rollout_num_gpus_per_engine=1)
    updater.connect_rollout_engines(engines, None)
    return _backends(kept)


def groups_made_again(side: Side) -> list[Any]:
    """The backend of a process group that comes back after offloading."""
    kept: list[dict[str, Any]] = []
    loaded = side.load("slime/utils/reloadable_process_group.py", ours(side))
    group = SimpleNamespace(group=None, group_info={"ranks": [0, 1]})
    loaded.ReloadableProcessGroup.GROUPS[os.getpid()] = [group]
    loaded.old_new_group_dict[os.getpid()] = notes(kept)
    loaded.ReloadableProcessGroup.reload_process_groups()
    return _backends(kept)


def collective_group_destroyed(side: Side) -> list[bool]:
    """Whether the group of all is one of the accelerator's, and destroyed for a sleep."""
    loaded = side.load("slime/utils/reloadable_process_group.py", ours(side))
    return [loaded._uses_nccl(name) for name in ("nccl", "cpu:gloo,npu:hccl", "gloo")]


def default_backend(side: Side) -> Any:
    """What --distributed-backend is where nobody says it."""
    same = module(
        "slime.backends.sglang_utils.arguments", add_sglang_arguments=lambda parser: parser
    )
    router = module("sglang_router.launch_router")
    router.RouterArgs.add_cli_args = lambda *arguments, **keywords: None
    modules = {**ours(side), same.__name__: same, router.__name__: router}
    with catch_warnings():
        simplefilter("ignore")  # an escape in a text that is none
        loaded = side.load("slime/utils/arguments.py", modules)
    parser = argparse.ArgumentParser()
    loaded.get_slime_extra_args_provider()(parser)
    return parser.get_default("distributed_backend")


def groups_of_tool(side: Side) -> list[Any]:
    """The backend of the conversion tool."""
    kept: list[dict[str, Any]] = []
    loaded = side.load("tools/convert_hf_to_torch_dist.py", ours(side))
    loaded.dist.init_process_group, loaded.get_args = notes(kept), stop
    try:
        with mock.patch.dict(os.environ), stubbed({"torch": side.torch}):
            loaded.main()
    except Stop:
        return _backends(kept)
    raise AssertionError("main() did not ask for its arguments")


# -- device and memory ----------------------------------------------------------------------------


def _noting(side: Side) -> list[tuple[str, Any]]:
    """Let both modules of torch note what is asked of them; only the device's own may be used."""
    kept: list[tuple[str, Any]] = []
    for name in ("cuda", "npu"):
        accelerator = getattr(side.torch, name, None)
        if accelerator is None:
            continue

        def function(what: str, gives: Any = None) -> Callable[..., Any]:
            def called(*arguments: Any) -> Any:
                kept.append((what, arguments))
                return gives

            return called

        for what in ("set_device", "synchronize", "empty_cache"):
            setattr(accelerator, what, function(f"{name}.{what}"))
        accelerator.current_device = function(f"{name}.current_device", 0)
        accelerator.mem_get_info = function(f"{name}.mem_get_info", (2**30, 2**31))
        accelerator.memory_allocated = function(f"{name}.memory_allocated", 2**29)
        accelerator.memory_reserved = function(f"{name}.memory_reserved", 2**30)
    side.torch._C = module("torch._C", _host_emptyCache=lambda: kept.append(("host", ())))
    return kept


def clear_memory(side: Side) -> list[tuple[str, Any]]:
    """What is emptied, with the cache of the host's memory."""
    kept = _noting(side)
    _memory(side).clear_memory(clear_host_memory=True)
    return kept


def _memory(side: Side) -> Any:
    host = SimpleNamespace(total=2**33, available=2**32, used=2**32, free=2**32)
    psutil = module("psutil", virtual_memory=lambda: host)
    return side.load("slime/utils/memory_utils.py", {**ours(side), psutil.__name__: psutil})


def available_memory(side: Side) -> Any:
    """What is asked, and what is told of it."""
    kept = _noting(side)
    told = _memory(side).available_memory()
    return kept, {name: value for name, value in told.items() if not name.startswith("host_")}


def device_of_actor(side: Side) -> list[Any]:
    """The device that a training actor takes, and the backend with FSDP's CPU offload."""
    loaded = side.load("slime/ray/train_actor.py", {**ours(side), **ray_utils(side)})
    groups: list[dict[str, Any]] = []
    loaded.dist.init_process_group = notes(groups)
    loaded.init_gloo_group = stop
    took = _noting(side)
    arguments = SimpleNamespace(
        distributed_backend="BACKEND",
        fsdp_cpu_offload=True,
        fsdp_cpu_backend="gloo",
        distributed_timeout_minutes=1,
    )
    with mock.patch.dict(os.environ, {"LOCAL_RANK": "3"}):
        try:
            loaded.TrainRayActor.init(SimpleNamespace(), arguments, "actor")
        except Stop:
            return [*took, *_backends(groups)]
    raise AssertionError("init did not make its groups")


# -- models ---------------------------------------------------------------------------------------


def flags_of_provider(side: Side) -> list[dict[str, Any]]:
    """What of a launch's flags the bridge's provider has when it is finalized, actor and critic."""
    kept: list[dict[str, Any]] = []
    for role in ("actor", "critic"):
        provider = SimpleNamespace(provide=None, recompute_granularity=None)
        provider.finalize = lambda made=provider: kept.append(
            {name: value for name, value in vars(made).items() if name in FLAGS}
        )
        bridge = module("megatron.bridge")
        bridge.AutoBridge.from_hf_pretrained = lambda *args, made=provider, **more: SimpleNamespace(
            to_megatron_provider=lambda load_weights: made
        )
        modules = {**ours(side), bridge.__name__: bridge}
        loaded = side.load(f"{MEGATRON}/model_provider.py", modules)
        sizes = ("tensor_model", "pipeline_model", "expert_model", "expert_tensor")
        arguments = SimpleNamespace(
            megatron_to_hf_mode="bridge",
            custom_model_provider_path=None,
            hf_checkpoint="",
            sequence_parallel=True,
            **{f"{name}_parallel_size": 1 for name in sizes},
            **FLAGS,
        )
        with stubbed(modules):
            loaded.get_model_provider_func(arguments, role)
    return kept


def joined_along(side: Side) -> list[int]:
    """The dimensions along which parts of experts' and dense weights are put together."""
    dimensions: list[int] = []
    side.torch.cat = lambda parts, dim: dimensions.append(dim)
    side.torch.empty_like = lambda data: data
    part: Any = SimpleNamespace()
    part.chunk = lambda number, dim: (part, part)
    loaded = side.load(f"{MEGATRON}/update_weight/common.py", ours(side))
    done = SimpleNamespace(wait=lambda: None)
    loaded.dist.all_gather = lambda parts, data, **more: done
    loaded.mpu.get_tensor_model_parallel_world_size = lambda: 2
    loaded.mpu.get_expert_tensor_parallel_world_size = lambda: 2
    weights = (("mlp.experts.linear_fc1.weight0", 1), ("mlp.linear_fc1.weight", 0))
    for name, dim in (*weights, ("mlp.experts.linear_fc2.weight0", 0), ("linear_proj.weight", 1)):
        param = SimpleNamespace(
            tensor_model_parallel=True, partition_dim=dim, partition_stride=1, data=part
        )
        loaded.all_gather_param(name, param)
        loaded.all_gather_params_async([(SimpleNamespace(name=name), param)])
    return dimensions


#: As a launch has them, and no provider by itself
FLAGS = {
    "recompute_granularity": "full",
    "recompute_method": "uniform",
    "recompute_num_layers": 1,
    "recompute_modules": ["core_attn"],
    "gradient_accumulation_fusion": False,
}


# -- Ray ------------------------------------------------------------------------------------------


def ray_utils(side: Side, ray: Ray | None = None) -> dict[str, ModuleType]:
    """slime.ray.utils as it is, on this Ray."""
    modules = {**ours(side), **(ray.modules if ray else {})}
    return {"slime.ray.utils": side.load("slime/ray/utils.py", modules)}


def _on_ray(side: Side, path: str) -> tuple[Any, Ray]:
    ray = Ray(side.device)
    modules = {**ours(side), **ray.modules, **ray_utils(side, ray)}
    return side.load(path, modules), ray


def placement_group(side: Side) -> Any:
    """The bundles asked for, what the actors that look round ask for, and the order found."""
    loaded, ray = _on_ray(side, "slime/ray/placement_group.py")
    _, order, devices = loaded._create_placement_group(4)
    return ray.bundles[0], ray.asked[0], order, devices


def training_actors(side: Side) -> list[dict[str, Any]]:
    """What two training actors ask for."""
    loaded, ray = _on_ray(side, "slime/ray/actor_group.py")
    arguments = SimpleNamespace(
        train_env_vars={}, offload_train=False, train_backend="megatron", use_routing_replay=False
    )
    placed = ("group", [0, 1], [0, 1])
    with stubbed(ray.modules):
        group = loaded.RayTrainGroup(arguments, 1, 2, placed, 0.4)
        if not ray.asked:  # v0.3.1 does it later
            group._allocate_gpus_for_actor(placed, 0.4)
    return ray.asked


def rollout_engines(side: Side) -> list[dict[str, Any]]:
    """What two rollout engines ask for."""
    loaded, ray = _on_ray(side, "slime/ray/rollout.py")
    ray.asked.clear()
    loaded._allocate_rollout_engine_addr_and_ports_normal = lambda **keywords: [{}, {}]
    arguments = SimpleNamespace(
        debug_train_only=False,
        rollout_num_gpus_per_engine=1,
        num_gpus_per_node=8,
        rollout_num_gpus=2,
        prefill_num_servers=None,
        rollout_external=False,
    )
    loaded.init_rollout_engines(arguments, ("group", [0, 1], [0, 1]), [None, None])
    return ray.asked


def server_group(side: Side) -> list[dict[str, Any]]:
    """What the two engines of a group of servers ask for."""
    loaded, ray = _on_ray(side, "slime/ray/rollout.py")
    ray.asked.clear()
    loaded._allocate_rollout_engine_addr_and_ports_normal = lambda **keywords: ([{}, {}], {})
    arguments = SimpleNamespace(
        debug_train_only=False,
        num_gpus_per_node=8,
        rollout_num_gpus=2,
        rollout_num_gpus_per_engine=1,
    )
    loaded.ServerGroup.start_engines(
        SimpleNamespace(
            args=arguments,
            worker_type="regular",
            pg=("group", [0, 1], [0, 1]),
            all_engines=[None, None],
            num_gpus_per_engine=1,
            rank_offset=0,
            gpu_offset=0,
            sglang_overrides={},
            router_ip=None,
            router_port=None,
        )
    )
    return ray.asked


@contextmanager
def visible(**variables: str) -> Any:
    """Only these of the variables that say which devices may be used."""
    with mock.patch.dict(os.environ, variables):
        for name in ("ASCEND_RT_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
            if name not in variables:
                os.environ.pop(name, None)
        yield


SEEN = {"ASCEND_RT_VISIBLE_DEVICES": "2,3,10", "CUDA_VISIBLE_DEVICES": "3,10,11"}


def device_of_worker(side: Side) -> list[Any]:
    """The position of Ray's first device (3), where devices are restricted and where not."""
    found = []
    for variables in (SEEN, {}):
        loaded, _ = _on_ray(side, "slime/ray/train_actor.py")
        with visible(**variables):
            found.append(loaded.get_local_gpu_id())
    return found


def device_of_engine(side: Side) -> list[Any]:
    """The position of device 10, where devices are restricted and where not."""
    loaded = side.load("slime/backends/sglang_utils/sglang_engine.py", ours(side))
    found = []
    for variables in (SEEN, {}):
        with visible(**variables):
            found.append(loaded._to_local_gpu_id(10))
    return found


def device_refused(side: Side) -> str:
    """What is said about a device that is not to be seen."""
    loaded = side.load("slime/backends/sglang_utils/sglang_engine.py", ours(side))
    with visible(**SEEN):
        try:
            loaded._to_local_gpu_id(7)
        except RuntimeError as error:
            return str(error)
    raise AssertionError("not refused")


def start_of_ray(side: Side) -> list[str]:
    """The commands by which a launch helper starts Ray."""
    commands: list[str] = []

    def execute(command: str, **keywords: Any) -> str:
        commands.append(command)
        return "0"

    misc = module("slime.utils.misc", exec_command=execute)
    typer = decorators("slime.utils.external_utils.typer_utils", "dataclass_cli")
    modules = {**ours(side), misc.__name__: misc, typer.__name__: typer}
    loaded = side.load("slime/utils/external_utils/command_utils.py", modules)
    with mock.patch.dict(os.environ, {"SLIME_SCRIPT_ENABLE_RAY_SUBMIT": "0"}):
        loaded.execute_train("--x", 8, "qwen3-8B")
    return [command[command.index("ray start") :] for command in commands if "ray start" in command]


def _scenario(name: str, run: Callable[[Side], Any], npu: Any) -> Scenario:
    return Scenario(f"slime-{name}", "slime", IS_NPU, run, npu)


_MEMORY = {"total_GB": 2.0, "free_GB": 1.0, "used_GB": 1.0, "allocated_GB": 0.5, "reserved_GB": 1.0}
_ASKED = ("current_device", "mem_get_info", "memory_allocated", "memory_reserved")

SCENARIOS = (
    _scenario("adaptor-first", first_imports, ["mindspeed.megatron_adaptor", "megatron.bridge"]),
    _scenario("repatch", start_of_init, ["repatch(arguments)", "wrap torch.distributed"]),
    _scenario("adaptor-in-tool", imports_of_tool, ["mindspeed.megatron_adaptor"]),
    _scenario("actor-and-critic", actor_and_critic, ["hccl"]),
    _scenario("weights-to-engines", weights_to_engines, ["hccl"] * 3),
    _scenario("weights-to-engines-fsdp", weights_to_engines_fsdp, ["hccl"] * 3),
    _scenario("groups-made-again", groups_made_again, ["hccl"]),
    _scenario("default-backend", default_backend, "hccl"),
    _scenario("groups-of-tool", groups_of_tool, ["hccl"]),
    _scenario("experts-gathered", joined_along, [0, 0, 0, 0, 1, 1, 1, 1]),
    _scenario("flags-of-provider", flags_of_provider, [FLAGS, FLAGS]),
    _scenario("clear-memory", clear_memory, [("npu.synchronize", ()), ("npu.empty_cache", ())]),
    _scenario(
        "available-memory",
        available_memory,
        (
            [(f"npu.{what}", () if what == "current_device" else (0,)) for what in _ASKED],
            {"gpu": "0", **_MEMORY},
        ),
    ),
    _scenario(
        "device-of-actor",
        device_of_actor,
        [("npu.set_device", ("npu:3",)), "cpu:gloo,npu:BACKEND"],
    ),
    _scenario(
        "placement-group",
        placement_group,
        ({"NPU": 1, "CPU": 1}, {"resources": {"NPU": 1}}, [3, 2, 0, 1], [0, 2, 3, 10]),
    ),
    _scenario(
        "training-actors", training_actors, [{"num_cpus": 0.4, "resources": {"NPU": 0.4}}] * 2
    ),
    _scenario(
        "rollout-engines", rollout_engines, [{"num_cpus": 0.2, "resources": {"NPU": 0.2}}] * 2
    ),
    _scenario("device-of-worker", device_of_worker, [1, 3]),
    _scenario("device-of-engine", device_of_engine, [2, 10]),
    _scenario(
        "device-refused",
        device_refused,
        "GPU id 7 is not valid under ASCEND_RT_VISIBLE_DEVICES=2,3,10. "
        "Expected one of [2, 3, 10] (physical) or 0..2 (local).",
    ),
    _scenario(
        "start-of-ray",
        start_of_ray,
        [
            "ray start --head --node-ip-address 127.0.0.1 "
            "--resources '{\"NPU\": 8}' --disable-usage-stats"
        ],
    ),
)
_OTHERS = (
    _scenario("adaptor-first", first_imports, ["mindspeed.megatron_adaptor"]),
    _scenario("groups-made-again", collective_group_destroyed, [False, True, False]),
    _scenario("device-of-actor", device_of_actor, [("npu.set_device", ("npu:3",)), "BACKEND"]),
    _scenario("rollout-engines", server_group, [{"num_cpus": 0.2, "resources": {"NPU": 0.2}}] * 2),
)
_GONE = {
    f"slime-{name}" for name in ("actor-and-critic", "weights-to-engines-fsdp", "flags-of-provider")
}
#: Of slime v0.3.1, which has no FSDP and no bridge
SCENARIOS_0_3_1 = (
    *(each for each in SCENARIOS if each.name not in {*_GONE, *map(str, _OTHERS)}),
    *_OTHERS,
)
