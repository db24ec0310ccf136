"""Folders that may not be written to, and file systems on which case does not count."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from patchkit.workspace.contents import clashing
from tests.support.powers import run_bound
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, git_in, make_patch, tree_files
from tests.support.stacked import STATES, Stacked, small_patches

pytestmark = pytest.mark.slow

FOLDED = os.environ.get("PATCHKIT_TEST_CASEFOLD", "")


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder and all folders in it, not writable; files in them are."""
    folders = [folder, *(each for each in folder.rglob("*") if each.is_dir())]
    modes = [each.stat().st_mode for each in folders]
    for each in folders:
        each.chmod(0o555)
    try:
        yield
    finally:
        for each, mode in zip(folders, modes, strict=True):
            each.chmod(mode)


def everything(folder: Path) -> dict[str, bytes]:
    """All files but packs: objects that nothing names are git's to take away."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path): path.read_bytes() for path in found if path.parent.name != "pack"}


@pytest.fixture
def moving(project: Project, upstream: Upstream) -> Stacked:
    """An edit in the checkout, and a branch that has moved on."""
    stack = Stacked.of(project, upstream, small_patches())
    old = upstream.resolve("refs/heads/main")
    upstream.commit({"c.txt": "moved\n"}, parents=(str(old),))
    project.component("demo", upstream, str(old), small_patches(), track="main")
    stack.edit("a.txt", "five\n", "5\n")
    return stack


PLACES = {
    "project": ("", ("refresh", "new mine", "render versions --output out", "init other --git x")),
    "patches": ("patches", ("refresh", "import incoming")),
    "workspace": ("workspace", ("apply --force",)),
    "cache": ("../home/cache", ("bump demo --to latest",)),
}
LOOKING = ("check", "status", "log", "apply")


@pytest.mark.parametrize("place", PLACES)
def test_a_folder_that_may_not_be_written_to(moving: Stacked, place: str) -> None:
    root = moving.project.root
    patch = make_patch({}, {"d.txt": "1\n"})
    moving.project.write({"incoming/four.patch": patch})
    name, commands = PLACES[place]
    before = everything(root)
    with read_only((root / name).resolve()):
        for command in commands:
            ran = run_bound(*command.split(), cwd=root)
            assert ran.code in (1, 2, 4, 5), (command, ran.out, ran.err)
            ran.says("error:")
            assert "bug" not in ran.err, (command, ran.err)
        for command in LOOKING:
            ran = run_bound(command, cwd=root)
            assert ran.code in (0, 1), (command, ran.err)
            assert "bug" not in ran.err, (command, ran.err)
    assert everything(root) == before
    moving.run("refresh").ok()
    assert b"+5\n" in moving.patch("one.patch")


def test_all_that_is_needed_may_be_read_only(project: Project, upstream: Upstream) -> None:
    Stacked.of(project, upstream, small_patches())
    with read_only(project.root), read_only(project.root.parent / "home" / "cache"):
        for command in LOOKING:
            run_bound(command, cwd=project.root).ok()


def test_names_that_are_one_where_case_does_not_count() -> None:
    paths = ["README", "a/B", "a/b", "caf\u00e9", "cafe\u0301", "readme", "x"]
    assert list(clashing(paths)) == [
        ("a/B", "a/b"),
        ("caf\u00e9", "cafe\u0301"),
        ("README", "readme"),
    ]
    assert list(clashing(["A", "B/a", "b"])) == []


def test_a_checkout_where_git_found_that_case_does_not_count(
    project: Project, upstream: Upstream
) -> None:
    stack = Stacked.of(project, upstream, small_patches())
    stack.git("config", "core.ignorecase", "true")
    stack.run("apply").ok().shows("unchanged")
    project.component("demo", upstream, {**STATES[0], "A.txt": "other\n"}, small_patches())
    before = stack.git("show-ref"), stack.git("ls-files", "--stage")
    project.run("apply", "--accept").ends(5, "A.txt and a.txt", "--workspace")
    assert (stack.git("show-ref"), stack.git("ls-files", "--stage")) == before
    assert stack.git("status", "--porcelain") == ""
    pin = stack.git("rev-parse", "refs/patchkit/base")  # and what is there goes on as ever
    project.component("demo", upstream, pin, small_patches())
    stack.edit("a.txt", "five\n", "5\n")
    stack.run("refresh").ok()
    stack.settled()


@pytest.mark.parametrize("name", ["A.txt", "Folder/x"])
def test_a_name_that_changes_by_case_only(project: Project, upstream: Upstream, name: str) -> None:
    """Where case does not count, the file would be gone, and nobody would have been told."""
    before: Files = {"a.txt": "one\n", "folder/x": "x\n"}
    old = upstream.commit(before)
    new = upstream.commit({name.lower(): None, name: before[name.lower()]})
    project.component("demo", upstream, old, {})
    project.run("apply").ok()
    checkout = project.checkout("demo")
    git_in(checkout, "config", "core.ignorecase", "true")
    project.component("demo", upstream, new, {})
    project.run("apply", "--accept").ends(5, "change only by case")
    assert git_in(checkout, "status", "--porcelain") == b""
    assert tree_files(checkout, "HEAD").keys() == before.keys()
    checkout.rename(checkout.with_name("away"))
    project.run("apply", "--accept").ok()


@pytest.mark.skipif(not FOLDED, reason="PATCHKIT_TEST_CASEFOLD names no folder without case")
def test_a_new_checkout_where_case_does_not_count(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, {"a.txt": "one\n", "A.txt": "other\n"}, {})
    project.run("apply", "--workspace", str(Path(FOLDED) / "workspace")).ends(5, "A.txt and a.txt")
    assert not (Path(FOLDED) / "workspace" / "demo").exists()
