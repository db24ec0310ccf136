"""`patchkit check`."""

from __future__ import annotations

from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import JOBS, JobsOption, StrictOption, command
from patchkit.cli.explanations import print_findings, print_matrices
from patchkit.cli.format_options import Format, FormatOption, OutputOption, deliver, wanted
from patchkit.cli.project import in_ci
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Terminal
from patchkit.errors import ExitCode
from patchkit.model.outcome import Status
from patchkit.report.findings import check_outcomes, summary

if TYPE_CHECKING:
    from patchkit.ops.check_report import CheckReport, ComponentCheck

RunOption = Annotated[
    bool,
    typer.Option(
        "--run",
        help="Run the commands of `verify` steps, each in a scratch folder. They are what the "
        "manifest says: read them first.",
    ),
]


@command(
    "manifests components workspace store json quiet",
    examples={
        "patchkit check": "every manifest of manifests/",
        "patchkit check -m slime-npu-official -c slime": "one component",
        "patchkit check --strict": "also: headers, and the form that refresh writes",
    },
    ok="every patch applies",
    finding="a patch does not apply, or the lock says otherwise",
    bad_input="a manifest, series, lock or patch cannot be read",
    environment="an upstream could not be fetched",
    result="patchkit.ops.check_report:CheckReport",
)
def check(
    session: Session,
    *,
    strict: StrictOption = False,
    run: RunOption = False,
    jobs: JobsOption = JOBS,
    form: FormatOption = Format.TEXT,
    output: OutputOption = None,
) -> ExitCode:
    """Say which patches do not apply to their pins, and why.

    The verdict is the one that apply gives. A patch that does not apply is explained: what each
    hunk expected, what was found, where its lines are now, and what to type next. Patches that
    apply but were made for other versions of their files are reported.

    Edits of patch files and of the series that are not in the lock yet are a warning, and where CI
    is set an error; a changed pin, or a changed patch of another repository, is always an error.
    """
    from patchkit.ops.check import check_manifests

    asked = wanted(form, output, json=session.terminal.json)
    chosen, broken = session.open_manifests()
    with session.progress() as progress:
        report = check_manifests(
            chosen,
            session.store,
            progress,
            strict=strict,
            run=run,
            today=date.today(),
            jobs=jobs,
            broken=broken,
            locked=in_ci(),
            workspace=session.workspace,
        )
    paths = session.manifest_paths
    return deliver(session.terminal, "check", report, asked, print_check, paths=paths)


def print_check(terminal: Terminal, report: CheckReport, brief: bool = False) -> None:
    """The whole report; in `brief` its problems and a summary."""
    outcomes = list(check_outcomes(report))
    if not brief:
        for name, components in groupby(report.components, key=lambda each: each.manifest):
            terminal.product(Painted(name, Paint.STRONG))
            terminal.table(list(map(_row, components)), indent=2)
        print_findings(terminal, outcomes)
        waiting = [patch for patch in outcomes if patch.state == Status.WAITING.value]
        rows = [(word(patch.state), patch.name, patch.words) for patch in waiting]
        terminal.table(rows, indent=2)
        print_matrices(terminal, report.versions)
    terminal.problems(report.all_problems)
    for problem in report.retired:
        terminal.warn(problem)
    for finding in (finding for each in report.components for finding in each.findings):
        if finding.code.startswith("waiting"):
            terminal.warn(finding.problem)
    if not brief:
        terminal.product()
    good = report.exit_code is ExitCode.OK
    terminal.product([word("ok" if good else "failed"), f": {summary(outcomes)}"])


def _row(check: ComponentCheck) -> tuple[Line, Line, Line]:
    status, words = check.verdict
    return word(status), check.name, words
