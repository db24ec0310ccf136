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
from tests.support.repos import Upstream, git_in, make_patch
from tests.support.stacked import STATES, Stacked, lines, small_patches

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


def test_one_patch_for_upstream_goes_with_what_it_needs_onto_its_tip(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    start = {"a.txt": lines(), "b.txt": lines()}
    five, six, other = {5: "five\n"}, {5: "five\n", 6: "six\n"}, {20: "twenty\n"}
    patches = {
        "five.patch": make_patch(start, {"a.txt": lines(five)}, subject="Spell five"),
        "other.patch": make_patch(start, {"b.txt": lines(other)}, subject="Spell twenty"),
        "six.patch": make_patch({"a.txt": lines(five)}, {"a.txt": lines(six)}, subject="Spell six"),
    }
    project.component("demo", upstream, upstream.commit(start), patches, track="main")
    moved = {1: "upstream\n", 2: "two more\n", 3: "three\n"}
    tip = upstream.commit({"a.txt": "new\n" + lines(moved)}, "Move on")
    mailbox = tmp_path / "six.mbox"
    export = ("export", "--patch", "six", "--output", str(mailbox))
    ran = project.run(*export, "--json").ok()
    assert (ran.json["base"], ran.json["patches"]) == (tip, ["five.patch", "six.patch"])
    clone = _clone(upstream, tip, tmp_path / "clone")
    git_in(clone, "am", "--quiet", str(mailbox))
    assert (clone / "a.txt").read_text() == "new\n" + lines({**moved, **six})
    assert (clone / "b.txt").read_text() == lines()
    # what upstream has needs not be sent, and what is not there cannot be
    upstream.commit({"b.txt": lines(other)}, "Spell twenty (#2)")
    there = str(tmp_path / "other.mbox")
    with project.untouched():
        project.run("export", "--patch", "2", "-o", there).ends(4, "patchkit drift -m demo -c demo")
        project.run("export", "--patch", "seven", "-o", there).ends(2, "seven")
    assert not Path(there).exists()
