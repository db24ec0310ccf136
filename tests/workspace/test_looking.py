"""What is seen of a checkout, and of an index, before anything is done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from patchkit.model.objects import TreeEntry
from patchkit.workspace import HALT_REF, Checkout, CheckoutState
from patchkit.workspace.changes import forget_files, refresh_index, rows_of, tracked_files
from patchkit.workspace.checkout import Purpose, read_purpose, write_purpose
from patchkit.workspace.enter import Action, RefusalCause, foresee
from tests.support.repos import git_in
from tests.workspace.bench import Bench

BLOB = "1" * 40
#: The rows of a file in conflict, as git's stash or cherry-pick leaves them.
UNMERGED = "".join(f"100644 {BLOB} {stage}\tx.py\n" for stage in (1, 2, 3)).encode()


def test_a_stack_and_where_it_is(bench: Bench) -> None:
    stack = bench.stack()
    bench.enter(stack)
    seen = bench.look()
    assert (seen.state, seen.base, seen.applied, seen.head) == (
        CheckoutState.APPLIED,
        stack.base,
        stack.tip,
        stack.tip,
    )
    assert (seen.ours, seen.halt, seen.ahead, seen.dropped) == (True, None, 0, 0)


def test_commits_that_came_and_went(bench: Bench) -> None:
    bench.enter(bench.stack())
    bench.git("reset", "-q", "--hard", "HEAD~1")
    bench.git("commit", "-q", "--allow-empty", "-m", "mine")
    seen = bench.look()
    assert (seen.state, seen.ahead, seen.dropped) == (CheckoutState.EXTRA_COMMITS, 1, 1)


def test_a_conflict_counts_whoever_left_it(bench: Bench) -> None:
    """`git stash pop` leaves no MERGE_HEAD."""
    bench.enter(bench.stack())
    bench.git("update-index", "--index-info", stdin=UNMERGED)
    seen = bench.look()
    assert (seen.state, seen.operation) == (CheckoutState.CONFLICTED, "conflict")
    assert "x.py" in seen.edited


def test_what_it_waits_for(bench: Bench) -> None:
    stack = bench.stack()
    bench.enter(stack)
    bench.git("update-ref", HALT_REF, stack.base)
    seen = bench.look()
    assert (seen.state, seen.operation, seen.halt) == (CheckoutState.CONFLICTED, "bump", stack.base)


def test_a_detached_head_is_told(bench: Bench) -> None:
    stack = bench.stack()
    bench.enter(stack)
    bench.git("checkout", "-q", "--detach")
    seen = bench.look()
    assert (seen.state, seen.branch) == (CheckoutState.OTHER_BRANCH, None)
    assert seen.detail == f"HEAD is detached at {stack.tip[:10]}"


def test_what_would_be_done_is_foreseen(bench: Bench) -> None:
    first = bench.stack()
    assert foresee(bench.checkout, first).action is Action.CREATED
    bench.enter(first)
    assert foresee(bench.checkout, first).action is Action.UNCHANGED
    second = bench.stacked(bench.base, bench.upstream.commit({"b.py": "2\n", "way/x": "x\n"}))
    assert (foresee(bench.checkout, second).action, foresee(bench.checkout, second).changed) == (
        Action.MOVED,
        2,
    )
    bench.write("b.py", "mine\n")
    edited = foresee(bench.checkout, second)
    assert edited.refusal is not None
    assert (edited.action, edited.refusal.cause) == (Action.REFUSED, RefusalCause.EDITED)
    assert foresee(bench.checkout, second, force=True).action is Action.MOVED
    bench.git("checkout", "-q", "b.py")
    git_in(bench.write("way/mine", "x").parent, "init", "-q")
    bench.write("way/x", "mine\n")
    for force in (False, True):
        lost = foresee(bench.checkout, second, force=force)
        assert lost.action is (Action.MOVED if force else Action.REFUSED)


def test_what_no_force_can_save_is_foreseen(bench: Bench) -> None:
    bench.enter(bench.stack())
    stack = bench.stacked(bench.base, bench.upstream.commit({"way": "a file\n"}))
    git_in(bench.write("way/mine", "x").parent, "init", "-q")
    seen = foresee(bench.checkout, stack, force=True)
    assert seen.refusal is not None
    assert (seen.action, seen.refusal.cause) == (Action.REFUSED, RefusalCause.UNSAVABLE)
    assert foresee(bench.checkout, stack).action is Action.REFUSED


def test_a_workspace_may_lie_deep(bench: Bench, tmp_path: Path) -> None:
    place = tmp_path / "one" / "two" / "three"
    deep = replace(bench, checkout=Checkout(place, place / "a" / "demo", "a+demo"))
    stack = deep.stack()
    deep.enter(stack)
    deep.assert_at(stack)


def test_what_it_was_made_for_is_noted(tmp_path: Path) -> None:
    folder = tmp_path / "patchkit"
    assert read_purpose(folder) is None
    write_purpose(folder, None)
    assert not folder.exists()
    for purpose in (Purpose("one", "up"), Purpose("two", "up")):
        write_purpose(folder, purpose)
        assert read_purpose(folder) == purpose


@pytest.fixture
def index(bench: Bench) -> Path:
    """The index of a checkout with a file whose name has a tab, and one in conflict."""
    bench.enter(bench.stack({"a\tb": "tab\n"}, {"c": "c\n"}))
    bench.git("update-index", "--index-info", stdin=UNMERGED)
    return bench.path / ".git" / "index"


def test_an_index_is_read_whole(bench: Bench, index: Path) -> None:
    rows = rows_of(bench.checkout.repository, index)
    oid = bench.git("rev-parse", "HEAD:a\tb")
    assert rows["a\tb"] == [f"100644 {oid} 0"]
    assert rows["x.py"] == [f"100644 {BLOB} {stage}" for stage in (1, 2, 3)]
    assert set(rows) == {"a\tb", "c", "x.py"}
    assert tracked_files(bench.checkout.repository, index)["a\tb"] == TreeEntry(0o100644, oid)


def test_an_index_with_a_conflict_is_refreshed(bench: Bench, index: Path) -> None:
    refresh_index(bench.checkout.repository, index)
    assert set(bench.git("diff-files", "--name-only").splitlines()) == {"x.py"}


def test_what_git_knows_of_a_file_is_forgotten(bench: Bench, index: Path) -> None:
    assert "size: 4" in bench.git("ls-files", "--debug", "a\tb")
    forget_files(bench.checkout.repository, index, ["a\tb"])
    assert "size: 0" in bench.git("ls-files", "--debug", "a\tb")
    assert "size: 2" in bench.git("ls-files", "--debug", "c")
