"""The launches of slime's manifests, compared with what the published scripts hand to slime.

The scripts are executed as they stand in the commit that added them, with the function that would
start the job taking notes; slime's own file of model arguments is sourced as they do it.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from patchkit.manifest.load import load_manifest
from stack_tests.conftest import ROOT
from stack_tests.stubs import Stub, stubbed
from tests.support.upstreams import NEEDS_UPSTREAMS

SITE = {
    "--hf-checkpoint": ["${model_path}"],
    "--load": ["${model_path}"],
    "--ref-load": ["${model_path}"],
    "--prompt-data": ["${train_file}"],
    "--actor-num-nodes": ["${nodes}"],
}
#: what was trained is saved, which the scripts do not
SAVED = {"--save-interval": ["100"]}
FOLDERS = {
    "grpo": {"--save": ["${checkpoint_dir}/grpo-qwen3-vl-8b"]},
    "ppo": {
        "--save": ["${checkpoint_dir}/ppo-qwen3-vl-8b"],
        "--critic-save": ["${checkpoint_dir}/ppo-qwen3-vl-8b-critic"],
        "--critic-num-nodes": ["${nodes}"],
    },
}

pytestmark = NEEDS_UPSTREAMS


@pytest.mark.parametrize("algorithm", ["grpo", "ppo"])
def test_only_paths_differ(
    published_slime: Path, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIME_SCRIPT_MODEL_NAME", "Qwen3-VL-8B-Instruct")
    monkeypatch.setenv("SLIME_SCRIPT_TRAIN_BACKEND", "megatron")
    monkeypatch.setenv("MODEL_ARGS_ROTARY_BASE", "")  # the script sets it
    theirs = published(published_slime, algorithm)
    assert "--use-flash-attn" in theirs
    ours = shipped(f"{algorithm}-qwen3-vl-8b")
    differing = {name: ours[name] for name in ours if theirs.get(name) != ours[name]}
    assert set(theirs) <= set(ours)
    assert differing == {**SITE, **SAVED, **FOLDERS[algorithm]}


def published(slime: Path, algorithm: str) -> dict[str, list[str]]:
    """The arguments that the published script ends in."""
    notes: dict[str, Any] = {}
    launcher: Any = Stub("slime.utils.external_utils.command_utils")
    launcher.execute_train_npu = lambda **keywords: notes.update(keywords)
    folder = slime / "examples/geo3k_vlm_multi_turn"
    script = (folder / f"run_geo3k_vlm_multi_turn_{algorithm}_npu.py").read_text()
    modules: dict[str, ModuleType] = {launcher.__name__: launcher}
    with stubbed(modules):
        exec(script, {"__name__": "__main__"})
    model = slime / f"scripts/models/{notes['megatron_model_type']}.sh"
    sourced = subprocess.run(
        ["bash", "-c", f'. {shlex.quote(str(model))}; printf "%q " "${{MODEL_ARGS[@]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    return options([*shlex.split(notes["train_args"]), *shlex.split(sourced.stdout)])


def options(words: Iterable[str]) -> dict[str, list[str]]:
    """Flag -> the words that follow it."""
    found: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            values = found[word] = []
        else:
            values.append(word)
    return found


def shipped(launch: str) -> dict[str, list[str]]:
    """The same of ours, which both manifests share."""
    told = []
    for name in ("qwen3-vl-npu", "slime-npu-official"):
        manifest = load_manifest(ROOT / "manifests" / f"{name}.yaml")
        [found] = [each for each in manifest.launches if each.name == launch]
        told.append(
            {
                flag: [value] if isinstance(value, str) and value else list(value)
                for group in found.arguments.values()
                for flag, value in group.items()
            }
        )
    assert told[0] == told[1]
    return told[0]
