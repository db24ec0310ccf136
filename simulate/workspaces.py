"""The checkouts that steps run on, made with patchkit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from simulate.steps import HERE, Step, one_step

PROJECT = HERE.parent


def patchkit() -> list[str]:
    """The command: `$PATCHKIT`, else that of the project's own environment."""
    if named := os.environ.get("PATCHKIT"):
        return [named]
    own = PROJECT / ".venv" / "bin" / "patchkit"
    return [str(own) if own.exists() else "patchkit"]


def make(steps: Sequence[Step], workspaces: Path) -> None:
    """Apply what the steps, and those beside them, need: each manifest in a folder of its name."""
    needed: dict[str, set[str] | None] = {}
    others = [one_step(title) for step in steps for title in step.beside]
    for step in [*steps, *others]:
        before = needed.get(step.manifest, set())
        more = set(step.components)
        needed[step.manifest] = before | more if before is not None and more else None
    for manifest, components in needed.items():
        apply(PROJECT / "manifests" / f"{manifest}.yaml", workspaces / manifest, components)


def apply(manifest: Path, workspace: Path, components: set[str] | None = None) -> None:
    """`patchkit apply`: all components of a manifest, or some."""
    chosen = [word for name in sorted(components or ()) for word in ("--component", name)]
    command = [*patchkit(), "apply", "--quiet", "--manifest", str(manifest)]
    print(f"simulate: applying {manifest.stem}", file=sys.stderr, flush=True)
    made = subprocess.run(
        [*command, "--workspace", str(workspace), *chosen], stdout=sys.stderr, check=False
    )
    if made.returncode:
        raise SystemExit(f"simulate: cannot apply {manifest.stem}, see above")


def commits(manifest: str, workspaces: Path) -> dict[str, str]:
    """The commit of each checkout."""
    found = {}
    for folder in sorted((workspaces / manifest).iterdir()):
        asked = ["git", "-C", str(folder), "rev-parse", "HEAD"]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        if not answer.returncode:
            found[folder.name] = answer.stdout.strip()
    return found
