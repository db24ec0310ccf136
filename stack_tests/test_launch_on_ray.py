"""The launch scripts of a stack on a real Ray: started, interrupted, started again, the other one.

The scripts are those of qwen3-vl-npu as they are rendered for a site. What they start is real but
for the trainer (real_ray/trainer.py), torch_npu's count of devices, and CANN's own scripts, which
are empty. Skipped where Ray is neither installed here nor in .simenv.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stack_tests.conftest import ROOT
from tests.support.commands import run

HERE = Path(__file__).parent / "real_ray"
PYTHON = next(
    (
        path
        for path in (Path(sys.executable), ROOT / ".simenv/bin/python")
        if (path.parent / "ray").exists()
    ),
    None,
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="needs ray, as `make simulate-quick` installs it"),
]
NPUS = 16


class Site:
    """Rendered scripts and what they need, in a folder; Ray's port is one that is free."""

    def __init__(self, folder: Path, **values: str) -> None:
        self.folder = folder
        self.model, self.data = folder / "model", folder / "data/train.parquet"
        token = folder / ".ray/auth_token"  # as a `ray.init()` of before has left it
        for path in (self.model / "config.json", self.data, folder / "bin/hf", token):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        token.write_text("00" * 32)
        for name in ("ascend-toolkit", "nnal/atb"):
            (folder / "ascend" / name).mkdir(parents=True)
            (folder / "ascend" / name / "set_env.sh").write_text("")
        slime = folder / "workspace/slime"
        slime.mkdir(parents=True)
        shutil.copy(HERE / "trainer.py", slime / "train.py")
        self.stand_ins = folder / "workspace/Megatron-LM"
        self.stand_ins.mkdir()
        self.count(NPUS)
        assert PYTHON is not None
        for name in ("python3", "ray"):
            target = PYTHON if name == "python3" else PYTHON.parent / "ray"
            self.program(name, f'exec {target} "$@"')
        self.program("hf", f'touch {self.data}; echo "$@" >>{folder}/downloads')
        site = {
            "model_path": self.model,
            "train_file": self.data,
            "checkpoint_dir": folder / "saved",
            "ascend_home": folder / "ascend",
            "workspace": folder / "workspace",
            **values,
        }
        shipped = f"@{ROOT}/rendered/qwen3-vl-npu/values.yaml"
        settings = (shipped, *(f"{name}={value}" for name, value in site.items()))
        given = [word for each in settings for word in ("--set", each)]
        output = ("--output", str(folder / "stack"), "env", "launch")
        run("export", "--format", "machine", "-m", "qwen3-vl-npu", *given, *output, cwd=ROOT).ok()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def program(self, name: str, script: str) -> None:
        """A program on PATH."""
        (self.folder / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.folder / "bin" / name).chmod(0o755)

    def count(self, npus: int) -> None:
        """What torch_npu says of devices."""
        (self.stand_ins / "torch.py").write_text(
            f"class npu:\n    @staticmethod\n    def device_count():\n        return {npus}\n"
        )
        (self.stand_ins / "torch_npu.py").write_text("")

    def start(self, launch: str, *words: str, at: str = "", **more: str) -> subprocess.Popen[str]:
        """The script of a launch, in a process group of its own as from a terminal.

        `at` is a network namespace, which stands for a machine.
        """
        environment = {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "RAY_PORT": str(self.port),
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            **more,
        }
        return subprocess.Popen(
            [
                *(("ip", "netns", "exec", at) if at else ()),
                str(self.folder / f"stack/launch-{launch}-qwen3-vl-8b.sh"),
                *words,
            ],
            env={name: value for name, value in environment.items() if value},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def ended(self, launch: str, *words: str, **more: str) -> tuple[int, str]:
        """A launch that ends by itself: its exit code and what it says."""
        process = self.start(launch, *words, **more)
        try:
            _, said = process.communicate(timeout=180)
        finally:
            process.kill()
        return process.returncode, said

    def told(self, launch: str) -> dict[str, Any]:
        """What the trainer wrote, which is taken away."""
        path = self.folder / f"saved/{launch}-qwen3-vl-8b/told.json"
        until = time.monotonic() + 120
        while not path.exists():
            assert time.monotonic() < until, "the trainer did not start"
            time.sleep(0.1)
        found: dict[str, Any] = json.loads(path.read_text())
        path.unlink()
        return found

    def wait(self, wait: bool) -> None:
        """Whether trainers go on until they are ended."""
        path = self.folder / "workspace/slime/wait"
        path.touch() if wait else path.unlink(missing_ok=True)

    def runs_ray(self) -> bool:
        """Whether something answers at Ray's port."""
        with socket.socket() as asked:
            return asked.connect_ex(("127.0.0.1", self.port)) == 0

    def named(self) -> bool:
        """Whether a client that is told no address asks this site's Ray."""
        word = Path("/tmp/ray/ray_current_cluster")
        return word.exists() and word.read_text().endswith(f":{self.port}")

    def left(self) -> list[int]:
        """Processes that have this site in their environment."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if f"HOME={self.folder}\0".encode() in path.read_bytes():
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    for pid in made.left():
        os.kill(pid, signal.SIGKILL)


def alive(told: dict[str, Any]) -> list[int]:
    """Which of the trainer's processes are still there."""
    pids = [told["driver"], *(pid for each in told["trainers"] for pid in each["pids"])]
    return [pid for pid in pids if Path(f"/proc/{pid}/environ").exists() and _runs(pid)]


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_launched_interrupted_launched_again_and_the_other(site: Site) -> None:
    site.wait(True)
    first = site.start("grpo", MASTER_PORT="23456", no_proxy="internal")
    told = site.told("grpo")
    assert len(alive(told)) == 3
    assert site.runs_ray()
    [trainer] = told["trainers"]
    assert trainer["MASTER_ADDR"] == "127.0.0.1"
    assert trainer["MASTER_PORT"] == "23456"
    assert trainer["no_proxy"] == "127.0.0.1,localhost,127.0.0.1,internal"
    assert trainer["ASCEND_RT_VISIBLE_DEVICES"] == ",".join(map(str, range(NPUS)))
    os.killpg(first.pid, signal.SIGINT)
    first.communicate(timeout=60)
    assert first.returncode == 130
    assert alive(told) == []
    assert not site.runs_ray()
    site.wait(False)
    assert not (site.folder / "downloads").exists()
    site.data.unlink()
    for launch in ("grpo", "ppo"):
        code, said = site.ended(launch, "--more", "a b")
        assert code == 0, said
        told = site.told(launch)
        assert told["arguments"][-2:] == ["--more", "a b"]
        assert alive(told) == []
        assert not site.runs_ray()
        assert not site.named()
    assert 1024 < int(told["trainers"][0]["MASTER_PORT"]) != 23456
    assert site.left() == []
    words = "download --repo-type dataset VeraIsHere/geo3k_imgurl_processed --local-dir"
    assert (site.folder / "downloads").read_text() == f"{words} {site.data.parent}\n"


def test_a_launch_that_fails_ends_its_ray(site: Site) -> None:
    (site.folder / "workspace/slime/train.py").write_text("raise SystemExit(7)\n")
    assert site.ended("grpo")[0] == 7
    assert site.left() == []


def test_a_ray_that_runs_is_used_and_left_running(site: Site) -> None:
    """Here one whose script was killed, so that nothing could end it; its trainer goes on."""
    site.wait(True)
    first = site.start("grpo")
    orphan = site.told("grpo")["driver"]
    first.kill()
    first.wait()
    for stream in (first.stdout, first.stderr):
        assert stream is not None
        stream.close()
    site.wait(False)
    address = f"127.0.0.1:{site.port}"
    hint = "end it, or what it runs (ray stop), or set RAY_PORT for another"
    os.kill(orphan, signal.SIGSTOP)
    code, said = site.ended("ppo")
    assert code == 1
    assert said.splitlines()[-1] == (
        f"launch-ppo-qwen3-vl-8b.sh: Ray at {address} has 15 NPUs free of 16: {hint}"
    )
    os.kill(orphan, signal.SIGKILL)
    code, said = site.ended("ppo")
    assert code == 0, said
    assert f"Ray runs at {address}: it is used, and left running\n" in said
    assert alive(site.told("ppo"))[1:] == []  # the server of its actor: nobody's but that Ray's
    assert site.runs_ray()


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (
            lambda site: shutil.rmtree(site.model),
            "{site.model} is not there: put it there, or export again with --set model_path=...",
        ),
        (
            lambda site: (site.data.unlink(), site.program("hf", "")),
            "{site.data} is not there: put it there, or export again with --set train_file=...",
        ),
        (
            lambda site: site.count(8),
            "16 NPUs are wanted, torch_npu finds: 8; set visible_devices",
        ),
        (
            lambda site: (site.stand_ins / "torch_npu.py").write_text(
                "raise OSError('libhccl.so')"
            ),
            "16 NPUs are wanted, torch_npu finds: OSError libhccl.so; set visible_devices",
        ),
    ],
    ids=["model", "data", "npus", "torch_npu"],
)
def test_what_is_missing_is_said_in_one_line(
    site: Site, break_it: Callable[[Site], object], says: str
) -> None:
    break_it(site)
    code, said = site.ended("grpo")
    assert (code, said) == (1, f"launch-grpo-qwen3-vl-8b.sh: {says.format(site=site)}\n")
    assert not site.runs_ray()
    assert site.left() == []


def test_a_port_that_somebody_else_has(site: Site) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", site.port))
        taken.listen()
        code, said = site.ended("grpo")
    what = f"what answers at 127.0.0.1:{site.port} is no Ray: set RAY_PORT to a free port"
    assert (code, said) == (1, f"launch-grpo-qwen3-vl-8b.sh: {what}\n")
    assert site.left() == []


def test_several_machines_want_an_address(tmp_path: Path) -> None:
    site = Site(tmp_path, nodes="2")
    code, said = site.ended("grpo")
    assert (code, said.count("\n")) == (1, 1)
    assert "2 machines: set MASTER_ADDR to the address of the one that runs the command" in said
    assert "is not a number of machines" in Site(tmp_path / "x", nodes="two").ended("grpo")[1]


@pytest.fixture
def machines() -> Iterator[tuple[str, str]]:
    """Two network namespaces that reach each other, at 10.231.7.1 and 10.231.7.2."""
    names = f"pk-{os.getpid()}-a", f"pk-{os.getpid()}-b"
    first, second = names
    links = f"pk{os.getpid()}"
    lines = [f"ip netns add {first}", f"ip netns add {second}"]
    lines += [f"ip link add a{links} netns {first} type veth peer name b{links} netns {second}"]
    for number, (name, link) in enumerate(zip(names, ("a", "b"), strict=True), 1):
        lines += [f"ip -n {name} addr add 10.231.7.{number}/24 dev {link}{links}"]
        lines += [f"ip -n {name} link set {each} up" for each in ("lo", f"{link}{links}")]
    script = " && ".join(lines)
    made = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    try:
        if made.returncode:
            pytest.skip(f"no network namespaces here: {made.stderr.strip()}")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def test_two_machines(tmp_path: Path, machines: tuple[str, str]) -> None:
    """The same script on both, in either order; each trains, and the end of one is that of both."""
    site = Site(tmp_path, nodes="2")
    site.wait(True)
    try:
        second = site.start("grpo", at=machines[1], MASTER_ADDR="10.231.7.1")
        first = site.start("grpo", at=machines[0], MASTER_ADDR="10.231.7.1")
        told = site.told("grpo")
        where = {each["address"] for each in told["trainers"]}
        assert where == {"10.231.7.1", "10.231.7.2"}
        assert len(alive(told)) == 5
        site.wait(False)
        _, said = first.communicate(timeout=120)
        assert first.returncode == 0, said
        _, said = second.communicate(timeout=120)
        assert second.returncode == 0, said
        assert f"no Ray at 10.231.7.1:{site.port} yet" in said
        assert site.left() == []
    finally:
        for pid in site.left():
            os.kill(pid, signal.SIGKILL)
