"""What the user sees when a command ends in an exception, and the exit code that goes with it."""

from __future__ import annotations

import os
import re
import tempfile
import traceback
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from patchkit import __version__
from patchkit.cli.catalog import split_command
from patchkit.cli.command import load_command
from patchkit.cli.session import log_folder
from patchkit.cli.terminal import Terminal
from patchkit.errors import (
    FAILED_CHECKS,
    SHORTAGES,
    ExitCode,
    PatchkitError,
    SurroundingsError,
    UsageError,
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
    terminal.error(expected)
    if terminal.json:
        from patchkit.report.json import error_envelope

        terminal.document(error_envelope(expected))
    return expected.exit_code


def _as_expected(error: BaseException, argv: list[str]) -> PatchkitError | None:
    """The error as one of ours; None for a bug."""
    if isinstance(error, PatchkitError | OSError):
        return expected(error)
    if isinstance(error, _USAGE_ERROR):
        return _usage_error(error, argv)
    if isinstance(error, MemoryError):
        return SurroundingsError("out of memory", hint="run fewer jobs: --jobs 1")
    # what is loaded late, a full table of open files keeps from being loaded
    if isinstance(error, ImportError) and any(said in str(error) for said in _SHORTAGES):
        return SurroundingsError(f"a part of patchkit cannot be loaded: {error}")
    return None


def _usage_error(error: Any, argv: list[str]) -> UsageError:
    """What is wrong with a command line, in our words where the mistake is a common one."""
    words = argv[2:] if argv[:1] == ["-C"] else argv
    message = " ".join(error.format_message().split())
    message = message[:1].lower() + message[1:].removesuffix(".")
    if (found := split_command(words)) is None:
        return _outside_commands(words, message)
    command, parameters = found[0], load_command(found[0]).params
    usage = f"see `patchkit {command} --help`"
    kind, parameter = type(error).__name__, getattr(error, "param", None)
    if kind == "NoSuchOption":
        return _no_such_option(command, parameters, error.option_name, usage)
    if kind == "MissingParameter" and parameter is not None:
        return _missing(command, parameter)
    if kind == "BadParameter" and parameter is not None:
        return UsageError(f"{command}: {_bad_value(parameter, error.message)}", hint=usage)
    if kind == "BadOptionUsage" and message.endswith("requires an argument"):
        value = next(each.metavar for each in parameters if error.option_name in each.opts)
        message, usage = (
            f"{error.option_name} needs a value",
            f"{error.option_name} {value}; {usage}",
        )
    if extra := re.fullmatch(r"got unexpected extra arguments?(?:\(s\))? \((.*)\)", message):
        message, usage = (
            f"too many words: {extra[1]}",
            f"for example `{_example(command)}`; {usage}",
        )
    return UsageError(f"{command}: {message}", hint=usage)


def _outside_commands(words: list[str], message: str) -> UsageError:
    """A line that does not come to a command, such as one with an option before it."""
    at = next((n for n in range(1, len(words)) if split_command(words[n:])), 0)
    if not at:
        return UsageError(message, hint="see `patchkit --help`")
    hint = f"options come after it: patchkit {' '.join([*words[at:], *words[:at]])}"
    return UsageError(f"{words[0]} comes before a command", hint=hint)


def _bad_value(parameter: Any, message: str) -> str:
    what = _named(parameter)
    if parameter.type.name.startswith("int"):
        given = message.partition(" is not")[0].strip("'")
        return f"{what} takes a number from {getattr(parameter.type, 'min', 0)}, not {given}"
    return f"{what}: {message.removesuffix('.')}"


def _named(parameter: Any) -> str:
    is_option = parameter.opts[0].startswith("-")
    return str(parameter.opts[0] if is_option else parameter.metavar)


def _no_such_option(command: str, parameters: Any, given: str, usage: str) -> UsageError:
    """Names the option that is meant: one that is spelt alike, or the long form of a letter."""
    known = [name for each in parameters for name in each.opts]
    bare = {name.strip("-").replace("-", ""): name for name in known if name.startswith("--")}
    close = get_close_matches(given.strip("-").replace("-", "").lower(), bare, n=2, cutoff=0.65)
    meant = [bare[each] for each in close]
    if len(given) == 2 and not close:
        meant = [name for name in known if name.startswith(f"-{given}")]
    hint = f"did you mean {' or '.join(meant)}?" if 0 < len(meant) < 3 else usage
    return UsageError(f"{command}: no such option: {given}", hint=hint)


def _missing(command: str, parameter: Any) -> UsageError:
    """Says what the argument or option is, and shows a line that has it."""
    what = _named(parameter)
    explained = parameter.help.partition(";")[0].removesuffix(".")
    hint = f"for example `{_example(command)}`"
    if what == "PATCH":
        hint += "; `patchkit log` lists the patches"
    return UsageError(f"{command}: {what} is missing: {_lowered(explained)}", hint=hint)


def _example(command: str) -> str:
    """A line of the command's own examples, without a manifest and a component of ours."""
    return re.sub(r" (-m|-c) \S+", "", load_command(command).about.examples[0][0])


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


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
