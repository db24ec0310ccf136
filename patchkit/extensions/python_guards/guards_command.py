"""`check --only overrides` and `calls`: what patches leave open, and what is accepted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.explanations import print_each
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Paint, Painted, Terminal
from patchkit.errors import ExitCode
from patchkit.model.names import short_id
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.extensions.python_guards.breaches import ComponentContracts, UsePlace
    from patchkit.extensions.python_guards.guard_reviews import (
        ComponentOverrides,
        ContractsReport,
        OverridesReport,
    )
    from patchkit.extensions.python_guards.override_review import OverrideTarget


TargetsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="TARGET", help="Only these targets; * is any text. Default: all."),
]
DiffOption = Annotated[
    bool, typer.Option("--diff", help="Show how the code of each target changed.")
]
AllTargetsOption = Annotated[
    bool, typer.Option("--all", help="List also unchanged targets, and calls.")
]
AcceptTargetOption = Annotated[
    bool,
    typer.Option("--accept", help="Record the targets as they are now as reviewed, in the lock."),
]


@command(
    "manifest components store json quiet",
    group="Between components",
    examples={
        "patchkit check --only overrides -m qwen3-vl-npu": "what changed since it was reviewed",
        "patchkit check --only overrides 'megatron.core.optimizer.*' --diff": "and how",
        "patchkit check --only overrides -m qwen3-vl-npu --accept": "all of that was looked at",
    },
    ok="every target is there and as it was reviewed, or there are none",
    finding="targets are gone, have changed or were never reviewed",
    bad_input="a rule file, series, lock or patch cannot be read",
    environment="an upstream could not be fetched",
    result="patchkit.extensions.python_guards.guard_reviews:OverridesReport",
)
def overrides(
    session: Session,
    *,
    target: TargetsArgument = None,
    diff: DiffOption = False,
    all: AllTargetsOption = False,
    accept: AcceptTargetOption = False,
) -> ExitCode:
    """Check whether code that is replaced at run time has changed.

    The calls that replace it are found by a rule, and the names in them are looked up in the
    target's source; nothing is imported. The lock records what was reviewed.
    """
    from patchkit.extensions.python_guards.guard_reviews import OverridesOptions, review_overrides

    options = OverridesOptions(tuple(target or ()), diff, accept)
    with session.progress() as progress:
        report = review_overrides(
            session.manifest,
            session.components,
            options,
            session.store,
            progress,
        )

    def render(terminal: Terminal, report: OverridesReport) -> None:
        for each in report.overrides:
            _render_overrides(terminal, each, everything=all)
        if not report.overrides:
            terminal.say("no component replaces code of another")
            terminal.hint("a component says so under `overrides:` (docs/howto/overrides.md)")

    return session.report("check --only overrides", report, render)


def _render_overrides(terminal: Terminal, each: ComponentOverrides, *, everything: bool) -> None:
    against = "since reviewed" if any(t.reviewed for t in each.targets) else "not reviewed"
    head = Painted(f"{each.component} -> {each.target}", Paint.STRONG)
    terminal.product([head, f"  {short_id(each.commit)}, {against}"])
    terminal.table(
        [(word(verdict), str(count)) for verdict, count in each.counts.items()], indent=2
    )
    for target in each.targets:
        if everything or target.verdict.is_open:
            _render_target(terminal, target, everything=everything)
            if target.diff:
                terminal.diff("".join(f"{line}\n" for line in target.diff).encode())
    print_each(terminal, each.findings)
    if each.accepted:
        terminal.say(f"recorded {each.accepted} as reviewed in the lock")


def _render_target(terminal: Terminal, target: OverrideTarget, *, everything: bool) -> None:
    terminal.product()
    terminal.product([word(target.verdict), "  ", Painted(target.name, Paint.STRONG)])
    before, now = target.reviewed, target.now
    if target.now.place:
        terminal.product(["  ", Painted(now.place, Paint.PLACE)])
    if now.why:
        terminal.product(f"  {now.why}")
    if target.reason:
        terminal.product(f"  {target.reason}")
    if before is not None and now.kind.is_there and before.signature != now.signature:
        terminal.product([Painted("  - ", Paint.REMOVED), before.signature or before.kind])
        terminal.product([Painted("  + ", Paint.ADDED), now.signature or now.kind.value])
    if everything or target.verdict.is_open:
        for site in target.calls[: None if everything else 1]:
            within = f" in {site.within}" if site.within else ""
            terminal.product(["  ", Painted(f"replaced at {site.place}{within}", Paint.FAINT)])


AllCallsOption = Annotated[
    bool,
    typer.Option("--all", help="List also calls that cannot be decided, and explained ones."),
]


@command(
    "manifest components store json quiet",
    group="Between components",
    examples={
        "patchkit check --only calls -m qwen3-vl-npu": "calls that do not fit what they call",
        "patchkit check --only calls -m qwen3-vl-npu -c slime --all": (
            "and those that cannot be decided"
        ),
    },
    ok="every call that can be decided fits, or there are no contracts",
    finding="calls do not fit, or an entry of the manifest is for nothing",
    bad_input="a series or patch cannot be read, or does not apply",
    environment="an upstream could not be fetched",
    result="patchkit.extensions.python_guards.guard_reviews:ContractsReport",
)
def contracts(
    session: Session,
    *,
    all: AllCallsOption = False,
) -> ExitCode:
    """Say which calls from one component into another do not fit.

    Imports, names and arguments are compared with the patched source of the component that they
    refer to; nothing is imported or run.
    """
    from patchkit.extensions.python_guards.guard_reviews import look_at_contracts

    with session.progress() as progress:
        report = look_at_contracts(
            session.manifest,
            session.components,
            session.store,
            progress,
        )

    def render(terminal: Terminal, report: ContractsReport) -> None:
        for each in report.components:
            _render_contracts(terminal, each, everything=all)
        if not report.components:
            terminal.say("no component has contracts")
            terminal.hint("a component says so under `contracts:` (docs/howto/contracts.md)")

    return session.report("check --only calls", report, render)


def _render_contracts(terminal: Terminal, each: ComponentContracts, *, everything: bool) -> None:
    looked = counted(each.modules, "module")
    terminal.product([Painted(each.component, Paint.STRONG), f"  {looked}"])
    counts = dict(Counter(place.breach.value for place in each.broken))
    counts |= {"bound": each.bound, "open": len(each.open), "explained": len(each.explained)}
    terminal.table([(word(name), str(n)) for name, n in counts.items() if n], indent=2)
    for place in each.broken:
        _render_place(terminal, place)
    print_each(terminal, each.findings)
    for place in (*each.explained, *each.open) if everything else ():
        _render_place(terminal, place)


def _render_place(terminal: Terminal, place: UsePlace) -> None:
    terminal.product()
    status = word("explained") if place.reason else word(place.breach)
    terminal.product([status, "  ", Painted(place.target, Paint.STRONG)])
    within = f" in {place.within}" if place.within else ""
    terminal.product(["  ", Painted(place.place, Paint.PLACE), within])
    terminal.product(f"  {place.what}")
    if place.signature:
        at = f"{place.provider} {place.defined}"
        terminal.product(["  ", Painted(f"{at}: {place.signature}", Paint.FAINT)])
    if place.reason:
        terminal.product(["  ", Painted(place.reason, Paint.FAINT)])
