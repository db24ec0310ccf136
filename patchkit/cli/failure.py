"""What the user sees when a command ends in an exception, and the exit code that goes with it."""

from __future__ import annotations

import os
import tempfile
import traceback
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import typer

from patchkit import __version__
from patchkit.cli.project import log_folder
from patchkit.cli.terminal import Terminal
from patchkit.errors import (
    FAILED_CHECKS,
    SHORTAGES,
    ExitCode,
    PatchkitError,
    SurroundingsError,
    expected,
)

#: The base of typer's usage errors: it carries its own copy of click, which has no public name.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]

_SHORTAGES = tuple(map(os.strerror, SHORTAGES))


def report_failure(error: BaseException, argv: list[str]) -> int:
    """Print the error (as JSON too, with --json); returns the exit code."""
    terminal = Terminal(json="--json" in argv)
    if isinstance(error, KeyboardInterrupt):
        terminal.problem("interrupted")
        return ExitCode.INTERRUPTED
    expected = _as_expected(error, argv)
    if expected is None:
        return _report_bug(terminal, error, argv)
    terminal.problems(expected.problems)
    if terminal.json:
        from patchkit.report.json import error_envelope

        terminal.document(error_envelope(expected))
    return expected.exit_code


def _as_expected(error: BaseException, argv: list[str]) -> PatchkitError | None:
    """The error as one of ours; None for a bug."""
    if isinstance(error, PatchkitError | OSError):
        return expected(error)
    if isinstance(error, _USAGE_ERROR):
        from patchkit.cli.usage import usage_error

        return usage_error(error, argv)
    if isinstance(error, MemoryError):
        return SurroundingsError("out of memory", hint="run fewer jobs: --jobs 1")
    # what is loaded late, a full table of open files keeps from being loaded
    if isinstance(error, ImportError) and any(said in str(error) for said in _SHORTAGES):
        return SurroundingsError(f"a part of patchkit cannot be loaded: {error}")
    return None


def _report_bug(terminal: Terminal, error: BaseException, argv: list[str]) -> int:
    log = _write_log("".join(traceback.format_exception(error)), argv)
    terminal.problem(f"this is a bug in patchkit: {type(error).__name__}: {error}")
    terminal.hint(f"the details are in {log}; please send them with a report")
    return ExitCode.BUG


def report_failed_checks(argv: list[str]) -> None:
    """Say that checks which only advise have failed; their files are flagged or in conflict."""
    log = _write_log("\n".join(FAILED_CHECKS), argv)
    FAILED_CHECKS.clear()
    terminal = Terminal(json="--json" in argv)
    terminal.warn("a check of a merge failed; its file is flagged or in conflict, all else went on")
    terminal.hint(f"the details are in {log}; please send them with a report")


def _write_log(text: str, argv: list[str]) -> Path:
    now = datetime.now(timezone.utc)
    text = "\n".join(
        [
            f"patchkit {__version__} at {now.isoformat(timespec='seconds')}",
            f"arguments: {argv!r}",
            "",
            text,
        ]
    )
    name = f"details-{now.strftime('%Y%m%dT%H%M%S%f')}.log"
    for folder in (log_folder(), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", errors="backslashreplace")
            return folder / name
        except OSError:
            continue
    return Path("(no folder to write it to)")
