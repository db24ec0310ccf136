"""Carry out what a refresh planned: all files together, then the branches of the checkouts.

Apart from `ops/refresh.py`, its only user: that plans, and only what is here changes anything on
disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.disk.transaction import write_set
from patchkit.errors import PatchkitError, Problem, expected
from patchkit.gitcmd.object_reader import write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import TreeId
from patchkit.ops.refresh_report import RefreshedComponent
from patchkit.ops.resume import NewConflict, stop_at
from patchkit.stack.build import Stack
from patchkit.stack.lockfile import LockedComponent, load_lock, lock_bytes, merge_lock
from patchkit.workspace import Checkout, Snapshot
from patchkit.workspace.enter import bring_objects
from patchkit.workspace.move import MoveTarget, require_held, settle
from patchkit.workspace.operations import Operation, Place, files_made, locks_made, recorded
from patchkit.workspace.save import save_commit
from patchkit.workspace.state import Held
from patchkit.workspace.waiting import CheckoutSnapshot, go_to, require_free


class BranchMove(Struct, frozen=True):
    """The branch of a checkout goes from a place to a stack; a ref must save `keep` first.

    With `source`, which has the stack's base, and `held`, what its files are, these go there, too.
    """

    checkout: Checkout
    snapshot: Snapshot
    before: Place
    stack: Stack
    keep: Stack | None = None
    source: Repository | None = None
    held: Held | None = None

    @property
    def place(self) -> CheckoutSnapshot:
        """Where the files go."""
        return CheckoutSnapshot(self.stack.base.commit, self.stack.commit, self.stack.tree)


class PlannedRefresh(Struct, frozen=True):
    """A component's refresh, planned: its report, and what is still to be done.

    `writes` are files with their new bytes (None: removed), `locks` what lock files say then;
    `seen` are the files that this was planned from. `stop` is a conflict for the checkout;
    `operation` is what the history gets, but for its files, and where the checkout goes.
    """

    report: RefreshedComponent
    writes: Mapping[Path, bytes | None] = field(default_factory=dict)
    locks: Mapping[Path, Mapping[str, LockedComponent]] = field(default_factory=dict)
    move: BranchMove | None = None  # of the checkout's branch; None where it stays
    seen: Mapping[Path, bytes | None] = field(default_factory=dict)
    stop: NewConflict | None = None
    operation: tuple[Checkout, Operation] | None = None


def carry_out(
    root: Path, planned: Sequence[PlannedRefresh], *, when: int, began: int
) -> list[PlannedRefresh]:
    """Write all files of a project together, then move the checkouts; `when` names saved stacks.

    `began`, in nanoseconds, is the command in the history: all of it is undone together.

    Raises SurroundingsError with nothing written. A checkout that cannot be moved once they are
    is a problem in its report: the next refresh finds the files and moves it.
    """
    writes: dict[Path, bytes | None] = {}
    seen: dict[Path, bytes | None] = {}
    locks: dict[Path, dict[str, LockedComponent]] = {}
    for each in planned:
        writes.update(each.writes)
        seen.update(each.seen)
        for path, components in each.locks.items():
            locks.setdefault(path, {}).update(components)
    for path, components in locks.items():
        seen[path] = path.read_bytes() if path.exists() else None
        writes[path] = lock_bytes(merge_lock(load_lock(path), components))
    with ExitStack() as history:
        for each in planned:
            _require_unchanged(each)
            if each.operation is not None:
                checkout, operation = each.operation
                made = replace(_with_changes(root, each, operation, writes), when=began)
                history.enter_context(recorded(checkout, root, made))
        if writes:
            write_set(root, writes, seen)
    return [_moved(each, when) for each in planned]


def _require_unchanged(planned: PlannedRefresh) -> None:
    """SurroundingsError if files that are to be replaced were saved since they were looked at.

    The move looks once more; here nothing has been written yet but objects.
    """
    move = planned.move
    if move is None:
        return
    # first, so that whoever finds the files written can move the checkout
    write_objects(move.checkout.repository, move.stack.objects)
    if move.source is not None and move.held is not None:
        bring_objects(move.source, move.checkout.repository, ())
        require_held(
            move.checkout, MoveTarget(move.stack.base.commit, move.stack.commit), move.held
        )
        require_free(move.checkout, move.place, move.held)


def _with_changes(
    root: Path,
    planned: PlannedRefresh,
    operation: Operation,
    writes: Mapping[Path, bytes | None],
) -> Operation:
    files = files_made(root, {path: writes[path] for path in planned.writes})
    operation = replace(operation, files=files, locks=locks_made(root, planned.locks))
    move = planned.move
    if move is None:
        return operation
    # edits that become patches leave the files as they are
    tree = move.stack.tree if operation.edits else TreeId("")
    after = Place(move.stack.base.commit, move.stack.commit, tree)
    return replace(operation, before=replace(move.before, files=tree), after=after)


def _moved(planned: PlannedRefresh, when: int) -> PlannedRefresh:
    stop, report, move = planned.stop, planned.report, planned.move
    try:
        if stop is None:
            return _settled(planned, when)
        return replace(planned, report=replace(report, also_saved=stop_at(stop, when)))
    except (PatchkitError, OSError) as error:
        failed = expected(error)
    told = [replace(each, where=each.where or report.name) for each in failed.problems]
    if stop is None:
        waits = move is not None and move.snapshot.halt is not None
        what = "the patch files are written, the checkout's branch is still behind them"
        hint = f"patchkit {'continue' if waits else 'refresh'}"
        told.append(Problem(what, report.name, hint))
    problems = (*report.problems, *told)
    report = replace(report, exit_code=failed.exit_code, halted=None, problems=problems)
    return replace(planned, report=report)


def _settled(planned: PlannedRefresh, when: int) -> PlannedRefresh:
    move, report = planned.move, planned.report
    if move is None:
        return planned
    repository = move.checkout.repository
    if move.keep is not None:
        write_objects(repository, move.keep.objects)
        ref = save_commit(move.checkout, move.keep.commit, when)
        report = replace(report, saved=ref)
    if move.held is not None:
        moved = go_to(move.checkout, move.snapshot, move.place, held=move.held, when=when)
    else:
        target = MoveTarget(move.stack.base.commit, move.stack.commit)
        moved = settle(move.checkout, move.snapshot, target, when=when)
    return replace(planned, report=replace(report, also_saved=moved.saved))
