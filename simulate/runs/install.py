"""Run 9: install.sh as it is rendered for a site, in an environment that is empty before.

What needs CANN is stood in for by name (simulate/stand_ins.py); the figures name each. All else is
the script's own line: the sources, the lock for this machine, the steps, the questions at its end.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from simulate import stand_ins, workspaces
from simulate.steps import HERE, Figures, Place, step

BUILD = HERE.parent / "build" / "simulate-install"
MANIFESTS = HERE.parent / "manifests"
BARE = getattr(sys, "_base_executable", sys.executable)  # not that of an environment
RENDERED = HERE.parent / "rendered"


@step("qwen3-vl-npu", components=["slime"], apart=True, minutes=60)
def qwen3_vl_npu(place: Place) -> Figures:
    """Every line of qwen3-vl-npu's install.sh; what differs from its lock of another machine."""
    return _install("qwen3-vl-npu")


def _install(manifest: str) -> Figures:
    site = BUILD / manifest
    shutil.rmtree(site, ignore_errors=True)
    subprocess.run([BARE, "-m", "venv", site / "env"], check=True)
    found = stand_ins.make(site / "stand-ins", _pinned(manifest))
    settings = [f"@{RENDERED / manifest / 'values.yaml'}", f"workspace={site / 'workspace'}"]
    settings += [f"{name}={found[name]}" for name in ("torch_cpu_index", "ascend_home")]
    given = [word for each in settings for word in ("--set", each)]
    output = ("--output", str(site / "stack"))
    _patchkit("export", "--format", "machine", *given, *output, manifest=manifest)
    subprocess.run([site / "stack" / "install.sh"], env=_variables(site, found), check=True)
    installed = _installed(site / "env")
    return {
        "stand-ins": stand_ins.STAND_INS,
        "installed": installed,
        "not as locked": differences(manifest, installed),
    }


def _pinned(manifest: str) -> dict[str, str]:
    """The versions that a stack's environment has alone, by name."""
    text = _patchkit("status", "--resolved", manifest=manifest)
    versions = yaml.safe_load(text)["environment"]["versions"]
    return {
        name: asked.removeprefix("==") for name, asked in versions.items() if asked.startswith("==")
    }


def _patchkit(*words: str, manifest: str) -> str:
    path = MANIFESTS / f"{manifest}.yaml"
    command = [*workspaces.patchkit(), *words, "--manifest", str(path)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _variables(site: Path, found: dict[str, str]) -> dict[str, str]:
    """What a login shell would have, with the environment active and the stand-ins before it."""
    programs = site / "programs"
    programs.mkdir(exist_ok=True)
    command = " ".join(workspaces.patchkit())
    (programs / "patchkit").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    (programs / "patchkit").chmod(0o755)
    own = Path(sys.executable).parent  # uv, which solves for the lock
    path = [found["PATH"], site / "env" / "bin", programs, os.environ["PATH"], own]
    ours = re.compile("PYTHON|SIMULATE_|VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not ours.match(name)}
    return kept | {"PATH": os.pathsep.join(map(str, path))}


def _installed(environment: Path) -> dict[str, str]:
    """Version by normal name."""
    asked = [environment / "bin" / "python3", "-m", "pip", "list", "--format=json"]
    found = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True)
    return {_normal(each["name"]): each["version"] for each in json.loads(found.stdout)}


def differences(manifest: str, installed: dict[str, str]) -> dict[str, str]:
    """What the shipped lock, of another architecture, has in other versions: name -> both."""
    [lock] = (RENDERED / manifest).glob("requirements-*.txt")
    locked = dict(re.findall(r"(?m)^([^#\s=]+)==(\S+)", lock.read_text()))
    return {
        name: f"{installed.get(name, 'none')}, not {version}"
        for name, version in locked.items()
        if installed.get(name) != version
    }


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
