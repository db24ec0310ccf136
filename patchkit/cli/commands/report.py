"""`patchkit report merge`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.format_options import Format, FormatOption, OutputOption, Writers, deliver, wanted
from patchkit.cli.options import JsonOption, QuietOption
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode

if TYPE_CHECKING:
    from patchkit.ops.ci import CiReport

FilesArgument = Annotated[
    list[Path],
    typer.Argument(metavar="FILE", help="Results: what ci, check or drift wrote as JSON."),
]
ExpectOption = Annotated[
    Path | None,
    typer.Option(
        "--expect",
        metavar="FILE",
        help="What `patchkit matrix --json` printed: a component without a result is an error.",
    ),
]


@command(
    examples=[
        ("patchkit report merge results/*.json", "one report, one exit code"),
        ("patchkit report merge --expect jobs.json results/*.json", "and no job may be missing"),
        ("patchkit report merge results/*.json --format html -o report.html", "as a page"),
    ],
    exits={
        ExitCode.OK: "every result is good",
        ExitCode.FINDING: "one of them has a finding",
        ExitCode.BAD_INPUT: "a file is no result of patchkit, or a result is an error of this kind",
        ExitCode.ENVIRONMENT: "a result is missing, or is an error of this kind",
    },
    result="patchkit.ops.ci:CiReport",
)
def merge(
    *,
    files: FilesArgument,
    expect: ExpectOption = None,
    form: FormatOption = Format.TEXT,
    output: OutputOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> ExitCode:
    """Join the results of several jobs into one report.

    The jobs are those of `patchkit matrix`, and write `patchkit ci --format json --output FILE`.
    The report is what one `patchkit ci` over all would have written, in any of its forms, with its
    exit code.
    """
    from patchkit.cli.read_results import read_expected, read_shares
    from patchkit.ops.ci import merge_reports

    terminal = Terminal(quiet=quiet, json=json)
    asked = wanted(form, output, json=json)
    expected = read_expected(expect) if expect is not None else ()
    report = merge_reports(read_shares(files), expected)
    return deliver(terminal, report, asked, _writers, _render)


def _writers() -> Writers[CiReport]:
    from patchkit.cli.report_forms import ci_writers
    from patchkit.manifest.find import FOLDER, manifests_in
    from patchkit.report.json import envelope

    folder = Path(FOLDER)
    paths: Sequence[Path] = manifests_in(folder) if folder.is_dir() else ()
    return {
        **ci_writers(paths),
        Format.JSON: lambda report: envelope("report merge", report, report.exit_code),
    }


def _render(terminal: Terminal, report: CiReport) -> None:
    from patchkit.cli.commands.ci import print_ci

    print_ci(terminal, report)
