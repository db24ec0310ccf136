"""`patchkit take`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.options import (
    CacheOption,
    DryRunOption,
    JsonOption,
    ManifestOption,
    OfflineOption,
    OneComponentOption,
    QuietOption,
)
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from patchkit.ops.take import TakeReport


@command(
    examples=[
        ("patchkit take -m slime-npu-official -c megatron-lm", "all of the component"),
        ("patchkit take npu-megatron.patch -c megatron-lm", "one of them"),
    ],
    exits={
        ExitCode.OK: "the patches are in the series, or none was by reference",
        ExitCode.BAD_INPUT: "a file cannot be read, or the order of the patches could not stay",
        ExitCode.ENVIRONMENT: "a patch cannot be fetched, or the disk is full",
    },
    result="patchkit.ops.take:TakeReport",
)
def take(
    patches: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATCH", help="A patch by reference. Default: all."),
    ] = None,
    *,
    manifest: ManifestOption = None,
    component: OneComponentOption = None,
    dry_run: DryRunOption = False,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Take patches by reference into the series, to be your own.

    A patch of another repository is taken as it is and never rewritten. Taken over, it is a file of
    the component's series, in the same place of the stack: a bump can carry it, and a conflict in
    it can be resolved. An `Origin` line in its message says where it came from.
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_component
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.ops.take import take_patches
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    chosen = open_manifest(manifest)
    with showing_progress(terminal) as progress:
        report = take_patches(
            chosen,
            pick_component(chosen, component),
            patches or (),
            store=Store(cache_folder(cache), offline=offline),
            progress=progress,
            dry_run=dry_run,
        )
    return terminal.report("take", report, report.exit_code, _render)


def _render(terminal: Terminal, report: TakeReport) -> None:
    from patchkit.cli.status_words import word

    for patch in report.patches:
        done = word("imported", "would take" if report.dry_run else "taken")
        terminal.product([done, "  ", patch.file])
        terminal.product([" " * 4, "from ", patch.origin])
    if not report.patches:
        terminal.say(f"{report.component}: takes no patch by reference")
    elif report.dry_run:
        terminal.say("a dry run: nothing was written")
    else:
        terminal.say(f"{report.series} lists them; they are yours to change and to carry")
