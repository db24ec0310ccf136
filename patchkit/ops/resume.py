"""The way out of a conflict in a checkout: where it is, the end of it, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.manifest.values import Component, Manifest
from patchkit.model.objects import CommitId, GitObject, TreeId, make_commit
from patchkit.model.patch import Identity
from patchkit.model.progress import Progress
from patchkit.ops.conflict_report import CannotGoOnError, Waiting, nothing_waits, waiting_of
from patchkit.ops.undo import (
    CannotUndoError,
    Undo,
    forget_undo,
    is_resolution,
    read_undo,
    record_path,
)
from patchkit.stack.build import build_stack
from patchkit.stack.lockfile import load_lock, recorded_in
from patchkit.stack.series import load_series
from patchkit.upstream.store import Store
from patchkit.workspace import (
    HALT_REF,
    Checkout,
    CheckoutState,
    Snapshot,
    checkout_of,
    inspect,
    locked,
)
from patchkit.workspace.checkout import SAVED_REFS
from patchkit.workspace.enter import bring_objects
from patchkit.workspace.move import MoveTarget, settle
from patchkit.workspace.put_files import ChangedMeanwhileError
from patchkit.workspace.recover import has_leftovers, recover
from patchkit.workspace.save import Held, save_commit
from patchkit.workspace.waiting import CheckoutSnapshot, Halt, go_to, read_halt, work_of

_NOTHING = "there is nothing to take back"
_BY_GIT = "only the last bump or change of a series can be, and once; git knows the project's files"


class BackReport(Struct, frozen=True):
    """What was taken back of a component's bump, or of a verb on its series.

    `files` are the project's files that have their old bytes again, `at` where the checkout is now:
    the patch whose conflict it holds, or "" if it waits for nothing. `left` says why the checkout
    stayed where it is. `saved` is the ref of what was done to the conflict, `resolved` that of the
    patches as they were resolved by hand, `also_saved` are those of what was only in git's index,
    or came meanwhile. `kept` are recorded resolutions, which the next bump takes.
    """

    manifest: str
    component: str
    files: tuple[str, ...] = ()
    at: str = ""
    left: str = ""
    saved: str = ""
    resolved: str = ""
    also_saved: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def waiting_components(manifest: Manifest, workspace: Path) -> Iterator[Component]:
    """The components whose checkout holds a conflict of ours; a killed move is finished first."""
    for component in manifest.components:
        checkout = checkout_of(workspace, manifest, component)
        if not checkout.git_dir.is_dir():
            continue
        if has_leftovers(checkout):
            # killed at its very end it waits for nothing any more, and git would meet our lock
            with locked(checkout):
                recover(checkout)
        if HALT_REF in checkout.repository.refs(HALT_REF):
            yield component


def last_bumped(manifest: Manifest, workspace: Path) -> Component | None:
    """The component of the bump that can be undone and came last."""
    found = []
    for component in manifest.components:
        path = record_path(checkout_of(workspace, manifest, component))
        if path.exists():
            found.append((path.stat().st_mtime_ns, component.name))
    return manifest.component(max(found)[1]) if found else None


def nothing_to_go_on_from(manifest: Manifest, *, undoing: bool = False) -> PatchkitError:
    """No component of the manifest has a bump that waits, or (`undoing`) one to take back."""
    if undoing:
        return CannotUndoError(Problem(_NOTHING, manifest.name, _BY_GIT))
    return CannotGoOnError(nothing_waits(manifest))


def find_halt(checkout: Checkout, manifest: Manifest, component: Component) -> Halt:
    """What the checkout waits for; a move that was killed is finished first."""
    halt = None
    if checkout.git_dir.is_dir():
        with locked(checkout):
            recover(checkout)
            halt = read_halt(checkout)
    if halt is None:
        raise CannotGoOnError(nothing_waits(manifest, component.name))
    waiting = waiting_of(halt)
    if (waiting.manifest, waiting.component) != (manifest.name, component.name):
        what = f"its checkout waits for {waiting.component} of manifest {waiting.manifest}"
        hint = f"-m {waiting.manifest} -c {waiting.component}"
        raise CannotGoOnError(Problem(what, component.name, hint))
    return halt


def is_written(manifest: Manifest, component: Component, halt: Halt) -> bool:
    """Whether the project says already what the halt was on its way to: a kill came after that."""
    wanted = waiting_of(halt).wanted
    lock = load_lock(manifest.lock_path)
    recorded = recorded_in(lock, component.name)
    pinned = wanted is None or component.pin == wanted
    return pinned and recorded is not None and recorded.commit == halt.place.base


def arrive(
    checkout: Checkout,
    manifest: Manifest,
    component: Component,
    *,
    store: Store,
    when: int,
    progress: Progress,
) -> str:
    """Bring a checkout that holds a conflict to the stack that the project says.

    What was done to the conflict is saved, as it may not be what the patches say; returns the ref,
    or "". `when`, in seconds since the epoch, names it.
    """
    base = store.base(component, progress)
    series = load_series(manifest, component, store, progress)
    source = store.repository(component)
    with reading(source) as reader:
        stack = build_stack(reader, base, series.series_patches)
    with locked(checkout):
        snapshot, halt = inspect(checkout), read_halt(checkout)
        assert halt is not None
        bring_objects(source, checkout.repository, stack.objects)
        work = work_of(checkout, snapshot, halt, when, save=True)
        place = CheckoutSnapshot(base.commit, stack.commit, stack.tree)
        moved = go_to(checkout, snapshot, place, held=work.held, when=when)
        return ", ".join(filter(None, (work.saved, *moved.saved)))


def abort_bump(manifest: Manifest, component: Component, workspace: Path, when: int) -> BackReport:
    """Take back all of a bump that waits: the checkout is where it was before.

    The project's files, too, if a kill came after they were written. Work on the conflict is saved
    under a ref.
    """
    checkout = checkout_of(workspace, manifest, component)
    halt = find_halt(checkout, manifest, component)
    with locked(checkout):
        undo = read_undo(checkout)
        report = BackReport(manifest.name, component.name)
        if undo is not None and undo.before == halt.before and undo.is_done(manifest.root):
            report = _put_back(undo, manifest.root, report)
        resolved = _keep_resolved(checkout, waiting_of(halt), when)
        place = _stack_place(checkout, halt.before)
        return replace(
            _leave(checkout, halt, place, None, when=when, report=report), resolved=resolved
        )


def undo_bump(manifest: Manifest, component: Component, workspace: Path, when: int) -> BackReport:
    """Take back the last step: a `continue` or `skip` of a bump that waits, else the last bump.

    CannotUndoError if there is none, or what it wrote was changed since.
    """
    checkout = checkout_of(workspace, manifest, component)
    try:
        halt = find_halt(checkout, manifest, component)
    except CannotGoOnError:
        return _undo_done(manifest, component, checkout, when)
    if halt.previous is None or halt.left is None:
        return abort_bump(manifest, component, workspace, when)
    with locked(checkout):
        previous = read_halt(checkout, halt.previous)
        assert previous is not None
        report = BackReport(manifest.name, component.name, at=waiting_of(previous).patch)
        return _leave(checkout, halt, halt.left, previous, when=when, report=report)


def _undo_done(
    manifest: Manifest, component: Component, checkout: Checkout, when: int
) -> BackReport:
    undo = read_undo(checkout)
    if undo is None:
        raise CannotUndoError(Problem(_NOTHING, component.name, _BY_GIT))
    with locked(checkout):
        report = BackReport(manifest.name, component.name)
        if undo.before is not None and undo.after is not None:
            # conflicts were resolved on the way: what they came to stays to be had
            kept = _keep_stack(checkout, undo, when) if undo.bump else ""
            report = replace(report, resolved=kept)
        report = _put_back(undo, manifest.root, report)
        if undo.before is not None and undo.after is not None:
            try:
                left, also_saved = _move_back(checkout, undo.before, undo.after, when)
            except ChangedMeanwhileError as error:
                left, also_saved = error.problems[0].what, ()
            report = replace(report, left=left, also_saved=also_saved)
            if left and report.files:  # what was in the way may be gone the next time
                return report
        elif checkout.git_dir.is_dir():
            report = replace(report, left=_unless_at(inspect(checkout), manifest, component))
        forget_undo(checkout)
    return report


def _keep_stack(checkout: Checkout, undo: Undo, when: int) -> str:
    """Keep the stack that a bump made under a ref, and return that; "" where it is gone."""
    if undo.after is None or not checkout.git_dir.is_dir():
        return ""
    repository, tip = checkout.repository, undo.after[1]
    if repository.commit(tip) is None:
        return ""
    there = [name for name, oid in repository.refs(SAVED_REFS).items() if oid == tip]
    return there[0] if there else save_commit(checkout, tip, when)


def _keep_resolved(checkout: Checkout, waiting: Waiting, when: int) -> str:
    """Keep the patches that were resolved so far under a ref, and return that; "" for none.

    It is a commit for each, on one of the files without the patch.
    """
    who = Identity("patchkit", "patchkit@localhost", date=f"{when} +0000")
    written: list[GitObject] = []
    for name, decision in waiting.decisions.items():
        if decision.tree is None:
            continue
        for tree, what in ((decision.onto, "before it"), (decision.tree, "as it was resolved")):
            parents = [written[-1].oid] if written else []
            commit = make_commit(
                tree=tree, parents=parents, author=who, committer=who, message=f"{name}, {what}"
            )
            written.append(commit)
    if not written:
        return ""
    write_objects(checkout.repository, written)
    return save_commit(checkout, written[-1].oid, when)


def _put_back(undo: Undo, root: Path, report: BackReport) -> BackReport:
    if not undo.put_back(root):
        return report
    kept = [path for path in undo.files if is_resolution(path)]
    files = undo.files.keys() - kept
    return replace(report, files=tuple(sorted(files)), kept=tuple(sorted(kept)))


def _move_back(
    checkout: Checkout, before: tuple[str, str], after: tuple[str, str], when: int
) -> tuple[str, tuple[str, ...]]:
    """Move a checkout back to where it was before a bump; else say why it stays.

    Also returns refs of what was saved.
    """
    snapshot = inspect(checkout)
    if (snapshot.base, snapshot.head) == before and snapshot.state.movable:
        return "", ()
    there = (snapshot.base, snapshot.head) == after
    if there and snapshot.state is CheckoutState.EDITED and _same_files(checkout, before, after):
        # the edits are for either stack
        return "", settle(
            checkout, snapshot, MoveTarget(CommitId(before[0]), CommitId(before[1])), when=when
        ).saved
    if not there or not snapshot.state.movable:
        return f"the checkout is {snapshot.state.value}, and stays as it is", ()
    if checkout.repository.resolve(f"{before[1]}^{{commit}}", strict=True) is None:
        return "the old stack is not in the checkout any more", ()
    held = Held(after[1])
    return "", go_to(checkout, snapshot, _stack_place(checkout, before), held=held, when=when).saved


def _same_files(checkout: Checkout, before: tuple[str, str], after: tuple[str, str]) -> bool:
    trees = {checkout.repository.tree(tip) for _, tip in (before, after)}
    return len(trees) == 1 and None not in trees


def _unless_at(snapshot: Snapshot, manifest: Manifest, component: Component) -> str:
    """Where the checkout is not at the base that the lock says now."""
    lock = load_lock(manifest.lock_path)
    recorded = recorded_in(lock, component.name)
    there = recorded is None or snapshot.base == recorded.commit
    if there or snapshot.state is CheckoutState.ABSENT:
        return ""
    return "the checkout was moved since, and stays as it is"


def _leave(
    checkout: Checkout,
    halt: Halt,
    place: CheckoutSnapshot,
    previous: Halt | None,
    *,
    when: int,
    report: BackReport,
) -> BackReport:
    """Go from a conflict to another place; what was done to it is saved, and reported."""
    snapshot = inspect(checkout)
    work = work_of(checkout, snapshot, halt, when, save=True)
    moved = go_to(checkout, snapshot, place, previous, held=work.held, when=when)
    return replace(report, saved=work.saved, also_saved=moved.saved)


def _stack_place(checkout: Checkout, stack: tuple[str, str]) -> CheckoutSnapshot:
    tree = checkout.repository.resolve(f"{stack[1]}^{{tree}}", strict=True)
    if tree is None:
        what = f"the old stack, {stack[1]}, is not in the checkout any more"
        raise SurroundingsError(Problem(what, str(checkout.path), "patchkit apply makes a new one"))
    return CheckoutSnapshot(CommitId(stack[0]), CommitId(stack[1]), TreeId(tree))
