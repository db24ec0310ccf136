"""slime on a real Ray: with accelerators that are made up, on a machine that has none.

Skipped where Ray is not installed (`pip install ray`); the stubbed Ray of test_devices.py is there
for everybody.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stack_tests.conftest import ROOT, Stack
from tests.support.repos import git_in

pytestmark = [
    pytest.mark.upstream,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray"),
]

HERE = Path(__file__).parent / "real_ray"


def run(slime: Path, device: str) -> dict[str, Any]:
    """What slime in that folder makes of a Ray with four accelerators."""
    path = os.pathsep.join(map(str, (HERE, ROOT, slime)))
    surroundings = {
        **os.environ,
        "PYTHONPATH": path,
        "PATCHKIT_TEST_DEVICE": device,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
    for name in ("ASCEND_RT_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        surroundings.pop(name, None)
    done = subprocess.run(
        [sys.executable, str(HERE / "job.py")],
        cwd=slime,  # Ray puts it on the workers' path
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def expected(resource: str) -> dict[str, Any]:
    """Two trainers on the first two accelerators, two engines on the others, each counted once."""
    other = {"GPU": "NPU", "NPU": "GPU"}[resource]
    one = {resource: 1, other: 0}
    return {
        "bundles": [{resource: 1.0, "CPU": 1.0}] * 4,
        "devices": [0, 1, 2, 3],
        "trainers": [[0, "0", one], [1, "1", one]],
        "engines": [[2, one], [3, one]],
    }


def test_npus_are_a_custom_resource(git_stack: Stack) -> None:
    assert run(git_stack.workspace / "slime", "npu") == expected("NPU")


def test_gpus_are_asked_for_as_upstream_does(git_stack: Stack, tmp_path: Path) -> None:
    archive = git_in(
        git_stack.workspace / "slime", "archive", "--format=tar", "refs/patchkit/base", "slime"
    )
    subprocess.run(["tar", "-x", "-C", str(tmp_path)], input=archive, check=True, timeout=60)
    upstream = run(tmp_path, "cuda")
    assert run(git_stack.workspace / "slime", "cuda") == upstream == expected("GPU")


def test_ray_refuses_gpus_as_a_custom_resource() -> None:
    """What the published patch asks for where there is no NPU."""
    ray = importlib.import_module("ray")
    with pytest.raises(ValueError, match="num_gpus"):
        ray.remote(resources={"GPU": 1})(type("Actor", (), {}))
