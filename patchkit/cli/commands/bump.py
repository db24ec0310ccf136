"""`patchkit bump`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from patchkit.cli.command import DryRunOption, OptionSpec, command
from patchkit.cli.session import Session
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchkit.manifest.values import Component

ToOption = Annotated[
    str | None,
    OptionSpec(
        "--to",
        metavar="REF",
        help="A tag, a branch, a pattern of tags (the newest), a commit id, a version of the "
        "package index; or `latest`: what the manifest's `track` names.",
    ),
]
AllOption = Annotated[
    bool, OptionSpec("--all", help="Every component that has a `track`, each to that.")
]
ToTrackOption = Annotated[bool, OptionSpec("--to-track", help="The same as --to latest.")]
SummaryOption = Annotated[
    str | None,
    OptionSpec(
        "--summary",
        metavar="FILE",
        help="Write Markdown for a pull request there; - prints it in place of the report.",
    ),
]
ForkOption = Annotated[
    bool,
    OptionSpec(
        "--fork", help="Where other stacks use the series too, give this one a copy of its own."
    ),
]
CarefulOption = Annotated[
    bool,
    OptionSpec("--careful", help="Leave in conflict what a person would have to check."),
]
PartialOption = Annotated[
    bool,
    OptionSpec("--partial", help="Leave out the patches that do not fit, as `skip` does."),
]


@command(
    "manifest components workspace store json quiet",
    examples=[
        ("patchkit bump megatron-lm --to latest --dry-run", "what would become of the patches?"),
        ("patchkit bump megatron-lm --to core_v0.16.0", "pin, patches and lock in one go"),
        ("patchkit bump slime --to-track --summary body.md", "with a pull request's text"),
        ("patchkit bump --all --dry-run", "every component, to what it tracks"),
    ],
    exits={
        ExitCode.OK: "the pin is moved and every patch carried, or it was there already",
        ExitCode.FINDING: "the checkout has edits, the change would break another stack, or "
        "--partial left patches out",
        ExitCode.HALTED: "a patch does not fit the new pin; the project was not changed",
        ExitCode.BAD_INPUT: "a file cannot be read, or the pin is that of other manifests, too",
        ExitCode.ENVIRONMENT: "an upstream cannot be had, or the disk is full",
    },
    result="patchkit.ops.refresh_report:BumpReport",
)
def bump(
    session: Session,
    *,
    every: AllOption = False,
    to: ToOption = None,
    to_track: ToTrackOption = False,
    careful: CarefulOption = False,
    partial: PartialOption = False,
    fork: ForkOption = False,
    summary: SummaryOption = None,
    dry_run: DryRunOption = False,
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

    from patchkit.cli.refresh_output import render_bump
    from patchkit.disk.files import replace_file
    from patchkit.errors import UsageError
    from patchkit.ops.bump import bump_components
    from patchkit.ops.refresh_input import RefreshOptions
    from patchkit.report.pull_request import bump_markdown

    if session.terminal.json and summary == "-":
        raise UsageError("--json and --summary - both want the standard output")
    picked = _picked(session, every=every)
    wanted = _wanted(to, several=every or len(picked) > 1, to_track=to_track)
    with session.progress() as progress:
        report = bump_components(
            session.manifest,
            [each.name for each in picked],
            wanted,
            store=session.store,
            workspace=session.workspace,
            options=RefreshOptions(
                when=int(time.time()), fork=fork, careful=careful, partial=partial, dry_run=dry_run
            ),
            progress=progress,
        )
    if summary == "-":
        session.terminal.document(bump_markdown(report))
        for row in report.components:
            for problem in row.problems:
                session.terminal.problem(problem)
        return report.exit_code
    if summary is not None:
        replace_file(Path(summary), (bump_markdown(report) + "\n").encode(), named=True)
    return session.report("bump", report, render_bump)


def _picked(session: Session, *, every: bool) -> Sequence[Component]:
    """The components that are named, with --all every one, else the only one there is."""
    from patchkit.errors import UsageError

    manifest = session.manifest
    if every and session.names:
        raise UsageError("--all leaves no component to name")
    if every:
        return manifest.components
    return session.components if session.names else [session.component]


def _wanted(to: str | None, *, several: bool, to_track: bool) -> str:
    """What --to and --to-track say together."""
    from patchkit.errors import UsageError
    from patchkit.upstream.git import LATEST

    if to not in (None, LATEST) and (to_track or several):
        other = "--to-track" if to_track else "several components"
        raise UsageError(f"--to {to} and {other} exclude each other")
    if to is None and not (to_track or several):
        raise UsageError("say where to: --to REF, or --to latest for what the manifest tracks")
    return to or LATEST
