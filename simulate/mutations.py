"""What each patch is for, shown by taking it away: the step that is about it must fail.

A manifest is copied with one patch out of its series, applied beside the whole stack, and the step
runs there. It must fail, and its output must hold the words; a step that passes without a patch
says nothing about it.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import tempfile
from pathlib import Path

from simulate import running, workspaces
from simulate.steps import one_step


@dataclasses.dataclass(frozen=True)
class Mutation:
    """A patch, the step that needs it, and what the step says without it."""

    patch: str  # as in patches/
    step: str
    says: str

    @property
    def name(self) -> str:
        """The patch's file without its ending."""
        return Path(self.patch).stem


MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "patches/mindspeed/repatch-takes-namespace.patch",
        "mindspeed/tp1-fp32",
        "'Namespace' object has no attribute 'items'",
    ),
    Mutation(
        "patches/mindspeed/te-attention-packed-sequences.patch",
        "mindspeed/tp1-fp32-packed",
        "unexpected keyword argument 'local_cp_size'",
    ),
    Mutation(
        "patches/mindspeed/fields-for-configs-with-own-init.patch",
        "bridge/train",
        "has no attribute 'moe_zero_memory_num_layers'",
    ),
    Mutation(
        "patches/megatron-bridge/mindspeed-module-types.patch",
        "bridge/train-tp2-sequence-parallel",
        "'NoneType' object has no attribute 'to'",
    ),
    Mutation(
        "patches/megatron-bridge/qwen3-vl-takes-loss-mask.patch",
        "bridge/train",
        "unexpected keyword argument 'loss_mask'",
    ),
    Mutation(
        "patches/megatron-bridge/qwen3-vl-packed-positions.patch",
        "bridge/train",
        "is out of bounds for dimension 0 with size 1",
    ),
    Mutation(
        "patches/megatron-bridge/deepstack-checkpoint-tensors.patch",
        "bridge/train",
        "save_for_backward can only save variables",
    ),
    Mutation(
        "patches/megatron-bridge/deepstack-gradients-sequence-parallel.patch",
        "bridge/train-tp2-sequence-parallel",
        "norm of the gradients",
    ),
    Mutation(
        "patches/slime/recompute-flags-in-bridge-mode.patch",
        "bridge/train",
        "they are not recomputed",
    ),
    Mutation(
        "patches/slime-0.3.1/odd-sequences-without-cp.patch",
        "native/train",
        "must be divisible by 2 * CP size 1",
    ),
    Mutation(
        "patches/slime-0.3.1/vocabulary-padding-of-vlm.patch",
        "native/train-tp2-sequence-parallel",
        "'lm_head.weight'] differ",
    ),
    Mutation(
        "patches/sglang/rotary-embedding-without-vllm.patch",
        "sglang/prefill-and-decode",
        "No module named 'vllm'",
    ),
    Mutation(
        "patches/sglang/qkv-norm-rope-by-keyword.patch",
        "sglang/prefill-and-decode",
        "split_qkv_rmsnorm_rope",
    ),
    Mutation(
        "patches/sglang/deepstack-on-npu.patch",
        "sglang/prefill-and-decode",
        "log probabilities differ",
    ),
    Mutation(
        "patches/sglang/lm-head-apart-from-embeddings.patch",
        "sglang/prefill-and-decode",
        "log probabilities differ",
    ),
    Mutation(
        "patches/sglang-0.5.15/vision-attention-on-npu.patch",
        "sglang/next-prefill-and-decode",
        "'images': 'VisionSdpaAttention'",
    ),
    Mutation(
        "patches/slime/qwen3-vl-to-hf.patch",
        "slime/grpo",
        "Unknown parameter name: module.module.vision_model.patch_embed.proj.weight",
    ),
    Mutation(
        "patches/slime/value-head-bias.patch",
        "slime/ppo",
        "the value head's bias differs between ranks",
    ),
    Mutation(
        "patches/verl/mindspeed-before-megatron.patch",
        "verl/fully-async-imports",
        "imported in this order: ['megatron.core'",
    ),
)


def run(names: list[str], device: str, folder: Path, report: Path | None) -> int:
    """Try the named mutations, or all; 0 if each step failed as it must."""
    found = {}
    for mutation in MUTATIONS:
        if names and mutation.name not in names:
            continue
        seen, last = _try(mutation, device)
        found[mutation.name] = {
            "patch": mutation.patch,
            "step": mutation.step,
            "noticed": seen,
            "says": last,
        }
        print(f"{'noticed' if seen else 'MISSED '}  {mutation.patch}  {mutation.step}: {last}")
        sys.stdout.flush()
    if report:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if found and all(each["noticed"] for each in found.values()) else 1


def _try(mutation: Mutation, device: str) -> tuple[bool, str]:
    step = one_step(mutation.step)
    with tempfile.TemporaryDirectory(prefix="simulate-mutation-") as made:
        project = Path(made)
        for part in ("manifests", "patches"):
            shutil.copytree(workspaces.PROJECT / part, project / part)
        _take_out(project / mutation.patch)
        for lock in (project / "manifests").glob("*.lock.json"):
            lock.unlink()
        folder = project / "workspaces"
        manifest = project / "manifests" / f"{step.manifest}.yaml"
        workspaces.apply(manifest, folder / step.manifest, set(step.components))
        outcome = running.execute(step, device, folder)
    lines = [line for line in outcome.log.splitlines() if mutation.says in line]
    if outcome.passed:
        return False, "passed"
    return bool(lines), lines[-1].strip() if lines else outcome.log[-500:]


def _take_out(patch: Path) -> None:
    series = patch.parent / "series"
    lines = series.read_text().splitlines()
    kept = [line for line in lines if line.split("#")[0].strip() != patch.name]
    if len(kept) == len(lines):
        raise FileNotFoundError(f"{series} does not list {patch.name}")
    series.write_text("\n".join(kept) + "\n")
    patch.unlink()
