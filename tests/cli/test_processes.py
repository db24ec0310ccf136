"""How many git processes a command starts; docs/benchmarks.md says the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.page import PROCESSES
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

_SCRIPT = """\
import sys
sys.path[:] = {path!r}
def note(event, args):
    if event == "subprocess.Popen":
        words = [w for w in args[1][1:] if not w.startswith("-") and "=" not in w]
        print("git:", words[0], file=sys.stderr)
sys.addaudithook(note)
from patchkit.cli.main import run
run(sys.argv[1:])
"""


def started(*argv: str, cwd: Path) -> list[str]:
    """The git commands that a command line starts, in order."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(path=sys.path), *argv],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return re.findall(r"(?m)^git: (.*)$", done.stderr)


@pytest.mark.parametrize("name", PROCESSES)
def test_a_command_starts_so_many(name: str, project: Project, upstream: Upstream) -> None:
    old = {"a": "1\n", "b": "1\n"}
    pin = upstream.commit(old)
    patches = {"two.patch": make_patch(old, old | {"a": "2\n"}, body="Because.")}
    project.component("demo", upstream, pin, patches)
    project.run("apply").ok()
    if name == "apply, a patch changed":
        changed = make_patch(old, old | {"a": "3\n"}, body="Because.")
        project.write({"patches/demo/two.patch": changed})
    argv = [name.split(",", maxsplit=1)[0], *(["--update-lock"] if "changed" in name else [])]
    assert started(*argv, "--quiet", cwd=project.root) == PROCESSES[name].split()
