"""`patchkit check --only sites`: what rules name and no patch covers, and what is accepted."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.explanations import print_each
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Paint, Painted, Terminal
from patchkit.errors import ExitCode
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.extensions.recipes.scan import ComponentResidual, ResidualReport

PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="GLOB", help="Only in these files, as tests/**. Default: all."),
]
RulesOption = Annotated[
    list[str] | None,
    typer.Option("--rule", metavar="RULE", help="Only of this rule; may be given several times."),
]
AllSitesOption = Annotated[
    bool, typer.Option("--all", help="List also sites that are known or reviewed.")
]
AcceptSiteOption = Annotated[
    bool, typer.Option("--accept", help="Record the sites as reviewed; needs --reason.")
]
RecordOption = Annotated[
    bool,
    typer.Option(
        "--record", help="Record new sites as known, not reviewed: only later ones are reported."
    ),
]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why the accepted sites may stay.")
]


@command(
    "manifest components store json quiet",
    examples={
        "patchkit check --only sites -m qwen3-vl-npu": "new sites, everywhere in the patched trees",
        "patchkit check --only sites 'tests/**' --accept --reason 'not run here'": "a folder",
        "patchkit check --only sites --rule nccl --accept --reason 'CUDA only'": "site by site",
    },
    ok="every site is reviewed or known, or there are no rules",
    finding="there are new sites, or a reason has expired",
    bad_input="a recipe, rule file, baseline or patch cannot be read",
    environment="an upstream could not be fetched",
    result="patchkit.extensions.recipes.scan:ResidualReport",
    group="Patches by recipe",
)
def scan(
    session: Session,
    *,
    path: PathsArgument = None,
    rule: RulesOption = None,
    all: AllSitesOption = False,
    accept: AcceptSiteOption = False,
    record: RecordOption = False,
    reason: ReasonOption = "",
) -> ExitCode:
    """Find code that rules match and no patch changes.

    The rules of recipes, and of rule files that only match, are run over the whole patched tree.
    The sites that they find are compared with a baseline beside the series: only new ones are
    reported.
    """
    from patchkit.extensions.recipes.scan import ResidualOptions, find_residual

    options = ResidualOptions(
        today=date.today(),
        paths=tuple(path or ()),
        rules=tuple(rule or ()),
        accept=accept,
        record=record,
        reason=reason,
    )
    with session.progress() as progress:
        report = find_residual(
            session.manifest,
            session.components,
            options,
            session.store,
            progress,
        )

    def render(terminal: Terminal, report: ResidualReport) -> None:
        for each in report.components:
            _render_residual(terminal, each, everything=all)
        for glob in path or ():
            if session.manifest.component(glob) is not None:
                terminal.hint(f"{glob} is a component, and was taken for a file: -c {glob}")
        if not report.components:
            terminal.say("no recipe and no rule to match")
            terminal.hint("name rule files under `residual:` (docs/howto/residual.md)")

    return session.report("check --only sites", report, render)


def _render_residual(terminal: Terminal, each: ComponentResidual, *, everything: bool) -> None:
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
    print_each(terminal, each.findings)
    if each.unmatched:
        terminal.say(f"no site any more for {', '.join(each.unmatched)}")
        terminal.hint("take these entries out")
    if each.accepted:
        terminal.say(f"{each.baseline}: {counted(each.accepted, 'site')} recorded as reviewed")
    if each.recorded:
        terminal.say(f"{each.baseline}: {counted(each.recorded, 'site')} recorded as known")
