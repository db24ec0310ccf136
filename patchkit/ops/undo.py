"""The way back: from a conflict in a checkout, and from a change of a component (`undo_record`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.repository import ZERO, RefChange
from patchkit.manifest.values import Component, Manifest
from patchkit.model.objects import CommitId, GitObject, TreeEntry, TreeId, make_commit
from patchkit.model.patch import Identity
from patchkit.model.tree import Tree
from patchkit.ops.resume import CannotGoOnError, Waiting, find_halt, nothing_waits, waiting_of
from patchkit.ops.undo_record import (
    CannotUndoError,
    StackPlace,
    Undo,
    is_resolution,
    last_undo,
    pop_undo,
    read_undos,
    record_path,
)
from patchkit.stack.lockfile import (
    load_lock,
    recorded_in,
)
from patchkit.workspace import (
    HALT_REF,
    Checkout,
    CheckoutState,
    Snapshot,
    checkout_of,
    inspect,
    locked,
)
from patchkit.workspace.changes import TreeChange, absent_objects, tree_changes
from patchkit.workspace.checkout import SAVED_REFS
from patchkit.workspace.contents import contents_at, fits
from patchkit.workspace.move import MoveTarget, move_checkout, settle
from patchkit.workspace.put_files import ChangedMeanwhileError
from patchkit.workspace.recover import abandon
from patchkit.workspace.save import Held, read_worktree, rows_beyond, save_commit, staged_id
from patchkit.workspace.waiting import CheckoutSnapshot, Halt, go_to, read_halt, work_of

_NOTHING = "there is nothing to take back"
_STACK_GONE = "the old stack is not in the checkout any more"
_BY_GIT = "undo --list says what can be; for the rest use git in the project"


class UndoableChange(Struct, frozen=True):
    """A change that `undo` takes back; `when` as 2026-01-02T03:04:05Z, "" where it is not known.

    `changed` are files that it wrote and that are other ones now, so that it cannot be taken back
    as things are: they were edited, or a later change, which is undone before it, wrote them.
    """

    component: str
    what: str
    when: str = ""
    changed: tuple[str, ...] = ()


class BackReport(Struct, frozen=True):
    """What was taken back of a component's bump, or of a verb on its series.

    `files` are the project's files that have their old bytes again, `at` where the checkout is now:
    the patch whose conflict it holds, or "" if it waits for nothing. `left` says why the checkout
    stayed where it is. `saved` is the ref of what was done to the conflict, `resolved` that of the
    patches as they were resolved by hand, `also_saved` are those of what was only in git's index,
    or came meanwhile. `kept` are recorded resolutions, which the next bump takes.
    `what` is the change that was taken back, `commits` the ref of commits of the user's that a
    refresh had made patches of. With --list nothing is, and `changes` are those that
    can be, one after the other.
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
    what: str = ""
    commits: str = ""
    changes: tuple[UndoableChange, ...] = ()


def last_changed(manifest: Manifest, workspace: Path) -> Component | None:
    """The component of the change that can be undone and came last."""
    found = []
    for component in manifest.components:
        checkout = checkout_of(workspace, manifest, component)
        undo = last_undo(checkout)
        if undo is not None and undo.component == component.name:
            when = undo.when or record_path(checkout).stat().st_mtime_ns
            found.append((when, component.name))
    return manifest.component(max(found)[1]) if found else None


def undoable_changes(
    manifest: Manifest, components: Sequence[Component], workspace: Path
) -> BackReport:
    """What `undo` takes back, the next one first; nothing is changed."""
    steps: list[UndoableChange] = []
    records: list[tuple[int, UndoableChange]] = []
    for component in components:
        checkout = checkout_of(workspace, manifest, component)
        steps += _steps_back(component, checkout)
        for undo in read_undos(checkout):
            changed = tuple(undo.changed(manifest.root))
            seconds = undo.when // 10**9
            at = f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
            change = UndoableChange(component.name, undo.what, at if undo.when else "", changed)
            records.append((undo.when, change))
    records.sort(key=lambda each: -each[0])
    changes = (*steps, *(change for _, change in records))
    return BackReport(manifest.name, ", ".join(each.name for each in components), changes=changes)


def _steps_back(component: Component, checkout: Checkout) -> Iterator[UndoableChange]:
    """The steps of a bump that waits, the last one first."""
    if not checkout.git_dir.is_dir() or HALT_REF not in checkout.repository.refs(HALT_REF):
        return
    halt = read_halt(checkout)
    while halt is not None:
        waiting, first = waiting_of(halt), halt.previous is None
        verb = "bump, which stopped at" if first else "the step on to"
        yield UndoableChange(component.name, f"{verb} {waiting.patch}")
        halt = read_halt(checkout, halt.previous) if halt.previous is not None else None


def nothing_to_go_on_from(manifest: Manifest, *, undoing: bool = False) -> PatchkitError:
    """No component of the manifest has a bump that waits, or (`undoing`) one to take back."""
    if undoing:
        return CannotUndoError(Problem(_NOTHING, manifest.name, _BY_GIT))
    return CannotGoOnError(nothing_waits(manifest))


def abort_bump(manifest: Manifest, component: Component, workspace: Path, when: int) -> BackReport:
    """Take back all of a bump that waits: the checkout is where it was before.

    The project's files, too, if a kill came after they were written. Work on the conflict is saved
    under a ref.
    """
    checkout = checkout_of(workspace, manifest, component)
    halt = find_halt(checkout, manifest, component)
    with locked(checkout):
        undo = last_undo(checkout)
        report = BackReport(manifest.name, component.name)
        written = undo is not None and undo.bump and undo.before == halt.before
        if undo is not None and written and undo.is_done(manifest.root):
            report = _put_back(undo, manifest.root, report)
        resolved = _keep_resolved(checkout, waiting_of(halt), when)
        place = _stack_place(checkout, halt.before)
        report = _leave(checkout, halt, place, None, when=when, report=report)
        if undo is not None and written and undo.is_undone(manifest.root):
            pop_undo(checkout)
        return replace(report, resolved=resolved)


def undo_bump(manifest: Manifest, component: Component, workspace: Path, when: int) -> BackReport:
    """Take back the last step: a `continue` or `skip` of a bump that waits, else the last change.

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
    undo = last_undo(checkout)
    if undo is None:
        raise CannotUndoError(Problem(_NOTHING, component.name, _BY_GIT))
    with locked(checkout):
        report = BackReport(manifest.name, component.name, what=undo.what)
        if undo.edits or undo.worktree or undo.refs:
            if undo.edits:
                report = _take_out(undo, manifest.root, checkout, when, report)
            elif undo.worktree:
                report = _put_files_back(undo, checkout, when, report)
            else:
                _put_refs_back(undo, checkout)
            pop_undo(checkout)
            return report
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
        pop_undo(checkout)
    return report


def _take_out(
    undo: Undo, root: Path, checkout: Checkout, when: int, report: BackReport
) -> BackReport:
    """Undo a refresh or `new`: the old patches, and what it took up is edits again.

    No file of the checkout changes. CannotUndoError where it is not at the stack that was made:
    the edits would be nowhere then.
    """
    assert undo.before is not None
    snapshot = inspect(checkout)
    place = (snapshot.base, snapshot.head)
    usual = snapshot.state in (CheckoutState.APPLIED, CheckoutState.EDITED)
    if place not in (undo.after, undo.before) or not usual or snapshot.head != snapshot.applied:
        what = f"{undo.what}: the checkout is {snapshot.state.value}, or at another stack"
        hint = f"patchkit status -m {report.manifest} -c {report.component}  says more"
        raise CannotUndoError(Problem(what, report.component, hint))
    base, tip = undo.before
    if checkout.repository.commit(tip) is None:
        raise CannotUndoError(Problem(_STACK_GONE, report.component, _BY_GIT))
    report = replace(report, resolved=_keep_stack(checkout, undo, when))
    if undo.head:
        report = replace(report, commits=_keep_commit(checkout, undo.head, when))
    report = _put_back(undo, root, report)
    if place == undo.after:
        target = MoveTarget(base, tip, index=_rows_left(checkout, undo))
        moved = settle(checkout, snapshot, target, when=when)
        report = replace(report, also_saved=moved.saved)
    return report


def _put_files_back(undo: Undo, checkout: Checkout, when: int, report: BackReport) -> BackReport:
    """Give the checkout's files what they had before; CannotUndoError if one was changed since.

    Other files, edited meanwhile, are left alone, and so is what is staged.
    """
    assert undo.worktree is not None
    repository, snapshot = checkout.repository, inspect(checkout)
    place = (snapshot.base, snapshot.head)
    usual = snapshot.state in (CheckoutState.APPLIED, CheckoutState.EDITED)
    if place != undo.before or snapshot.head != snapshot.applied or not usual:
        what = f"{undo.what}: the checkout is {snapshot.state.value}, or at another stack"
        raise CannotUndoError(Problem(what, report.component, _BY_GIT))
    if absent_objects(repository, undo.worktree):
        what = f"{undo.what}: the files as they were are not in the checkout any more"
        raise CannotUndoError(Problem(what, report.component, _BY_GIT))
    changes = tree_changes(repository, *undo.worktree)
    try:
        tracked = read_worktree(checkout, CommitId(str(snapshot.head))).tree
    finally:
        abandon(checkout)
    written: list[GitObject] = []
    changed = []
    with reading(repository) as reader:
        now = Tree(reader, tracked)
        if all(_is_as_before(checkout, now.entry(each.path), each) for each in changes):
            return report  # killed before it changed a file
        for each in changes:
            entry, new = now.entry(each.path), each.new
            if entry is None and new is not None and holds(checkout, each.path, new):
                now = now.put(each.path, new)  # it is untracked
            elif entry != new:
                changed.append(each.path)
        before = now
        for each in changes:
            before = before.remove(each.path) if each.new is not None else before
        for each in changes:
            before = before.put(each.path, each.old) if each.old is not None else before
        here, there = now.write(written), before.write(written)
    if changed:
        what = f"{undo.what}: {', '.join(changed)} changed since"
        hint = "git restore takes single files back"
        raise CannotUndoError(Problem(what, report.component, hint))
    write_objects(repository, written)
    # its id comes before its rows: what is staged in between is noticed
    held = Held(here, staged=staged_id(checkout))
    rows = rows_beyond(checkout, there) | dict.fromkeys(undo.index, ())
    base, tip = (CommitId(str(each)) for each in place)
    target = MoveTarget(base, tip, worktree=there, index=rows)
    moved = move_checkout(checkout, snapshot, target, held, when=when)
    return replace(report, also_saved=moved.saved)


def _is_as_before(checkout: Checkout, entry: TreeEntry | None, change: TreeChange) -> bool:
    """Whether a path, tracked as `entry`, is as it was before the change."""
    new = change.new
    added = entry is None and new is not None and holds(checkout, change.path, new)
    return entry == change.old and not added


def holds(checkout: Checkout, path: str, entry: TreeEntry) -> bool:
    """Whether that is on disk there, byte for byte."""
    contents = contents_at(checkout.path, path)
    return contents is not None and contents.oid == entry.oid and fits(contents, entry.mode)


def _put_refs_back(undo: Undo, checkout: Checkout) -> None:
    """Make deleted refs again; CannotUndoError where git has cleared away what they named."""
    repository = checkout.repository
    there = repository.refs(SAVED_REFS)
    refs = {name: oid for name, oid in undo.refs.items() if there.get(name) != oid}
    if gone := absent_objects(repository, refs.values()) if refs else set():
        what = f"{undo.what}: git has cleared away {', '.join(sorted(gone))}"
        raise CannotUndoError(Problem(what, undo.component))
    repository.free_refs(refs)
    changes = [RefChange(name, oid, ZERO) for name, oid in refs.items()]
    repository.update_refs(changes, reason="patchkit: undo")


def _rows_left(checkout: Checkout, undo: Undo) -> dict[str, tuple[str, ...]]:
    """What was in the index, as far as its blobs are in the repository still."""
    blobs = {row.split(" ")[1] for rows in undo.index.values() for row in rows}
    gone = absent_objects(checkout.repository, blobs) if blobs else set()
    return {
        path: rows
        for path, rows in undo.index.items()
        if not any(row.split(" ")[1] in gone for row in rows)
    }


def _keep_stack(checkout: Checkout, undo: Undo, when: int) -> str:
    """Keep the stack that a change made under a ref, and return that; "" where it is gone."""
    if undo.after is None or not checkout.git_dir.is_dir():
        return ""
    return _keep_commit(checkout, undo.after[1], when)


def _keep_commit(checkout: Checkout, commit: CommitId, when: int) -> str:
    """Keep a commit under a ref, if none does yet, and return that; "" where it is gone."""
    repository = checkout.repository
    if repository.commit(commit) is None:
        return ""
    there = [name for name, oid in repository.refs(SAVED_REFS).items() if oid == commit]
    return there[0] if there else save_commit(checkout, commit, when)


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
            parents = [CommitId(written[-1].oid)] if written else []
            commit = make_commit(
                tree=tree, parents=parents, author=who, committer=who, message=f"{name}, {what}"
            )
            written.append(commit)
    if not written:
        return ""
    write_objects(checkout.repository, written)
    return save_commit(checkout, CommitId(written[-1].oid), when)


def _put_back(undo: Undo, root: Path, report: BackReport) -> BackReport:
    if not undo.put_back(root):
        return report
    kept = [path for path in undo.files if is_resolution(path)]
    files = {*undo.files, *undo.locks} - {*kept}
    return replace(report, files=tuple(sorted(files)), kept=tuple(sorted(kept)))


def _move_back(
    checkout: Checkout,
    before: StackPlace,
    after: StackPlace,
    when: int,
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
        return "", settle(checkout, snapshot, MoveTarget(*before), when=when).saved
    if not there or not snapshot.state.movable:
        return f"the checkout is {snapshot.state.value}, and stays as it is", ()
    if checkout.repository.resolve(f"{before[1]}^{{commit}}", strict=True) is None:
        return _STACK_GONE, ()
    held = Held(after[1])
    return "", go_to(checkout, snapshot, _stack_place(checkout, before), held=held, when=when).saved


def _same_files(checkout: Checkout, before: StackPlace, after: StackPlace) -> bool:
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


def _stack_place(checkout: Checkout, stack: StackPlace) -> CheckoutSnapshot:
    tree = checkout.repository.resolve(f"{stack[1]}^{{tree}}", strict=True)
    if tree is None:
        what = f"the old stack, {stack[1]}, is not in the checkout any more"
        raise SurroundingsError(Problem(what, str(checkout.path), "patchkit apply makes a new one"))
    return CheckoutSnapshot(CommitId(stack[0]), CommitId(stack[1]), TreeId(tree))
