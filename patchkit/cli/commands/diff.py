"""`patchkit diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.options import (
    WORKSPACE,
    ComponentsOption,
    JsonOption,
    ManifestOption,
    WorkspaceOption,
)
from patchkit.cli.styled_text import Line, Paint, Painted
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from patchkit.ops.diff import DiffReport, FileStat

#: States of a checkout that holds no stack to compare with.
_NOTHING = ("absent", "foreign", "interrupted")

StatOption = Annotated[
    bool, typer.Option("--stat", help="Only the files, with the number of lines that changed.")
]


@command(
    examples=[
        ("patchkit diff -m qwen3-vl-npu", "what refresh would take up"),
        ("patchkit diff -m qwen3-vl-npu -c mindspeed --stat", "the files only"),
    ],
    exits={
        ExitCode.OK: "compared, whether something differs or not",
        ExitCode.ENVIRONMENT: "a checkout cannot be read, or is locked",
    },
    result="patchkit.ops.diff:DiffReport",
)
def diff(
    *,
    manifest: ManifestOption = None,
    component: ComponentsOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    stat: StatOption = False,
    json: JsonOption = False,
) -> ExitCode:
    """Show what the checkouts have beyond their stacks.

    Commits of your own and uncommitted edits together; new files once they are added to git's
    index. It is what refresh takes up into the patches.
    """
    from patchkit.cli.locate import open_manifest, pick_components
    from patchkit.ops.diff import diff_components

    terminal = Terminal(json=json)
    chosen = open_manifest(manifest)
    report = diff_components(chosen, pick_components(chosen, component), workspace)
    return terminal.report("diff", report, report.exit_code, _render_stat if stat else _render)


def _render(terminal: Terminal, report: DiffReport) -> None:
    _tell(terminal, report)
    for each in report.components:
        if each.diff:
            if len(report.components) > 1:
                terminal.say(Painted(each.component, Paint.STRONG))
            terminal.diff(each.diff)


def _render_stat(terminal: Terminal, report: DiffReport) -> None:
    _tell(terminal, report)
    for each in report.components:
        if each.files:
            terminal.product(Painted(each.component, Paint.STRONG))
            terminal.table([_row(file) for file in each.files], indent=2)


def _tell(terminal: Terminal, report: DiffReport) -> None:
    for each in report.components:
        for problem in each.problems:
            terminal.problem(problem)
        if each.state.value in _NOTHING and not each.problems:
            terminal.say(f"{each.component}: {each.state.value}, nothing to compare")
    compared = [c for c in report.components if not c.problems and c.state.value not in _NOTHING]
    if compared and not any(each.diff for each in report.components):
        terminal.say("no differences")


def _row(file: FileStat) -> tuple[Line, ...]:
    if file.binary:
        return "binary", "", f"{file.kind.value:<6}  {file.path}"
    return (
        Painted(f"+{file.added}", Paint.ADDED),
        Painted(f"-{file.removed}", Paint.REMOVED),
        f"{file.kind.value:<6}  {file.path}",
    )
