"""Kill -9 at any moment of bump, continue, skip, abort, undo: the way back still works."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from patchkit.disk.transaction import recover
from tests.ops.test_resume import Bumping
from tests.support.laws import every
from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.stacked import lines, small_patches
from tests.workspace.killing import killed_at

pytestmark = [pytest.mark.slow, pytest.mark.hypothesis]  # by the second `make faults` finds it

#: Every how many-th point is tried.
STEP = every(20)


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Bumping:
    """three.patch will conflict."""
    stack = Bumping.of(project, upstream, small_patches())
    upstream.commit({"a.txt": "first\n" + lines(), "b.txt": lines({10: "X\n"})}, "Say ten (#8)")
    # what is looked up and fetched is not what is killed here
    project.run("bump", "demo", "--to", "main", "--dry-run")
    return stack


def _halted(stack: Bumping) -> None:
    stack.bump().ends(3)


def _resolved(stack: Bumping) -> None:
    _halted(stack)
    stack.resolve("b.txt", "ten\n")


def _done(stack: Bumping) -> None:
    _resolved(stack)
    stack.run("continue").ok()


@pytest.mark.parametrize(
    ("before", "command"),
    [
        (lambda _: None, ("bump", "demo", "--to", "main")),
        (_resolved, ("continue",)),
        (_halted, ("skip",)),
        (_halted, ("abort",)),
        (_done, ("undo",)),
    ],
    ids=["bump", "continue", "skip", "abort", "undo"],
)
def test_killed_anywhere_the_way_back_gives_every_byte(
    stack: Bumping, tmp_path: Path, before: Callable[[Bumping], None], command: tuple[str, ...]
) -> None:
    start = stack.state
    before(stack)
    first = stack.product
    root, template = stack.project.root, tmp_path / "template"
    shutil.copytree(root, template, symlinks=True)
    stack.run(*command)
    end = stack.product
    for point in range(1, 3000, STEP):
        shutil.rmtree(root)
        shutil.copytree(template, root, symlinks=True)
        killed = killed_at(point, partial(stack.run, *command))
        recover(root)
        assert stack.product in (first, end), f"a mixture after a kill at {point}"
        _take_back(stack)
        assert stack.state_but_kept == start, f"not given back after a kill at {point}"
        if not killed:
            break
    else:
        pytest.fail("the work never came to its end")


def _take_back(stack: Bumping) -> None:
    """As a user would: what `status` says waits is aborted, what is done undone."""
    stack.run("status").ok()
    if stack.run("abort").code != 0:
        stack.run("undo")


def test_undo_takes_back_all_of_a_bump_that_lacks_its_last_move_alone(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    """Not its last step: the files of the project would stay at the new pin."""
    stack = Bumping.of(project, upstream, small_patches())
    changed = {"a.txt": lines({5: "upstream five\n"}), "b.txt": lines({10: "X\n"})}
    upstream.commit(changed, "Say both")

    start = stack.state
    stack.bump().ends(3)
    stack.resolve("a.txt", "upstream FIVE\nsix\n")
    stack.run("continue").ends(3)
    stack.resolve("b.txt", "ten\n")
    first, root, template = stack.product, stack.project.root, tmp_path / "template"
    shutil.copytree(root, template, symlinks=True)
    begin, end = 1, 3000
    while begin < end:
        point = (begin + end) // 2
        shutil.rmtree(root)
        shutil.copytree(template, root, symlinks=True)
        killed_at(point, partial(stack.run, "continue"))
        recover(root)
        if stack.product == first:
            begin = point + 1
        elif "refs/patchkit/halt" in stack.git("show-ref"):
            break
        else:
            end = point
    assert begin < end
    stack.run("undo").ok()
    assert stack.state_but_kept == start
