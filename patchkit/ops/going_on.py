"""The way out of a conflict in a checkout: where it is, the end of it, and the way back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from patchkit.errors import PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.objects import reading
from patchkit.lock import load_lock, recorded_in
from patchkit.manifest.values import Component, Manifest
from patchkit.model.progress import Progress
from patchkit.ops.halting import CannotGoOnError, nothing_waits, waiting_of
from patchkit.ops.undoing import CannotUndoError, Undo, forget_undo, read_undo, record_path
from patchkit.series import load_series
from patchkit.stack import build_stack
from patchkit.store import Store
from patchkit.workspace import HALT_REF, Checkout, Snapshot, State, checkout_of, inspect, locked
from patchkit.workspace.create import bring_objects
from patchkit.workspace.halting import Halt, Place, go_to, read_halt, save_what_was_done
from patchkit.workspace.recover import has_leftovers, recover

_NO_BUMP = "there is no bump to take back"
_BY_GIT = "only the last one can be, and once; git knows the project's files"


class BackReport(Struct, frozen=True):
    """What was taken back of a component's bump.

    `files` are the project's files that have their old bytes again, `at` where the checkout is now:
    the patch whose conflict it holds, or "" if it waits for nothing. `left` says why the checkout
    stayed where it is, `saved` is the ref of work that was in the way.
    """

    manifest: str
    component: str
    files: tuple[str, ...] = ()
    at: str = ""
    left: str = ""
    saved: str = ""


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
        return CannotUndoError(Problem(_NO_BUMP, manifest.name, _BY_GIT))
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
    store: Store,
    progress: Progress,
) -> None:
    """Bring a checkout that holds a conflict to the stack that the project says."""
    base = store.base(component, progress)
    series = load_series(manifest, component, store, progress)
    source = store.repository(component)
    with reading(source) as reader:
        stack = build_stack(reader, base, series.series_patches)
    with locked(checkout):
        bring_objects(source, checkout.repository, stack.objects)
        go_to(checkout, inspect(checkout), Place(base.commit, stack.commit, stack.tree))


def abort_bump(manifest: Manifest, component: Component, workspace: Path, when: int) -> BackReport:
    """Take back all of a bump that waits: the checkout is where it was before.

    The project's files, too, if a kill came after they were written. Work on the conflict is saved
    under a ref.
    """
    checkout = checkout_of(workspace, manifest, component)
    halt = find_halt(checkout, manifest, component)
    with locked(checkout):
        undo = read_undo(checkout)
        files: tuple[str, ...] = ()
        if undo is not None and undo.before == halt.before and undo.is_done(manifest.root):
            files = _put_back(undo, manifest.root)
        saved = _leave(checkout, halt, _stack_place(checkout, halt.before), None, when)
        return BackReport(manifest.name, component.name, files, saved=saved)


def undo_bump(manifest: Manifest, component: Component, workspace: Path, when: int) -> BackReport:
    """Take back the last step: a `continue` or `skip` of a bump that waits, else the last bump.

    CannotUndoError if there is none, or what it wrote was changed since.
    """
    checkout = checkout_of(workspace, manifest, component)
    try:
        halt = find_halt(checkout, manifest, component)
    except CannotGoOnError:
        return _undo_done(manifest, component, checkout)
    if halt.previous is None or halt.left is None:
        return abort_bump(manifest, component, workspace, when)
    with locked(checkout):
        previous = read_halt(checkout, halt.previous)
        assert previous is not None
        saved = _leave(checkout, halt, halt.left, previous, when)
        at = waiting_of(previous).patch
        return BackReport(manifest.name, component.name, at=at, saved=saved)


def _undo_done(manifest: Manifest, component: Component, checkout: Checkout) -> BackReport:
    undo = read_undo(checkout)
    if undo is None:
        raise CannotUndoError(Problem(_NO_BUMP, component.name, _BY_GIT))
    with locked(checkout):
        files = _put_back(undo, manifest.root)
        left = ""
        if undo.before is not None and undo.after is not None:
            left = _move_back(checkout, undo.before, undo.after)
            if left and files:  # what was in the way may be gone the next time
                return BackReport(manifest.name, component.name, files, left=left)
        elif checkout.git_dir.is_dir():
            left = _unless_at(inspect(checkout), manifest, component)
        forget_undo(checkout)
    return BackReport(manifest.name, component.name, files, left=left)


def _put_back(undo: Undo, root: Path) -> tuple[str, ...]:
    return tuple(sorted(undo.files)) if undo.put_back(root) else ()


def _move_back(checkout: Checkout, before: tuple[str, str], after: tuple[str, str]) -> str:
    """Move a checkout back to where it was before a bump; else say why it stays."""
    snapshot = inspect(checkout)
    if (snapshot.base, snapshot.head) == before and snapshot.state.movable:
        return ""
    if (snapshot.base, snapshot.head) != after or not snapshot.state.movable:
        return f"the checkout is {snapshot.state.value}, and stays as it is"
    if checkout.repository.resolve(f"{before[1]}^{{commit}}", strict=True) is None:
        return "the old stack is not in the checkout any more"
    go_to(checkout, snapshot, _stack_place(checkout, before))
    return ""


def _unless_at(snapshot: Snapshot, manifest: Manifest, component: Component) -> str:
    """Where the checkout is not at the base that the lock says now."""
    lock = load_lock(manifest.lock_path)
    recorded = recorded_in(lock, component.name)
    there = recorded is None or snapshot.base == recorded.commit
    if there or snapshot.state is State.ABSENT:
        return ""
    return "the checkout was moved since, and stays as it is"


def _leave(checkout: Checkout, halt: Halt, place: Place, previous: Halt | None, when: int) -> str:
    """Go from a conflict to another place; the ref that saves what was done to it, or ""."""
    snapshot = inspect(checkout)
    saved = save_what_was_done(checkout, snapshot, halt, when)
    go_to(checkout, snapshot, place, previous)
    return saved.ref if saved is not None else ""


def _stack_place(checkout: Checkout, stack: tuple[str, str]) -> Place:
    tree = checkout.repository.resolve(f"{stack[1]}^{{tree}}", strict=True)
    if tree is None:
        what = f"the old stack, {stack[1]}, is not in the checkout any more"
        raise SurroundingsError(Problem(what, str(checkout.path), "patchkit apply makes it anew"))
    return Place(stack[0], stack[1], tree)
