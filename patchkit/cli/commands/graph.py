"""`patchkit graph`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.options import (
    CacheOption,
    ComponentsOption,
    JsonOption,
    ManifestOption,
    OfflineOption,
)
from patchkit.cli.styled_text import Paint, Painted
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.ops.graph import ComponentGraph, Dependency, GraphReport, PatchNode

DotOption = Annotated[bool, typer.Option("--dot", help="Print Graphviz's language.")]
EveryOption = Annotated[
    bool, typer.Option("--all", help="Also show what follows from other dependencies.")
]


@command(
    examples=[
        ("patchkit graph -m qwen3-vl-npu", "every component"),
        ("patchkit graph -m qwen3-vl-npu --dot | dot -Tsvg > stack.svg", "a picture"),
    ],
    exits={
        ExitCode.OK: "drawn",
        ExitCode.BAD_INPUT: "a series or patch cannot be read, or does not apply",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.graph:GraphReport",
)
def graph(
    *,
    manifest: ManifestOption = None,
    component: ComponentsOption = None,
    dot: DotOption = False,
    every: EveryOption = False,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
) -> ExitCode:
    """Show which patches need which earlier ones.

    A patch needs an earlier one if it changes, or has as context, lines that the earlier one
    brought, or a file that it made. Patches that need nothing of each other can change places.
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_components
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.ops.graph import graph_components
    from patchkit.upstream.store import Store

    terminal = Terminal(json=json)
    chosen = open_manifest(manifest)
    with showing_progress(terminal) as progress:
        report = graph_components(
            chosen,
            pick_components(chosen, component),
            Store(cache_folder(cache), offline=offline),
            progress,
            every=every,
        )
    return terminal.report("graph", report, report.exit_code, _render_dot if dot else _render)


def _render(terminal: Terminal, report: GraphReport) -> None:
    for number, each in enumerate(report.components):
        if number:
            terminal.product()
        terminal.product(Painted(each.component, Paint.STRONG))
        for problem in each.problems:
            terminal.problem(problem)
        _render_component(terminal, each)


def _render_component(terminal: Terminal, graph: ComponentGraph) -> None:
    for node in graph.patches:
        terminal.product([f"  {node.number:>3}  ", Painted(node.name, Paint.STRONG)])
        for index, need in enumerate(node.needs):
            branch = "└─" if index == len(node.needs) - 1 else "├─"
            terminal.product(
                [f"       {branch} ", need.on, Painted(f"  {_why(need)}", Paint.FAINT)]
            )
    free = [node for node in graph.patches if _is_free(node, graph)]
    if len(graph.patches) > 1 and len(free) == len(graph.patches):
        terminal.product("       no patch needs another: any order will do")


def _is_free(node: PatchNode, graph: ComponentGraph) -> bool:
    needed = {need.on for each in graph.patches for need in each.needs}
    return not node.needs and node.name not in needed


def _why(need: Dependency) -> str:
    files = counted(len(need.paths), "file")
    return f"{counted(need.lines, 'line')} in {files}" if need.lines else files


def _render_dot(terminal: Terminal, report: GraphReport) -> None:
    lines = ["digraph patches {", '  rankdir="BT";', '  node [shape="box"];']
    for number, each in enumerate(report.components):
        for problem in each.problems:
            terminal.problem(problem)
        lines.append(f'  subgraph "cluster_{number}" {{ label={_quoted(each.component)};')
        lines += [
            f"    {_id(each, node.name)} [label={_quoted(node.name)}];" for node in each.patches
        ]
        lines += [
            f"    {_id(each, node.name)} -> {_id(each, need.on)} [label={_quoted(_why(need))}];"
            for node in each.patches
            for need in node.needs
        ]
        lines.append("  }")
    terminal.document("\n".join([*lines, "}"]))


def _id(graph: ComponentGraph, name: str) -> str:
    return _quoted(f"{graph.component}/{name}")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
