"""`patchkit bump`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.options import (
    WORKSPACE,
    CacheOption,
    DryRunOption,
    JsonOption,
    ManifestOption,
    OfflineOption,
    QuietOption,
    WorkspaceOption,
)
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    pass

ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="REF",
        help="A tag, a branch, a pattern of tags (the newest), a commit id, a version of the "
        "package index; or `latest`: what the manifest's `track` names.",
    ),
]
AllOption = Annotated[
    bool, typer.Option("--all", help="Every component that has a `track`, each to that.")
]
ToTrackOption = Annotated[bool, typer.Option("--to-track", help="The same as --to latest.")]
SummaryOption = Annotated[
    str | None,
    typer.Option(
        "--summary",
        metavar="FILE",
        help="Write Markdown for a pull request there; - prints it in place of the report.",
    ),
]
ForkOption = Annotated[
    bool,
    typer.Option(
        "--fork", help="Where other stacks use the series too, give this one a copy of its own."
    ),
]
CarefulOption = Annotated[
    bool,
    typer.Option("--careful", help="Leave in conflict what a person would have to check."),
]
PartialOption = Annotated[
    bool,
    typer.Option("--partial", help="Leave out the patches that do not fit, as `skip` does."),
]


@command(
    examples=[
        ("patchkit bump megatron-lm --to latest --dry-run", "what would become of the patches?"),
        ("patchkit bump megatron-lm --to core_v0.16.0", "pin, patches and lock in one go"),
        ("patchkit bump slime --to-track --summary body.md", "with a pull request's text"),
        ("patchkit bump --all --dry-run", "every component, to what it tracks"),
    ],
    exits={
        ExitCode.OK: "the pin is moved and every patch carried, or it was there already",
        ExitCode.FINDING: "the checkout has edits, another stack could not bear the change, or "
        "--partial left patches out",
        ExitCode.HALTED: "a patch does not fit the new pin; the project was not changed",
        ExitCode.BAD_INPUT: "a file cannot be read, or the pin is that of other manifests, too",
        ExitCode.ENVIRONMENT: "an upstream cannot be had, or the disk is full",
    },
    result="patchkit.ops.refresh_report:BumpReport",
)
def bump(
    *,
    component: Annotated[
        str | None, typer.Argument(metavar="COMPONENT", help="The component.")
    ] = None,
    every: AllOption = False,
    to: ToOption = None,
    to_track: ToTrackOption = False,
    manifest: ManifestOption = None,
    careful: CarefulOption = False,
    partial: PartialOption = False,
    fork: ForkOption = False,
    summary: SummaryOption = None,
    dry_run: DryRunOption = False,
    workspace: WorkspaceOption = WORKSPACE,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Move a component's pin, or all, and carry the patches there.

    The new commit is looked up and fetched, the patches are carried to it as `refresh` does after
    an edit by hand, and pin, patches and lock are written together; of the manifest only the pin's
    characters change. The checkout stays where it is: `patchkit apply` moves it. If one patch does
    not fit, nothing is written, and the conflict goes into a checkout that is at its stack:
    `patchkit continue`, `skip` and `abort` go on from there. With `--partial` the rest is carried
    all the same, and what does not fit leaves the series (`patchkit undo` brings it back; so
    there must be a checkout). Several components move one after the
    other, each whole or not at all, and no checkout is touched.
    """
    import time

    from patchkit.cli.locate import cache_folder, open_manifest, pick_component
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.cli.refresh_output import render_bump
    from patchkit.disk.files import replace_file
    from patchkit.errors import UsageError
    from patchkit.ops.bump import bump_components
    from patchkit.ops.refresh_input import RefreshOptions
    from patchkit.report.pull_request import bump_markdown
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    if json and summary == "-":
        raise UsageError("--json and --summary - both want the standard output")
    wanted = _wanted(component, to, every=every, to_track=to_track)
    chosen = open_manifest(manifest)
    picked = [pick_component(chosen, component)] if component else chosen.components
    with showing_progress(terminal) as progress:
        report = bump_components(
            chosen,
            [each.name for each in picked],
            wanted,
            store=Store(cache_folder(cache), offline=offline),
            workspace=workspace,
            options=RefreshOptions(
                when=int(time.time()), fork=fork, careful=careful, partial=partial, dry_run=dry_run
            ),
            progress=progress,
        )
    if summary == "-":
        terminal.document(bump_markdown(report))
        for row in report.components:
            for problem in row.problems:
                terminal.problem(problem)
        return report.exit_code
    if summary is not None:
        replace_file(Path(summary), (bump_markdown(report) + "\n").encode(), named=True)
    return terminal.report("bump", report, report.exit_code, render_bump)


def _wanted(component: str | None, to: str | None, *, every: bool, to_track: bool) -> str:
    """What --to, --to-track and --all say together."""
    from patchkit.errors import UsageError
    from patchkit.upstream.git import LATEST

    if (component is not None) == every:
        raise UsageError("name a component, or say --all")
    if to is not None and (to_track or (every and to != LATEST)):
        told = "--to-track" if to_track else "--all"
        raise UsageError(f"--to {to} and {told} exclude each other")
    if to is None and not (to_track or every):
        raise UsageError("say where to: --to REF, or --to-track")
    return to or LATEST
