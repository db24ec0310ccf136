"""What stands for CANN and its builds when install.sh runs without them: found by name, or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.extensions.machine.ascend import AscendHost
from simulate import reports, stand_ins
from simulate.runs import install

VERSIONS = {"cann": "8.5.0", "nnal": "8.5.0", "hdk": "25.3.RC1", "torch-npu": "2.8.0.post2"}
VERSIONS["triton-ascend"] = "3.2.0"


@pytest.fixture
def found(tmp_path: Path) -> dict[str, str]:
    return stand_ins.make(tmp_path, VERSIONS)


def test_software_says_its_version(found: dict[str, str]) -> None:
    home = Path(found["ascend_home"])
    said = "; env"
    script = " && ".join(f". {path}" for path in sorted(home.rglob("set_env.sh")))
    ran = subprocess.run(["sh", "-c", script + said], capture_output=True, text=True, check=True)
    variables = dict(line.partition("=")[::2] for line in ran.stdout.splitlines())
    host = AscendHost(home, variables, str(home.parent / "programs/npu-smi"))
    there = [host.cann(), host.nnal(), host.driver()]
    assert [each and each.version for each in there] == ["8.5.0", "8.5.0", "25.3.RC1"]


@pytest.mark.slow
def test_a_wheel_is_had_from_the_index(found: dict[str, str], tmp_path: Path) -> None:
    """The index is asked beside another one; here there is no other one."""
    index = found["torch_cpu_index"].split()[0]
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--isolated", "--index-url", index]
    asked = ["--target", str(tmp_path / "there"), "torch-npu==2.8.0.post2", "triton-ascend==3.2.0"]
    subprocess.run([*pip, *asked], check=True, capture_output=True)
    [info] = (tmp_path / "there").glob("torch_npu-2.8.0.post2+npusim.dist-info")
    assert "torch_npu:_autoload" in (info / "entry_points.txt").read_text()
    assert (tmp_path / "there" / "npusim" / "device.cpp").exists()
    [other] = (tmp_path / "there").glob("triton_ascend-3.2.0+nothing.dist-info")
    assert f"\nRequires-Dist: {stand_ins.TRITON}\n" in (other / "METADATA").read_text()


def test_the_same_bytes_each_time(found: dict[str, str], tmp_path: Path) -> None:
    pages = {path: path.read_bytes() for path in tmp_path.rglob("index.html")}
    assert len(pages) == 2
    stand_ins.make(tmp_path, VERSIONS)
    assert {path: path.read_bytes() for path in pages} == pages


def test_builds_leave_wheels(found: dict[str, str], tmp_path: Path) -> None:
    """By the script's own words; another build stops, and other scripts are bash's."""
    checkout = tmp_path / "sgl-kernel-npu"
    package = checkout / "python" / "sgl_kernel_npu" / "sgl_kernel_npu"
    package.mkdir(parents=True)
    (package / "norm.py").write_text("")
    bash = str(Path(found["ascend_home"]).parent / "programs/bash")

    def ran(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [bash, *words],
            cwd=checkout,
            env=os.environ,
            capture_output=True,
            text=True,
            check=False,
        )

    for words in (("kernels", "Ascend910_9382"), ("memory-saver",)):
        made = ran("build.sh", "-a", *words)
        assert made.returncode == 0, made.stderr
    assert sorted(path.name.partition("-")[0] for path in (checkout / "output").iterdir()) == [
        "sgl_kernel_npu",
        "torch_memory_saver",
    ]
    refused = ran("build.sh", "-a", "deepep")
    assert refused.stderr == "simulate.stand_ins: build.sh -a deepep has no stand-in\n"
    assert ran("-c", "echo $0").stdout == "/bin/bash\n"


def test_differences_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "RENDERED", tmp_path)
    (tmp_path / "demo").mkdir()
    lock = "# the packages\n\na==1 \\\n    --hash=sha256:0\nb-c==2 \\\n    --hash=sha256:1\nd==3\n"
    (tmp_path / "demo" / "requirements-aarch64.txt").write_text(lock)
    installed = {"a": "1", "b-c": "2.1", "e": "4"}
    assert reports.not_as_locked("demo", installed) == {"b-c": "2.1, not 2", "d": "none, not 3"}
    assert reports.not_as_locked("other", installed) == {}


def test_the_first_step_is_read() -> None:
    """As slime writes it, behind the process that does."""
    said = "(pid=1) [13:00:00] model.py:665 - step {}: {{'train/loss': {}, 'train/step': 0}}\n"
    assert install.first_step(said.format(0, 1.5e-08) + said.format(1, 2)) == {
        "train/loss": 1.5e-08,
        "train/step": 0.0,
    }
    with pytest.raises(AssertionError, match="no step was logged"):
        install.first_step(said.format(1, 2))
