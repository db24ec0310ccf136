"""Law 5: a stack gives the same tree by git apply, git am and quilt push -a."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nasty import nasty_stack
from tests.support.projects import Project
from tests.support.repos import Upstream, git_in
from tests.support.stacked import STATES, Stacked, small_patches

_NO_BINARY = "binary.patch"


def _clone(upstream: Upstream, base: str, folder: Path) -> Path:
    git_in(folder.parent, "clone", "--quiet", "--no-checkout", str(upstream.path), folder.name)
    git_in(folder, "checkout", "--quiet", base)
    return folder


def _tree(folder: Path) -> str:
    git_in(folder, "add", "--all")
    return git_in(folder, "write-tree").decode()


@pytest.fixture
def nasty(project: Project, upstream: Upstream) -> tuple[str, str]:
    """The base, and the tree of the whole nasty stack."""
    base, patches = nasty_stack(upstream)
    project.component("demo", upstream, base, patches)
    project.prepare("apply").ok()
    tree = project.git("rev-parse", "HEAD^{tree}").decode()
    return base, tree


def test_git_am_takes_the_mailbox(
    project: Project, upstream: Upstream, nasty: tuple[str, str], tmp_path: Path
) -> None:
    target = str(tmp_path / "all.mbox")
    project.run("export", "--output", target).ends(
        4, "blocks.patch names no author, without which git am takes no mail"
    )
    project.run("export", "--output", target, "--author", "By Me <me@example.com>").ok()
    clone = _clone(upstream, nasty[0], tmp_path / "clone")
    git_in(clone, "am", "--quiet", "--keep-cr", target)
    assert _tree(clone) == nasty[1]
    form = "--format=%s|%an <%ae>"
    theirs, ours = (
        git_in(each, "log", form, f"{nasty[0]}..").decode()
        for each in (clone, project.checkout("demo"))
    )
    assert theirs == ours.replace("patchkit <patchkit@localhost>", "By Me <me@example.com>")


def test_git_apply_takes_the_patch_files_in_order(
    project: Project, upstream: Upstream, nasty: tuple[str, str], tmp_path: Path
) -> None:
    clone = _clone(upstream, nasty[0], tmp_path / "clone")
    files = project.files()
    for name in files["patches/demo/series"].decode().split():
        git_in(clone, "apply", str(project.root / "patches/demo" / name))
    assert _tree(clone) == nasty[1]


@pytest.fixture
def quilted(project: Project, upstream: Upstream, tmp_path: Path) -> Iterator[Path]:
    """A clone at the base, and the nasty stack in quilt's form: it ends with the stack's tree."""
    base, patches = nasty_stack(upstream)
    del patches[_NO_BINARY]
    project.component("demo", upstream, base, patches)
    project.prepare("apply").ok()
    project.run("export", "--format", "quilt", "--output", str(tmp_path / "patches")).ok()
    clone = _clone(upstream, base, tmp_path / "clone")
    yield clone
    expected = project.git("rev-parse", "HEAD^{tree}").decode()
    assert _tree(clone) == expected


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("quilt") is None, reason="quilt is not installed")
def test_quilt_takes_the_series(quilted: Path, tmp_path: Path) -> None:
    places = {"QUILT_PATCHES": str(tmp_path / "patches"), "QUILT_PC": str(tmp_path / "pc")}
    argv = ["quilt", "--quiltrc", "-", "push", "-a"]
    done = subprocess.run(
        argv, cwd=quilted, env=os.environ | places, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


def test_git_takes_the_quilt_series_too(quilted: Path, tmp_path: Path) -> None:
    for name in (tmp_path / "patches/series").read_text().split():
        git_in(quilted, "apply", str(tmp_path / "patches" / name))


def test_quilt_cannot_do_binary_files(
    project: Project, nasty: tuple[str, str], tmp_path: Path
) -> None:
    project.run("export", "--format", "quilt", "--output", str(tmp_path / "patches")).ends(
        4, "binary.patch changes a binary file, which GNU patch cannot do"
    )
    assert not (tmp_path / "patches").exists()
    assert nasty


def test_a_series_in_parts_comes_out_as_one(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    """Single patches beside the series, in odd layouts, end up in one folder with -p1 paths."""
    patches = small_patches()
    project.series("demo", {"two.patch": patches["two.patch"]})
    project.write({"patches/one.patch": patches["one.patch"]})
    entries = [{"patch": "patches/one.patch"}, {"series": "patches/demo/series"}]
    project.component("demo", upstream, STATES[0], patches=entries)
    project.run("export", "--format", "quilt", "--output", str(tmp_path / "out")).ok()
    assert (tmp_path / "out/series").read_text() == "one.patch\ntwo.patch\n"
    assert (tmp_path / "out/one.patch").read_bytes() == patches["one.patch"]


def test_nothing_is_overwritten(project: Project, upstream: Upstream, tmp_path: Path) -> None:
    Stacked.of(project, upstream, small_patches())
    for form in ("quilt", "mbox"):
        (tmp_path / "there").mkdir(exist_ok=True)
        (tmp_path / "there/x").touch()
        project.run("export", "--format", form, "--output", str(tmp_path / "there")).ends(
            2, "is there already"
        )


@pytest.mark.parametrize("argv", [(), ("-o", "a"), ("-o", "a.zip"), ("--format", "quilt")])
def test_a_form_and_a_place_are_named(
    project: Project, upstream: Upstream, argv: tuple[str, ...]
) -> None:
    project.component("demo", upstream, STATES[0], {})
    project.run("export", *argv).ends(2)
