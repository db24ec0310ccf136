"""`patchkit new`."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.commands.refresh import MessageOption
from patchkit.cli.options import (
    WORKSPACE,
    CacheOption,
    DryRunOption,
    JsonOption,
    ManifestOption,
    OfflineOption,
    OneComponentOption,
    QuietOption,
    WorkspaceOption,
)
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode


@command(
    examples=[
        ("patchkit new fix-rope -c mindspeed --message 'Pass the group on'", "record the edits"),
        ("patchkit new fix-rope -c mindspeed --dry-run", "what would it hold?"),
    ],
    exits={
        ExitCode.OK: "the patch is written, and the last of its series",
        ExitCode.FINDING: "there is nothing to record, or the checkout was refused",
        ExitCode.BAD_INPUT: "the manifest, the series or a patch cannot be read",
        ExitCode.ENVIRONMENT: "git does not know who you are, or the disk is full",
    },
    result="patchkit.ops.refresh_values:RefreshReport",
)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new patch's name.")],
    *,
    manifest: ManifestOption = None,
    component: OneComponentOption = None,
    message: MessageOption = "",
    date: Annotated[
        str, typer.Option(metavar="WHEN", help="The author's date, as 2026-01-31T12:00:00Z.")
    ] = "",
    dry_run: DryRunOption = False,
    workspace: WorkspaceOption = WORKSPACE,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Record the edits of a checkout as a new patch.

    It comes at the end of the series, and takes all uncommitted edits.

    Edit first, tell git of new files (git add), then name the patch. In contrast to refresh, no
    edit goes into an older patch. A component without a series gets one.

    The patch has a Date: line only where you give one, by --date, GIT_AUTHOR_DATE or
    SOURCE_DATE_EPOCH: the same edits make the same file, whenever and wherever that is.
    """
    import time

    from patchkit.cli.locate import cache_folder, open_manifest, pick_component
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.cli.refresh_output import render_refresh
    from patchkit.gitcmd.process import user_identity
    from patchkit.ops.refresh import new_patch
    from patchkit.ops.refresh_options import RefreshOptions
    from patchkit.refresh.draft import Request
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    chosen = open_manifest(manifest)
    request = Request(None, name, message, user_identity(chosen.root, date), everything=True)
    with showing_progress(terminal) as progress:
        report = new_patch(
            chosen,
            pick_component(chosen, component),
            store=Store(cache_folder(cache), offline=offline),
            workspace=workspace,
            options=RefreshOptions(when=int(time.time()), request=request, dry_run=dry_run),
            progress=progress,
        )
    return terminal.report("new", report, report.exit_code, render_refresh(diff=False))
