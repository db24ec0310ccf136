"""Our patches for sgl-kernel-npu, executed: the package is imported, the script's part is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stack_tests.conftest import Stack

PACKAGE = "python/deep_ep/deep_ep/__init__.py"
BUILD = "build.sh"

pytestmark = pytest.mark.upstream


@pytest.fixture(params=["before", "after"])
def when(request: pytest.FixtureRequest) -> str:
    """Without and with our patches."""
    return str(request.param)


def imported(source: str, site: Path) -> subprocess.CompletedProcess[str]:
    """A Python that imports deep_ep, installed in `site` as its wheel does it, and uses it."""
    package = site / "deep_ep"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(source)
    (package / "build_config.py").write_text("")
    # Python files stand for the extension and for what imports it by its bare name
    extension = "class Config: pass\nclass EventHandle: pass\n"
    (package / "deep_ep_cpp.py").write_text(extension + "print('extension loaded')\n")
    (package / "buffer.py").write_text("import deep_ep_cpp\nclass Buffer: cpp = deep_ep_cpp\n")
    (package / "utils.py").write_text("from deep_ep_cpp import Config\nclass EventOverlap: pass\n")
    (site / "torch.py").write_text("")
    program = "import deep_ep; assert deep_ep.Buffer.cpp.Config is deep_ep.Config"
    return subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_extension_is_found(mindspeedllm_stack: Stack, tmp_path: Path, when: str) -> None:
    ran = imported(getattr(mindspeedllm_stack, when)("sgl-kernel-npu", PACKAGE), tmp_path)
    if when == "before":
        assert "No module named 'deep_ep_cpp'" in ran.stderr
    else:
        assert (ran.returncode, ran.stdout) == (0, "extension loaded\n"), ran.stderr


def test_a_link_made_by_hand_does_no_harm(mindspeedllm_stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "deep_ep_cpp.py").symlink_to("deep_ep/deep_ep_cpp.py")
    ran = imported(mindspeedllm_stack.after("sgl-kernel-npu", PACKAGE), tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "extension loaded\n"), ran.stderr


@pytest.mark.parametrize("home", ["ascend-toolkit/latest", "cann-8.5.0"])
@pytest.mark.parametrize("folder", ["ascend-toolkit", "cann-8.5.0", "elsewhere"])
def test_cann_is_found(mindspeedllm_stack: Stack, tmp_path: Path, home: str, folder: str) -> None:
    for each in (home, folder):
        (tmp_path / each).mkdir(parents=True, exist_ok=True)
    (tmp_path / folder / "set_env.sh").write_text("echo sourced\n")
    before, after = (
        started(getattr(mindspeedllm_stack, when)("sgl-kernel-npu", BUILD), tmp_path / home)
        for when in ("before", "after")
    )
    assert after == [*(["sourced"] if home.startswith(folder) else []), "goes on"]
    # where upstream does not go on, verl's script comments the line out by its number
    assert before == (after if folder == "ascend-toolkit" and home.startswith(folder) else [])


def started(script: str, home: Path) -> list[str]:
    """What the part of build.sh says that looks for CANN, and what comes behind it."""
    start = script.index("export ASCEND_HOME_PATH=")
    part = script[start : script.index("CURRENT_DIR=", start)]
    given = f"set -e\n_ASCEND_INSTALL_PATH={home}\n{part}\necho goes on\n"
    ran = subprocess.run(["bash", "-c", given], capture_output=True, text=True, check=False)
    return [line for line in ran.stdout.splitlines() if not line.startswith("ascend path")]
