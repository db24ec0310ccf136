"""`patchkit check --only tests`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.project import near
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Paint, Painted, Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from patchkit.ops.upstream_tests import TestedComponent, TestReport


@command(
    "manifest components workspace store json quiet",
    examples={
        "patchkit check --only tests --accept": "at the pin: which of upstream's tests pass?",
        "patchkit check --only tests": "after a bump: what broke of what passed?",
        "patchkit check --only tests slime -o slime.xml": "and keep what the command wrote",
    },
    ok="every test passes that passed when it was learnt, or none are declared",
    finding="a test broke, or fails and nothing was learnt",
    bad_input="the manifest, a series, a patch or the record cannot be read",
    environment="a command writes no JUnit file, is killed, or fails though its file "
    "has no failed test; or a fetch failed",
    result="patchkit.ops.upstream_tests:TestReport",
)
def test(
    session: Session,
    *,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Record what passes now, with the patches and without."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.xml",
            help="Keep the JUnit files of the patched runs, as one.",
        ),
    ] = None,
) -> ExitCode:
    """Run upstream's own tests on the patched components.

    The manifest says how, under `upstream_tests`; no other command runs them. They run in the
    environment that you are in, in checkouts of patchkit's own. With --accept it is recorded
    beside the manifest which pass with the patches and without. Later runs say, test by test, what
    broke of what passed, and whether it fails without the patches, too.
    """
    from patchkit.ops.upstream_tests import TestTools, run_upstream_tests

    with session.progress() as progress:
        tools = TestTools(
            session.store,
            session.workspace,
            int(time.time()),
            session.terminal.error_descriptor,
            progress,
        )
        report = run_upstream_tests(
            session.manifest, session.components, tools, learn=accept, junit=output
        )
    return session.report("check --only tests", report, render_tests)


def render_tests(terminal: Terminal, report: TestReport) -> None:
    """What the tests came to."""
    if not report.components:
        terminal.say("no component has tests of upstream's")
        terminal.hint("a component says so under `upstream_tests:` (docs/manifest.md)")
    for each in report.components:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in each.counts.items())
        none = "no result" if each.problems else "no tests"
        name = Painted(each.name, Paint.STRONG)
        terminal.product([word(each.result), "  ", name, f"  {counts or none}"])
        terminal.table(list(_rows(each)), indent=2)
        terminal.problems(each.problems)
    if any(each.result.value == "learnt" for each in report.components):
        terminal.say(f"wrote {near(report.record)}")
    if any(each.result.value == "not learnt" for each in report.components):
        terminal.hint("patchkit check --only tests --accept  records what passes now")


def _rows(each: TestedComponent) -> list[tuple[Painted, str, str]]:
    rows = []
    for test in each.broken:
        why = "fails because of the patches"
        if test in each.broken_by_upstream:
            why = "fails without the patches, too"
        if test in each.missing:
            why = "is not run any more"
        rows.append((word("broken"), test, why))
    rows += [(word("mended"), test, "did not pass when learnt") for test in each.mended]
    rows += [(word("failed"), test, "passes without the patches") for test in each.only_patched]
    return rows
