"""The simulated NPU and the short form of the runs on it, in an environment of their own.

`make simulate-quick` makes that environment; without it, or PATCHKIT_TEST_SIMULATE=1, nothing is
downloaded and these tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from simulate import noticing

ROOT = Path(__file__).resolve().parent.parent.parent
SIMENV = ROOT / ".simenv"

pytestmark = [pytest.mark.simulate, pytest.mark.slow]


@pytest.fixture(scope="session")
def python() -> str:
    """The environment's Python."""
    found = SIMENV / "bin" / "python"
    if not (SIMENV / ".simulates").exists():
        if not os.environ.get("PATCHKIT_TEST_SIMULATE"):
            pytest.skip("no .simenv: `make simulate-quick` makes it, or PATCHKIT_TEST_SIMULATE=1")
        made = run(sys.executable, "-m", "simulate.environment", "--quick", str(SIMENV))
        if made.returncode:
            pytest.skip(f"torch cannot be fetched: {made.stderr.strip()}")
    return str(found)


def run(
    *command: str, minutes: float = 20, more: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    """A command at the project's root, with this machine's own settings of pip and git."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env=OUTSIDE | {"PYTHONPATH": str(ROOT), **more},
        capture_output=True,
        text=True,
        check=False,
        timeout=minutes * 60,
    )


# Tests are sealed from the machine; these need its compiler, index and mirrors.
OUTSIDE = dict(os.environ)


def test_the_device_and_its_operators(python: str) -> None:
    tests = ROOT / "npusim" / "tests"
    made = run(python, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tests), str(tests))
    if "no C++ compiler found" in made.stdout + made.stderr:
        pytest.skip("npusim needs a C++ compiler")
    assert not made.returncode, made.stdout[-4000:] + made.stderr[-2000:]


@pytest.mark.upstream
def test_the_short_form(python: str, tmp_path: Path) -> None:
    """Megatron's and MindSpeed's first steps, an install.sh; or the sources cannot be fetched."""
    try:
        made = run(python, "-m", "simulate", "apply", "--quick", minutes=8)
    except subprocess.TimeoutExpired:
        pytest.skip("the upstreams were not there within 8 minutes")
    if made.returncode:
        pytest.skip(f"an upstream cannot be fetched: {made.stderr.strip()[-300:]}")
    report = tmp_path / "report.json"
    made = run(python, "-m", "simulate", "run", "--quick", "--keep", "--report", str(report))
    assert not made.returncode, made.stdout[-4000:] + made.stderr[-2000:]
    steps = json.loads(report.read_text())["steps"]
    assert steps
    assert {step["status"] for step in steps.values()} == {"passed"}
    # Figures of the prototype; they are a property of the sources, the seed and the data.
    found = steps["megatron/tp1-fp32"]["figures"]
    assert [round(value, 6) for value in found["loss"]] == [4.175226, 3.919897, 3.799877]
    assert [round(value, 6) for value in found["norm"]] == [1.099375, 0.859509, 1.156313]
    # install.sh of a stack, on the torch that is here; all of it ended well
    found = steps["install/short"]["figures"]
    assert "uv" in found["stand-ins"]["python3 -m pip install"]
    assert found["not as locked"]["torch"] == f"{found['installed']['torch']}, not 2.8.0"
    assert found["installed"]["slime"]
    # and its launch, up to the steps of the first rollout: the step asserts what they have learned
    found = steps["install/short-grpo"]["figures"]
    assert len(found["steps"]) == 2
    assert found["saved"]


@pytest.mark.upstream
def test_the_patches_on_real_sources(python: str) -> None:
    """All that mistakes in patches are tried with; the sources are fetched, or it is skipped."""
    about = {name for tests, _ in noticing.ABOUT.values() for name in tests}
    files = [f"stack_tests/test_{name}.py" for name in sorted({*about, "mistakes"})]
    how = ("-n", "2", "--dist", "loadfile", "-q", "-rs", "-p", "no:cacheprovider")
    made = run(python, "-m", "pytest", *files, *how, more={"PATCHKIT_TEST_UPSTREAM": "1"})
    assert not made.returncode, made.stdout[-8000:] + made.stderr[-2000:]
    if "the upstreams cannot be reached" in made.stdout:
        pytest.skip(f"an upstream cannot be fetched: {made.stdout[-600:]}")
    skipped = [line for line in made.stdout.splitlines() if line.startswith("SKIPPED")]
    assert all(line.endswith("goes by whether torch_npu is loaded") for line in skipped), skipped


def test_two_reports_side_by_side(python: str, tmp_path: Path) -> None:
    """compare says which figure differs, and its exit code agrees."""

    def report(name: str, loss: float) -> str:
        path = tmp_path / name
        figures = {"loss": [4.0, loss], "operators": [name]}
        step = {"status": "passed", "figures": figures}
        path.write_text(
            json.dumps({"format": 1, "device": "npu", "simulated": True, "steps": {"a/b": step}})
        )
        return str(path)

    one, near, far = report("one", 3.0), report("near", 3.0005), report("far", 3.1)
    assert run(python, "-m", "simulate", "compare", one, near).returncode == 0
    made = run(python, "-m", "simulate", "compare", one, far)
    assert made.returncode == 1
    assert "a/b: loss: differs, at most 0.1" in made.stdout
