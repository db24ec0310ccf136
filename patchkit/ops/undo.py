"""The way back from what a command did, and the way on again: the project's files as they were,
and the checkout where it was.

What was done is in the history (`workspace.operations`), the last operation on top. It is believed
only where the files are what it says that it made of them; so what came after is undone before it.
A bump that waits is no operation yet: `resume`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from patchkit.disk.files import Contents, bytes_at
from patchkit.disk.transaction import write_set
from patchkit.errors import ExitCode, PatchkitError, Problem, SurroundingsError, expected
from patchkit.gitcmd.gitlinks import gitlinks_staged
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.trees import tree_changes
from patchkit.manifest.values import Component, Manifest
from patchkit.model.decoding import from_builtins
from patchkit.model.names import RESOLUTION_ENDING
from patchkit.model.objects import CommitId, GitObject, TreeEntry
from patchkit.model.tree import Tree, TreeChange
from patchkit.ops.hints import ways_out
from patchkit.ops.refresh_report import BumpedComponent
from patchkit.workspace import (
    Checkout,
    CheckoutState,
    Snapshot,
    checkout_of,
    inspect,
    locked,
)
from patchkit.workspace.changes import absent_objects, entry_rows
from patchkit.workspace.checkout import SAVED_REFS
from patchkit.workspace.contents import contents_at, fits
from patchkit.workspace.enter import Action, Entered, Refusal, RefusalCause
from patchkit.workspace.move import require_free
from patchkit.workspace.operations import (
    Operation,
    last_operation,
    mark_undone,
    operations,
    readable_operations,
    settle_history,
)
from patchkit.workspace.recover import recover
from patchkit.workspace.save import rows_beyond, save_commit, staged_id
from patchkit.workspace.state import UNMERGED, Held, Place
from patchkit.workspace.waiting import go_to, worktree_tree


class CannotUndoError(PatchkitError):
    """There is nothing to undo, or it changed since."""

    exit_code = ExitCode.FINDING


# The report of a bump is a part of its record, which is on disk before the files are: whoever finds
# the pin moved finds what moved it, wherever a kill came. Only the pin says that it was made.


def report_text(row: BumpedComponent) -> Mapping[str, Any]:
    """A bump's report as `Operation.report` has it: what its review shows."""
    kept = replace(row, halted=None, earlier=(), notes=(), problems=(), findings=())
    text: Mapping[str, Any] = msgspec.to_builtins(kept)
    return text


def bump_reports(checkout: Checkout, pin: str) -> Iterator[tuple[int, BumpedComponent]]:
    """The reports of the bumps to `pin` that are recorded, the last one first, with their times.

    The times are nanoseconds since the epoch. A report that cannot be read is none.
    """
    for operation in readable_operations(checkout):
        with suppress(ValueError, TypeError, RecursionError):
            row = from_builtins(operation.report, BumpedComponent)
            if row.name == operation.component and row.moved and pin.startswith(row.new.pin):
                yield operation.when, row


# Taking back what a record says.

_BY_GIT = "patchkit undo --list  says what can be; for the rest use git in the project"


class UndoableChange(Struct, frozen=True):
    """An operation that `undo` takes back; `when` as 2026-01-02T03:04:05Z, "" where nobody knows.

    `changed` are files that it wrote and that are other ones now, so that it cannot be taken back
    as things are: they were edited, or a later operation, which is undone before it, wrote them.
    """

    component: str  # its name
    what: str  # the command and what it did, for a person
    when: str = ""
    changed: tuple[str, ...] = ()
    undone: bool = False  # it is taken back already: `undo --redo` brings it back


class BackReport(Struct, frozen=True):
    """What was taken back of a component's bump, or of a verb on its series.

    `files` are the project's files that have their old bytes again, `at` where the checkout is now:
    the patch whose conflict it holds, or "" if it waits for nothing. `left` says why the checkout
    stayed where it is. `saved` is the ref of what was done to the conflict, `resolved` that of the
    patches as they were resolved by hand, `also_saved` are those of what was only in git's index,
    or came meanwhile. `kept` are recorded resolutions, which the next bump takes.
    `what` is the change that was taken back, `commits` the ref of commits of the user's that a
    refresh had made patches of. With --list nothing is, and `changes` are those that
    can be, one after the other. With --redo it was brought back: `redone`.
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
    redone: bool = False
    also: tuple[BackReport, ...] = ()  # what else the same command did, there or elsewhere

    @property
    def parts(self) -> tuple[BackReport, ...]:
        """All that was taken back, one after the other."""
        return (self, *self.also)


def nothing_done(where: str, *, redo: bool) -> Problem:
    """There is no record of an operation."""
    hint = "patchkit undo --list  says what was done" if redo else _BY_GIT
    return Problem(f"there is nothing to {'redo' if redo else 'undo'}", where, hint)


def recorded_changes(
    component: Component, checkout: Checkout, root: Path
) -> Iterator[tuple[int, UndoableChange]]:
    """The operations on a component, with what to sort by: the next to undo first, then to redo."""
    for undone in (False, True):
        for done in operations(checkout, undone=undone):
            at = f"{datetime.fromtimestamp(done.when // 10**9, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
            changed = tuple((done.turned if undone else done).changed(root))
            row = UndoableChange(component.name, done.what, at, changed, undone)
            yield done.when if undone else -done.when, row


def last_changed(manifest: Manifest, workspace: Path, *, undone: bool) -> tuple[Component, ...]:
    """The components of the command that came last and can be undone, or (`undone`) redone."""
    rows = []
    for component in manifest.components:
        checkout = checkout_of(workspace, manifest, component)
        if undone and checkout.draft.parent.exists():
            with locked(checkout):
                _settle(manifest, checkout)
        last = last_operation(checkout, undone=undone)
        if last is not None and last.component == component.name:
            rows.append((last.when, component))
    when = (min if undone else max)((when for when, _ in rows), default=0)
    return tuple(component for began, component in rows if began == when)


def _settle(manifest: Manifest, checkout: Checkout) -> Operation | None:
    """Finish what was killed, or return what counts as undone by that. The caller holds the lock,
    which keeps whoever is about to do what is recorded.
    """
    if checkout.git_dir.is_dir():
        recover(checkout)
    return settle_history(checkout, manifest.root)


def undo_command(
    manifest: Manifest,
    components: Sequence[Component],
    workspace: Path,
    when: int,
    *,
    redo: bool,
) -> BackReport:
    """Take back all that the last command did to components, or bring back what was undone last.

    CannotUndoError with nothing changed if there is nothing, or one of them cannot go back; what
    can never be taken back is told once, and then forgotten. Where only the project's files can,
    `left` says why the checkout stays.
    """
    problems: list[Problem] = []
    reports: list[BackReport] = []
    with ExitStack() as stack:
        ways: list[tuple[_WayBack, _Move | None]] = []
        for component in components:
            checkout = checkout_of(workspace, manifest, component)
            nothing = CannotUndoError(nothing_done(component.name, redo=redo))
            if not checkout.draft.parent.exists():
                raise nothing
            stack.enter_context(locked(checkout))
            killed = _settle(manifest, checkout)
            last = last_operation(checkout, undone=redo)
            first = last if killed is None or redo else killed
            if first is None:
                raise nothing
            if first is killed:
                reports.append(BackReport(manifest.name, component.name, what=first.what))
            if last is None or last.when != first.when:
                continue
            way = _WayBack(manifest, component, checkout, last, redo)
            try:
                ways.append((way, way.look()))
            except CannotUndoError as error:
                problems += error.problems
                if last.final:
                    Path(last.ref).unlink()
        if problems:
            raise CannotUndoError(*problems)
        for way, move in ways:
            reports += way.go_on(move, when)
    return replace(reports[0], also=tuple(reports[1:]))


def finish_killed(
    manifest: Manifest, component: Component, checkout: Checkout, snapshot: Snapshot, when: int
) -> bool:
    """Finish a move that was killed: of a checkout where the last operation was to bring it, once
    the files are written.

    False where there is nothing to finish. CannotUndoError where an edit is in the way. The caller
    holds `locked(checkout)`; `snapshot` is the checkout's.
    """
    done = next(readable_operations(checkout), None)
    if done is None or done.before is None or done.after is None or done.final:
        return False
    start, end = done.before.stack, done.after.stack
    here = (snapshot.base, snapshot.applied)
    if here != start or start == end or snapshot.head != start[1] or done.changed(manifest.root):
        return False
    back = _WayBack(manifest, component, checkout, done, redo=True)
    move = back.planned_move()
    if move is not None:
        back.moved(move, when)
    return move is not None


class _Move(Struct, frozen=True):
    """How a checkout goes back; `held` is None where its files stay as they are."""

    snapshot: Snapshot  # as it is now
    place: Place  # as it will be
    held: Held | None = None


class _WayBack(Struct, frozen=True):
    """From what an operation made to what was before. All is looked at before anything changes."""

    manifest: Manifest
    component: Component
    checkout: Checkout
    recorded: Operation  # as it was done
    redo: bool = False  # bring it back

    @property
    def operation(self) -> Operation:
        """What is taken back."""
        return self.recorded.turned if self.redo else self.recorded

    def look(self) -> _Move | None:
        """How the checkout would move; CannotUndoError if it cannot, or the files cannot."""
        if self.recorded.final:
            hint = "patchkit undo  once more takes back what came before it"
            what = f"{self.recorded.what} cannot be undone"
            raise CannotUndoError(Problem(what, self.component.name, hint))
        old_files(self.operation, self.manifest.root, redo=self.redo)
        return self.planned_move()

    def go_on(self, move: _Move | None, when: int) -> Iterator[BackReport]:
        """Go, and take back what else the same command did to the component."""
        report = self._go(move, when)
        yield report
        if report.left:  # what was in the way may be gone the next time
            return
        if not self.redo:
            mark_undone(self.recorded)
        last = None
        with suppress(SurroundingsError):  # the next command says that it cannot be read
            last = last_operation(self.checkout, undone=self.redo)
        if last is not None and last.when == self.recorded.when:
            more = replace(self, recorded=last)
            yield from more.go_on(more.look(), when)

    def _go(self, move: _Move | None, when: int) -> BackReport:
        """Put files, refs and checkout back; `when`, in seconds since the epoch, names saved work.

        With `redo` it is a way on, and nothing is left behind that would have to be kept.
        """
        operation, checkout, root = self.operation, self.checkout, self.manifest.root
        # of the lock as it is now: components share it
        writes = old_files(operation, root, redo=self.redo)
        redo = self.redo
        start = operation.after
        report = BackReport(
            self.manifest.name, self.component.name, what=operation.what, redone=redo
        )
        if redo:  # first, as with all that is done
            mark_undone(operation, undone=False)
        if start is not None and not redo and (operation.bump or operation.edits):
            # what conflicts were resolved to, or edits became, stays to be had
            report = replace(report, resolved=keep_commit(checkout, start.tip, when))
        if operation.head and not redo:
            report = replace(report, commits=keep_commit(checkout, operation.head, when))
        if redo:
            report = put_files_back(operation, root, writes, report)
        # else the checkout comes first: until it has them, edits are in the patches alone
        try:
            if move is not None:
                report = replace(report, also_saved=self.moved(move, when))
        except (PatchkitError, OSError) as error:
            if not writes:
                raise
            report = replace(report, left=expected(error).problems[0].what)
        return report if redo else put_files_back(operation, root, writes, report)

    def moved(self, move: _Move, when: int) -> tuple[str, ...]:
        """Move it; the refs of what came meanwhile."""
        return go_to(self.checkout, move.snapshot, move.place, held=move.held, when=when).saved

    def planned_move(self) -> _Move | None:
        """How the checkout goes back; None if it need not.

        CannotUndoError where what it holds would be nowhere, or is in the way.
        """
        to, start = self.operation.before, self.operation.after
        if to is None or start is None:
            return None
        repository, snapshot = self.checkout.repository, inspect(self.checkout)
        here = (snapshot.base, snapshot.head)
        if snapshot.state is CheckoutState.ABSENT and not (self.operation.edits or start.files):
            return None
        usual = (CheckoutState.APPLIED, CheckoutState.EDITED, CheckoutState.UNPATCHED)
        ours = snapshot.state in usual or snapshot.operation == UNMERGED  # which it may have left
        ours = ours and snapshot.head == snapshot.applied
        if ours and here == to.stack != start.stack:
            return None
        if not ours or here != start.stack:
            raise self._refusal(snapshot, f"the checkout is {snapshot.state.value}, or elsewhere")
        staged = [row.split(" ")[1] for rows in to.index.values() for row in rows]
        if absent_objects(repository, [to.tip, to.tree, start.tree, *staged]):
            what = f"{self.operation.what}: what was before is not in the checkout any more"
            raise CannotUndoError(Problem(what, self.component.name, _BY_GIT))
        changes = tree_changes(repository, start.tree, to.tree)
        if changes:
            return self._beside_edits(snapshot, start, to, changes)
        return _Move(snapshot, to)

    def _refusal(
        self, snapshot: Snapshot, why: str, paths: tuple[str, ...] = ()
    ) -> CannotUndoError:
        """What is in the way, with the ways out of it."""
        hint = f"patchkit status {self.manifest.options(self.component.name)}  says more"
        if not snapshot.state.movable:
            refusal = Refusal(RefusalCause(snapshot.state.value), paths=paths)
            entered = Entered(Action.REFUSED, snapshot, refusal=refusal)
            ways = ways_out(self.manifest, self.component, self.checkout.path, entered)
            hint = ways[0].hint
        what = f"{self.operation.what}: {why}"
        return CannotUndoError(Problem(what, self.component.name, hint))

    def _beside_edits(
        self, snapshot: Snapshot, start: Place, to: Place, changes: list[TreeChange]
    ) -> _Move:
        """The move of the files that the operation changed; others, edited or staged, are left
        alone. CannotUndoError if one was changed since.
        """
        checkout, repository = self.checkout, self.checkout.repository
        tracked = worktree_tree(checkout, start.tip)
        written: list[GitObject] = []
        changed = []
        with reading(repository) as reader:
            now = Tree(reader, tracked)
            for change in changes:
                entry, sides = now.entry(change.path), (change.old, change.new)
                there = [each for each in sides if each and holds(checkout, change.path, each)]
                if entry is None and there:
                    now = now.put(change.path, there[0])  # it is untracked
                elif entry not in sides:
                    changed.append(change.path)
            before = now
            for change in changes:
                before = before.remove(change.path)
            for change in changes:
                before = before.put(change.path, change.new) if change.new else before
            here, goal = now.write(written), before.write(written)
        if changed:
            what = f"{', '.join(changed)} changed since"
            raise self._refusal(snapshot, what, tuple(changed))
        write_objects(repository, written)
        # its id comes before its rows: what is staged in between is noticed
        held = Held(here, staged=staged_id(checkout))
        staged = rows_beyond(checkout, start.tip).items()
        own = {path: rows for path, rows in staged if path not in start.index} | dict(to.index)
        rows = {each.path: entry_rows(each.new) for each in tree_changes(repository, goal, to.tip)}
        place = Place(to.base, to.tip, goal, rows | own)
        require_free(checkout, place, held)
        return _Move(snapshot, place, held)


def holds(checkout: Checkout, path: str, entry: TreeEntry) -> bool:
    """Whether that is on disk there, byte for byte."""
    contents = contents_at(checkout.path, path)
    return contents is not None and contents.oid == entry.oid and fits(contents, entry.mode)


def keep_commit(checkout: Checkout, commit: CommitId, when: int) -> str:
    """Keep a commit under a ref, if none does yet, and return that; "" where it is gone."""
    repository = checkout.repository
    if not checkout.git_dir.is_dir() or repository.commit(commit) is None:
        return ""
    there = [name for name, oid in repository.refs(SAVED_REFS).items() if oid == commit]
    return there[0] if there else save_commit(checkout, commit, when)


def old_files(operation: Operation, root: Path, *, redo: bool = False) -> Contents:
    """What to write so that the files are as before; nothing if they are.

    CannotUndoError if a file was changed since. Recorded resolutions stay, as they are a person's
    work, but for one that is to be there once more.
    """
    if operation.is_undone(root):
        return {}
    if changed := operation.changed(root):
        what = f"{operation.what}: {', '.join(changed)} changed since"
        hint = "undo what came after it first; or revert it with git"
        raise CannotUndoError(Problem(what, operation.component, hint))
    writes = operation.files_before(root)
    return {
        path: data
        for path, data in writes.items()
        if path.suffix != RESOLUTION_ENDING or (redo and not path.exists())
    }


def put_files_back(
    operation: Operation, root: Path, writes: Contents, report: BackReport
) -> BackReport:
    """Write what `old_files` gave, all or none."""
    if not writes:
        return report
    seen = {path: bytes_at(path) for path in writes}
    write_set(root, writes, seen, along=gitlinks_staged(root, operation.turned.gitlinks))
    names = {path.relative_to(root).as_posix() for path in writes} | operation.gitlinks.keys()
    kept = [
        path for path in operation.files if path.endswith(RESOLUTION_ENDING) and path not in names
    ]
    return replace(report, files=tuple(sorted(names)), kept=tuple(sorted(kept)))


def require_stack(checkout: Checkout, stack: Place) -> Place:
    """A stack whose commits are in the checkout; SurroundingsError where they are gone."""
    if checkout.repository.commit(stack.tip) is None:
        what = f"the old stack, {stack.tip}, is not in the checkout any more"
        raise SurroundingsError(
            Problem(what, str(checkout.path), "patchkit apply  makes a new one")
        )
    return stack
