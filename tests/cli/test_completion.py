"""Completion: what a shell is offered for a command line that is being typed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.projects import write_files

_COMPONENT = (
    "{source: {git: https://example.org/x.git}, pin: abcdef1111111111111111111111111111111111}"
)
_MANIFEST = f"""\
version: 1
components:
  megatron-lm:
    source: {{git: https://example.org/x.git}}
    pin: abcdef1111111111111111111111111111111111
    patches: [{{series: patches/a/series}}]
  "mbridge": {_COMPONENT}
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(
        tmp_path,
        {
            "manifests/one.yaml": _MANIFEST,
            "manifests/two.yml": f"version: 1\ncomponents:\n  slime: {_COMPONENT}\n",
            "manifests/wrong.yaml": "components: [\n",
            "patches/a/fix.patch": "",
            "patches/a/series": "fix.patch\n",
        },
    )
    monkeypatch.chdir(tmp_path)


@pytest.fixture(name="asked")
def _asked(monkeypatch: pytest.MonkeyPatch) -> object:
    def asked(*words: str) -> list[str]:
        monkeypatch.setenv("_PATCHKIT_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(("patchkit", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return run().ok().out.split()

    return asked


def test_commands(asked) -> None:  # type: ignore[no-untyped-def]
    assert {"apply", "bisect", "status"} <= set(asked(""))
    assert asked("bise") == ["bisect"]
    assert asked("--v") == ["--version"]


def test_forms_of_a_command(asked) -> None:  # type: ignore[no-untyped-def]
    assert "--only" in asked("check", "--")
    assert asked("check", "--only", "mani") == ["manifest"]
    assert asked("init", "--sch") == ["--schema"]
    assert asked("init", "--schema", "p") == ["part"]


def test_options_are_offered(asked) -> None:  # type: ignore[no-untyped-def]
    assert asked("apply", "--dr") == ["--dry-run"]
    assert {"--manifest", "--json", "--help"} <= set(asked("apply", "-"))


def test_manifests(asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    assert asked("apply", "-m", "t") == ["two.yml"]
    names = ["one.yaml", "two.yml", "wrong.yaml"]
    assert asked("check", "--only", "manifest", "one.yaml", "") == names
    write_files(tmp_path, {"else/three.yaml": "components:\n  verl: {}\n"})
    monkeypatch.setenv("PATCHKIT_MANIFESTS", str(tmp_path / "else"))
    assert asked("apply", "-m", "th") == ["three.yaml"]


def test_components_are_those_of_the_manifest_that_is_named(asked) -> None:  # type: ignore[no-untyped-def]
    """Those of a manifest that cannot be read are left out."""
    assert asked("apply", "") == ["megatron-lm", "mbridge", "slime"]
    assert asked("apply", "-m", "two", "-c", "") == ["slime"]
    assert asked("apply", "--manifest=two", "-c", "") == ["slime"]
    assert asked("apply", "-c", "s") == ["slime"]
    assert asked("apply", "-m", "absent", "-c", "") == []
    assert asked("apply", "-m", "wrong", "-c", "") == []


def test_patches_and_choices(asked) -> None:  # type: ignore[no-untyped-def]
    assert asked("drop", "f") == ["fix.patch"]
    assert asked("drift", "--format", "ju") == ["junit"]


def test_another_folder(asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    write_files(tmp_path, {"sub/manifests/own.yaml": _MANIFEST})
    assert asked("-C", "..", "apply", "-m", "o") == ["one.yaml"]


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed_for_the_shell_that_asks(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = f"{sys.executable} -m patchkit"
    ask = [shell, "-c", f"{program} --show-completion; exit $?"]
    done = subprocess.run(ask, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "_PATCHKIT_COMPLETE" in done.stdout
    subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True)
