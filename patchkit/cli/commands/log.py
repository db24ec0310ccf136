"""`patchkit log`."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from patchkit.cli.status_words import verdict, word
from patchkit.cli.styled_text import Line, Paint, Painted
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode
from patchkit.model.names import short_id
from patchkit.model.outcome import Status
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.ops.log import ComponentLog, LoggedPatch, LogReport


@command(
    examples=[
        ("patchkit log -m qwen3-vl-npu", "every component's patches"),
        ("patchkit log -m qwen3-vl-npu -c megatron-lm --json", "for a script"),
    ],
    exits={
        ExitCode.OK: "listed",
        ExitCode.BAD_INPUT: "a series or patch cannot be read",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.log:LogReport",
)
def log(
    *,
    manifest: ManifestOption = None,
    component: ComponentsOption = None,
    workspace: WorkspaceOption = WORKSPACE,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
) -> ExitCode:
    """List each component's patches, in order.

    What they are, whether they fit, and whether they are applied.
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_components
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.ops.log import log_components
    from patchkit.upstream.store import Store

    terminal = Terminal(json=json)
    chosen = open_manifest(manifest)
    with showing_progress(terminal) as progress:
        report = log_components(
            chosen,
            pick_components(chosen, component),
            workspace=workspace,
            store=Store(cache_folder(cache), offline=offline),
            progress=progress,
        )
    return terminal.report("log", report, report.exit_code, _render)


def _render(terminal: Terminal, report: LogReport) -> None:
    for number, each in enumerate(report.components):
        if number:
            terminal.product()
        terminal.product([Painted(each.component, Paint.STRONG), f"  on {short_id(each.pin)}"])
        _render_component(terminal, each)


def _render_component(terminal: Terminal, log: ComponentLog) -> None:
    for problem in log.problems:
        terminal.problem(problem)
    for patch in log.patches:
        terminal.product(_headline(patch))
        for line in _details(patch):
            terminal.product(f"       {line}")
    for commit in log.commits:
        terminal.product(
            ["    +  ", Painted(short_id(commit.commit), Paint.NOTICE), "  not in a patch"]
        )
        terminal.product(f"       {commit.subject}")


def _headline(patch: LoggedPatch) -> Line:
    shown = verdict(patch.status)
    if patch.checkout and patch.status in (Status.UNCHANGED, Status.SHIFTED):
        shown = word(patch.checkout)
    return [f"  {patch.number:>3}  ", shown, "  ", Painted(patch.name, Paint.STRONG)]


def _details(patch: LoggedPatch) -> list[str]:
    files = counted(patch.files, "file")
    size = f"{files}, +{patch.added} -{patch.removed}"
    author = f", {patch.author}" if patch.author else ""
    return [*([patch.subject] if patch.subject else []), size + author]
