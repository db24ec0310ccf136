"""`patchkit continue`, `skip`, `abort` and `undo`: from a conflict onwards, or back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from patchkit.cli.command import DiffOption, command
from patchkit.cli.session import Session
from patchkit.cli.terminal import Paint, Painted, Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchkit.manifest.values import Component
    from patchkit.ops.refresh_input import ResumeStep
    from patchkit.ops.undo import BackReport

_goes_on = partial(
    command,
    ok="all patches are carried: pin, patches and lock are written",
    halted="the next conflict is in the checkout",
    bad_input="the manifest, the series or a patch cannot be read",
    environment="an upstream cannot be fetched, or the disk is full",
    result="patchkit.ops.refresh_report:BumpReport",
)
_goes_back = partial(
    command,
    ok="it is undone",
    bad_input="the manifest cannot be read",
    environment="a file is in the way, or cannot be written",
    result="patchkit.ops.undo:BackReport",
)


@_goes_on(
    "manifest component workspace store json quiet",
    examples={
        "patchkit continue": "the conflict is resolved: carry the rest",
        "patchkit continue --accept": "take the merge that is proposed, unlikely as it is",
        "patchkit continue -m qwen3-vl-npu -c sglang": "where several conflicts wait",
    },
    finding="the conflict is not resolved, or no bump or import is in progress",
)
def continue_(
    session: Session,
    *,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Take the merges that the conflict proposes instead."),
    ] = False,
    diff: DiffOption = False,
) -> ExitCode:
    """Continue a bump after its conflict is resolved.

    The content of the checkout becomes the patch, under the message that it has; whether you commit
    it there (the commit is kept under a ref) or not makes no difference. Resolve a file without
    conflict markers, such as one that upstream deleted, with `git add` or `git rm`. The patches
    after it are carried on top; after the last one pin, patches and lock are written together, and
    the checkout is at the new stack. Then `patchkit bump -o page.html` writes a page about all of
    it. With --accept what you did to the conflict is kept under a ref.
    """
    from patchkit.ops.refresh_input import ResumeStep

    step = ResumeStep.TAKE_PROPOSAL if accept else ResumeStep.CONTINUE
    return go_on(session, "continue", step, diff=diff)


@_goes_on(
    "manifest component workspace store json quiet",
    examples={
        "patchkit skip": "the patch is not needed any more: take it off the series",
    },
    finding="no bump or import is in progress",
)
def skip(
    session: Session,
    *,
    diff: DiffOption = False,
) -> ExitCode:
    """Continue a bump without the patch in conflict.

    The patch leaves the series; what you did to the conflict is kept under a ref. Otherwise as
    `patchkit continue`.
    """
    from patchkit.ops.refresh_input import ResumeStep

    return go_on(session, "skip", ResumeStep.SKIP, diff=diff)


@_goes_back(
    "manifest component workspace json quiet",
    examples={
        "patchkit abort": "everything is as it was before",
    },
    finding="no bump or import is in progress",
)
def abort(
    session: Session,
) -> ExitCode:
    """Abandon a bump that stopped at a conflict.

    The checkout goes back to its stack; manifest, patches and lock were not changed. What you did
    to the conflict is kept under a ref.
    """
    from patchkit.ops.resume import abort_bump

    picked = _waiting(session)[0]
    report = abort_bump(session.manifest, picked, session.workspace, _now())
    return session.terminal.report("abort", report, ExitCode.OK, _render_back)


@_goes_back(
    "manifest component workspace json quiet",
    examples={
        "patchkit undo": "back to the conflict before; or, if none waits, the last change",
        "patchkit undo --redo": "what was undone last is done again",
        "patchkit undo --list": "what can be undone, and redone",
    },
    finding="there is nothing to undo, it was changed since, or the checkout stays where it is",
)
def undo(
    session: Session,
    *,
    listed: Annotated[
        bool, typer.Option("--list", help="List what can be undone, the latest first.")
    ] = False,
    redo: Annotated[bool, typer.Option("--redo", help="Bring back what was undone last.")] = False,
) -> ExitCode:
    """Undo what was done last, whatever it was.

    While a bump waits, that is the last `continue` or `skip`: the checkout holds the conflict
    before it, as you had resolved it. Else it is the last bump, refresh, edit, drop,
    move, fold, split, import or apply: manifest, series, patches and lock get their old
    bytes, and a checkout that was moved goes back, with edits of other files in it. What `refresh`
    recorded become edits of the checkout again. Of each checkout the last fifty can be
    taken back,
    one after the other, and brought back until something else is done. A file that was changed
    since stops it, and so, once, does what cannot be undone: an `abort`, and an `apply` that made
    the checkout. What `apply --force` saved becomes edits again.
    """
    from patchkit.ops.resume import undo_bump, undoable_changes

    if listed:
        manifest = session.manifest
        components = session.components if session.names else manifest.components
        found = undoable_changes(manifest, components, session.workspace)
        return session.terminal.report("undo", found, ExitCode.OK, _render_changes)
    picked = _waiting(session, undoing=True, redo=redo)
    report = undo_bump(session.manifest, picked, session.workspace, _now(), redo=redo)
    code = ExitCode.FINDING if any(part.left for part in report.parts) else ExitCode.OK
    return session.terminal.report("undo", report, code, _render_back)


def go_on(
    session: Session, name: str, step: ResumeStep, *, diff: bool = False, propose: Any = None
) -> ExitCode:
    """Go on from the conflict that waits, as the command `name`; see `RefreshOptions.propose`."""
    from patchkit.cli.refresh_output import render_bump
    from patchkit.ops.bump import resume_bump
    from patchkit.ops.refresh_input import RefreshOptions

    picked = _waiting(session)[0]
    with session.progress() as progress:
        report = resume_bump(
            session.manifest,
            picked,
            store=session.store,
            workspace=session.workspace,
            options=RefreshOptions(when=_now(), step=step, propose=propose),
            progress=progress,
        )
    return session.report(name, report, render_bump(diff=diff))


def _waiting(session: Session, *, undoing: bool = False, redo: bool = False) -> Sequence[Component]:
    """The component that is named; without one, the only one that waits, or all of the last
    command.
    """
    from patchkit.errors import UsageError
    from patchkit.ops.resume import CannotGoOnError, halts, nothing_waits, waits_for
    from patchkit.ops.undo import CannotUndoError, last_changed, nothing_done

    try:
        session.prefer(lambda manifest: waits_for(manifest, session.workspace))
    except UsageError:  # manifests of one checkout share its history
        if not undoing:
            raise
        session.prefer(
            lambda manifest: bool(last_changed(manifest, session.workspace, undone=redo))
        )
    manifest = session.manifest
    if session.names:
        return [session.component]
    waiting = [component for component, _ in halts(manifest, session.workspace)]
    if len(waiting) > 1 and session.here in waiting:
        return [session.component]
    if len(waiting) > 1:
        names = ", ".join(each.name for each in waiting)
        raise UsageError("conflicts wait in several components", hint=f"name one: {names}")
    last = last_changed(manifest, session.workspace, undone=redo) if undoing and not waiting else ()
    if undoing and not (waiting or last):
        raise CannotUndoError(nothing_done(manifest.name, redo=redo))
    if not (waiting or last):
        raise CannotGoOnError(nothing_waits(manifest))
    return waiting or last


_ALL = "everything is as it was before"


def _now() -> int:
    import time

    return int(time.time())


def _render_changes(terminal: Terminal, report: BackReport) -> None:
    if not report.changes:
        terminal.say("nothing can be undone")
    rows = [
        (
            "redo" if change.undone else str(number),
            Painted(change.component, Paint.STRONG),
            change.when or "-",
            change.what,
        )
        for number, change in enumerate(report.changes, 1)
    ]
    terminal.table(rows)
    first = report.changes[0] if report.changes else None
    if first is not None and first.changed and not first.undone:
        terminal.warn(f"{first.component}: {', '.join(first.changed)} changed since")


def _render_back(terminal: Terminal, made: BackReport) -> None:
    from patchkit.cli.status_words import word
    from patchkit.errors import Problem

    for report in made.parts:
        what = f"waits at {report.at} again" if report.at else report.what or _ALL
        state = "redone" if report.redone else "undone"
        terminal.product([word(state), "  ", report.component, f"  {what}"])
        for path in report.files:
            terminal.product(["  ", path])
        if report.saved:
            terminal.kept(report.component, "what was done to the conflict is", report.saved)
        if report.commits:
            terminal.kept(report.component, "your commits are", report.commits)
        if report.resolved:
            terminal.kept(report.component, "the patches as they were made are", report.resolved)
        terminal.also_saved(report.component, report.also_saved)
        for path in report.kept:
            terminal.say(
                f"{path} stays: the next bump takes that resolution; delete it to begin again"
            )
        if report.left:
            hint = f"patchkit apply -m {report.manifest} -c {report.component}  moves it"
            terminal.problem(Problem(report.left, report.component, hint))
