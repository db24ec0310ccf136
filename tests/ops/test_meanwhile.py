"""Somebody edits the project's files while a command is thinking: nobody's work is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.meanwhile import run_meanwhile
from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.stacked import STATES, Stacked, small_patches


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Stacked:
    """one.patch, two.patch, three.patch, applied; five became 5 in the checkout."""
    stack = Stacked.of(project, upstream, small_patches())
    stack.edit("a.txt", "five\n", "5\n")
    return stack


def _saves(path: Path) -> Callable[[], object]:
    """An editor that adds a line to a file."""
    return lambda: path.write_bytes(path.read_bytes() + b"# saved by an editor\n")


@pytest.mark.parametrize(
    "file",
    [
        "patches/demo/series",
        "patches/demo/one.patch",
        "patches/demo/three.patch",  # not written, but all that was thought rests on it
        "manifests/demo.yaml",
    ],
)
@pytest.mark.parametrize("command", [("refresh",), ("refresh", "--new", "mine")])
def test_refresh_and_new_do_not_overwrite(
    stack: Stacked, file: str, command: tuple[str, ...]
) -> None:
    root = stack.project.root
    before = stack.project.files(), stack.project.files("manifests")
    run_meanwhile(*command, cwd=root, git="cat-file", change=_saves(root / file)).ends(
        5, f"{file} was changed meanwhile", "run the command again"
    )
    files = before[0] | before[1]
    files[file] += b"# saved by an editor\n"
    assert stack.project.files() | stack.project.files("manifests") == files
    stack.run("status").ok().shows("edited")


@pytest.fixture
def incoming(project: Project, upstream: Upstream, tmp_path: Path) -> Path:
    """A patch to import into an applied component `demo`, which has one."""
    patches = small_patches()
    project.component("demo", upstream, STATES[0], {"one.patch": b""})
    project.series("demo", {"one.patch": patches["one.patch"]})
    project.prepare("apply").ok()
    path = tmp_path / "three.patch"
    path.write_bytes(patches["three.patch"])
    return path


@pytest.mark.parametrize("who", ["an editor", "another import"])
def test_import_does_not_overwrite(project: Project, incoming: Path, who: str) -> None:
    series = project.root / "patches/demo/series"
    other = incoming.with_name("two.patch")
    other.write_bytes(small_patches()["two.patch"])
    change = _saves(series) if who == "an editor" else lambda: project.run("import", str(other))
    run_meanwhile("import", str(incoming), cwd=project.root, git="cat-file", change=change).ends(
        5, "patches/demo/series was changed meanwhile"
    )
    added = b"# saved by an editor\n" if who == "an editor" else b"two.patch\n"
    assert series.read_bytes() == b"one.patch\n" + added
    project.run("import", str(incoming)).ok()
    assert series.read_bytes() == b"one.patch\n" + added + b"three.patch\n"
