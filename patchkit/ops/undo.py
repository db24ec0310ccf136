"""The way back from a change of a component: the project's files as they were, and where the
checkout was.

Each checkout has a stack of records in the workspace, the last change on top, of which only a few
are kept. A record is believed only where the files are what it says that the change made of them;
so what came after a change is undone before it. A bump that waits is no change yet: `resume`.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.disk.files import replace_file
from patchkit.disk.transaction import JOURNAL, write_set
from patchkit.errors import ExitCode, PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.repository import ZERO, RefChange
from patchkit.manifest.values import Component, Manifest
from patchkit.model.decoding import from_builtins
from patchkit.model.names import can_be_a_file
from patchkit.model.objects import CommitId, GitObject, TreeEntry, TreeId
from patchkit.model.resolution import ENDING
from patchkit.model.tree import Tree, TreeChange
from patchkit.ops.refresh_report import BumpedComponent
from patchkit.refresh.project_files import Project
from patchkit.stack.lockfile import (
    Lock,
    LockedComponent,
    load_lock,
    lock_bytes,
    lock_digest,
    merge_lock,
    recorded_in,
)
from patchkit.workspace import (
    Checkout,
    CheckoutState,
    Snapshot,
    checkout_of,
    inspect,
    locked,
)
from patchkit.workspace.changes import absent_objects, tree_changes
from patchkit.workspace.checkout import OWN_FOLDER, SAVED_REFS
from patchkit.workspace.contents import contents_at, fits
from patchkit.workspace.move import MoveTarget, move_checkout, settle
from patchkit.workspace.put_files import ChangedMeanwhileError
from patchkit.workspace.recover import abandon
from patchkit.workspace.save import read_worktree, rows_beyond, save_commit, staged_id
from patchkit.workspace.state import Held
from patchkit.workspace.waiting import CheckoutSnapshot, go_to

_VERSION = 2

_REPORT_VERSION = 1

#: So many changes of a checkout can be undone, one after the other.
MOST = 10


class CannotUndoError(PatchkitError):
    """There is nothing to undo, or it changed since."""

    exit_code = ExitCode.FINDING


class LockEntries(Struct, frozen=True):
    """What a change made of a lock file: of its own components, the others' are left alone."""

    existed: bool  # whether there was the file before
    components: Mapping[str, tuple[LockedComponent | None, LockedComponent | None]]


#: A stack in a checkout: (base, tip).
StackPlace: TypeAlias = tuple[CommitId, CommitId]


class Undo(Struct, frozen=True):
    """A change that can be undone: a bump, a refresh, a new patch, a verb on the series.

    `files`: path below the root -> (bytes before, SHA-256 after), None for no file; `locks` is the
    same of lock files. `before` and `after` are the (base, tip) of the checkout, None if it was not
    moved.
    """

    component: str  # its name
    files: Mapping[str, tuple[bytes | None, str | None]]
    before: StackPlace | None = None
    after: StackPlace | None = None
    bump: bool = True  # the pin was moved, and conflicts were resolved on the way
    what: str = "bump"  # the command and what it did, for a person
    when: int = 0  # in nanoseconds since the epoch
    locks: Mapping[str, LockEntries] = field(default_factory=dict)
    # the checkout's edits went into patches, and are edits again afterwards: no file is touched
    edits: bool = False
    # where the branch was, if not at the tip: commits of the user's that became patches
    head: CommitId = CommitId("")
    # path -> rows of the index before ("mode id stage"), where they were not the tip's
    index: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # the trees of the checkout's files before and after, where only these changed; `index` has the
    # rows that the index got
    worktree: tuple[TreeId, TreeId] | None = None
    # refs of the checkout that were deleted
    refs: Mapping[str, str] = field(default_factory=dict)
    final: bool = False  # it cannot be taken back: `undo` stops there once
    # what a bump reported, for its review: see `report_text`; None of what is no bump
    report: Mapping[str, Any] | None = None

    def is_done(self, root: Path) -> bool:
        """Whether every file is as the change made it."""
        return not self.changed(root)

    def changed(self, root: Path) -> list[str]:
        """The paths that are not as the change made them."""
        files = [path for path, (_, new) in self.files.items() if _digest(root / path) != new]
        return files + [path for path in self.locks if not self._lock_is(root, path, after=True)]

    @property
    def taken_back(self) -> dict[str, tuple[bytes | None, str | None]]:
        """The files that undo puts back: not what remembers how a conflict was resolved."""
        return {path: each for path, each in self.files.items() if not is_resolution(path)}

    def is_undone(self, root: Path) -> bool:
        """Whether every file is as it was before."""
        files = self.taken_back.items()
        return all(_digest(root / path) == _hash(old) for path, (old, _) in files) and all(
            self._lock_is(root, path, after=False) for path in self.locks
        )

    def put_back(self, root: Path) -> bool:
        """Give every file its old bytes, all or none; False if they have them.

        Recorded resolutions stay: they are work of a person's. CannotUndoError if a file was
        changed since.
        """
        if self.is_undone(root):
            return False
        if changed := [path for path in self.changed(root) if not is_resolution(path)]:
            what = f"{self.what}: {', '.join(changed)} changed since"
            hint = "undo what came after it first; or revert it with git"
            raise CannotUndoError(Problem(what, self.component, hint))
        writes = {root / path: old for path, (old, _) in self.taken_back.items()}
        writes |= {root / path: self._old_lock(root / path, path) for path in self.locks}
        seen = {path: _bytes(path) for path in writes}
        write_set(root, writes, seen)
        return True

    def _lock_is(self, root: Path, path: str, *, after: bool) -> bool:
        """Whether a lock says of these components what it did after the change, or before it."""
        try:
            lock = load_lock(root / path) or Lock({})
        except PatchkitError:
            return False
        entries = self.locks[path].components
        there = {name: lock_digest(lock.components.get(name)) for name in entries}
        return all(there[name] == lock_digest(each[after]) for name, each in entries.items())

    def _old_lock(self, file: Path, path: str) -> bytes | None:
        entries = self.locks[path].components
        old = {name: each[0] for name, each in entries.items() if each[0] is not None}
        lock = merge_lock(load_lock(file), old, drop=entries.keys() - old.keys())
        empty = not (lock.components or lock.overrides or self.locks[path].existed)
        return None if empty else lock_bytes(lock)


def is_resolution(path: str) -> bool:
    """Whether a file of the project remembers how a conflict was resolved."""
    return path.endswith(ENDING)


def record_path(checkout: Checkout) -> Path:
    """Where the records of a checkout's last changes are."""
    return checkout.workspace / OWN_FOLDER / f"{checkout.name}.undo.json"


# The report of a bump is a part of its record, which is on disk before the files are: whoever finds
# the pin moved finds what moved it, wherever a kill came. Only the pin says that it was made.


def report_text(row: BumpedComponent) -> Mapping[str, Any]:
    """A bump's report as `Undo.report` has it: what its review shows."""
    kept = replace(row, halted=None, earlier=(), notes=(), problems=(), findings=())
    text: Any = msgspec.to_builtins(kept)
    return {"version": _REPORT_VERSION, "component": text}


def bump_reports(checkout: Checkout, pin: str) -> Iterator[tuple[int, BumpedComponent]]:
    """The reports of the bumps to `pin` that are recorded, the last one first, with their times.

    The times are nanoseconds since the epoch. A report that cannot be read is none.
    """
    for undo in reversed(read_undos(checkout)):
        text = undo.report or {}
        if text.get("version") != _REPORT_VERSION:
            continue
        try:
            row = from_builtins(text["component"], BumpedComponent)
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if row.name == undo.component and row.moved and pin.startswith(row.new.pin):
            yield undo.when, row


# The records of a checkout, the last change last. The file is replaced whole: after a kill there
# is one more of them than there are changes at most, which says what the files are still.
def push_undo(checkout: Checkout, root: Path, undo: Undo) -> None:
    """Put a record on top, before its change is made; nothing where there is no workspace."""
    if not record_path(checkout).parent.is_dir():
        return
    drop_unmade(checkout, root)
    _write(checkout, [*read_undos(checkout), replace(undo, when=time.time_ns())])


def drop_unmade(checkout: Checkout, root: Path) -> None:
    """Take the record on top away if its change was never made: it failed, or was killed.

    A set of files that is still being replaced counts as made: the next command finishes it.
    """
    if (root / JOURNAL).exists():
        return
    found = list(read_undos(checkout))
    kept = list(found)
    while kept and kept[-1].is_undone(root) and not kept[-1].is_done(root):
        kept.pop()
    if kept != found:
        _write(checkout, kept)


def read_undos(checkout: Checkout) -> tuple[Undo, ...]:
    """All records, the last one on top; none where the file makes no sense.

    SurroundingsError where it cannot be read: who writes it then would forget what it says.
    """
    path = record_path(checkout)
    try:
        return tuple(_parsed(json.loads(path.read_bytes())))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise SurroundingsError(f"{path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()


def write_undoable(
    project: Project,
    workspace: Path,
    what: str,
    *,
    writes: Mapping[Path, bytes | None],
    locks: Mapping[Path, Mapping[str, LockedComponent]],
    seen: Mapping[Path, bytes | None],
) -> None:
    """Write a set of files, and entries of the locks that are there, which `undo` takes back."""
    manifest, name, root = project.manifest, project.component.name, project.manifest.root
    checkout = checkout_of(workspace, manifest, project.component)
    there = {path: path.read_bytes() for path in locks if path.exists()}
    with locked(checkout) if checkout.path.exists() else nullcontext():
        made = locks_made_of(root, {path: locks[path] for path in there})
        undo = Undo(name, made_of(root, writes), bump=False, what=what, locks=made)
        merged = {path: lock_bytes(merge_lock(load_lock(path), locks[path])) for path in there}
        try:
            push_undo(checkout, root, undo)
            write_set(root, {**writes, **merged}, {**seen, **there})
        except BaseException:
            drop_unmade(checkout, root)
            raise


def last_undo(checkout: Checkout) -> Undo | None:
    """The record on top; None if there is none that can be read."""
    found = read_undos(checkout)
    return found[-1] if found else None


def pop_undo(checkout: Checkout) -> None:
    """Take the record on top away."""
    _write(checkout, list(read_undos(checkout))[:-1])


def _write(checkout: Checkout, undos: list[Undo]) -> None:
    if not undos:
        record_path(checkout).unlink(missing_ok=True)
        return
    text = {"version": _VERSION, "changes": [_plain(each) for each in undos[-MOST:]]}
    replace_file(record_path(checkout), json.dumps(text).encode("ascii"))


def _plain(undo: Undo) -> dict[str, Any]:
    files = {name: [_encoded(old), new] for name, (old, new) in undo.files.items()}
    return {**msgspec.to_builtins(replace(undo, files={})), "files": files}


def _parsed(text: dict[str, Any]) -> Iterator[Undo]:
    if text["version"] not in (1, _VERSION):
        return
    for row in [text] if text["version"] == 1 else text["changes"]:
        files = {_inside(name): (_decoded(old), new) for name, (old, new) in row["files"].items()}
        undo = from_builtins({**row, "files": {}}, Undo)
        for name in undo.locks:
            _inside(name)
        yield replace(undo, files=files)


def made_of(
    root: Path, writes: Mapping[Path, bytes | None]
) -> dict[str, tuple[bytes | None, str | None]]:
    """The files of an Undo, of a set that is about to be written."""
    return {
        path.relative_to(root).as_posix(): (_bytes(path), _hash(data))
        for path, data in writes.items()
        if path.is_relative_to(root)
    }


def locks_made_of(
    root: Path, locks: Mapping[Path, Mapping[str, LockedComponent]]
) -> dict[str, LockEntries]:
    """The same of lock files, of what is about to be written into them."""
    found = {}
    for path, components in locks.items():
        if path.is_relative_to(root):
            lock = load_lock(path)
            before = lock.components if lock is not None else {}
            entries = {name: (before.get(name), each) for name, each in components.items()}
            found[path.relative_to(root).as_posix()] = LockEntries(lock is not None, entries)
    return found


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _hash(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()


def _digest(path: Path) -> str | None:
    return _hash(_bytes(path))


def _encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _inside(name: str) -> str:
    """A path of a record, which may have come with a project; ValueError if it leads out."""
    if not can_be_a_file(name):
        raise ValueError(name)
    return name


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


# Taking back what a record says.

_STACK_GONE = "the old stack is not in the checkout any more"

_BY_GIT = "patchkit undo --list  says what can be; for the rest use git in the project"


class UndoableChange(Struct, frozen=True):
    """A change that `undo` takes back; `when` as 2026-01-02T03:04:05Z, "" where it is not known.

    `changed` are files that it wrote and that are other ones now, so that it cannot be taken back
    as things are: they were edited, or a later change, which is undone before it, wrote them.
    """

    component: str  # its name
    what: str  # the command and what it did, for a person
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

    manifest: str  # its name
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


def nothing_done(where: str) -> Problem:
    """There is no record of a change."""
    return Problem("there is nothing to undo", where, _BY_GIT)


def recorded_changes(
    component: Component, checkout: Checkout, root: Path
) -> Iterator[tuple[int, UndoableChange]]:
    """When each recorded change of a component was made, in nanoseconds, and what it was."""
    for undo in read_undos(checkout):
        seconds = undo.when // 10**9
        at = f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
        changed = tuple(undo.changed(root))
        when = at if undo.when else ""
        yield undo.when, UndoableChange(component.name, undo.what, when, changed)


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


def undo_change(
    manifest: Manifest, component: Component, checkout: Checkout, when: int
) -> BackReport:
    """Take back the last recorded change; CannotUndoError if there is none, or files changed since.

    Where only the project's files can go back, `left` says why the checkout stays.
    """
    undo = last_undo(checkout)
    if undo is None:
        raise CannotUndoError(nothing_done(component.name))
    with locked(checkout):
        if undo.final:
            pop_undo(checkout)
            hint = "patchkit undo  once more takes back what came before it"
            raise CannotUndoError(Problem(f"{undo.what} cannot be undone", component.name, hint))
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
            # what conflicts were resolved to stays to be had
            kept = _keep_stack(checkout, undo, when) if undo.bump else ""
            report = replace(report, resolved=kept)
        report = give_files_back(undo, manifest.root, report)
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
        report = replace(report, commits=keep_commit(checkout, undo.head, when))
    report = give_files_back(undo, root, report)
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
    """Make deleted refs again; CannotUndoError where git has pruned what they named."""
    repository = checkout.repository
    there = repository.refs(SAVED_REFS)
    refs = {name: oid for name, oid in undo.refs.items() if there.get(name) != oid}
    if gone := absent_objects(repository, refs.values()) if refs else set():
        what = f"{undo.what}: git has pruned {', '.join(sorted(gone))}"
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
    return keep_commit(checkout, undo.after[1], when)


def keep_commit(checkout: Checkout, commit: CommitId, when: int) -> str:
    """Keep a commit under a ref, if none does yet, and return that; "" where it is gone."""
    repository = checkout.repository
    if repository.commit(commit) is None:
        return ""
    there = [name for name, oid in repository.refs(SAVED_REFS).items() if oid == commit]
    return there[0] if there else save_commit(checkout, commit, when)


def give_files_back(undo: Undo, root: Path, report: BackReport) -> BackReport:
    """Give the project its files before a change, all or none; CannotUndoError as `put_back`."""
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
    if checkout.repository.commit(before[1]) is None:
        return _STACK_GONE, ()
    held = Held(after[1])
    return "", go_to(checkout, snapshot, stack_place(checkout, before), held=held, when=when).saved


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


def stack_place(checkout: Checkout, stack: StackPlace) -> CheckoutSnapshot:
    """A clean checkout of a stack; SurroundingsError where its commits are gone."""
    tree = checkout.repository.tree(stack[1])
    if tree is None:
        what = f"the old stack, {stack[1]}, is not in the checkout any more"
        raise SurroundingsError(Problem(what, str(checkout.path), "patchkit apply makes a new one"))
    return CheckoutSnapshot(CommitId(stack[0]), CommitId(stack[1]), tree)
