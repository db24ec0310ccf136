"""`patchkit status`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Terminal
from patchkit.errors import ExitCode
from patchkit.model.names import short_id
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.errors import Problem
    from patchkit.ops.status import ComponentStatus, StatusReport

StrictOption = Annotated[
    bool,
    typer.Option("--strict", help="Exit with 1 where a checkout is not what the lock says."),
]

# state -> (what it does, what to type)
_NEXT = {
    "absent": ("make the missing checkouts", "patchkit apply {target}"),
    "unpatched": ("put the patches on", "patchkit apply {target}"),
    "edited": ("record edits in the patches", "patchkit refresh {target}"),
    "extra commits": ("record commits in the series", "patchkit refresh {target}"),
    "interrupted": ("finish what was interrupted", "patchkit apply {target}"),
}


@command(
    "manifest components workspace json quiet",
    examples={
        "patchkit status -m qwen3-vl-npu": "every component",
        "patchkit status -m qwen3-vl-npu --json": "for a script",
        "patchkit status --strict --quiet && ./train.sh": "only with what was recorded",
    },
    ok="shown, whatever the states are; with --strict: all are applied",
    finding="with --strict: a checkout is not what manifest and lock say",
    bad_input="the manifest or the lock cannot be read",
    result="patchkit.ops.status:StatusReport",
)
def status(
    session: Session,
    *,
    strict: StrictOption = False,
) -> ExitCode:
    """Show in which state each checkout is.

    unpatched: at its base, without patches. applied: at the stack that patchkit made, clean.
    edited: uncommitted changes. extra commits: commits of your own on the stack or in place of
    it. conflicted: a bump, rebase or merge waits for you. other branch: another branch, or not a
    checkout of patchkit's. interrupted: an apply was interrupted. absent: no checkout.

    Read-only; uses no network. With --strict every state but applied (and unpatched, of a
    component without patches) fails, and so does a difference from the lock.
    """
    from patchkit.ops.status import status_of

    report = status_of(session.manifest, session.components, session.workspace)
    code = report.gate if strict else report.exit_code
    return session.terminal.report("status", report, code, _render)


def _render(terminal: Terminal, report: StatusReport) -> None:
    head: tuple[Line, ...] = tuple(
        Painted(title, Paint.FAINT) for title in ("component", "state", "base", "patches", "detail")
    )
    terminal.table([head, *(_row(each) for each in report.components)])
    unread: dict[Problem, None] = {}  # said once of all components
    for each in report.components:
        if each.exit_code is not ExitCode.OK:
            unread |= dict.fromkeys(each.differences)
            continue
        for difference in each.differences:
            terminal.warn(difference)
    terminal.problems([*unread])
    for what, how in dict.fromkeys(_next_steps(report)):
        terminal.hint(f"{what}: {how}")


def _next_steps(report: StatusReport) -> Iterator[tuple[str, str]]:
    for each in report.components:
        if each.state.value == "unpatched" and not each.patches:
            continue  # a component without patches is where it should be
        if each.exit_code is not ExitCode.OK:
            continue  # what is wrong comes first
        if each.snapshot.operation or each.state.value == "other branch":
            from patchkit.ops.hints import ways_on

            target = f"-m {report.manifest} -c {each.name}"
            proposed = bool(each.proposed)
            yield from ways_on(each.snapshot, target, each.checkout, proposed=proposed)
        elif each.state.value in _NEXT:
            what, how = _NEXT[each.state.value]
            yield what, how.format(target=f"-m {report.manifest}")
        elif each.differences and not any(known.hint for known in each.differences):
            yield "bring it to what is there now", f"patchkit apply -m {report.manifest}"


def _row(each: ComponentStatus) -> tuple[Line, ...]:
    snapshot = each.snapshot
    return (
        Painted(each.name, Paint.STRONG),
        word(each.state),
        short_id(snapshot.base or "-"),
        "-" if each.patches is None else str(each.patches),
        ", ".join(_details(each)),
    )


def _details(each: ComponentStatus) -> list[str]:
    snapshot = each.snapshot
    found = [snapshot.detail] if snapshot.detail else []
    if snapshot.edited:
        count = len(snapshot.edited)
        found.append(counted(count, "edited file"))
    if snapshot.untracked:
        found.append(f"{len(snapshot.untracked)} untracked")
    if snapshot.saved:
        found.append(f"{len(snapshot.saved)} saved")
    if each.differences and each.exit_code is ExitCode.OK:
        found.append("differs from the lock")
    return found
