"""Whether tests notice the small mistakes of `mistakes.tsv`, one by one.

The project is copied with a mistake in it. There the tests of stack_tests about the component run,
with torch as CI has it, the calls between components are checked, and steps of the runs that the
patch is in are executed, until something fails. What fails without a mistake does not count.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simulate import mistakes, running, workspaces
from simulate.mistakes import Mistake, Owner
from simulate.steps import one_step

#: By component: tests that are about it, steps that its patches are in, those that take less first.
ABOUT: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "slime": (
        ("slime", "slime_next", "devices", "slime_launches", "real_torch", "real_ray"),
        ("bridge/train", "native/train", "slime/grpo", "slime/ppo"),
    ),
    "sglang": (
        ("sglang", "sglang_metadata", "devices", "real_torch"),
        (
            *("sglang/decode-in-graphs", "sglang/prefill-and-decode"),
            *("sglang/next-decode-in-graphs", "slime/grpo"),
        ),
    ),
    "megatron-lm": (
        ("megatron", "devices", "real_torch"),
        ("mindspeed/tp1-fp32", "megatron/tp1-fp32", "megatron/next-tp1-fp32", "mindspeed/tp1-bf16"),
    ),
    "megatron-core": (("megatron", "devices"), ()),
    "megatron-bridge": (
        ("bridge", "real_torch"),
        ("bridge/train", "bridge/train-tp2-sequence-parallel"),
    ),
    "mindspeed": (
        ("mindspeed",),
        ("mindspeed/tp1-fp32", "mindspeed/tp1-fp32-packed", "bridge/train"),
    ),
    "mbridge": (("mbridge",), ()),
    "sgl-kernel-npu": (("sgl_kernel",), ()),
    "verl": (("fully_async",), ("verl/fully-async-imports",)),
}


def run(names: list[str], only_tests: bool, report: Path | None) -> int:
    """Try the named mistakes, or all; only_tests: without the steps."""
    have = mistakes.owners()
    found: dict[str, dict[str, Any]] = {}
    for mistake in mistakes.listed():
        if names and mistake.name not in names:
            continue
        by = noticed(mistake, have[mistake.patch], only_tests)
        found[mistake.name] = {"kind": mistake.kind, "by": by}
        print(f"{'noticed' if by else 'MISSED '}  {mistake.name}  {mistake.kind}  {by}", flush=True)
        if report:
            report.parent.mkdir(parents=True, exist_ok=True)
            report.write_text(json.dumps(found, indent=2) + "\n")
    print(f"{sum(bool(each['by']) for each in found.values())} of {len(found)} noticed")
    return 0 if found else 1


def noticed(mistake: Mistake, owner: Owner, only_tests: bool) -> list[str]:
    """What fails first with the mistake, and does not without it."""
    with _project() as project:
        path = project / mistake.patch
        path.write_text(mistakes.damaged(path.read_text(), mistake))
        but = [f"--deselect={each}" for each in failing_without(owner.component)]
        if failed := _failing(project, owner.component, "-x", *but):
            return failed
        broken = _broken_calls(project, owner)
        if broken := [each for each in broken if each not in _broken_without(owner)]:
            return broken
        if only_tests:
            return []
        for title in ABOUT[owner.component][1]:
            if (says := _step_fails(project, title)) and not _step_fails_without(title):
                return [f"{title}: {says}"]
    return []


@functools.cache
def failing_without(component: str) -> list[str]:
    """The tests about a component that fail in the project as it is."""
    with _project() as project:
        return _said(_failing(project, component))


@functools.cache
def _broken_without(owner: Owner) -> list[str]:
    with _project() as project:
        return _said(_broken_calls(project, owner))


@functools.cache
def _step_fails_without(title: str) -> str:
    with _project() as project:
        says = _step_fails(project, title)
    _said([f"{title}: {says}"] if says else [])
    return says


def _said(found: list[str]) -> list[str]:
    for each in found:
        print(f"fails without a mistake: {each}", flush=True)
    return found


@contextlib.contextmanager
def _project() -> Iterator[Path]:
    """A copy of the project, without locks."""
    with tempfile.TemporaryDirectory(prefix="simulate-mistake-") as made:
        project = Path(made) / "project"
        listed = subprocess.run(
            ["git", "-C", str(workspaces.PROJECT), "ls-files", "-z", "-co", "--exclude-standard"],
            capture_output=True,
            text=True,
            check=True,
        )
        for name in listed.stdout.split("\0"):
            if name and (workspaces.PROJECT / name).is_file():
                (project / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(workspaces.PROJECT / name, project / name)
        for lock in (project / "manifests").glob("*.lock.json"):
            lock.unlink()
        yield project


def _failing(project: Path, component: str, *options: str) -> list[str]:
    """The tests about a component that fail."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE", "--tb=no"]
    tests = [f"stack_tests/test_{each}.py" for each in ABOUT[component][0]]
    ran = subprocess.run(
        [*command, *options, *tests],
        cwd=project,
        env=os.environ | {"PATCHKIT_TEST_UPSTREAM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode not in (0, 1):
        raise SystemExit(f"simulate: pytest failed: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    lines = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return [line.split(" ")[1] for line in lines]


def _broken_calls(project: Path, owner: Owner) -> list[str]:
    """Calls between the components of the stack that do not fit."""
    asked = ["check", "--only", "calls", "-m", owner.manifest, "--json"]
    ran = subprocess.run(
        [*workspaces.patchkit(), *asked], cwd=project, capture_output=True, text=True, check=False
    )
    found = json.loads(ran.stdout)["components"]
    return [f"{each['breach']} {each['target']}" for one in found for each in one["broken"]]


def _step_fails(project: Path, title: str) -> str:
    """What a step says that fails where it should not, or differs from what it must equal."""
    step = one_step(title)
    folder = project / "workspaces"
    manifest = project / "manifests" / f"{step.manifest}.yaml"
    workspaces.apply(manifest, folder / step.manifest, set(step.components))
    outcome = running.execute(step, "npu", folder)
    if outcome.figures is None:
        return (outcome.log.strip().splitlines() or ["nothing"])[-1][:300]
    for how in step.against:
        other, device = running.other_side(step, "npu", how) or (None, "")
        if other is None:
            continue
        # The other side is the project's own: without the mistake
        beside = running.execute(other, device, workspaces.PROJECT / "build" / "simulate")
        pairs = running.compare(outcome.figures, beside.figures or {}, how)
        if not all(each.equal for each in pairs):
            return f"figures differ from those of {how.other}"
    return ""
