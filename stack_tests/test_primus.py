"""What AMD's Primus replaces in Megatron-LM, and what is not there: an example of overrides."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from patchkit.errors import ExitCode
from tests.support.commands import run_process
from tests.support.upstreams import reaching_upstreams, skip_without_upstreams

PRIMUS = Path(__file__).parent / "primus"
NOT_THERE = [
    "megatron.core.distributed.torch_fully_sharded_data_parallel.TorchTorchFullyShardedDataParallel",
    "megatron.core.models.gpt.moe_module_specs.GroupedMLP",
    "megatron.core.models.gpt.moe_module_specs.SequentialMLP",
    "megatron.core.models.gpt.moe_module_specs.TEGroupedMLP",
    "megatron.legacy.data.data_samplers.build_pretraining_data_loader",
]


@pytest.mark.upstream
def test_names_that_megatron_does_not_have(tmp_path: Path) -> None:
    skip_without_upstreams()
    (tmp_path / "manifests").mkdir()
    shutil.copy(PRIMUS / "primus.yaml", tmp_path / "manifests")
    argv = ("check", "--only", "overrides", "--json", "--cache", str(tmp_path / "cache"))
    ran = run_process(*argv, cwd=tmp_path, environment=reaching_upstreams(), timeout=300)
    if ran.code == ExitCode.ENVIRONMENT:
        pytest.skip(f"the upstreams cannot be reached: {ran.err.strip()}")
    (found,) = ran.json["overrides"]
    assert ran.code == ExitCode.FINDING
    assert found["counts"] == {"not there": 5, "declared": 13, "new": 120}
    assert [t["name"] for t in found["targets"] if t["verdict"] == "not there"] == NOT_THERE
