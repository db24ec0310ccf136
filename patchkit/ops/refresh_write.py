"""What a command is about to do to a project, and the one place that does it: the record for
`undo`, then all files together, then the branches of the checkouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import Contents, bytes_at
from patchkit.disk.transaction import write_set
from patchkit.errors import PatchkitError, Problem, expected
from patchkit.gitcmd.gitlinks import gitlinks_staged
from patchkit.gitcmd.object_reader import write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import TreeId
from patchkit.ops.refresh_report import RefreshedComponent
from patchkit.stack.build import Stack
from patchkit.stack.lockfile import (
    LockedComponent,
    Locks,
    PinNames,
    load_lock,
    lock_bytes,
    merge_lock,
)
from patchkit.workspace import Checkout, Snapshot
from patchkit.workspace.enter import bring_objects
from patchkit.workspace.move import require_held
from patchkit.workspace.operations import Operation, files_made, locks_made, recorded
from patchkit.workspace.save import save_commit
from patchkit.workspace.state import Held, Place
from patchkit.workspace.waiting import go_to

if TYPE_CHECKING:
    from patchkit.ops.resume import NewConflict


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
    def place(self) -> Place:
        """Where the files go."""
        return Place(self.stack.base.commit, self.stack.commit, self.stack.tree)


class Change(Struct, frozen=True):
    """What a command is about to do for a component, planned: nothing of it is on disk.

    `writes` are files with their new bytes (None: removed), `locks` what lock files say then;
    `seen` are the files that this was planned from. `operation` is what the history gets, but for
    its files and where the checkout goes; None where there is nothing to take back.
    """

    checkout: Checkout
    operation: Operation | None = None
    writes: Contents = {}
    locks: Locks = {}
    seen: Contents = {}
    move: BranchMove | None = None  # of the checkout's branch; None where it stays
    #: Lock file -> component -> what it knows of names then.
    names: Mapping[Path, Mapping[str, PinNames]] = {}


class PlannedRefresh(Struct, frozen=True):
    """A component's refresh, planned: its report, and what is still to be done.

    `stop` is a conflict for the checkout.
    """

    report: RefreshedComponent
    change: Change | None = None  # None: nothing
    stop: NewConflict | None = None


def carry_out(
    root: Path, planned: Sequence[PlannedRefresh], *, when: int, began: int
) -> list[RefreshedComponent]:
    """Write all files of a project together, then move the checkouts; `when` names saved stacks.

    `began`: see `write_changes`. Raises SurroundingsError with nothing written. A checkout that
    cannot be moved once they are is a problem in its report: the next refresh finds the files and
    moves it.
    """
    write_changes(root, [each.change for each in planned if each.change is not None], began)
    return [_moved(each, when) for each in planned]


def write_changes(root: Path, changes: Sequence[Change], began: int = 0) -> None:
    """Record changes, and write all their files together; the checkouts are still to be moved.

    `began`, in nanoseconds, is the command in the history: all of it is undone together.
    """
    writes: dict[Path, bytes | None] = {}
    seen: dict[Path, bytes | None] = {}
    locks: dict[Path, dict[str, LockedComponent]] = {}
    names: dict[Path, Mapping[str, PinNames]] = {}
    for change in changes:
        names.update(change.names)
        writes.update(change.writes)
        seen.update(change.seen)
        for path, components in change.locks.items():
            locks.setdefault(path, {}).update(components)
    for path, components in locks.items():
        seen[path] = bytes_at(path)
        writes[path] = lock_bytes(
            merge_lock(load_lock(path), components, names=names.get(path, {}))
        )
    gitlinks: dict[str, tuple[str, str]] = {}
    with ExitStack() as history:
        for change in changes:
            if change.move is not None:
                _require_unchanged(change.move)
            if change.operation is not None:
                made = replace(_with_files(root, change, change.operation), when=began)
                history.enter_context(recorded(change.checkout, root, made))
                gitlinks.update(made.gitlinks)
        if writes or gitlinks:
            write_set(root, writes, seen, along=gitlinks_staged(root, gitlinks))


def _require_unchanged(move: BranchMove) -> None:
    """SurroundingsError if files that are to be replaced were saved since they were looked at.

    The move looks once more; here nothing has been written yet but objects.
    """
    # first, so that whoever finds the files written can move the checkout
    write_objects(move.checkout.repository, move.stack.objects)
    if move.source is not None and move.held is not None:
        bring_objects(move.source, move.checkout.repository, ())
        require_held(move.checkout, move.place, move.held)


def _with_files(root: Path, change: Change, operation: Operation) -> Operation:
    files, locks = files_made(root, change.writes), locks_made(root, change.locks)
    operation, move = replace(operation, files=files, locks=locks), change.move
    if move is None:
        return operation
    # edits that become patches leave the files as they are
    tree = move.stack.tree if operation.edits else TreeId("")
    after = Place(move.stack.base.commit, move.stack.commit, tree)
    return replace(operation, before=replace(move.before, files=tree), after=after)


def _moved(planned: PlannedRefresh, when: int) -> RefreshedComponent:
    stop, report = planned.stop, planned.report
    move = planned.change.move if planned.change is not None else None
    try:
        if stop is not None:
            from patchkit.ops.resume import stop_at  # noqa: PLC0415  most meet no conflict

            return replace(report, also_saved=stop_at(stop, when))
        return report if move is None else _settled(report, move, when)
    except (PatchkitError, OSError) as error:
        failed = expected(error)
    told = [replace(each, where=each.where or report.name) for each in failed.problems]
    if stop is not None:
        report = replace(report, problems=())  # the checkout does not hold that conflict
    else:
        waits = move is not None and move.snapshot.halt is not None
        what = "the patch files are written, the checkout's branch is still behind them"
        hint = f"patchkit {'continue' if waits else 'refresh'}"
        told.append(Problem(what, report.name, hint))
    problems = (*report.problems, *told)
    return replace(report, exit_code=failed.exit_code, halted=None, problems=problems)


def _settled(report: RefreshedComponent, move: BranchMove, when: int) -> RefreshedComponent:
    repository = move.checkout.repository
    if move.keep is not None:
        write_objects(repository, move.keep.objects)
        report = replace(report, saved=save_commit(move.checkout, move.keep.commit, when))
    moved = go_to(move.checkout, move.snapshot, move.place, held=move.held, when=when)
    return replace(report, also_saved=moved.saved)
