"""The rendered files of the shipped stacks are what the manifests say, and lint clean."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from patchkit.extensions.machine.documents import is_intact
from tests.support.commands import run

ROOT = Path(__file__).parent.parent
MANIFESTS = sorted((ROOT / "manifests").glob("*.yaml"))
PAGES = sorted((ROOT / "docs" / "stacks").glob("*.md"))
SCRIPTS = sorted((ROOT / "rendered").glob("*/*.sh"))
LOCKS = sorted((ROOT / "rendered").glob("*/requirements-*.txt"))
DOCKERFILES = sorted((ROOT / "rendered").glob("*/Dockerfile"))


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_they_are_fresh(manifest: Path) -> None:
    ran = run("export", "--format", "machine", "--manifest", manifest.stem, "--dry-run", cwd=ROOT)
    assert ran.code == 0, (
        f"run: patchkit export --format machine -m {manifest.stem}\n{ran.out}{ran.err}"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_versions_in_pages_are_fresh(page: Path) -> None:
    argv = (
        "export",
        "--format",
        "machine",
        "--manifest",
        page.stem,
        "--dry-run",
        "versions",
        "--output",
        str(page),
    )
    assert run(*argv, cwd=ROOT).code == 0


def test_none_is_of_a_manifest_that_is_gone() -> None:
    folders = {each.name for each in (ROOT / "rendered").iterdir()}
    assert folders == {each.stem for each in MANIFESTS}


def test_shellcheck_has_nothing_to_say() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    assert len(SCRIPTS) >= 2 * len(MANIFESTS)
    argv = ["shellcheck", *map(str, SCRIPTS)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_hadolint_has_nothing_to_say() -> None:
    if shutil.which("hadolint") is None:
        pytest.skip("hadolint is not installed")
    argv = ["hadolint", *map(str, DOCKERFILES)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_nothing_in_them_is_left_to_fill_in(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert re.findall(r"<[A-Z_ ]+>|/path/to|\bTODO\b|\$\$\{", text) == []
    assert not re.search(r"\n\n\n|[ \t]+$", text, re.MULTILINE)


@pytest.mark.parametrize("stack", ["verl-quickstart-npu", "verl-mindspeedllm-npu"])
def test_on_x86_machines_pip_knows_the_index_before_anything_is_installed(
    stack: str, tmp_path: Path
) -> None:
    for name in ("manifests", "patches"):
        shutil.copytree(ROOT / name, tmp_path / name)
    folder = tmp_path / "stack"
    index = "torch_cpu_index=https://mirror.example/cpu"
    site = (index, "chip=910b", "train_file=/t", "test_file=/v")
    models = ("model_path=/m", "model_path_32b=/n", "model_path_30b_a3b=/o")
    more = ("checkpoint_dir=/c", *(models if stack == "verl-mindspeedllm-npu" else ()))
    given = [word for value in (*site, *more) for word in ("--set", value)]
    run(
        "export",
        "--format",
        "machine",
        "--manifest",
        stack,
        *given,
        "--output",
        str(folder),
        cwd=tmp_path,
    ).ok()
    environment = (folder / "env.sh").read_text()
    assert "\ntorch_cpu_index=https://mirror.example/cpu\n" in environment
    assert '\nexport PIP_EXTRA_INDEX_URL="${torch_cpu_index}"\n' in environment
    install = (folder / "install.sh").read_text()
    assert install.index('. "$here/env.sh"') < install.index("pip install")
    refused = run(
        "export", "--format", "machine", "--manifest", stack, "--output", str(folder), cwd=tmp_path
    )
    assert "torch_cpu_index" in refused.err


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_locks_hold_what_manifests_ask_for(lock: Path, tmp_path: Path) -> None:
    """Components are not in this cache: what they ask for is held to the lock where they are."""
    manifest = ("--manifest", lock.parent.name, "--cache", str(tmp_path))
    ran = run("check", "--only", "machine", *manifest, "metadata", "--json", cwd=ROOT)
    assert [each for each in ran.json["diagnoses"] if each["verdict"] in ("wrong", "missing")] == []
    assert is_intact(lock.read_text(encoding="utf-8"))
