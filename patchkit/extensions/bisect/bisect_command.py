"""`patchkit bisect`."""

from __future__ import annotations

import time
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.project import near
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Terminal
from patchkit.errors import ExitCode, UsageError
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.extensions.bisect.bisection import BisectReport


@command(
    "manifest component workspace store json quiet",
    examples={
        "patchkit bisect slime --to latest --run ./try.sh": "which commit after the pin?",
        "patchkit bisect slime --to v0.3.0 --run ./try.sh": "up to that tag",
    },
    ok="the command passes at the newest commit",
    finding="it fails: because of the commit that is named, or at the pin, too",
    bad_input="the manifest, a series or a patch cannot be read, or one does not apply",
    environment="the command gives no verdict, a fetch failed, the disk is full",
    result="patchkit.extensions.bisect.bisection:BisectReport",
    group="Move with upstream",
)
def bisect(
    session: Session,
    *,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="CMD",
            help="A shell command, run in a checkout: 0 is good, 125 skips the state, any other "
            "code up to 124 is bad.",
        ),
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="REF",
            help="Search upstream's commits after the pin up to this one. As for bump.",
        ),
    ] = "",
) -> ExitCode:
    """Find the upstream commit that breaks a command.

    Tests the newest commit, then the pin, then bisects. The stack is carried to each commit that is
    tried, as a bump would; a commit that it does not carry to is skipped. It works in a checkout of
    its own, in the workspace's .patchkit folder; your checkouts are not touched. After ^C the next
    run continues. Which patch breaks a command git says, in a checkout, where each is a commit.
    """
    from patchkit.extensions.bisect.bisection import bisect_stack

    if not run or not run.strip():
        raise UsageError(
            "bisect: --run CMD is missing",
            hint="for example `patchkit bisect --to latest --run 'python -m pytest -q tests/x.py'`",
        )
    if not to:
        patches = f"git bisect start HEAD refs/patchkit/base && git bisect run sh -c {quote(run)}"
        raise UsageError(
            "bisect: --to REF is missing, up to which upstream is searched",
            hint=f"which patch breaks it, git says in the checkout: {patches}",
        )
    with session.progress() as progress:
        report = bisect_stack(
            session.manifest,
            session.component,
            run,
            upstream=to,
            store=session.store,
            workspace=session.workspace,
            when=int(time.time()),
            shown_on=session.terminal.error_descriptor,
            progress=progress,
        )
    return session.report("bisect", report, _render)


def _render(terminal: Terminal, report: BisectReport) -> None:
    rows: list[tuple[Line, ...]] = []
    for each in report.judged:
        why = "by an earlier run" if each.known else each.why
        rows.append((word(each.verdict), each.name, *([why] if why else [])))
    terminal.table(rows)
    terminal.product()
    terminal.product([word(report.answer, _words(report)), *_named(report)])
    if report.answer == "unknown":
        how = f"`patchkit plan -m {report.manifest} -c {report.component}` says how far the stack"
        terminal.hint(f"{how} carries; search up to there with --to")
    runs = counted(sum(not each.known for each in report.judged), "run")
    terminal.say(f"{runs} for {counted(report.states, 'state')}; checkout: {near(report.checkout)}")


def _words(report: BisectReport) -> str:
    return {
        "found": f"{report.component}: broken by ",
        "among": f"{report.component}: broken by one of ",
        "always": f"{report.component}: fails at the pin, too",
        "never": f"{report.component}: passes at the newest commit",
        "unknown": f"{report.component}: the newest commit cannot be judged",
    }[report.answer.value]


def _named(report: BisectReport) -> list[str | Painted]:
    title = f": {report.title}" if report.title else ""
    return [Painted(", ".join(report.first_bad), Paint.STRONG), title]
