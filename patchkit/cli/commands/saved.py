"""`patchkit undo --show` and `--restore`: work set aside in the checkouts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.session import Session
from patchkit.cli.terminal import Line, Paint, Painted, Terminal
from patchkit.errors import ExitCode
from patchkit.model.text import counted, listed

if TYPE_CHECKING:
    from patchkit.ops.saved import SavedReport, SavedWork

_RESULT = "patchkit.ops.saved:SavedReport"
_SHOWN = 3

_ID = "Its id, the beginning of one, or the ref; `last` are the last edits."


@command(
    "manifest components workspace json quiet",
    examples=[
        ("patchkit undo --show", "what is saved of all components, the latest first"),
        ("patchkit undo --show 20260102T030405Z", "its diff"),
    ],
    exits={ExitCode.OK: "shown", ExitCode.BAD_INPUT: "the manifest cannot be read"},
    result=_RESULT,
)
def show(
    session: Session,
    saved: Annotated[
        str | None, typer.Argument(metavar="ID", help=f"{_ID} Default: all are listed.")
    ] = None,
) -> ExitCode:
    """List what was saved from the checkouts, or print it.

    Before a command replaces what you did in a checkout it keeps that under a ref: edits with
    `apply --force`, `skip`, `abort` and `continue --accept`, what only git's index had, a stack of
    which patches were dropped. Of edits is printed the diff from the commit that they were made
    on; of a stack one diff for each patch. Nothing is written. `git update-ref -d
    refs/patchkit/saved/ID` in the checkout deletes one.
    """
    from patchkit.ops.saved import list_saved, show_saved

    manifest, components, workspace = session.manifest, session.components, session.workspace
    if saved is None:
        report = list_saved(manifest, components, workspace)
        return session.report("undo --show", report, _render_list)
    report = show_saved(manifest, components, workspace, saved)
    return session.report("undo --show", report, lambda terminal, r: terminal.diff(r.diff))


@command(
    "manifest components workspace json quiet",
    examples=[("patchkit undo --restore 20260102T030405Z", "its edits are in the checkout again")],
    exits={
        ExitCode.OK: "the edits are in the checkout",
        ExitCode.FINDING: "they do not merge into what the checkout holds; nothing was changed",
        ExitCode.BAD_INPUT: "the manifest cannot be read",
        ExitCode.ENVIRONMENT: "a file cannot be written",
    },
    result=_RESULT,
)
def restore(
    session: Session, saved: Annotated[str, typer.Argument(metavar="ID", help=_ID)]
) -> ExitCode:
    """Bring saved edits back into their checkout.

    They become uncommitted edits, merged file by file into what the checkout holds; where a file
    has other changes at the same lines, or an untracked one is in the way, nothing is changed. The
    saved work stays where it is; `patchkit undo` takes the edits out again.
    """
    from patchkit.ops.saved import restore_saved

    report = restore_saved(
        session.manifest,
        session.components,
        session.workspace,
        saved,
        when=int(time.time()),
    )
    return session.report("undo --restore", report, _render_restored)


def _render_list(terminal: Terminal, report: SavedReport) -> None:
    if not report.saved:
        terminal.say("nothing is saved")
        return
    head = [Painted(each, Paint.FAINT) for each in ("id", "component", "kind", "what", "why")]
    terminal.table([head, *(_row(each) for each in report.saved)])


def _row(saved: SavedWork) -> list[Line]:
    what = listed(saved.what, _SHOWN)
    name = Painted(saved.component, Paint.STRONG)
    return [saved.id, name, saved.kind.value, what or "-", saved.why]


def _render_restored(terminal: Terminal, report: SavedReport) -> None:
    saved = report.saved[0]
    if not report.restored:
        terminal.product([saved.component, "  the checkout holds all of it already"])
        return
    files = counted(len(report.restored), "file")
    terminal.product([Painted("restored", Paint.GOOD), "  ", saved.component, f"  {files}"])
    for path in report.restored:
        terminal.product(["  ", path])
    terminal.also_saved(saved.component, report.also_saved)
