"""Completion: candidates for partial command lines, and each shell's script where the shell is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.cli.help import candidates, component_names, names_of_kind
from tests.support.commands import run
from tests.support.projects import write_files

_MANIFEST = """\
version: 1
extends: [shared/base.yaml]
# components: not here
components:
  # a comment
  megatron-lm:
    pin: 1
  "mbridge":
    pin: 2
environment:
  versions: {python: "3"}
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "manifests/one.yaml": _MANIFEST,
            "manifests/shared/base.yaml": "extends:\n  - ../no.yaml\ncomponents:\n    sglang:\n",
            "manifests/two.yml": "components:\n  slime: {}\n",
            "patches/a/fix.patch": "",
            "patches/a/series": "",
        },
    )


def _asked(*words: str) -> list[str]:
    """The candidates, without their descriptions."""
    return [each.partition("\t")[0] for each in candidates(list(words))]


def test_commands_and_groups() -> None:
    assert {"apply", "manifest", "status"} <= set(_asked(""))
    assert _asked("mani") == ["manifest"]
    assert _asked("manifest", "") == ["lint", "show", "schema"]
    assert _asked("--v") == ["--version"]
    assert _asked("nonsense", "") == []


def test_commands_come_with_their_summaries() -> None:
    assert list(candidates(["vers"])) == ["version\tSay which patchkit, git and Python run"]


def test_options_are_offered_once_unless_they_repeat() -> None:
    assert _asked("apply", "--dr") == ["--dry-run"]
    assert _asked("apply", "--dry-run", "--dr") == []
    assert _asked("apply", "-n", "--dr") == []
    assert _asked("apply", "-c", "x", "--comp") == ["--component"]
    assert {"--manifest", "--json", "--help"} <= set(_asked("apply", "-"))


def test_an_options_value_is_completed_by_its_kind() -> None:
    assert _asked("apply", "-m", "") == ["one.yaml", "two.yml"]
    assert _asked("apply", "--manifest", "t") == ["two.yml"]
    assert _asked("apply", "--manifest=o") == ["--manifest=one.yaml"]
    assert _asked("apply", "-m", "manifests/") == [":files"]
    assert _asked("apply", "--workspace", "") == [":folders"]
    assert _asked("apply", "--jobs", "") == []


def test_arguments_are_completed_by_their_kind() -> None:
    assert _asked("completion", "") == ["bash", "zsh", "fish"]
    assert _asked("completion", "z") == ["zsh"]
    assert _asked("manifest", "lint", "one.yaml", "") == ["one.yaml", "two.yml"]
    assert _asked("apply", "") == ["sglang", "megatron-lm", "mbridge", "slime"]
    assert _asked("-C", "") == [":folders"]
    assert _asked("-C", "..", "completion", "z") == ["zsh"]


def test_components_are_those_of_the_manifest_that_is_named() -> None:
    assert _asked("apply", "-m", "two", "-c", "") == ["slime"]
    assert _asked("apply", "-m", "one.yaml", "-c", "") == ["sglang", "megatron-lm", "mbridge"]
    assert _asked("apply", "--manifest=two", "-c", "") == ["slime"]
    assert _asked("apply", "-c", "s") == ["sglang", "slime"]
    assert _asked("apply", "-m", "absent", "-c", "") == []


def test_patches_are_those_of_the_project() -> None:
    assert names_of_kind("PATCH", []) == ["fix.patch"]


def test_manifests_elsewhere_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"else/three.yaml": "components:\n  verl: {}\n"})
    monkeypatch.setenv("PATCHKIT_MANIFESTS", str(tmp_path / "else"))
    assert _asked("apply", "-m", "th") == ["three.yaml"]
    assert _asked("apply", "-m", "three", "-c", "") == ["verl"]


def test_extending_in_a_circle_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("extends: a.yaml\ncomponents:\n  x: {}\n")
    assert component_names(str(path)) == ["x"]


def test_bash_hands_an_equals_sign_over_as_a_word() -> None:
    assert run("__complete", "apply", "--manifest", "=", "o").out == "one.yaml\n"
    assert run("__complete", "apply", "--manifest", "=").out == "one.yaml\ntwo.yml\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_valid(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = run("completion", shell).ok().stdout
    subprocess.run([shell, "-n"], input=script, check=True)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An executable `patchkit`."""
    write_files(tmp_path, {"bin/patchkit": f'#!/bin/sh\nexec {sys.executable} -m patchkit "$@"\n'})
    path = tmp_path / "bin" / "patchkit"
    path.chmod(0o755)
    return path


def test_bash_completes(program: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    script = run("completion", "bash").out + (
        f"COMP_WORDS=({program} comple); COMP_CWORD=1; _patchkit; echo ${{COMPREPLY[@]}}\n"
        f"COMP_WORDS=({program} completion z); COMP_CWORD=2; _patchkit; echo ${{COMPREPLY[@]}}\n"
    )
    done = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True)
    assert done.stdout == "completion\nzsh\n"


def test_fish_completes(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    script = run("completion", "fish").out + (
        "complete -C 'patchkit comple'\ncomplete -C 'patchkit completion z'\n"
    )
    done = subprocess.run(["fish"], input=script, capture_output=True, text=True, check=True)
    described, plain = done.stdout.splitlines()
    assert described.startswith("completion\tPrint the script")
    assert plain == "zsh"
