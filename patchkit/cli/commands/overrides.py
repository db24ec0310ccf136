"""`patchkit overrides`."""

from __future__ import annotations

from collections.abc import Iterator
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
from patchkit.model.names import short_id

if TYPE_CHECKING:
    from patchkit.guards.overrides.definitions import Standing
    from patchkit.guards.overrides.override_review import OverrideTarget
    from patchkit.ops.overrides import ComponentOverrides, OverridesReport
    from patchkit.stack.lockfile import ReviewedTarget

TargetsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="TARGET", help="Only these targets; * is any text. Default: all."),
]
SinceOption = Annotated[
    str,
    typer.Option(
        "--since",
        metavar="COMMIT",
        help="Compare with this commit of the target instead of what was reviewed.",
    ),
]
AtOption = Annotated[
    str,
    typer.Option(
        "--at", metavar="COMMIT", help="Look at this commit of the target, not at its pin."
    ),
]
DiffOption = Annotated[
    bool, typer.Option("--diff", help="Show how the code of each target changed.")
]
AllOption = Annotated[
    bool, typer.Option("--all", help="List also targets that are as they were, and calls.")
]
AcceptOption = Annotated[
    bool,
    typer.Option("--accept", help="Record the targets as they are now as reviewed, in the lock."),
]

#: A signature that is shown whole.
_LONG = 76


@command(
    examples=[
        ("patchkit overrides -m qwen3-vl-npu", "what changed since it was reviewed"),
        ("patchkit overrides -m qwen3-vl-npu 'megatron.core.optimizer.*' --diff", "and how"),
        ("patchkit overrides -m qwen3-vl-npu --accept", "all of that was looked at"),
    ],
    exits={
        ExitCode.OK: "every target is there and as it was reviewed, or there are none",
        ExitCode.FINDING: "targets are gone, have changed or were never reviewed",
        ExitCode.BAD_INPUT: "a rule file, series, lock or patch cannot be read",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.ops.overrides:OverridesReport",
)
def overrides(
    *,
    target: TargetsArgument = None,
    manifest: ManifestOption = None,
    component: ComponentsOption = None,
    since: SinceOption = "",
    at: AtOption = "",
    diff: DiffOption = False,
    all: AllOption = False,
    accept: AcceptOption = False,
    cache: CacheOption = None,
    offline: OfflineOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Tell whether code that is replaced at run time has changed.

    The calls that replace it are found by a rule, the names that they give are looked up in the
    target's source; nothing is imported. What was reviewed is in the lock.
    """
    from patchkit.cli.locate import cache_folder, open_manifest, pick_components
    from patchkit.cli.progress_bar import showing_progress
    from patchkit.ops.overrides import OverridesOptions, review_overrides
    from patchkit.upstream.store import Store

    terminal = Terminal(quiet=quiet, json=json)
    chosen = open_manifest(manifest)
    options = OverridesOptions(tuple(target or ()), since, at, diff, accept)
    with showing_progress(terminal) as progress:
        report = review_overrides(
            chosen,
            pick_components(chosen, component),
            options,
            Store(cache_folder(cache), offline=offline),
            progress,
        )

    def render(terminal: Terminal, report: OverridesReport) -> None:
        for each in report.overrides:
            _render(terminal, each, everything=all)
        if not report.overrides:
            terminal.say("no component replaces code of another")
            terminal.hint("a component says so under `overrides:` (docs/howto/overrides.md)")

    return terminal.report("overrides", report, report.exit_code, render)


def _render(terminal: Terminal, each: ComponentOverrides, *, everything: bool) -> None:
    against = f"since {short_id(each.since)}" if each.since else "since reviewed"
    head = Painted(f"{each.component} -> {each.target}", Paint.STRONG)
    terminal.product([head, f"  {short_id(each.commit)}, {against}"])
    terminal.table(
        [(word(verdict), str(count)) for verdict, count in each.counts.items()], indent=2
    )
    changed = {diff.name: diff.diff for diff in each.diffs}
    for target in each.targets:
        if everything or target.verdict.is_open:
            _render_target(terminal, target, everything=everything)
            if target.name in changed:
                terminal.diff("".join(f"{line}\n" for line in changed[target.name]).encode())
    for site in each.uncertain:
        terminal.product()
        terminal.product([word("uncertain"), f"  {site.place}  {site.text}"])
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
        for sign, paint, text in _signatures(before, now):
            terminal.product([Painted(f"  {sign} ", paint), text])
    if everything or target.verdict.is_open:
        for site in target.calls[: None if everything else 1]:
            within = f" in {site.within}" if site.within else ""
            terminal.product(["  ", Painted(f"replaced at {site.place}{within}", Paint.FAINT)])


def _signatures(before: ReviewedTarget, now: Standing) -> Iterator[tuple[str, Paint, str]]:
    """Two signatures, or of long ones the parameters that differ."""
    from patchkit.guards.overrides.definitions import parameters_in

    then, there = before.signature or before.kind, now.signature or now.kind.value
    if max(len(then), len(there)) > _LONG:
        old, new = parameters_in(then), parameters_in(there)
        lost, gained = ([x for x in a if x not in b] for a, b in ((old, new), (new, old)))
        if lost or gained:
            then, there = (", ".join(["...", *each]) for each in (lost, gained))
            then, there = then if lost else "", there if gained else ""
    if then:
        yield "-", Paint.REMOVED, then
    if there:
        yield "+", Paint.ADDED, there
