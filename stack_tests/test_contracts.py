"""Calls between the components of the shipped stacks fit, and do not where a mend is taken away."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from patchkit.errors import ExitCode
from tests.support.commands import run_process
from tests.support.upstreams import reaching_upstreams, skip_without_upstreams

ROOT = Path(__file__).parents[1]

#: patch taken away -> (component, what is wrong there, how often)
MENDS = {
    "sglang/rotary-embedding-without-vllm.patch": ("sglang", "missing package", "vllm", 1),
    "sglang/qkv-norm-rope-by-keyword.patch": (
        "sglang",
        "crossed arguments",
        "sgl_kernel_npu.norm.split_qkv_rmsnorm_rope.split_qkv_rmsnorm_rope",
        2,
    ),
    "megatron-bridge/qwen3-vl-takes-loss-mask.patch": (
        "slime",
        "wrong arguments",
        "megatron.bridge.models.qwen_vl.modelling_qwen3_vl.model.Qwen3VLModel.forward",
        2,
    ),
}


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's manifests and patches, to be changed."""
    skip_without_upstreams()
    folder = tmp_path_factory.mktemp("contracts")
    for name in ("manifests", "patches"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def broken(project: Path, manifest: str) -> dict[str, list[Any]]:
    argv = ("check", "--only", "calls", "-m", manifest, "--json", "--cache", str(project / "cache"))
    ran = run_process(*argv, cwd=project, environment=reaching_upstreams(), timeout=600)
    if ran.code == ExitCode.ENVIRONMENT:
        pytest.skip(f"the upstreams cannot be reached: {ran.err.strip()}")
    return {each["component"]: each["broken"] for each in ran.json["components"]}


@pytest.mark.upstream
@pytest.mark.parametrize("manifest", sorted(each.stem for each in ROOT.glob("manifests/*.yaml")))
def test_every_call_that_can_be_told_fits(shipped: Path, manifest: str) -> None:
    found = broken(shipped, manifest)
    assert len(found) > 2
    assert {name: places for name, places in found.items() if places} == {}


@pytest.mark.upstream
def test_a_mend_that_is_taken_away_is_missed(shipped: Path) -> None:
    for patch in MENDS:
        folder, _, name = patch.partition("/")
        series = shipped / "patches" / folder / "series"
        lines = series.read_text().splitlines(keepends=True)
        assert f"{name}\n" in lines
        series.write_text("".join(line for line in lines if line != f"{name}\n"))
    found = broken(shipped, "qwen3-vl-npu")
    told = sorted(
        (component, each["breach"], each["target"])
        for component, places in found.items()
        for each in places
    )
    assert told == sorted(mend[:3] for mend in MENDS.values() for _ in range(mend[3]))
