"""`export --branch`: the stack as a branch of the checkout, and what is never moved for it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream, git_in
from tests.support.stacked import STATES, Stacked, small_patches

pytestmark = pytest.mark.slow


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Stacked:
    pin = upstream.commit(STATES[0], "The base")
    project.component("demo", upstream, pin, small_patches())
    made = Stacked(project, project.checkout("demo"))
    made.prepare("apply").ok()
    return made


def _tip(folder: Path, branch: str) -> str:
    return git_in(folder, "rev-parse", f"refs/heads/{branch}").decode().strip()


def test_the_branch_is_pushed_by_what_is_printed(stack: Stacked, upstream: Upstream) -> None:
    report = stack.run("export", "--branch", "npu/ours", "--json").ok().json
    tip = _tip(stack.checkout, "patchkit")
    assert (report["branch"], report["commit"], report["form"]) == ("npu/ours", tip, "branch")
    assert _tip(stack.checkout, "npu/ours") == tip
    out = stack.run("export", "--branch", "npu/ours").ok()
    assert f"{report['push']}  publishes it" in out.err
    subprocess.run(shlex.split(report["push"]), check=True, capture_output=True)
    assert _tip(upstream.path, "npu/ours") == tip


def test_what_was_made_before_is_moved_and_its_push_says_from_where(
    stack: Stacked, upstream: Upstream
) -> None:
    first = stack.run("export", "--branch", "ours", "--json").ok().json
    subprocess.run(shlex.split(first["push"]), check=True, capture_output=True)
    name = stack.series[0]
    stack.run("edit", name, "--message", "Another message\n\nIt says more.").ok()
    stack.run("apply").ok()
    second = stack.run("export", "--branch", "ours", "--json").ok().json
    assert second["commit"] != first["commit"] == _tip(upstream.path, "ours")
    assert f"--force-with-lease=ours:{first['commit']}" in second["push"]
    subprocess.run(shlex.split(second["push"]), check=True, capture_output=True)
    assert _tip(upstream.path, "ours") == second["commit"]


def test_other_work_stays(stack: Stacked) -> None:
    git_in(stack.checkout, "branch", "behind", "refs/patchkit/base")
    stack.run("export", "--branch", "behind").ok()  # it is on the way there
    own = git_in(stack.checkout, "commit-tree", "HEAD^{tree}", "-p", "behind", "-m", "Mine")
    git_in(stack.checkout, "branch", "--force", "behind", own.decode().strip())
    with stack.untouched():
        ran = stack.run("export", "--branch", "behind").ends(4, "branch behind has other work")
    (hint,) = (line for line in ran.err.splitlines() if line.startswith("hint:"))
    subprocess.run(shlex.split(hint.partition("move it away: ")[2]), check=True)
    assert _tip(stack.checkout, "my-behind") == own.decode().strip()
    stack.run("export", "--branch", "behind").ok()
    git_in(stack.checkout, "worktree", "add", "--quiet", "../there", "behind")
    stack.run("edit", stack.series[0], "--message", "Other words\n\nThey say more.").ok()
    stack.run("apply").ok()
    stack.run("export", "--branch", "behind").ends(4, "behind")
    stack.run("export", "--branch", "no..name").ends(4, "no..name")


def test_the_checkout_must_have_the_stack(stack: Stacked) -> None:
    ran = stack.run("export", "--branch", "ours", "-o", "x.mbox")
    ran.ends(2, "--branch goes without files")
    shutil.rmtree(stack.checkout)
    ran = stack.run("export", "--branch", "ours").ends(4, "has not got the stack")
    assert "patchkit apply" in ran.err
