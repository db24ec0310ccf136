"""A project to render, and a machine on which what is rendered can be run: stub programs on PATH.

The stubs stand for other people's programs (pip, patchkit as installed there, the trainer); each
writes its words and what matters of its surroundings to a log.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

MANIFEST = """\
version: 1
description: A trainer on two upstreams
values:
  model_path: {description: folder of the checkpoint}
  home: {description: where the toolkit is, default: TOOLKIT}
  devices: {description: NPUs that train, default: 8}
  npu: {description: "which NPU the image is for, 910b or a3"}
environment:
  versions: {python: ">=3.10", cann: "==8.5.0", torch: "==2.8.0", numpy: ">=1.26, <2"}
  scripts: ["${home}/set_env.sh"]
  variables: {GREETING: "a b $(touch pwned)", MODEL: "${model_path}"}
  paths: {PYTHONPATH: ["${workspace}/Core/src", "${workspace}/trainer"]}
  unsupported: {flash-attn: no kernels}
image: {base: "ascendai/cann:8.5.0-${npu}-ubuntu22.04-py3.11", packages: [git]}
launch:
  grpo-8b:
    description: GRPO on one machine.
    component: trainer
    directory: examples
    variables: {PORT: "61000"}
    before:
      - {name: start Ray, run: 'ray start "$devices"'}
    command: train --fast
    arguments:
      checkpoint: {--load: "${model_path}", --colocate: ""}
      optimizer: {--lr: 1e-6, actor.beta: 0.98, --bs: [4, 8]}
  status: {command: ray status}
components:
  core:
    description: what trains
    source: {git: "https://example.com/core.git"}
    pin: 0123456789abcdef0123456789abcdef01234567
    checkout: Core
    patches:
      - series: patches/core/series
    install:
      - {run: pip install -e .}
  trainer:
    description: the trainer
    source: {git: "https://github.com/THUDM/slime.git"}
    pin: 2418a7844abe4d490a1676dcf88fc3401adab362
    install:
      - {name: prepare, run: "tool one\\ntool two", directory: examples}
      - {run: pip install -e .}
"""
VALUES = ("--set", "model_path=/data/the model", "--set", "npu=a3")

_STUB = """\
#!/bin/sh
{ printf '%s' "${0##*/}"; for each in "$@"; do printf ' [%s]' "$each"; done; echo
  echo "  in ${PWD} with PORT=${PORT-} MODEL=${MODEL-}"; } >>"$LOG"
"""


@dataclass(frozen=True)
class Machine:
    """A folder of programs, and the log that they write."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> Machine:
        """A machine with a toolkit, and with stubs for all that the scripts call."""
        (folder / "bin").mkdir(parents=True)
        for name in ("patchkit", "python3", "ray", "train", "tool"):
            (folder / "bin" / name).write_text(_STUB)
            (folder / "bin" / name).chmod(0o755)
        (folder / "toolkit").mkdir()
        # as CANN's: reads a variable that nobody has set, and sets PYTHONPATH
        script = 'test -z "$NEVER_SET"\nexport PYTHONPATH=/toolkit/python\n'
        (folder / "toolkit" / "set_env.sh").write_text(script)
        return cls(folder)

    @property
    def toolkit(self) -> Path:
        """Where the toolkit is."""
        return self.folder / "toolkit"

    @property
    def log(self) -> list[str]:
        """What was called, line by line."""
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def run(self, script: Path | str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a script, or shell text, on this machine."""
        argv = [str(script), *words] if isinstance(script, Path) else ["bash", "-c", script]
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "LOG": str(self.folder / "log"), "HOME": str(self.folder)}
        return subprocess.run(
            argv, env=environment, cwd=self.folder, capture_output=True, text=True, check=False
        )


def make_project(root: Path, machine: Machine, text: str = MANIFEST) -> Path:
    """A project with the manifest `demo`; returns its folder."""
    files = {
        "manifests/demo.yaml": text.replace("TOOLKIT", str(machine.toolkit)),
        "patches/core/series": "one.patch\n# two.patch later\n",
        "workspace/Core/README": "",
        "workspace/trainer/examples/README": "",
    }
    for name, contents in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(contents)
    return root
