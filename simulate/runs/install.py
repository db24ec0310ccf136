"""Run 9: install.sh as it is rendered for a site, in an environment that is empty before; then the
launch scripts of that site in it, to their first training step.

What needs CANN is stood in for by name (simulate/stand_ins.py); the figures name each. All else is
the scripts' own line: the sources, the lock for this machine, the steps, the questions at the end;
Ray, slime's train.py, SGLang's server and router, the trainers. A launch is made small by words
that are added to its own arguments, and by a model and data of the site's values.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import yaml

from simulate import reports, stand_ins, workspaces
from simulate.runs import slime
from simulate.steps import HERE, Figures, Place, step

BUILD = HERE.parent / "build" / "simulate-install"
BARE = getattr(sys, "_base_executable", sys.executable)  # not that of an environment

STACK = "qwen3-vl-npu"
SITE = BUILD / STACK
SHORT = BUILD / "short"
LARGE = 10_000_000  # bytes

MEAN_TOLERANCE = 0.03
"""bfloat16 on both sides: 0.011 was seen, and 1.4 where the server had no images."""

ROLLOUTS, STEPS = 2, 2  # in all, but for the short form; for each rollout
#: As in the run `slime`, with rollouts of a few tokens by one server.
WORDS = {
    **{name: value for name, value in slime.SMALL.items() if name != "--train-env-vars"},
    "--n-samples-per-prompt": 8,  # half of them are right
    "--global-batch-size": 16 // STEPS,
    "--rollout-max-response-len": 32,
    "--rollout-top-k": 32,  # images have no place in a response, and their tokens are in the middle
    "--sglang-max-total-tokens": 2048,
    "--sglang-cuda-graph-bs": 4,
}


@step(STACK, components=["slime"], apart=True, minutes=60)
def qwen3_vl_npu(place: Place) -> Figures:
    """Every line of qwen3-vl-npu's install.sh; what differs from its lock of another machine."""
    shutil.rmtree(SITE, ignore_errors=True)
    return _install(SITE, workspaces.PROJECT, stand_ins.STAND_INS)


@step(STACK, components=["megatron-lm"], quick=True, minutes=20)
def short(place: Place) -> Figures:
    """Every line of that install.sh, with versions of large packages that this machine has."""
    shutil.rmtree(SHORT, ignore_errors=True)
    for name in ("manifests", "patches"):
        shutil.copytree(workspaces.PROJECT / name, SHORT / name)
    manifest = SHORT / "manifests" / f"{STACK}.yaml"
    text = manifest.read_text()
    versions = _had_here() | {"torchvision": ">=0.23"}
    lines = "".join(f'    {name}: "{version}"\n' for name, version in versions.items())
    manifest.write_text(text.replace("  versions:\n", f"  versions:\n{lines}", 1))
    stand_ins.link(SHORT / "stand-ins", SHORT / "env")
    stood_in = stand_ins.STAND_INS | stand_ins.OF_THE_SHORT_FORM
    found = _install(SHORT, SHORT, stood_in)
    found["stand-ins"] |= {place: why for place, _, _, why in stand_ins.NEWER}
    stand_ins.with_newer_torch(SHORT)  # after its `check`, at which edits are refused
    return found


def _install(site: Path, project: Path, stood_in: dict[str, str]) -> Figures:
    """Run the install.sh of a project's stack in a new environment."""
    subprocess.run([BARE, "-m", "venv", site / "env"], check=True)
    found = stand_ins.make(site / "stand-ins", _pinned(project))
    settings = [f"@{reports.RENDERED / STACK / 'values.yaml'}", f"workspace={site / 'workspace'}"]
    settings += [f"{name}={found[name]}" for name in ("torch_cpu_index", "ascend_home")]
    settings += [f"model_path={site}/model", f"train_file={site}/train.parquet"]
    settings += [f"checkpoint_dir={site}/checkpoints"]
    given = [word for each in settings for word in ("--set", each)]
    output = ("--output", str(site / "stack"))
    _patchkit(project, "export", "--format", "machine", *given, *output)
    subprocess.run([site / "stack" / "install.sh"], env=_variables(site), check=True)
    installed = _installed(site / "env")
    return {
        "stand-ins": stood_in,
        "installed": installed,
        "not as locked": reports.not_as_locked(STACK, installed),
    }


def _had_here() -> dict[str, str]:
    """Large packages of this environment, but for what the stack pins: its torch is another."""
    locked = {name for name, _ in reports.locked(STACK)}
    pinned = _pinned(workspaces.PROJECT).keys() - {"torch"}
    found = {}
    for package in importlib.metadata.distributions():
        name = reports.normal_name(package.metadata["Name"])
        size = sum(file.size or 0 for file in package.files or ())
        if name in locked - pinned and size > LARGE:
            found[name] = f"=={package.version}"
    return found


@step(STACK, components=["slime"], apart=True, minutes=60)
def grpo(place: Place) -> Figures:
    """The GRPO launch in what qwen3-vl-npu has installed: rollouts, steps, what is saved."""
    return _grpo(SITE, ROLLOUTS)


@step(STACK, components=["slime"], quick=True, minutes=20)
def short_grpo(place: Place) -> Figures:
    """That launch in what the short form has installed, up to the steps of its first rollout."""
    return _grpo(SHORT, 1)


def _grpo(site: Path, rollouts: int) -> Figures:
    make = "from pathlib import Path; from simulate import models; models.launchable(Path())"
    python = [site / "env" / "bin" / "python3", "-c", make]
    shutil.rmtree(site / "checkpoints", ignore_errors=True)
    subprocess.run(python, cwd=site, env=_variables(site, PYTHONPATH=str(HERE.parent)), check=True)
    said = _launched(site, "launch-grpo-qwen3-vl-8b", rollouts, minutes=50)
    return {
        "stand-ins": stand_ins.OF_A_LAUNCH,
        "steps": trained(said, rollouts),
        "saved": sorted(path.name for path in (site / "checkpoints").rglob("*") if path.is_dir()),
    }


def _launched(site: Path, script: str, rollouts: int, minutes: float) -> str:
    """What a launch says that ends well; one that does not end is interrupted."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    cores = '{"CPU": 64}'
    more = {"RAY_PORT": str(port), "RAY_OVERRIDE_RESOURCES": cores, "NPUSIM_DEVICES": "16"}
    given = WORDS | {"--num-rollout": rollouts}
    words = [word for name, value in given.items() for word in (name, str(value))]
    log = site / f"{script}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [site / "stack" / f"{script}.sh", *words],
            env=_variables(site, GLOO_SOCKET_IFNAME="lo", **more),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            code = process.wait(minutes * 60)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            code = process.wait(60)
    said = log.read_text(errors="replace")
    if code:
        print(said[-20000:])
        raise AssertionError(f"{script} ended with {code}: {log}")
    return said


def trained(said: str, rollouts: int) -> list[dict[str, float]]:
    """What slime logs of its steps: in each, weights move and the log probabilities agree.

    The first step of a rollout has the weights that it was made with: there the loss is the mean of
    the advantages, which is 0. It is not in the second one.
    """
    logged = re.findall(r"(?m) - step \d+: (\{.*\})", said)
    steps = [
        {
            name.removeprefix("train/"): float(value)
            for name, value in ast.literal_eval(each).items()
        }
        for each in logged
    ]
    if len(steps) != rollouts * STEPS:
        raise AssertionError(f"the launch ended, and {len(steps)} steps were logged")
    for number, found in enumerate(steps):
        if found["train_rollout_logprob_abs_diff"] > MEAN_TOLERANCE:
            raise AssertionError(f"step {number}: server and trainer do not agree: {found}")
        if not found["grad_norm"] or (number % STEPS and abs(found["loss"]) < 1e-4):
            raise AssertionError(f"step {number}: nothing was learned: {found}")
    return steps


def _pinned(project: Path) -> dict[str, str]:
    """The versions that the stack's environment has alone, by name."""
    text = _patchkit(project, "status", "--resolved")
    versions = yaml.safe_load(text)["environment"]["versions"]
    return {
        name: asked.removeprefix("==") for name, asked in versions.items() if asked.startswith("==")
    }


def _patchkit(project: Path, *words: str) -> str:
    path = project / "manifests" / f"{STACK}.yaml"
    command = [*workspaces.patchkit(), *words, "--manifest", str(path)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _variables(site: Path, **more: str) -> dict[str, str]:
    """What a login shell would have, with the environment active and the stand-ins before it."""
    programs = site / "programs"
    programs.mkdir(exist_ok=True)
    command = " ".join(workspaces.patchkit())
    (programs / "patchkit").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    (programs / "patchkit").chmod(0o755)
    own = [Path(each).parent for each in (sys.executable, *workspaces.patchkit())]  # uv's place
    stood_in = site / "stand-ins" / "programs"
    path = [stood_in, site / "env" / "bin", programs, os.environ["PATH"], *own]
    ours = re.compile("PYTHON|SIMULATE_|VIRTUAL_ENV|RANK|WORLD_SIZE|LOCAL_RANK|MASTER_")
    kept = {name: value for name, value in os.environ.items() if not ours.match(name)}
    return {**kept, "PATH": os.pathsep.join(map(str, path)), **more}


def _installed(environment: Path) -> dict[str, str]:
    """Version by normal name."""
    asked = [environment / "bin" / "python3", "-m", "pip", "list", "--format=json"]
    found = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True)
    return {reports.normal_name(each["name"]): each["version"] for each in json.loads(found.stdout)}
