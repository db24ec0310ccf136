"""The forms in which a report can be written, for people and for CI systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from patchkit.cli.session import Result, moment
from patchkit.cli.terminal import Terminal
from patchkit.disk.files import replace_file
from patchkit.errors import ExitCode, SurroundingsError, UsageError

if TYPE_CHECKING:
    from patchkit.report.findings import Outcome


class Format(str, Enum):
    """A form of a report."""

    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    SARIF = "sarif"
    GITHUB = "github"
    MARKDOWN = "markdown"
    HTML = "html"


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        metavar="FORM",
        help="What to write: text, json, junit (test results), sarif (code scanning), github "
        "(annotations), markdown (comments, job summaries), html (one page). Without it as FILE "
        "ends: .json, .xml, .sarif, .md, .html.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the report to this file, and to the terminal only problems and a summary.",
    ),
]

#: The form of a file where --format names none, by its ending.
_ENDINGS = {
    ".json": Format.JSON,
    ".xml": Format.JUNIT,
    ".sarif": Format.SARIF,
    ".md": Format.MARKDOWN,
    ".html": Format.HTML,
}


class ReportRequest(Struct, frozen=True):
    """The form that a report is asked for in, and the file that it goes to, if any."""

    form: Format
    output: Path | None  # None: standard output


def wanted(form: Format, output: Path | None, *, json: bool) -> ReportRequest:
    """What the options ask for; UsageError, before any work is done, if they do not go together."""
    form = Format.JSON if json else form
    if form is Format.TEXT and output is not None:
        form = _ENDINGS.get(output.suffix, form)
    if form is Format.TEXT and output is not None:
        hint = "add --format html, junit, sarif, markdown or json"
        raise UsageError("--output: text goes to the terminal", hint=hint)
    return ReportRequest(form, output)


def deliver(
    terminal: Terminal,
    command: str,
    result: Result,
    wanted: ReportRequest,
    show: Callable[[Terminal, Result, bool], None],
    *,
    paths: Sequence[Path],
) -> ExitCode:
    """Write a result in the form asked for, to stdout or to a file; hands its exit code back.

    `show` prints it for people: in short, problems and a summary, if it went to a file. `paths` are
    the manifests that were asked for.
    """
    if wanted.form is not Format.TEXT:
        text = _report_text(wanted.form, command, result, paths)
        if wanted.output is None:
            terminal.document(text)
            return result.exit_code
        write_text(wanted.output, text)
        terminal.say(f"wrote {wanted.output}")
    if not (terminal.quiet and result.exit_code is ExitCode.OK):
        show(terminal, result, wanted.output is not None)
    return result.exit_code


def _report_text(form: Format, command: str, report: Any, paths: Sequence[Path]) -> str:
    from patchkit.report.ci_formats import (
        annotation_lines,
        cases_of,
        junit_document,
        sarif_document,
    )
    from patchkit.report.findings import check_outcomes, ci_outcomes, drift_outcomes, explained
    from patchkit.report.json import envelope
    from patchkit.report.markdown import outcomes_markdown

    outcomes_of: dict[str, Callable[[Any], Iterable[Outcome]]] = {
        "check": check_outcomes,
        "drift": drift_outcomes,
    }
    outcomes = list(outcomes_of.get(command, ci_outcomes)(report))
    name = f"patchkit {command}"
    match form:
        case Format.JSON:
            return envelope(command, report, report.exit_code)
        case Format.JUNIT:
            return junit_document(cases_of(outcomes), name)
        case Format.SARIF:
            return sarif_document(explained(outcomes), _named(paths))
        case Format.GITHUB:
            return "\n".join(annotation_lines(explained(outcomes), _named(paths)))
        case Format.MARKDOWN:
            return outcomes_markdown(
                command, report.exit_code, outcomes, getattr(report, "versions", ())
            )
    # other forms need not wait for its templates to load
    from patchkit.report.html_page import report_page

    return report_page(name, report, outcomes, written_now())


def written_now() -> str:
    """When a page is written, for its foot."""
    return f"{moment():%Y-%m-%d %H:%M} UTC"


def _named(paths: Sequence[Path]) -> dict[str, str]:
    """Manifest name -> its path as a CI system knows it; none for one outside of this folder."""
    inside = [path for path in paths if not path.is_absolute() and ".." not in path.parts]
    return {path.stem: path.as_posix() for path in inside}


def write_text(path: Path, text: str) -> None:
    """Put a report into a file, whole or not at all; makes its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SurroundingsError(f"{path}: {error.strerror}") from error
    replace_file(path, (text.removesuffix("\n") + "\n").encode(), named=True)
