"""A bump that waits for a conflict: it stops there, goes on, and goes back; all that ops has of it.

The checkout gets the stack as far as it went, and the conflict on top. What a person makes of it is
a decision about that patch: to go on is to carry everything again with the decisions so far. So a
halt is nothing but decisions, and nothing is written to the project before the last one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.errors import ExitCode, PatchkitError, Problem
from patchkit.manifest.values import (
    ArchivePin,
    Component,
    GitPin,
    IndexPin,
    Manifest,
    Pin,
    path_below,
)
from patchkit.model.decoding import from_builtins
from patchkit.model.names import short_id
from patchkit.model.objects import CommitId, TreeId
from patchkit.model.outcome import FileResult
from patchkit.model.text import counted
from patchkit.ops.hints import in_columns, ways_on
from patchkit.ops.refresh_input import RefreshInput, ResumeStep
from patchkit.ops.refresh_report import Halted, NamedPin, RefreshedComponent
from patchkit.ops.undo import (
    BackReport,
    CannotUndoError,
    UndoableChange,
    keep_commit,
    old_files,
    put_files_back,
    recorded_changes,
    require_stack,
    undo_command,
)
from patchkit.refresh.conflict import Conflict, Decision
from patchkit.stack.series import ImportedPatch
from patchkit.workspace import (
    Checkout,
    Snapshot,
    checkout_of,
    inspect,
    locked,
)
from patchkit.workspace.checkout import BRANCH
from patchkit.workspace.enter import bring_objects
from patchkit.workspace.operations import Operation, readable_operations, record
from patchkit.workspace.recover import has_leftovers, recover
from patchkit.workspace.state import Held, Place
from patchkit.workspace.waiting import (
    Halt,
    Work,
    go_to,
    read_halt,
    unsettled,
    work_of,
)


class CannotGoOnError(PatchkitError):
    """The checkout is not in a state to go on from."""

    exit_code = ExitCode.FINDING


class Waiting(Struct, frozen=True):
    """What a halt is about: `Halt.data`, as the record of a checkout that waits has it."""

    manifest: str  # its name
    component: str  # its name
    old_base: CommitId  # the commit that the patches were for
    old: NamedPin  # the pin before, for the report
    new: NamedPin  # the pin that the bump moves to, for the report
    pin: Mapping[str, str] | None  # written with the patches; None if it was edited by hand
    careful: bool  # --no-fuzz: what would be flagged is a conflict
    patch: str  # the name of the patch in conflict
    onto: TreeId  # the tree on which `patch` stands
    halted: Halted  # the conflict, as the user was told of it
    seen: Mapping[str, str]  # project file -> SHA-256 that all was made from, "" for no file
    keys: Mapping[str, str]  # path -> what tells its conflict from others
    decisions: Mapping[str, Decision] = {}  # patch name -> so far
    flagged: tuple[FileResult, ...] = ()  # files to look at beside those in conflict
    run: bool = False  # the user asked for the manifest's mergers
    imported: tuple[ImportedPatch, ...] = ()  # the patches that an import brings; () in a bump

    @property
    def wanted(self) -> Pin | None:
        """The pin to write."""
        if self.pin is None:
            return None
        kinds: Mapping[str, type[Pin]] = {"commit": GitPin, "version": IndexPin}
        kind = next((kinds[key] for key in kinds if key in self.pin), ArchivePin)
        return from_builtins(self.pin, kind)

    @property
    def archive(self) -> tuple[str, ...]:
        """The URLs of an archive to write with it; () for none."""
        return tuple((self.pin or {}).get("archive", "").split())


class Resumed(Struct, frozen=True):
    """A halt from which to go on: with which decisions, and how the user left the checkout."""

    halt: Halt  # what the checkout waited for
    waiting: Waiting
    work: Work  # what was found in it


class NewConflict(Struct, frozen=True):
    """A conflict that the checkout is to hold; `resumed` is the one before, if any."""

    found: RefreshInput  # what the carry started from
    report: RefreshedComponent  # of the component that stops there
    conflict: Conflict  # what stopped the carry
    waiting: Waiting
    resumed: Resumed | None = None


def waiting_of(halt: Halt) -> Waiting:
    """What a halt is about."""
    return from_builtins(halt.data, Waiting)


def can_stop_in(snapshot: Snapshot, resumed: Resumed | None) -> bool:
    """Whether a checkout may be given a conflict: it is there, and nothing of the user's is."""
    return resumed is not None or (snapshot.state.movable and snapshot.head is not None)


def seen_files(found: RefreshInput) -> dict[str, str]:
    """The files of the project that the component was read from, by hash."""
    root = found.manifest.root
    return {
        path_below(path, root): ("" if data is None else sha256(data).hexdigest())
        for path, data in sorted(found.seen.items())
    }


def resume(found: RefreshInput) -> Resumed:
    """Take the decision that the checkout holds; CannotGoOnError if it holds none yet. Where merges
    are proposed instead, nothing is taken from there.

    On disk: but for CONTINUE, what the user did to the conflict is saved under a ref.
    """
    halt = read_halt(found.checkout) if found.snapshot.halt else None
    if halt is None:
        raise CannotGoOnError(nothing_waits(found.manifest, found.component.name))
    _require_as_it_was(found, halt)
    waiting = waiting_of(halt)
    if found.options.propose is not None:
        return Resumed(halt, waiting, _work(found, halt, save=False))
    if found.options.step is ResumeStep.CONTINUE:
        decision, work = _resolved(found, halt)
    else:
        decision, work = _left_out(found, halt)
    decided = {**waiting.decisions, waiting.patch: decision}
    return Resumed(halt, replace(waiting, decisions=decided), work)


def _require_as_it_was(found: RefreshInput, halt: Halt) -> None:
    """The project's files and the checkout's commits must be those of the stop."""
    waiting, path = waiting_of(halt), found.checkout.path
    changed = sorted(
        file
        for file, digest in seen_files(found).items()
        if waiting.seen.get(file, digest) != digest
    )
    if changed:
        what = f"{', '.join(changed)} changed since it stopped"
        hint = f"put that back; or go back and begin again: patchkit abort {found.target}"
        raise CannotGoOnError(Problem(what, waiting.component, hint))
    if found.snapshot.head != halt.place.tip and not _is_committed(found, halt):
        tip = short_id(halt.place.tip)
        hint = f"git -C {shlex.quote(str(path))} reset --soft {tip}  keeps the files"
        what = "the commits in the checkout have changed"
        raise CannotGoOnError(Problem(what, waiting.component, hint))


def _is_committed(found: RefreshInput, halt: Halt) -> bool:
    """Whether the user committed onto the stack as far as it went, as in a rebase that stopped."""
    snapshot, tip = found.snapshot, halt.place.tip
    if snapshot.branch != BRANCH or snapshot.head is None:
        return False
    missing = ("rev-list", "--count", f"{snapshot.head}..{tip}", "--")
    return found.checkout.repository.git(*missing).out.strip() == b"0"


def _work(found: RefreshInput, halt: Halt, *, save: bool) -> Work:
    return work_of(found.checkout, found.snapshot, halt, found.options.when, save=save)


def _left_out(found: RefreshInput, halt: Halt) -> tuple[Decision, Work]:
    """Without what was done to the conflict; or with the merges that it offers."""
    waiting, proposed = waiting_of(halt), found.options.step is ResumeStep.TAKE_PROPOSAL
    if proposed and not waiting.halted.proposed:
        what = f"there is no proposal for {waiting.patch}"
        raise CannotGoOnError(Problem(what, waiting.component, "resolve it in the checkout"))
    return Decision(waiting.onto, None, proposed=proposed), _work(found, halt, save=True)


def _resolved(found: RefreshInput, halt: Halt) -> tuple[Decision, Work]:
    waiting, checkout = waiting_of(halt), found.checkout
    if still := unsettled(checkout, halt, waiting.halted.marked):
        raise CannotGoOnError(*_open(still, waiting, found))
    work = _work(found, halt, save=False)
    if found.snapshot.head is not None and found.snapshot.head != halt.place.tip:
        # the files become the patch, under its own message; the commits stay to be had
        kept = keep_commit(checkout, found.snapshot.head, found.options.when)
        work = replace(work, saved=", ".join(filter(None, (work.saved, kept))))
    left, made = work.place.files, halt.place.files
    if left == waiting.onto:
        hint = f"patchkit skip {found.target}  takes it off the series"
        what = f"nothing of {waiting.patch} is left in the checkout"
        raise CannotGoOnError(Problem(what, waiting.component, hint))
    return Decision(waiting.onto, left, made, dict(waiting.keys), waiting.flagged), work


def stop_at(stop: NewConflict, when: int) -> tuple[str, ...]:
    """Put the conflict into the checkout. All or nothing; SurroundingsError if it cannot be.

    Returns refs of what was saved; `when`, in seconds since the epoch, names them.
    """
    found, conflict, resumed = stop.found, stop.conflict, stop.resumed
    checkout, snapshot = found.checkout, found.snapshot
    bring_objects(found.cache, checkout.repository, conflict.objects)
    place = Place(found.base.commit, conflict.tip, conflict.worktree, conflict.index)
    text = to_builtins(stop.waiting)
    if resumed is None:
        assert snapshot.base is not None
        assert snapshot.head is not None
        halt = Halt(place, Place(snapshot.base, snapshot.head), text)
        held = Held(snapshot.head)
    else:
        earlier, work = resumed.halt, resumed.work
        halt = Halt(place, earlier.before, text, earlier.commit, work.place)
        held = work.held
    return go_to(checkout, snapshot, place, halt, held=held, when=when).saved


def halted_report(found: RefreshInput, conflict: Conflict) -> Halted:
    """The conflict for the user."""
    subject, _, reason = conflict.patch.file.message.partition("\n")
    names = [each.name for each in found.series.patches]
    return Halted(
        conflict.patch.name,
        subject,
        reason.strip("\n").split("\n\n", 1)[0],
        str(found.checkout.path),
        conflict.files,
        conflict.later,
        conflict.unknown,
        names.index(conflict.patch.name) + 1,
        len(names),
    )


def nothing_waits(manifest: Manifest, component: str = "") -> Problem:
    """There is no conflict to go on from, in a component or in any of the manifest's."""
    hint = f"patchkit status {manifest.options()}  says what is there"
    return Problem("no bump or import is in progress", component or manifest.name, hint)


def pin_text(pin: Pin, archive: Sequence[str]) -> dict[str, str]:
    """A pin as `Waiting.pin` has it, with the URLs of an archive."""
    return {**to_builtins(pin), "archive": "\n".join(archive)}


def in_progress(manifest: Manifest, component: Component, checkout: Checkout) -> Problem:
    """A conflict waits in the checkout of a component: what to do about it."""
    snapshot, target = inspect(checkout), manifest.options(component.name)
    what = f"the checkout is {snapshot.detail}, stopped at a conflict"
    return Problem(what, component.name, in_columns(ways_on(snapshot, target, checkout.path)))


def _open(
    still: Mapping[str, Sequence[int]], waiting: Waiting, found: RefreshInput
) -> Iterator[Problem]:
    """What is left to do: each file, and then how to go on."""
    folder = shlex.quote(str(found.checkout.path))
    for path, lines in still.items():
        if not lines:
            name = shlex.quote(path)
            ways = [("keep it", f"git -C {folder} add {name}")]
            ways.append(("or delete it", f"git -C {folder} rm {name}"))
            yield Problem("is not decided", path, in_columns(ways))
            continue
        places = ", ".join(str(line) for line in lines)
        what = f"has conflict markers in line{'s' if len(lines) > 1 else ''} {places}"
        yield Problem(what, f"{path}:{lines[0]}")
    files = counted(len(still), "file")
    yield Problem(
        f"{waiting.patch} still waits: {files} to resolve in {found.checkout.path}",
        waiting.component,
        f"then: patchkit continue {found.target}",
    )


def halts(manifest: Manifest, workspace: Path) -> Iterator[tuple[Component, Halt]]:
    """The components whose checkout holds a conflict, and what each waits for."""
    for component in manifest.components:
        halt = _settled_halt(checkout_of(workspace, manifest, component))
        if halt is not None:
            yield component, halt


def _settled_halt(checkout: Checkout) -> Halt | None:
    """What the checkout waits for; a move that was killed is finished first."""
    if has_leftovers(checkout):
        # killed at its very end it waits for nothing any more, and git would meet our lock
        with locked(checkout):
            recover(checkout)
    return read_halt(checkout)


def waits_for(manifest: Manifest, workspace: Path) -> bool:
    """Whether a checkout waits for this manifest, and not for another one that shares it."""
    return any(waiting_of(halt).manifest == manifest.name for _, halt in halts(manifest, workspace))


def waiting_problem(manifest: Manifest, component: Component, checkout: Checkout) -> Problem | None:
    """What to do about the conflict that waits in a component's checkout; None if none does."""
    halt = read_halt(checkout)
    waiting = waiting_of(halt) if halt is not None else None
    if waiting is None or (waiting.manifest, waiting.component) != (manifest.name, component.name):
        return None
    return in_progress(manifest, component, checkout)


def find_halt(checkout: Checkout, manifest: Manifest, component: Component) -> Halt:
    """What the checkout waits for; CannotGoOnError if that is nothing, or not the component's."""
    halt = _settled_halt(checkout)
    if halt is None:
        raise CannotGoOnError(nothing_waits(manifest, component.name))
    waiting = waiting_of(halt)
    if (waiting.manifest, waiting.component) != (manifest.name, component.name):
        what = f"its checkout waits for {waiting.component} of manifest {waiting.manifest}"
        hint = f"-m {waiting.manifest} -c {waiting.component}"
        raise CannotGoOnError(Problem(what, component.name, hint))
    return halt


def written_by(manifest: Manifest, checkout: Checkout, halt: Halt) -> Operation | None:
    """What wrote already what the halt was on its way to: a kill came after that."""
    last = next(readable_operations(checkout), None)
    if last is None or not last.bump or last.before != halt.before:
        return None
    return None if last.changed(manifest.root) else last


def arrive(checkout: Checkout, halt: Halt, written: Operation, when: int) -> str:
    """Bring a checkout that holds a conflict to the stack that is written.

    What was done to the conflict is saved, as it may not be what the patches say; returns the ref,
    or "". `when`, in seconds since the epoch, names it.
    """
    with locked(checkout):
        assert written.after is not None
        place = require_stack(checkout, written.after)
        report = _leave(checkout, halt, place, None, when=when, report=BackReport("", ""))
        return ", ".join(filter(None, (report.saved, *report.also_saved)))


# The way back from a wait: all of it, or its last step.


def undoable_changes(
    manifest: Manifest, components: Sequence[Component], workspace: Path
) -> BackReport:
    """What `undo` takes back, the next one first; nothing is changed."""
    steps: list[UndoableChange] = []
    records: list[tuple[int, UndoableChange]] = []
    for component in components:
        checkout = checkout_of(workspace, manifest, component)
        steps += _steps_back(component, checkout)
        records += recorded_changes(component, checkout, manifest.root)
    # the times of what can be redone are above zero
    changes = (*steps, *(change for _, change in sorted(records, key=lambda row: row[0])))
    return BackReport(manifest.name, ", ".join(each.name for each in components), changes=changes)


def _steps_back(component: Component, checkout: Checkout) -> Iterator[UndoableChange]:
    """The steps of a bump that waits, the last one first."""
    halt = read_halt(checkout)
    while halt is not None:
        waiting, first = waiting_of(halt), halt.previous is None
        verb = "bump, which stopped at" if first else "the step on to"
        yield UndoableChange(component.name, f"{verb} {waiting.patch}")
        halt = read_halt(checkout, halt.previous) if halt.previous is not None else None


def abort_bump(manifest: Manifest, component: Component, workspace: Path, when: int) -> BackReport:
    """Take back all of a bump that waits: the checkout is where it was before.

    The project's files, too, if a kill came after they were written. Work on the conflict is saved
    under a ref. `undo` stops at it once, as it cannot be taken back itself.
    """
    report = _abandon(manifest, component, workspace, when)
    checkout = checkout_of(workspace, manifest, component)
    with locked(checkout):
        record(checkout, manifest.root, Operation(component.name, "abort", final=True))
    return report


def _abandon(manifest: Manifest, component: Component, workspace: Path, when: int) -> BackReport:
    checkout = checkout_of(workspace, manifest, component)
    halt = find_halt(checkout, manifest, component)
    with locked(checkout):
        written = written_by(manifest, checkout, halt)
        report = BackReport(manifest.name, component.name)
        if written is not None:
            writes = old_files(written, manifest.root)
            report = put_files_back(written, manifest.root, writes, report)
        resolved = ""
        if any(decision.tree for decision in waiting_of(halt).decisions.values()):
            # they are commits of the stack as far as it went
            resolved = keep_commit(checkout, halt.place.tip, when)
        place = require_stack(checkout, halt.before)
        report = _leave(checkout, halt, place, None, when=when, report=report)
        if written is not None:
            Path(written.ref).unlink()
        return replace(report, resolved=resolved)


def undo_bump(
    manifest: Manifest,
    components: Sequence[Component],
    workspace: Path,
    when: int,
    *,
    redo: bool,
) -> BackReport:
    """Take back the last step: a `continue` or `skip` of a bump that waits, else the last
    command. With `redo` bring back what was undone last.

    CannotUndoError if there is none, or what it wrote was changed since.
    """
    component = components[0]
    checkout = checkout_of(workspace, manifest, component)
    try:
        halt = find_halt(checkout, manifest, component)
    except CannotGoOnError:
        return undo_command(manifest, components, workspace, when, redo=redo)
    if redo:
        raise CannotUndoError(in_progress(manifest, component, checkout))
    done = written_by(manifest, checkout, halt) is not None  # all of it, but for the move
    if done or halt.previous is None or halt.left is None:
        return _abandon(manifest, component, workspace, when)
    with locked(checkout):
        previous = read_halt(checkout, halt.previous)
        assert previous is not None
        report = BackReport(manifest.name, component.name, at=waiting_of(previous).patch)
        return _leave(checkout, halt, halt.left, previous, when=when, report=report)


def _leave(
    checkout: Checkout,
    halt: Halt,
    place: Place,
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
