"""Kill -9 at any moment of bump, continue, skip, abort, undo: the way back still works."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from patchkit.disk.transaction import recover
from tests.ops.test_resume import Bumping
from tests.support.laws import every
from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.stacked import lines, small_patches
from tests.workspace.killing import kept, killed_at, kills

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
    stack: Bumping, before: Callable[[Bumping], None], command: tuple[str, ...]
) -> None:
    start = stack.state
    before(stack)
    first = stack.product
    put_back = kept(stack.project.root)
    stack.run(*command)
    end = stack.product
    for point in kills(partial(stack.run, *command), put_back, step=STEP):
        recover(stack.project.root)
        assert stack.product in (first, end), f"a mixture after a kill at {point}"
        _take_back(stack)
        assert stack.state_but_kept == start, f"not given back after a kill at {point}"


def _take_back(stack: Bumping) -> None:
    """As a user would: what `status` says waits is aborted, what is done undone."""
    stack.run("status").ok()
    if stack.run("abort").code != 0:
        stack.run("undo")


def test_undo_takes_back_all_of_a_bump_that_lacks_its_last_move_alone(
    project: Project, upstream: Upstream
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
    first, put_back = stack.product, kept(project.root)
    begin, end = 1, 3000
    while begin < end:
        point = (begin + end) // 2
        put_back()
        killed_at(point, partial(stack.run, "continue"))
        recover(project.root)
        if stack.product == first:
            begin = point + 1
        elif "refs/patchkit/halt" in stack.git("show-ref"):
            break
        else:
            end = point
    assert begin < end
    stack.run("undo").ok()
    assert stack.state_but_kept == start
