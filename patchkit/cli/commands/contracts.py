"""`patchkit contracts`."""

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
    QuietOption,
)
from patchkit.cli.status_words import word
from patchkit.cli.styled_text import Paint, Painted
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.guards.contracts.breaches import BrokenCall
    from patchkit.ops.contracts import ComponentContracts, ContractsReport

AllOption = Annotated[
    bool,
    typer.Option("--all", help="List also calls that cannot be told, and what is explained."),
]


@command(
    examples=[
        ("patchkit contracts -m qwen3-vl-npu", "calls that do not fit what they call"),
        ("patchkit contracts -m qwen3-vl-npu -c slime --all", "and those that cannot be told"),
    ],
    exits={
        ExitCode.OK: "every call that can be told fits",
        ExitCode.FINDING: "calls do not fit, or an entry of the manifest is for nothing",
        ExitCode.BAD_INPUT: "a series or patch cannot be read, or does not apply",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.contracts:ContractsReport",
)
def contracts(
    *,
    manifest: ManifestOption = None,
    component: ComponentsOption = None,
    all: AllOption = False,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Say which calls from one component into another do not fit.

    Imports, names and arguments are held to the patched source of the component that they lead
    to; nothing is imported or run.
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_components
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.ops.contracts import look_at_contracts
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    chosen = open_manifest(manifest)
    with showing_progress(terminal) as progress:
        report = look_at_contracts(
            chosen,
            pick_components(chosen, component),
            Store(cache_folder(cache), offline=offline),
            progress,
        )

    def render(terminal: Terminal, report: ContractsReport) -> None:
        for each in report.components:
            _render(terminal, each, everything=all)

    return terminal.report("contracts", report, report.exit_code, render)


def _render(terminal: Terminal, each: ComponentContracts, *, everything: bool) -> None:
    looked = counted(each.modules, "module")
    terminal.product([Painted(each.component, Paint.STRONG), f"  {looked}"])
    counts: dict[str, int] = {}
    for place in each.broken:
        counts[place.breach.value] = counts.get(place.breach.value, 0) + 1
    counts |= {"unmatched": len(each.unmatched), "unused": len(each.unused)}
    counts |= {"bound": each.bound, "open": len(each.open), "explained": len(each.explained)}
    terminal.table([(word(name), str(n)) for name, n in counts.items() if n], indent=2)
    for place in each.broken:
        _render_place(terminal, place)
    for call in each.unmatched:
        terminal.product()
        terminal.product([word("unmatched"), f"  {call.call} -> {call.to}"])
        terminal.product(["  ", Painted(str(call.where), Paint.PLACE)])
    for absent in each.unused:
        terminal.product()
        terminal.product([word("unused"), f"  {absent.name}"])
        terminal.product(["  ", Painted(str(absent.where), Paint.PLACE)])
    if everything:
        for reason in each.explained:
            _render_place(terminal, reason.place, reason.reason)
        for left in each.open:
            terminal.product()
            terminal.product([word("open"), "  ", Painted(left.text, Paint.STRONG)])
            within = f" in {left.within}" if left.within else ""
            terminal.product(["  ", Painted(left.place, Paint.PLACE), within])
            terminal.product(f"  {left.why}")


def _render_place(terminal: Terminal, place: BrokenCall, reason: str = "") -> None:
    terminal.product()
    status = word("explained") if reason else word(place.breach)
    terminal.product([status, "  ", Painted(place.target, Paint.STRONG)])
    within = f" in {place.within}" if place.within else ""
    terminal.product(["  ", Painted(place.place, Paint.PLACE), within])
    terminal.product(f"  {place.what}")
    if place.signature:
        at = f"{place.provider} {place.defined}"
        terminal.product(["  ", Painted(f"{at}: {place.signature}", Paint.FAINT)])
    if reason:
        terminal.product(["  ", Painted(reason, Paint.FAINT)])
