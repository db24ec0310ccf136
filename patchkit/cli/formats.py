"""The forms in which a report can be written, for people and for CI systems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from patchkit.atomic import replace_file
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode, SurroundingsError

_Result = TypeVar("_Result")


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
        "(annotations), markdown (comments, job summaries), html (one page).",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the report to this file, and to the terminal what it says in short.",
    ),
]

#: How a result is written in each form that is not for the terminal.
Writers = Mapping[Format, Callable[[_Result], str]]


def deliver(
    terminal: Terminal,
    result: _Result,
    code: ExitCode,
    *,
    form: Format,
    output: Path | None,
    writers: Callable[[], Writers[_Result]],
    show: Callable[[Terminal, _Result], None],
) -> ExitCode:
    """Write a result in the form asked for, to stdout or to a file; hands `code` back."""
    if form is Format.TEXT and output is None:
        if not (terminal.quiet and code is ExitCode.OK):
            show(terminal, result)
        return code
    if form is Format.TEXT:
        hint = "add --format html, junit, sarif, markdown or json"
        raise SurroundingsError("text goes to the terminal", hint=hint)
    text = writers()[form](result)
    if output is None:
        terminal.document(text)
        return code
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SurroundingsError(f"{output}: {error.strerror}") from error
    replace_file(output, (text.removesuffix("\n") + "\n").encode(), named=True)
    terminal.say(f"{output} written")
    if not (terminal.quiet and code is ExitCode.OK):
        show(terminal, result)
    return code
