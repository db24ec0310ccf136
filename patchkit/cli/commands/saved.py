"""`patchkit undo --show`: work set aside in the checkouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.session import Session
from patchkit.cli.terminal import Line, Paint, Painted, Terminal
from patchkit.errors import ExitCode
from patchkit.model.text import listed

if TYPE_CHECKING:
    from patchkit.ops.saved import SavedReport, SavedWork

_RESULT = "patchkit.ops.saved:SavedReport"
_SHOWN = 3


@command(
    "manifest components workspace json quiet",
    examples={
        "patchkit undo --show": "what is saved of all components, the latest first",
        "patchkit undo --show 20260102T030405Z": "its diff",
    },
    ok="shown",
    bad_input="the manifest cannot be read",
    result=_RESULT,
)
def show(
    session: Session,
    saved: Annotated[
        str | None,
        typer.Argument(
            metavar="ID", help="Its id, the beginning of one, or the ref. Default: all are listed."
        ),
    ] = None,
) -> ExitCode:
    """List what was saved from the checkouts, or print it.

    Before a command replaces what you did in a checkout it keeps that under a ref: edits with
    `apply --force`, `skip`, `abort` and `continue --accept`, what only git's index had, a stack of
    which patches were dropped. Of edits is printed the diff from the commit that they were made
    on, as far as the checkout has not just that; of a stack one diff for each patch. Nothing is
    written: git brings it back by the command that is named; `git update-ref -d
    refs/patchkit/saved/ID` in the checkout deletes one.
    """
    from patchkit.ops.saved import list_saved, show_saved

    manifest, components, workspace = session.manifest, session.components, session.workspace
    if saved is None:
        report = list_saved(manifest, components, workspace)
        return session.report("undo --show", report, _render_list)
    report = show_saved(manifest, components, workspace, saved)
    return session.report("undo --show", report, lambda terminal, r: terminal.diff(r.diff))


def _render_list(terminal: Terminal, report: SavedReport) -> None:
    if not report.saved:
        terminal.say("nothing is saved")
        return
    head = [Painted(each, Paint.FAINT) for each in ("id", "component", "kind", "what", "why")]
    terminal.table([head, *(_row(each) for each in report.saved)])
    if report.saved[0].restore:
        terminal.hint(f"{report.saved[0].restore}  brings the first one back")


def _row(saved: SavedWork) -> list[Line]:
    what = listed(saved.what, _SHOWN)
    name = Painted(saved.component, Paint.STRONG)
    return [saved.id, name, saved.kind.value, what or "-", saved.why]
