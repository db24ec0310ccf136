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


def test_pip_installs_by_another_and_python_stays(tmp_path: Path) -> None:
    """What the environment's own does is seen by its words, and where a word is given twice."""
    own = tmp_path / "env" / "bin"
    own.mkdir(parents=True)
    (own / "python3").write_text('#!/bin/sh\necho "own: $*"\n')
    (own / "uv").write_text('#!/bin/sh\necho "uv: $*, from $UV_DEFAULT_INDEX"\n')
    for name in ("python3", "uv"):
        (own / name).chmod(0o755)
    stand_ins.link(tmp_path / "stood-in", tmp_path / "env")

    def said(*words: str) -> str:
        ran = subprocess.run(
            [tmp_path / "stood-in" / "programs" / "python3", *words],
            env=os.environ | {"PATH": f"{own}:{os.environ['PATH']}", "PIP_INDEX_URL": "file:///a"},
            capture_output=True,
            text=True,
            check=True,
        )
        return ran.stdout

    assert said("-m", "pip", "check") == "own: -m pip check\n"
    python = f"--no-config --python {own}/python3"
    made = said("-m", "pip", "install", "--no-deps", "--no-deps", "-e", ".")
    assert made == f"uv: pip install {python} --no-deps -e ., from file:///a\n"


def test_differences_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "RENDERED", tmp_path)
    (tmp_path / "demo").mkdir()
    lock = "# the packages\n\na==1 \\\n    --hash=sha256:0\nb-c==2 \\\n    --hash=sha256:1\nd==3\n"
    (tmp_path / "demo" / "requirements-aarch64.txt").write_text(lock)
    installed = {"a": "1", "b-c": "2.1", "e": "4"}
    assert reports.not_as_locked("demo", installed) == {"b-c": "2.1, not 2", "d": "none, not 3"}
    assert reports.not_as_locked("other", installed) == {}


def logged(*changed: dict[str, float]) -> str:
    """Steps as slime logs them, behind the process that does; the first ones with other figures."""
    lines = []
    for number in range(install.ROLLOUTS * install.STEPS):
        figures = {"loss": 0.1, "grad_norm": 5.0, "train_rollout_logprob_abs_diff": 0.01}
        figures |= {"loss": 0.0} if number % install.STEPS == 0 else {}
        figures |= changed[number] if number < len(changed) else {}
        said = {f"train/{name}": value for name, value in figures.items()}
        lines.append(f"(pid=1) [13:00:00] model.py:665 - step {number}: {said}\n")
    return "".join(lines)


def test_what_was_trained_is_read() -> None:
    steps = install.trained(logged({"grad_norm": 4.5}), install.ROLLOUTS)
    assert [(each["loss"], each["grad_norm"]) for each in steps[:2]] == [(0, 4.5), (0.1, 5)]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("step 0: it was stopped\n", "0 steps were logged"),
        (logged({"grad_norm": 0.0}), "step 0: nothing was learned"),
        (logged({}, {"loss": 1e-8}), "step 1: nothing was learned"),
        (logged({}, {"train_rollout_logprob_abs_diff": 1.36}), "step 1: server and trainer do not"),
    ],
)
def test_what_was_not_trained_is_said(said: str, problem: str) -> None:
    with pytest.raises(AssertionError, match=problem):
        install.trained(said, install.ROLLOUTS)


def test_a_text_for_newer_torch_is_changed_where_it_stands_once(tmp_path: Path) -> None:
    for place, old, _, _ in stand_ins.NEWER:
        path = tmp_path / place.replace("*", "11")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"before {old} after\n")
    cached = tmp_path / "cached"
    cached.hardlink_to(path)
    stand_ins.with_newer_torch(tmp_path)
    assert "torch.library.define" in path.read_text()
    assert "torch.library.define" not in cached.read_text()
    with pytest.raises(AssertionError, match=r"common\.py has .* 0 times"):
        stand_ins.with_newer_torch(tmp_path)
