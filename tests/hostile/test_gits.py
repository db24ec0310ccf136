"""Another git than the one that patchkit needs, or than the one it began with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.commands import Ran, run_process
from tests.support.projects import Project
from tests.support.repos import Upstream, git_in
from tests.support.stacked import STATES, Stacked, small_patches

pytestmark = pytest.mark.slow

REAL = shutil.which("git") or ""


@pytest.fixture
def bin_(tmp_path: Path, patchkit_file: Path) -> Path:
    """A folder on PATH, beside patchkit."""
    assert patchkit_file.parent == tmp_path
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def another_git(folder: Path, script: str) -> None:
    """A git of our own on PATH; `git` in the script is the real one."""
    path = folder / "git"
    path.write_text("#!/bin/sh\n" + script.replace("git ", f"{REAL} "))
    path.chmod(0o755)


def with_it(project: Project, bin_: Path, *argv: str) -> Ran:
    environment = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
    program = [bin_.with_name("patchkit")]
    return run_process(*argv, cwd=project.root, environment=environment, program=program)


def test_an_old_git_is_refused_before_anything_is_made(
    project: Project, upstream: Upstream, bin_: Path, tmp_path: Path
) -> None:
    project.component("demo", upstream, STATES[0], small_patches())
    another_git(bin_, 'case "$*" in version) echo "git version 2.20.1";; *) git "$@";; esac\n')
    with_it(project, bin_, "apply").ends(
        5, f"git 2.20 is too old ({bin_}/git)", "patchkit needs git 2.34"
    )
    assert not project.checkout("demo").exists()
    assert not list((tmp_path / "home" / "cache").glob("repos/*"))


@pytest.mark.parametrize("said", ["git version 2.20.1", "nothing"])
def test_doctor_names_a_git_that_will_not_do(
    project: Project, upstream: Upstream, bin_: Path, said: str
) -> None:
    project.component("demo", upstream, STATES[0], small_patches())
    another_git(bin_, f'case "$*" in version) echo "{said}";; *) exit 129;; esac\n')
    with_it(project, bin_, "check", "--only", "machine", "system").ends(1).shows("missing  git")
    none = bin_.with_name("none")
    with_it(project, none, "check", "--only", "machine", "system").ok()


def test_a_git_that_has_become_old_is_blamed_for_what_fails(
    project: Project, upstream: Upstream, bin_: Path
) -> None:
    stack = Stacked.of(project, upstream, small_patches())
    stack.edit("a.txt", "five\n", "5\n")
    another_git(
        bin_,
        'case "$*" in version) echo "git version 2.20.1";;\n'
        "*) echo 'unknown option' >&2; exit 129;; esac\n",
    )
    with_it(project, bin_, "refresh").ends(5, "git 2.20 is too old")
    assert b"+five" in stack.patch("one.patch")


@pytest.mark.parametrize("how", ["gone", "broken"])
@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_git_that_goes_while_it_is_used(
    project: Project, upstream: Upstream, bin_: Path, how: str, after: int
) -> None:
    """As when it is upgraded: the command fails or ends, and the next one puts all right."""
    stack = Stacked.of(project, upstream, small_patches())
    stack.edit("a.txt", "five\n", "5\n")
    leave = "rm -f" if how == "gone" else "printf '#!/bin/sh\\nexit 127\\n' >"
    another_git(
        bin_,
        f'echo >>{bin_}/count\n[ "$(wc -l <{bin_}/count)" -lt {after} ] || {leave} {bin_}/git\n'
        'exec git "$@"\n',
    )
    ran = with_it(project, bin_, "refresh")
    assert ran.code in (0, 1, 5), ran.err
    assert "bug" not in ran.err
    (bin_ / "git").unlink(missing_ok=True)
    stack.run("refresh").ok()
    assert b"+5\n" in stack.patch("one.patch")
    stack.settled()
    assert git_in(stack.checkout, "fsck", "--connectivity-only") == b""
