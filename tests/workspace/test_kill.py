"""Kill -9 at any moment: old or new bytes at every path, and the next run works."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchkit.workspace import CheckoutState
from patchkit.workspace.enter import Action, RefusalCause, Stacked
from tests.support.laws import every
from tests.support.repos import Files, Symlink, executable
from tests.workspace.bench import STAMP, Bench, committed_files, disk_files
from tests.workspace.killing import killed_at

pytestmark = [pytest.mark.slow, pytest.mark.hypothesis]  # by the second `make faults` finds it

#: Every how many-th point is tried.
STEP = every(6)

OLD: Files = {
    "same.py": "same\n",
    "edit.py": "old\n",
    "gone/deep/x.py": "gone\n",
    "file": "was a file\n",
    "folder/y.py": "was a folder\n",
    "mode.sh": "mode\n",
    "link": Symlink("edit.py"),
}
NEW: Files = {
    "edit.py": "new\n",
    "gone/deep/x.py": None,
    "added/deep/z.py": "added\n",
    "file": None,
    "file/inside.py": "now a folder\n",
    "folder/y.py": None,
    "folder": "now a file\n",
    "mode.sh": executable("mode\n"),
    "link": Symlink("same.py"),
}
MINE = (b"mine.txt", b"mine\n")


@pytest.fixture
def stacks(bench: Bench) -> tuple[Stacked, Stacked]:
    """A stack whose checkout is kept as a template, and the one to move to."""
    old = bench.stack(OLD, {"edit.py": "old\n", "a.py": "a\n"})
    new = bench.stacked(bench.base, bench.upstream.commit(NEW))
    bench.enter(old)
    bench.write("mine.txt", "mine\n")
    bench.path.rename(bench.path.with_name("template"))
    return old, new


def points(bench: Bench) -> Iterator[int]:
    """1, 1 + STEP, ...: the test stops when the work ends before it is killed."""
    for point in range(1, 1000, STEP):
        shutil.rmtree(bench.path, ignore_errors=True)
        shutil.copytree(bench.path.with_name("template"), bench.path, symlinks=True)
        yield point


def killed_half_way(bench: Bench, new: Stacked) -> bool:
    """Move to `new` and die a few files after the journal was written."""
    journal = bench.path / ".git/patchkit/move/journal.json"
    return killed_at(12, lambda: bench.enter(new), once=journal.exists)


def assert_old_or_new(bench: Bench, old: Stacked, new: Stacked) -> None:
    known = committed_files(bench.path, old.tip) | {MINE}
    if bench.git("cat-file", "-t", new.tip) == "commit":
        known |= committed_files(bench.path, new.tip)
    found = disk_files(bench.path)
    assert found <= known
    assert {MINE, (b"same.py", b"same\n")} <= found


def test_moving(bench: Bench, stacks: tuple[Stacked, Stacked]) -> None:
    old, new = stacks
    interrupted = 0
    for point in points(bench):
        killed = killed_at(point, lambda: bench.enter(new))
        if (bench.path / ".git/patchkit/move/journal.json").exists():
            assert_old_or_new(bench, old, new)
            interrupted += bench.look().state is CheckoutState.INTERRUPTED
        waits = bench.look().state is CheckoutState.INTERRUPTED
        assert bench.enter(new).finished is waits
        bench.assert_at(new)
        assert disk_files(bench.path) == committed_files(bench.path, new.tip) | {MINE}
        if not killed:
            break
    assert interrupted >= 20 // STEP


def test_a_recovery_that_is_killed_is_recovered(
    bench: Bench, stacks: tuple[Stacked, Stacked]
) -> None:
    _, new = stacks
    for point in points(bench):
        assert killed_half_way(bench, new)
        assert bench.look().state is CheckoutState.INTERRUPTED
        killed = killed_at(point, lambda: bench.enter(new))
        bench.enter(new)
        bench.assert_at(new)
        assert disk_files(bench.path) == committed_files(bench.path, new.tip) | {MINE}
        if not killed:
            break


def test_going_back_after_a_kill(bench: Bench, stacks: tuple[Stacked, Stacked]) -> None:
    old, new = stacks
    for point in points(bench):
        killed = killed_at(point, lambda: bench.enter(new))
        bench.enter(old)
        bench.assert_at(old)
        assert disk_files(bench.path) == committed_files(bench.path, old.tip) | {MINE}
        if not killed:
            break


def test_force_over_edits(bench: Bench, stacks: tuple[Stacked, Stacked]) -> None:
    _, new = stacks
    for point in points(bench):
        bench.write("edit.py", "edited\n")
        bench.write("added", "in the way\n")
        killed = killed_at(point, lambda: bench.enter(new, force=True))
        bench.enter(new, force=True)
        bench.assert_at(new)
        saved = bench.git("for-each-ref", "--format=%(refname)", "refs/patchkit/saved").split()
        files = set().union(*(committed_files(bench.path, ref) for ref in saved))
        assert {(b"edit.py", b"edited\n"), (b"added", b"in the way\n")} <= files
        if not killed:
            break


def test_making(bench: Bench, tmp_path: Path) -> None:
    stack = bench.stack(OLD, NEW)
    for point in range(1, 1000, STEP):
        shutil.rmtree(bench.checkout.workspace, ignore_errors=True)
        killed = killed_at(point, lambda: bench.enter(stack))
        assert bench.look().state in (CheckoutState.ABSENT, CheckoutState.APPLIED)
        bench.enter(stack)
        bench.assert_at(stack)
        own = bench.checkout.workspace / ".patchkit"
        assert [path.name for path in own.iterdir()] == ["demo.lock"]
        if not killed:
            break


def test_edits_after_a_kill_are_refused_over_and_saved(
    bench: Bench, stacks: tuple[Stacked, Stacked]
) -> None:
    _, new = stacks
    shutil.copytree(bench.path.with_name("template"), bench.path, symlinks=True)
    assert killed_half_way(bench, new)
    assert bench.look().state is CheckoutState.INTERRUPTED
    bench.write("edit.py", "edited after the kill\n")
    before = disk_files(bench.path)
    refused = bench.enter(new)
    assert (refused.action, refused.refusal and refused.refusal.cause) == (
        Action.REFUSED,
        RefusalCause.INTERRUPTED,
    )
    assert disk_files(bench.path) == before
    bench.enter(new, force=True)
    bench.assert_at(new)
    assert bench.git("show", f"refs/patchkit/saved/{STAMP}:edit.py") == "edited after the kill"


@pytest.mark.parametrize("deed", ["commit", "stage", "branch"])
def test_what_git_did_after_a_kill_is_refused_over_and_saved(
    bench: Bench, stacks: tuple[Stacked, Stacked], deed: str
) -> None:
    """The user takes the lock away that stands in git's way, and goes on working."""
    _, new = stacks
    shutil.copytree(bench.path.with_name("template"), bench.path, symlinks=True)
    assert killed_half_way(bench, new)
    (bench.path / ".git/index.lock").unlink()
    bench.write("own.py", "own\n")
    bench.git("add", "own.py")
    if deed == "commit":
        bench.git("commit", "-q", "-m", "mine")
    elif deed == "branch":
        bench.git("update-ref", "refs/patchkit/base", "HEAD")
    before = disk_files(bench.path), bench.git("for-each-ref"), bench.git("ls-files", "--stage")
    refused = bench.enter(new)
    assert refused.refusal is not None
    assert (refused.refusal.cause, refused.refusal.paths) == (RefusalCause.INTERRUPTED, ())
    assert before == (
        disk_files(bench.path),
        bench.git("for-each-ref"),
        bench.git("ls-files", "--stage"),
    )
    bench.enter(new, force=True)
    bench.assert_at(new)
    assert bench.git("show", f"refs/patchkit/saved/{STAMP}:own.py") == "own"
