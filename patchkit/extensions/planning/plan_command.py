"""`patchkit plan`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from patchkit.cli.command import LineOption, command
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Piece, Terminal, cut, room
from patchkit.errors import ExitCode
from patchkit.model.names import short_id
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.drift.drift_report import PatchForecast
    from patchkit.extensions.planning.plan import ComponentPlan, PlanReport
    from patchkit.extensions.planning.plan_report import (
        Combination,
        Effort,
        FarthestCommit,
        UnmetRequirement,
    )


@command(
    "manifest components store json quiet",
    examples={
        "patchkit plan megatron-lm": "how far along the tracked branch, at what cost?",
        "patchkit plan megatron-lm --to core_v0.16.0": "the same up to a release",
        "patchkit plan -m qwen3-vl-npu": "the newest combination of all components",
    },
    ok="the components were looked at",
    bad_input="a manifest, series or patch cannot be read; no branch is tracked",
    environment="an upstream could not be fetched",
    result="patchkit.extensions.planning.plan:PlanReport",
    group="Move with upstream",
)
def plan(
    session: Session,
    *,
    to: LineOption = None,
) -> ExitCode:
    """Say how far a stack can go upstream, and at what cost.

    Judges every commit between the pin and the newest one: how far the patches apply unchanged, how
    far they merge, and how many files are in conflict after that. For several components also the
    newest commits that fit each other, by the versions that their metadata asks for. Nothing is
    changed; `patchkit bump` goes there.
    """
    from patchkit.errors import UsageError
    from patchkit.extensions.planning.plan import cheapest_first, plan_components

    if to is not None and len(session.components) > 1:
        hint = f"name it, such as: patchkit plan {session.components[0].name} --to {to}"
        raise UsageError("--to goes with one component", hint=hint)
    picked = cheapest_first(session.manifest, session.components)
    names = [one.name for one in picked]
    with session.answers(names, _print_component) as known, session.progress() as progress:
        report = plan_components(
            session.manifest, picked, session.store, progress, to=to, known=known
        )
    return session.report("plan", report, partial(print_plan, shown=known.shown))


# A plan as a person reads it: how far each amount of work reaches, and what stops it there.


# Amounts of work that are shown in full: the first ones, and what the tip takes.
_SHOWN = 6


def print_plan(terminal: Terminal, report: PlanReport, *, shown: bool = False) -> None:
    """The whole report; `shown`: the components were printed when they were known."""
    for component in () if shown else report.components:
        _print_component(terminal, component)
    if report.combinations:
        _print_combinations(terminal, report.combinations)
    if report.clashes:
        _print_clashes(terminal, report.clashes)
    for problem in report.all_problems:
        terminal.problem(problem)
    looked = sum(each.tip is not None for each in report.components)
    good = report.exit_code is ExitCode.OK
    terminal.product(
        [word("ok" if good else "failed"), f": {counted(looked, 'component')} looked at"]
    )


def _print_component(terminal: Terminal, plan: ComponentPlan) -> None:
    terminal.product(_heading(plan))
    if plan.tip is None:
        terminal.product()
        return
    shown = _picked(plan.reaches)
    for number, reach in enumerate(shown):
        if number and reach is plan.reaches[-1] and len(plan.reaches) > _SHOWN:
            left = len(plan.reaches) - _SHOWN
            terminal.product(f"    {counted(left, 'step')} more in between, see --json")
        for line in _reach_lines(reach):
            terminal.product(line)
    terminal.product()


def _heading(plan: ComponentPlan) -> Line:
    name = Painted(plan.name, Paint.STRONG)
    if plan.problems:
        return [word("failed"), "  ", name, "  could not be examined, see below"]
    if plan.tip is None:
        return [word("skipped"), "  ", name, f"  stays at {short_id(plan.pin)}: {plan.skipped}"]
    since = "" if plan.on_branch else f", since {short_id(plan.fork)}: the pin is not on it"
    if plan.pin != plan.fork == plan.tip.commit:
        since = ", an ancestor of the pin"
    return [
        name,
        f"  {plan.ref} to {short_id(plan.tip.commit)} of {plan.tip.day}",
        f", {counted(plan.commits, 'commit')}{_versions(plan)}{since}",
    ]


def _versions(plan: ComponentPlan) -> str:
    if not plan.version or plan.version == plan.tip_version:
        return ""
    return f", {plan.version} to {plan.tip_version or '?'}"


def _picked(rows: Sequence[FarthestCommit]) -> Sequence[FarthestCommit]:
    if len(rows) <= _SHOWN:
        return rows
    return (*rows[: _SHOWN - 1], rows[-1])


def _reach_lines(reach: FarthestCommit) -> Iterator[Line]:
    place = "the tip" if not reach.behind else f"{counted(reach.behind, 'commit')} before the tip"
    yield [
        "  ",
        word(reach.grade),
        f" to {short_id(reach.commit.commit)} {reach.commit.day}, {place}",
    ]
    if work := _work(reach.effort):
        yield f"      {work}"
    for patch in reach.patches:
        yield f"      {patch.name}: {_patch_words(patch)}"
    if reach.stopped_by is not None:
        by = reach.stopped_by
        text: list[Piece] = ["      then ", Painted(short_id(by.commit), Paint.PLACE), " "]
        yield [*text, Painted(cut(by.subject, room() - 25), Paint.FAINT)]


def _work(effort: Effort) -> str:
    parts = [
        *([f"{counted(effort.conflicts, 'file')} in conflict"] if effort.conflicts else []),
        *([f"{effort.review} to look at"] if effort.review else []),
    ]
    return ", ".join(parts)


def _patch_words(patch: PatchForecast) -> str:
    if patch.conflicts:
        names = [path.rpartition("/")[2] for path in patch.conflicts]
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        return f"conflict in {', '.join(names[:2])}{more}"
    if patch.waits_for:
        return f"waits for {', '.join(patch.waits_for)}"
    if patch.absorbed_by:
        return f"{patch.perhaps}absorbed ({'; '.join(patch.absorbed_by)})"
    look = f", {counted(len(patch.review), 'file')} to look at" if patch.review else ""
    return f"{patch.status.value}{look}"


def _print_combinations(terminal: Terminal, combinations: Sequence[Combination]) -> None:
    terminal.product(Painted("Together", Paint.STRONG))
    for each in combinations:
        work = _work(each.effort)
        days = f" {counted(each.days, 'day')} behind the tips{': ' if work else ''}{work}"
        terminal.product(["  ", word(each.grade), days])
        rows: list[tuple[Line, ...]] = []
        for choice in each.choices:
            place: Line = "the pin as it is"
            if choice.commit is not None:
                place = f"{short_id(choice.commit.commit)} {choice.commit.day}"
            told = [each for each in (choice.version, _work(choice.effort)) if each]
            rows.append((choice.component, place, ", ".join(told)))
        terminal.table(rows, indent=6)
    terminal.product()


def _print_clashes(terminal: Terminal, clashes: Sequence[UnmetRequirement]) -> None:
    terminal.product("Today's pins do not meet these, so they stop nothing:")
    for clash in clashes:
        wanted = f"{clash.component} needs {clash.subject}{clash.specifier}"
        terminal.product(f"  {wanted}, {clash.other} has {clash.found}")
    terminal.product()
