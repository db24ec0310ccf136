"""`patchkit blame`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.options import (
    WORKSPACE,
    CacheOption,
    ComponentsOption,
    JsonOption,
    ManifestOption,
    OfflineOption,
    WorkspaceOption,
)
from patchkit.cli.styled_text import Line, Paint, Painted
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode
from patchkit.model.text import shown

if TYPE_CHECKING:
    from patchkit.ops.blame import BlamedLine, BlameReport

SpotArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE[:LINE]",
        help="A file of the patched upstream, from its top folder or through the checkout; "
        "FILE:LINE or FILE:FIRST-LAST for some of its lines.",
    ),
]


@command(
    examples=[
        ("patchkit blame megatron/core/jit.py -m qwen3-vl-npu", "a whole file"),
        ("patchkit blame workspace/MindSpeed/setup.py:12 -m qwen3-vl-npu", "one line"),
    ],
    exits={
        ExitCode.OK: "told",
        ExitCode.BAD_INPUT: "a series or patch cannot be read",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.blame:BlameReport",
)
def blame(
    *,
    file: SpotArgument,
    manifest: ManifestOption = None,
    component: ComponentsOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
) -> ExitCode:
    """Say which patch each line of a patched file comes from.

    Lines without a patch are upstream's. It looks at what the patch files make, not at edits in a
    checkout that no patch has yet.
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_components
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.ops.blame import blame as find
    from patchkit.ops.blame import parse_spot
    from patchkit.upstream.store import Store

    terminal = Terminal(json=json)
    chosen = open_manifest(manifest)
    with showing_progress(terminal) as progress:
        report = find(
            chosen,
            pick_components(chosen, component),
            parse_spot(file),
            workspace=workspace,
            store=Store(cache_folder(cache), offline=offline),
            progress=progress,
        )
    return terminal.report("blame", report, ExitCode.OK, _render)


def _render(terminal: Terminal, report: BlameReport) -> None:
    numbers = {patch.name: patch.number for patch in report.patches}
    width = len(str(report.lines[-1].number)) if report.lines else 1
    for line in report.lines:
        terminal.product(_row(line, numbers, width))
    if report.patches:
        terminal.product()
    for patch in report.patches:
        mark = Painted(f"{patch.number:>3}", Paint.NOTICE)
        terminal.product([mark, "  ", Painted(patch.name, Paint.STRONG), f"  {patch.subject}"])
        if patch.where != patch.name:
            terminal.product(["     ", Painted(patch.where, Paint.FAINT)])
    if not report.patches:
        terminal.say("every line of these is upstream's")


def _row(line: BlamedLine, numbers: dict[str, int], width: int) -> Line:
    text = shown(line.text).expandtabs(8)
    if line.patch is None:
        return [f"  ·  {line.number:>{width}}  ", text]
    mark = Painted(f"{numbers[line.patch]:>3}", Paint.NOTICE)
    return [mark, f"  {line.number:>{width}}  ", Painted(text, Paint.ADDED)]
