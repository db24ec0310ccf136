"""`patchkit residual`."""

from __future__ import annotations

from datetime import date, datetime
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
    from patchkit.ops.residual import ComponentResidual, ResidualReport

PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="GLOB", help="Only in these files, as tests/**. Default: all."),
]
RulesOption = Annotated[
    list[str] | None,
    typer.Option("--rule", metavar="RULE", help="Only of this rule; may be given several times."),
]
AllOption = Annotated[bool, typer.Option("--all", help="List also what is known or was reviewed.")]
AcceptOption = Annotated[
    bool, typer.Option("--accept", help="Record the sites as reviewed; needs --reason.")
]
RecordOption = Annotated[
    bool,
    typer.Option(
        "--record", help="Record new sites as known, not reviewed: only later ones speak."
    ),
]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why the accepted sites may stay.")
]
UntilOption = Annotated[
    datetime | None,
    typer.Option("--until", metavar="DATE", formats=["%Y-%m-%d"], help="They may stay until then."),
]
AreaOption = Annotated[
    bool,
    typer.Option("--area", help="Accept all that is or will be in the globs, not site by site."),
]
PruneOption = Annotated[
    bool, typer.Option("--prune", help="Take entries out that match no site any more.")
]


@command(
    examples=[
        ("patchkit residual -m qwen3-vl-npu", "new sites, everywhere in the patched trees"),
        ("patchkit residual 'tests/**' --accept --area --reason 'not run here'", "a folder"),
        ("patchkit residual --rule nccl --accept --reason 'CUDA only'", "site by site"),
    ],
    exits={
        ExitCode.OK: "every site was reviewed or is known, or there are no rules",
        ExitCode.FINDING: "there are new sites, or a reason is over",
        ExitCode.BAD_INPUT: "a recipe, rule file, baseline or patch cannot be read",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.residual:ResidualReport",
)
def residual(
    *,
    path: PathsArgument = None,
    manifest: ManifestOption = None,
    component: ComponentsOption = None,
    rule: RulesOption = None,
    all: AllOption = False,
    accept: AcceptOption = False,
    record: RecordOption = False,
    reason: ReasonOption = "",
    until: UntilOption = None,
    area: AreaOption = False,
    prune: PruneOption = False,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Name what recipes should cover and no patch does.

    The rules of recipes, and of rule files that only look, are run over the whole patched tree.
    What they find is compared with a reviewed baseline beside the series: only new sites speak.
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_components
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.ops.residual import ResidualOptions, find_residual
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    chosen = open_manifest(manifest)
    options = ResidualOptions(
        today=date.today(),
        paths=tuple(path or ()),
        rules=tuple(rule or ()),
        accept=accept,
        record=record,
        reason=reason,
        until=until.date() if until is not None else None,
        area=area,
        prune=prune,
    )
    with showing_progress(terminal) as progress:
        report = find_residual(
            chosen,
            pick_components(chosen, component),
            options,
            Store(cache_folder(cache), offline=offline),
            progress,
        )

    def render(terminal: Terminal, report: ResidualReport) -> None:
        for each in report.components:
            _render(terminal, each, everything=all)
        if not report.components:
            terminal.say("no recipe and no rule to look for")
            terminal.hint("name rule files under `residual:` (docs/howto/residual.md)")

    return terminal.report("residual", report, report.exit_code, render)


def _render(terminal: Terminal, each: ComponentResidual, *, everything: bool) -> None:
    looked = f"{counted(len(each.rules), 'rule')}, {each.files} files"
    terminal.product([Painted(each.component, Paint.STRONG), f"  {looked}"])
    counts = {
        "new": each.new,
        "expired": each.expired,
        "known": each.known,
        "reviewed": each.reviewed,
    }
    terminal.table(
        [(word(state), str(count)) for state, count in counts.items() if count], indent=2
    )
    shown = [site for site in each.sites if everything or site.state.value in ("new", "expired")]
    for rule in dict.fromkeys(site.rule for site in shown):
        terminal.product()
        terminal.product(Painted(rule, Paint.STRONG))
        for site in (site for site in shown if site.rule == rule):
            within = f" in {site.within}" if site.within else ""
            terminal.product([word(site.state), "  ", Painted(site.place, Paint.PLACE), within])
            terminal.product(f"    {site.text}")
            if site.reason:
                terminal.product(["    ", Painted(site.reason, Paint.FAINT)])
    if each.unmatched:
        many = len(each.unmatched)
        entries = "1 entry matches" if many == 1 else f"{many} entries match"
        terminal.say(f"{each.baseline}: {entries} no site any more")
        terminal.hint("--prune takes them out")
    if each.accepted:
        terminal.say(f"{each.baseline}: {counted(each.accepted, 'site')} recorded as reviewed")
    if each.recorded:
        terminal.say(f"{each.baseline}: {counted(each.recorded, 'site')} recorded as known")
    if each.pruned:
        terminal.say(f"{each.baseline}: {each.pruned} entries taken out")
