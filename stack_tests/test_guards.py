"""The verify steps of the verl manifests say so when a patch is not there; a wrong base is loud."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, Protocol

import pytest

from stack_tests.conftest import ROOT
from tests.support.commands import Ran, run_process
from tests.support.upstreams import NEEDS_UPSTREAMS, reaching_upstreams

NEWER_MBRIDGE = "10cb17f59dd082ef1dd9d5a36f8b1b5b3a5ecc3e"
MBRIDGE = "mbridge/models/ext/deepseek_v3/dequant_fp8_safetensor_io.py"

upstream = NEEDS_UPSTREAMS


@pytest.fixture(scope="module")
def surroundings() -> dict[str, str]:
    """The user's own environment: mirrors and proxies are in there."""
    return reaching_upstreams()


class Check(Protocol):
    """Runs `patchkit check` on a manifest of a copy of the project."""

    def __call__(self, folder: Path, manifest: str, *components: str) -> Ran: ...


@pytest.fixture
def check(surroundings: dict[str, str], shared_cache: Path) -> Check:
    def run(folder: Path, manifest: str, *components: str) -> Ran:
        chosen = [word for name in components for word in ("--component", name)]
        argv = ("check", "--manifest", manifest, *chosen, "--json", "--cache", str(shared_cache))
        ran = run_process(*argv, cwd=folder, environment=surroundings, timeout=300)
        if ran.code == 5:
            pytest.skip(f"the upstreams cannot be reached: {ran.err.strip()}")
        return ran

    return run


def without_patches(folder: Path, *series: str) -> None:
    """A copy of the project in which these series are empty, and nobody binds calls."""
    for name in ("manifests", "patches"):
        shutil.copytree(ROOT / name, folder / name)
    for manifest in (folder / "manifests").glob("*.yaml"):
        text = manifest.read_text()
        manifest.write_text(re.sub(r"(?m)^    contracts:.*\n(      .*\n)*", "", text))
    for lock in (folder / "manifests").glob("*.lock.json"):
        lock.unlink()
    for name in series:
        for each in (folder / "patches" / name).glob("*.patch"):
            each.unlink()
        (folder / "patches" / name / "series").write_text("# none\n")


def failed(ran: Ran) -> dict[str, Any]:
    """Component -> what check finds wrong with it."""
    return {
        each["name"]: [
            finding["what"] for finding in each["findings"] if finding["severity"] == "error"
        ]
        for each in ran.json["components"]
    }


@pytest.mark.index
def test_the_index_stack_notices(tmp_path: Path, check: Check) -> None:
    without_patches(tmp_path, "sglang-0.5.9", "mbridge")
    found = failed(check(tmp_path, "verl-npu-index", "sglang", "mbridge"))
    assert ["CUDA build" in what for what in found["sglang"]] == [True]
    assert ["opened on CUDA" in what for what in found["mbridge"]] == [True]


class TestGitStacks:
    pytestmark = upstream

    def test_an_old_place_of_cann(self, tmp_path: Path, check: Check) -> None:
        without_patches(tmp_path, "sgl-kernel-npu")
        ran = check(tmp_path, "verl-mindspeedllm-npu", "sgl-kernel-npu")
        [what] = failed(ran)["sgl-kernel-npu"]
        assert "not only looked for where it was before 8.5" in what

    def test_megatron_before_mindspeed(self, tmp_path: Path, check: Check) -> None:
        without_patches(tmp_path, "verl")
        ran = check(tmp_path, "verl-qwen3-235b-fully-async-npu", "verl")
        [what] = failed(ran)["verl"]
        assert what.startswith("handlers-in-constructor: matches 1 site")

    def test_slimes_stack_without_its_patches(self, tmp_path: Path, check: Check) -> None:
        without_patches(tmp_path, "slime", "sglang", "mbridge-89eb1088")
        found = failed(check(tmp_path, "qwen3-vl-npu", "slime", "sglang", "mbridge"))
        expected = {
            "slime": ["nccl-by-name", "gpus-asked-of-ray", "ids-of-gpus", "visible-gpus"],
            "sglang": [
                *("head_dim is passed as q_weight", "provides vllm"),
                *("compiled-on-npu", "features-dropped"),
            ],
            "mbridge": ["by name"],
        }
        for component, rules in expected.items():
            assert len(found[component]) == len(rules), found[component]
            for rule in rules:
                assert any(rule in what for what in found[component]), found[component]
        assert any("matches 8 sites" in what for what in found["slime"])


class TestNewerMbridge:
    pytestmark = upstream

    def test_the_patch_is_refused(self, tmp_path: Path, check: Check) -> None:
        """Where verl's `sed` by line number exits 0 and changes nothing."""
        shutil.copytree(ROOT / "patches", tmp_path / "patches")
        (tmp_path / "manifests").mkdir()
        (tmp_path / "manifests/newer.yaml").write_text(
            "version: 1\ncomponents:\n  mbridge:\n"
            "    source: {git: 'https://github.com/ISEEKYAN/mbridge.git'}\n"
            f"    pin: {NEWER_MBRIDGE}\n    patches: [{{series: patches/mbridge/series}}]\n"
        )
        ran = check(tmp_path, "newer")
        assert ran.code == 1
        [patch] = ran.json["components"][0]["patches"]
        assert patch["outcome"]["status"] == "conflicted"
        assert {each["path"] for each in patch["outcome"]["files"]} == {MBRIDGE}
