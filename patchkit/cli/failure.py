"""What the user sees when a command ends in an exception, and the exit code that goes with it."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from patchkit import __version__
from patchkit.cli.catalog import split_command
from patchkit.cli.session import log_folder
from patchkit.cli.terminal import Terminal
from patchkit.errors import ExitCode, PatchkitError, SurroundingsError, UsageError

_SHORTAGES = tuple(map(os.strerror, (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)))


def report_failure(error: BaseException, argv: list[str]) -> int:
    """Print the error (as JSON too, with --json); returns the exit code."""
    terminal = Terminal(json="--json" in argv)
    if isinstance(error, KeyboardInterrupt):
        terminal.problem("interrupted")
        return ExitCode.INTERRUPTED
    expected = _as_expected(error, argv)
    if expected is None:
        return _report_bug(terminal, error, argv)
    terminal.error(expected)
    if terminal.json:
        from patchkit.report.json import error_envelope

        terminal.document(error_envelope(expected))
    return expected.exit_code


def _as_expected(error: BaseException, argv: list[str]) -> PatchkitError | None:
    """The error as one of ours; None for a bug."""
    if isinstance(error, PatchkitError):
        return error
    if _is_usage_error(error):
        return _usage_error(error, argv)
    if isinstance(error, OSError):
        place = error.filename or "the system"
        return SurroundingsError(f"{place}: {error.strerror or error}")
    if isinstance(error, MemoryError):
        return SurroundingsError("there is no memory left", hint="do less at once: --jobs 1")
    # what is loaded late, a full table of open files keeps from being loaded
    if isinstance(error, ImportError) and any(said in str(error) for said in _SHORTAGES):
        return SurroundingsError(f"a part of patchkit cannot be loaded: {error}")
    return None


def _is_usage_error(error: BaseException) -> bool:
    """Whether typer says so of a command line; it is loaded if it was asked."""
    if "typer" not in sys.modules:
        return False
    import typer

    # the base of its usage errors: typer carries its own copy of click, which has no public name
    base: Any = typer.BadParameter.__mro__[2]
    return isinstance(error, base)


def _usage_error(error: Any, argv: list[str]) -> UsageError:
    command = split_command(argv)
    message = " ".join(error.format_message().split())
    message = message[:1].lower() + message[1:].removesuffix(".")
    return UsageError(message, hint=f"see `patchkit {command[0] if command else ''} --help`")


def _report_bug(terminal: Terminal, error: BaseException, argv: list[str]) -> int:
    log = _write_log(error, argv)
    terminal.problem(f"this is a bug in patchkit: {type(error).__name__}: {error}")
    terminal.hint(f"the details are in {log}; please send them with a report")
    return ExitCode.BUG


def _write_log(error: BaseException, argv: list[str]) -> Path:
    now = datetime.now(timezone.utc)
    text = "\n".join(
        [
            f"patchkit {__version__} at {now.isoformat(timespec='seconds')}",
            f"arguments: {argv!r}",
            "",
            *traceback.format_exception(error),
        ]
    )
    name = f"crash-{now.strftime('%Y%m%dT%H%M%S%f')}.log"
    for folder in (log_folder(), Path(tempfile.gettempdir())):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8", errors="backslashreplace")
            return folder / name
        except OSError:
            continue
    return Path("(no folder to write it to)")
