"""Kill -9 at any moment of a refresh: old or new patch files, no edit lost, the next run works."""

from __future__ import annotations

from functools import partial

import pytest

from patchkit.disk.transaction import recover
from tests.support.laws import every
from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.stacked import Stacked, small_patches
from tests.workspace.killing import kept, kills

pytestmark = [pytest.mark.slow, pytest.mark.hypothesis]  # by the second `make faults` finds it

#: Every how many-th point is tried.
STEP = every(12)


def _product(stack: Stacked) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The files that a refresh replaces together: patches, series, manifest, lock."""
    found = stack.project.files(), stack.project.files("manifests")
    return tuple(  # type: ignore[return-value]
        {name: data for name, data in files.items() if not name.endswith(".patchkit-tmp")}
        for files in found
    )


def _worktree(stack: Stacked) -> dict[str, bytes]:
    files = (path for path in stack.checkout.iterdir() if path.is_file())
    return {path.name: path.read_bytes() for path in files}


@pytest.fixture
def edited(project: Project, upstream: Upstream) -> Stacked:
    """Commits dropped and added, and edits on top: everything that a refresh can have to do."""
    stack = Stacked.of(project, upstream, small_patches())
    one, _, three = stack.git("rev-list", "--reverse", "refs/patchkit/base..HEAD").split()
    stack.git("reset", "-q", "--hard", "refs/patchkit/base")
    stack.git("cherry-pick", three, one)
    stack.edit("c.txt", "line 3\n", "three\n")
    stack.git("commit", "-qam", "Spell 3")
    stack.edit("a.txt", "five\n", "5\n")
    stack.edit("b.txt", "ten\n", "10\n")
    return stack


@pytest.mark.parametrize("then", ["refresh", "apply"])
def test_killed_anywhere_it_is_old_or_new_and_the_next_run_works(
    edited: Stacked, then: str
) -> None:
    put_back = kept(edited.project.root)
    old, work = _product(edited), _worktree(edited)
    edited.run("refresh").ok()
    new = _product(edited)
    edited.settled()
    seen = set()
    first = 1 if then == "refresh" else 4
    for point in kills(partial(edited.run, "refresh"), put_back, step=STEP, first=first):
        recover(edited.project.root)
        assert _product(edited) in (old, new), f"a mixture after a kill at {point}"
        assert _worktree(edited) == work, f"the checkout's files changed at {point}"
        seen.add(_product(edited) == new)
        ran = edited.run(then)
        assert _worktree(edited) == work
        if then == "refresh":
            assert ran.code == 0, f"after a kill at {point}: {ran.err}"
            assert _product(edited) == new
            edited.settled()
        elif ran.code != 0:
            # the edits are still edits: apply will not go over them, refresh takes them up
            assert ran.code == 1, f"after a kill at {point}: {ran.err}"
            edited.run("refresh").ok()
            assert _product(edited) == new
    assert seen == {False, True}


@pytest.mark.parametrize(
    "then", [("refresh", "--rest", "mine"), ("refresh", "--new", "mine"), ("refresh",)]
)
def test_what_was_left_before_a_journal_is_in_nobodys_way(
    edited: Stacked, then: tuple[str, ...]
) -> None:
    left = edited.checkout / ".git" / "patchkit" / "move" / "index.lock"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.touch()
    edited.run(*then).ok()
    assert not left.parent.exists()
    edited.settled()
