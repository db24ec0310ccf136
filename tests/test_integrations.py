"""What other people's CI loads from here: the action, the GitLab template, the pre-commit hooks."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from patchkit.cli.catalog import COMMANDS, split_command
from patchkit.cli.table import PAGES

ROOT = Path(__file__).parent.parent


def _load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def _commands(text: str) -> list[list[str]]:
    found = re.findall(r"^[ -]*(?:entry: )?patchkit ([^|\n]+)", text, re.MULTILINE)
    return [line.split() for line in found]


@pytest.mark.parametrize("name", ["action.yml", "ci/gitlab.yml", ".pre-commit-hooks.yaml"])
def test_commands_and_options_are_real(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    found = _commands(text)
    assert found
    for words in found:
        split = split_command(words)
        assert split is not None, words
        command, arguments = split
        assert command in COMMANDS
        options = [word for word in arguments if re.fullmatch(r"--[a-z-]+", word)]
        assert all(option in PAGES[command] for option in options)


def test_no_input_of_the_action_is_shell_code() -> None:
    (step,) = [each for each in _load("action.yml")["runs"]["steps"] if "run" in each]
    assert "${{" not in step["run"]
    assert all(name in step["run"] for name in step["env"] if name != "PATCHKIT_CACHE")


def test_the_action_passes_its_inputs(tmp_path: Path) -> None:
    (step,) = [each for each in _load("action.yml")["runs"]["steps"] if "run" in each]
    fake = tmp_path / "bin"
    fake.mkdir()
    for name, body in {"python": "exit 0", "patchkit": 'echo "$@"; exit 3'}.items():
        (fake / name).write_text(f"#!/bin/sh\n{body}\n")
        (fake / name).chmod(0o755)
    bash = shutil.which("bash")
    assert bash is not None
    environment = {
        "PATH": f"{fake}:/usr/bin:/bin",
        "ACTION": ".",
        "MANIFESTS": "one two; touch evil",
        "STRICT": "true",
        "ALLOW_DRIFT": "false",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    done = subprocess.run(
        [bash, "-eo", "pipefail", "-c", step["run"]],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    chosen = "--manifest one --manifest two; --manifest touch --manifest evil --strict"
    assert (done.returncode, done.stdout) == (3, f"ci {chosen} --format github\n")
    assert (tmp_path / "summary").read_text() == f"ci {chosen} --offline --format markdown\n"
    assert not (tmp_path / "evil").exists()


def test_hooks_have_what_pre_commit_asks_for() -> None:
    for hook in _load(".pre-commit-hooks.yaml"):
        assert {"id", "name", "entry", "language", "files"} <= hook.keys()
        re.compile(hook["files"])
