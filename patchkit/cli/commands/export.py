"""`patchkit export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.options import (
    CacheOption,
    JsonOption,
    ManifestOption,
    OfflineOption,
    OneComponentOption,
    QuietOption,
)
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.ops.export import ExportReport


@command(
    examples=[
        ("patchkit export -m demo -c mbridge --quilt debian/patches", "for quilt push -a"),
        ("patchkit export -m demo -c mbridge --mbox mbridge.mbox", "for git am"),
    ],
    exits={
        ExitCode.OK: "the stack is written",
        ExitCode.BAD_INPUT: "a patch does not apply, or cannot be written in that form",
        ExitCode.ENVIRONMENT: "the upstream cannot be had, or the disk is full",
    },
    result="patchkit.ops.export:ExportReport",
)
def export(
    *,
    manifest: ManifestOption = None,
    component: OneComponentOption = None,
    quilt: Annotated[
        Path | None,
        typer.Option("--quilt", metavar="DIR", help="A new folder for a quilt series."),
    ] = None,
    mbox: Annotated[
        Path | None,
        typer.Option("--mbox", metavar="FILE", help="A new file for a mailbox (git am)."),
    ] = None,
    author: Annotated[
        str,
        typer.Option(metavar="WHO", help="Whose the mails of patches without an author are."),
    ] = "",
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Write a stack as a quilt series or a mailbox.

    All patches are written, those of other repositories too, as exact diffs against each other from
    the pinned base on, with paths from the root of the upstream. The text above each diff is the
    patch file's, to the byte. In a mailbox, a patch that is no mail gets From: and Subject: lines
    above it, and a line that would begin another mail a ">". Apply a mailbox with
    `git am --keep-cr`, so that line ends stay as they are.
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_component
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.errors import UsageError
    from patchkit.model.mailinfo import read_author
    from patchkit.ops.export import Form, export_component
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    target = quilt if mbox is None else mbox
    if target is None or (quilt is not None and mbox is not None):
        raise UsageError("export needs one of --quilt DIR and --mbox FILE")
    who = read_author(author, "") if author else None
    if author and (who is None or not who.email or mbox is None):
        raise UsageError("--author needs 'NAME <ADDRESS>', and goes with --mbox")
    chosen = open_manifest(manifest)
    with showing_progress(terminal) as progress:
        report = export_component(
            chosen,
            pick_component(chosen, component),
            Form.MBOX if quilt is None else Form.QUILT,
            target,
            author=who,
            store=Store(cache_folder(cache), offline=offline),
            progress=progress,
        )
    return terminal.report("export", report, report.exit_code, _render)


def _render(terminal: Terminal, report: ExportReport) -> None:
    from patchkit.cli.status_words import word

    count = len(report.patches)
    patches = counted(count, "patch", "patches")
    terminal.product(
        [word("exported"), "  ", report.component, f"  {patches} to ", str(report.target)]
    )
    terminal.say(f"on {report.base} they give the tree {report.tree}")
    for name in report.skipped:
        terminal.warn(f"{name} changes no file and was left out")
    for name in report.unsendable:
        terminal.warn(f"{name}: git am does not take its From: (no address) or its Date:")
