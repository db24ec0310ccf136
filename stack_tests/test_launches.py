"""The launch parameters of the verl manifests, compared with what verl's own scripts pass on.

Each script is executed as it stands at the manifest's pin, with a `python3` that only writes down
its arguments. What is a site's to decide, and what we leave out on purpose, is listed here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from patchkit.manifest.load import load_manifest
from stack_tests.conftest import ROOT, Stack

SITE = {
    "actor_rollout_ref.model.path": "${model_path}",
    "data.train_files": "${train_file}",
    "data.val_files": "${test_file}",
}
#: how many machines there are; what was trained is saved, which the scripts do for one launch only
NODES = {"trainer.nnodes": "${nodes}"}
SAVED = {"trainer.save_freq": "100"}
CLUSTER = {
    "rollout.nnodes": "${rollout_nodes}",
    "rollout.n_gpus_per_node": "${npus_per_node}",
    "trainer.nnodes": "${train_nodes}",
    "trainer.n_gpus_per_node": "${npus_per_node}",
}
#: verl's scripts profile every run; one that trains should not
PROFILING = (
    "global_profiler.",
    "actor_rollout_ref.actor.profiler.",
    "actor_rollout_ref.rollout.profiler.",
)
#: another name of the run, or shell quotes that Hydra reads alike
NAMES = ("trainer.project_name", "trainer.experiment_name", "trainer.logger")

FULLY_ASYNC = "verl/experimental/fully_async_policy/shell/grpo_qwen3_235b_megatron_npu.sh\u200e"

pytestmark = pytest.mark.upstream


def test_mindspeedllm_8b(mindspeedllm_stack: Stack, tmp_path: Path) -> None:
    script = mindspeedllm_stack.before(
        "verl", "tests/special_npu/run_qwen3_8b_grpo_mindspeedllm.sh"
    )
    theirs = without(arguments_of(script, tmp_path), *PROFILING, "trainer.total_training_steps")
    assert differing("verl-mindspeedllm-npu", "grpo-qwen3-8b", theirs) == {
        **SITE,
        **NODES,
        **SAVED,
        **checkpoints("grpo-qwen3-8b"),
    }


def test_mindspeedllm_32b(mindspeedllm_stack: Stack, tmp_path: Path) -> None:
    path = "examples/grpo_trainer/run_qwen3-32b_sglang_mindspeedllm_npu.sh"
    theirs = without(arguments_of(mindspeedllm_stack.before("verl", path), tmp_path), *PROFILING)
    assert differing("verl-mindspeedllm-npu", "grpo-qwen3-32b", theirs) == {
        **SITE,
        **NODES,
        **SAVED,
        **checkpoints("grpo-qwen3-32b"),
        "actor_rollout_ref.model.path": "${model_path_32b}",
    }


def test_mindspeedllm_mixture_of_experts(mindspeedllm_stack: Stack, tmp_path: Path) -> None:
    path = "examples/grpo_trainer/run_qwen3moe-30b_sglang_mindspeedllm_npu.sh"
    theirs = without(arguments_of(mindspeedllm_stack.before("verl", path), tmp_path), *PROFILING)
    ours = differing("verl-mindspeedllm-npu", "grpo-qwen3-30b-a3b", theirs)
    assert ours == {
        **SITE,
        **NODES,
        **SAVED,
        **checkpoints("grpo-qwen3-30b-a3b"),
        "actor_rollout_ref.model.path": "${model_path_30b_a3b}",
    }


def test_fully_async(fully_async_stack: Stack, tmp_path: Path) -> None:
    theirs = arguments_of(fully_async_stack.before("verl", FULLY_ASYNC), tmp_path)
    ours = differing("verl-qwen3-235b-fully-async-npu", "grpo-qwen3-235b", theirs)
    assert ours == {**SITE, **CLUSTER, "trainer.default_local_dir": "${checkpoint_dir}"}


def test_quickstart(quickstart_stack: Stack, tmp_path: Path) -> None:
    page = quickstart_stack.before("verl", "docs/ascend_tutorial/ascend_quick_start.rst")
    start = page.index("    python3 -m verl.trainer.main_ppo")
    theirs = arguments_of(page[start : page.index("$@", start)], tmp_path)
    assert differing("verl-quickstart-npu", "grpo-qwen2.5-0.5b", theirs) == {
        **SITE,
        **NODES,
        **SAVED,
        **checkpoints("grpo-qwen2.5-0.5b"),
    }


def checkpoints(launch: str) -> dict[str, str]:
    """Where a launch saves: in a folder of its own, for another model than another launch's."""
    return {"trainer.default_local_dir": f"${{checkpoint_dir}}/{launch}"}


def arguments_of(script: str, folder: Path) -> dict[str, str]:
    """Name -> value of what the script hands to Python."""
    written = folder / "arguments"
    for name in ("python", "python3"):
        stub = folder / name
        stub.write_text('#!/bin/sh\nprintf "%s\\0" "$@" > "$WRITTEN"\n')
        stub.chmod(0o755)
    (folder / "logs").mkdir()
    environment = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "WRITTEN": str(written),
    }
    subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, check=True, capture_output=True
    )
    return pairs(written.read_text().split("\0")[:-1])


def pairs(words: Sequence[str]) -> dict[str, str]:
    """`--name value`, `--name=value`, `name=value` and `-m module` as a mapping."""
    found = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        found[name] = value if equals else next(rest)
    return found


def without(arguments: Mapping[str, str], *prefixes: str) -> dict[str, str]:
    """All that do not begin with one of these."""
    kept = {
        name: value for name, value in arguments.items() if not name.startswith(tuple(prefixes))
    }
    assert len(kept) < len(arguments)
    return kept


def differing(manifest: str, launch: str, theirs: Mapping[str, str]) -> dict[str, str]:
    """What we pass on and they do not, after every argument of theirs was found in ours."""
    manifests = load_manifest(ROOT / "manifests" / f"{manifest}.yaml")
    [found] = [each for each in manifests.launches if each.name == launch]
    ours = pairs(found.command.split()[1:])
    for group in found.arguments.values():
        ours |= {name: value for name, value in group.items() if isinstance(value, str)}
    assert set(theirs) <= set(ours)
    return {
        name: value
        for name, value in ours.items()
        if theirs.get(name) != value and name not in NAMES
    }
