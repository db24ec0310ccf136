"""`patchkit continue`, `skip`, `abort` and `undo`: from a conflict onwards, or back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from patchkit.cli.command import command
from patchkit.cli.options import (
    WORKSPACE,
    CacheOption,
    JsonOption,
    ManifestOption,
    OfflineOption,
    OneComponentOption,
    QuietOption,
    WorkspaceOption,
)
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from patchkit.manifest.values import Component, Manifest
    from patchkit.ops.refresh_input import ResumeStep
    from patchkit.ops.refresh_report import BumpReport
    from patchkit.ops.resume import BackReport

_GOING = {
    ExitCode.OK: "the whole series is through: pin, patches and lock are written",
    ExitCode.FINDING: "the conflict still stands, or nothing waits",
    ExitCode.HALTED: "the next conflict is in the checkout",
    ExitCode.BAD_INPUT: "the manifest, the series or a patch cannot be read",
    ExitCode.ENVIRONMENT: "an upstream cannot be had, or the disk is full",
}
_BACK = {
    ExitCode.OK: "it is taken back",
    ExitCode.BAD_INPUT: "the manifest cannot be read",
    ExitCode.ENVIRONMENT: "a file is in the way, or cannot be written",
}


@command(
    examples=[
        ("patchkit continue", "the conflict is resolved: carry the rest"),
        ("patchkit continue -m qwen3-vl-npu -c sglang", "where several bumps wait"),
    ],
    exits=_GOING,
    result="patchkit.ops.refresh_report:BumpReport",
)
def continue_(
    *,
    manifest: ManifestOption = None,
    component: OneComponentOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Go on with a bump whose conflict is resolved.

    What the checkout holds is what the patch does from now on. A file without conflict markers, as
    one that upstream deleted, is decided by `git add` or `git rm`. The patches after it are carried
    on top; after the last one pin, patches and lock are written together, and the checkout is at
    the new stack.
    """
    from patchkit.ops.refresh_input import ResumeStep

    terminal = Terminal(quiet=quiet, json=json)
    report = _go_on(
        terminal, ResumeStep.CONTINUE, manifest, component, workspace, cache, offline=offline
    )
    return _told(terminal, "continue", report)


@command(
    examples=[("patchkit skip", "the patch is not needed any more: take it off the series")],
    exits={**_GOING, ExitCode.FINDING: "nothing waits"},
    result="patchkit.ops.refresh_report:BumpReport",
)
def skip(
    *,
    manifest: ManifestOption = None,
    component: OneComponentOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Go on with a bump without the patch in conflict.

    The patch leaves the series; what you did to the conflict is kept under a ref. Otherwise as
    `patchkit continue`.
    """
    from patchkit.ops.refresh_input import ResumeStep

    terminal = Terminal(quiet=quiet, json=json)
    report = _go_on(
        terminal, ResumeStep.SKIP, manifest, component, workspace, cache, offline=offline
    )
    return _told(terminal, "skip", report)


@command(
    examples=[("patchkit abort", "everything is as before the bump")],
    exits={**_BACK, ExitCode.FINDING: "nothing waits"},
    result="patchkit.ops.resume:BackReport",
)
def abort(
    *,
    manifest: ManifestOption = None,
    component: OneComponentOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Take back a bump that waits for a conflict to be resolved.

    The checkout goes back to the stack that it was at; manifest, patches and lock were never
    touched. What you did to the conflict is kept under a ref.
    """
    from patchkit.cli.locate import open_manifest
    from patchkit.ops.resume import abort_bump

    chosen = open_manifest(manifest)
    picked = _waiting(chosen, component, workspace)
    report = abort_bump(chosen, picked, workspace, _now())
    terminal = Terminal(quiet=quiet, json=json)
    return terminal.report("abort", report, ExitCode.OK, _render_back)


@command(
    examples=[("patchkit undo", "back to the conflict before; or, if none waits, the last bump")],
    exits={
        **_BACK,
        ExitCode.FINDING: "there is nothing to take back, it was changed since, or the checkout "
        "stays where it is",
    },
    result="patchkit.ops.resume:BackReport",
)
def undo(
    *,
    manifest: ManifestOption = None,
    component: OneComponentOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Take back the last step of a bump, or the last bump.

    While a bump waits, that is the last `continue` or `skip`: the checkout holds the conflict
    before it, as you had resolved it. After a bump, it is the bump: manifest, patches and lock get
    their old bytes, and a checkout that it moved goes back.
    """
    from patchkit.cli.locate import open_manifest
    from patchkit.ops.resume import undo_bump

    chosen = open_manifest(manifest)
    picked = _waiting(chosen, component, workspace, undoing=True)
    report = undo_bump(chosen, picked, workspace, _now())
    terminal = Terminal(quiet=quiet, json=json)
    code = ExitCode.FINDING if report.left else ExitCode.OK
    return terminal.report("undo", report, code, _render_back)


def _go_on(  # noqa: PLR0917
    terminal: Terminal,
    step: ResumeStep,
    manifest: str | None,
    component: str | None,
    workspace: Path,
    cache: Path | None,
    *,
    offline: bool,
) -> BumpReport:
    from patchkit.cli.locate import cache_folder, open_manifest
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.ops.bump import resume_bump
    from patchkit.upstream.store import Store

    chosen = open_manifest(manifest)
    picked = _waiting(chosen, component, workspace)
    with showing_progress(terminal) as progress:
        return resume_bump(
            chosen,
            picked,
            step,
            store=Store(cache_folder(cache), offline=offline),
            workspace=workspace,
            when=_now(),
            progress=progress,
        )


def _told(terminal: Terminal, name: str, report: BumpReport) -> ExitCode:
    from patchkit.cli.refresh_output import render_bump

    return terminal.report(name, report, report.exit_code, render_bump)


def _waiting(
    manifest: Manifest, name: str | None, workspace: Path, *, undoing: bool = False
) -> Component:
    """The component of the option; without one, the only one that waits, or was bumped last."""
    from patchkit.cli.locate import pick_component
    from patchkit.errors import UsageError
    from patchkit.ops.resume import last_bumped, nothing_to_go_on_from, waiting_components

    if name is not None:
        return pick_component(manifest, name)
    waiting = list(waiting_components(manifest, workspace))
    if len(waiting) > 1:
        names = ", ".join(each.name for each in waiting)
        raise UsageError("several bumps wait", hint=f"choose with --component: {names}")
    if waiting:
        return waiting[0]
    found = last_bumped(manifest, workspace) if undoing else None
    if found is None:
        raise nothing_to_go_on_from(manifest, undoing=undoing)
    return found


def _now() -> int:
    import time

    return int(time.time())


def _render_back(terminal: Terminal, report: BackReport) -> None:
    from patchkit.cli.status_words import word
    from patchkit.errors import Problem

    what = f"waits at {report.at} again" if report.at else "everything is as before the bump"
    terminal.product([word("undone"), "  ", report.component, f"  {what}"])
    for path in report.files:
        terminal.product(["  ", path])
    if report.saved:
        terminal.kept(report.component, "what was done to the conflict is", report.saved)
    if report.resolved:
        terminal.kept(report.component, "the patches as the bump made them are", report.resolved)
    terminal.also_saved(report.component, report.also_saved)
    for path in report.kept:
        terminal.say(f"{path} stays: the next bump takes that resolution; delete it to begin again")
    if report.left:
        hint = f"patchkit apply -m {report.manifest} -c {report.component}  moves it"
        terminal.problem(Problem(report.left, report.component, hint))
