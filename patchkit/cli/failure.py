"""What the user sees when a command ends in an exception, and the exit code that goes with it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import traceback
from datetime import datetime, timezone
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from patchkit import __version__
from patchkit.cli.catalog import split_command
from patchkit.cli.command import ParameterSpec, about, body_of, parameters_of
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
    if _is_usage_error(error):
        return _usage_error(error, argv)
    if isinstance(error, MemoryError):
        return SurroundingsError("out of memory", hint="run fewer jobs: --jobs 1")
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
    """What is wrong with a command line, in our words where the mistake is a common one."""
    found = split_command(argv)
    command = found[0] if found else ""
    message = " ".join(error.format_message().split())
    message = message[:1].lower() + message[1:].removesuffix(".")
    usage = f"see `patchkit {command} --help`"
    parameter = getattr(error, "param", None)
    kind = type(error).__name__
    if kind == "NoSuchOption":
        return _no_such_option(command, error.option_name, usage)
    if kind == "MissingParameter" and parameter is not None:
        return _missing(command, parameter.name, argv, usage)
    if kind == "BadOptionUsage" and message.endswith("requires an argument"):
        return _without_value(command, error.option_name, usage)
    if kind == "BadParameter" and parameter is not None:
        return _bad_value(command, parameter.name, str(error.message), usage)
    if extra := re.fullmatch(r"got unexpected extra arguments?(?:\(s\))? \((.*)\)", message):
        example = f"for example `{_example(command)}`; " if _example(command) else ""
        return UsageError(f"{command}: too many words: {extra[1]}", hint=f"{example}{usage}")
    return UsageError(message, hint=usage)


def _bad_value(command: str, keyword: str, message: str, usage: str) -> UsageError:
    said = next(each for each in _parameters(command) if each.keyword == keyword)
    what = said.declared.names[0] if said.declared.names else said.declared.settings["metavar"]
    if said.kind is int:
        given = message.partition(" is not")[0].strip("'")
        least = said.declared.settings.get("min", 0)
        return UsageError(f"{command}: {what} takes a number from {least}, not {given}", hint=usage)
    return UsageError(f"{command}: {what}: {message.removesuffix('.')}", hint=usage)


def _no_such_option(command: str, given: str, usage: str) -> UsageError:
    """Names the option that is meant: one that is spelt alike, or the long form of a letter."""
    known = [name for each in _parameters(command) for name in each.declared.names]
    bare = {name.strip("-").replace("-", ""): name for name in known if name.startswith("--")}
    close = get_close_matches(given.strip("-").replace("-", "").lower(), bare, n=2, cutoff=0.65)
    meant = [bare[each] for each in close]
    if len(given) == 2 and not close:
        meant = [name for name in known if name.startswith(f"-{given}")]
    hint = f"did you mean {' or '.join(meant)}?" if 0 < len(meant) < 3 else usage
    return UsageError(f"{command}: no such option: {given}", hint=hint)


def _missing(command: str, keyword: str, argv: list[str], usage: str) -> UsageError:
    """Says what the argument or option is, and shows a line that has it."""
    parameters = _parameters(command)
    said = next(each.declared for each in parameters if each.keyword == keyword)
    what = said.names[0] if said.names else str(said.settings["metavar"])
    explained = str(said.settings["help"]).partition(";")[0].removesuffix(".")
    hint = usage
    if example := _example(command):
        hint = f"for example `{example}`"
    if what == "PATCH":
        hint += "; `patchkit log` lists the patches"
    if "-m" in argv and any("--message" in each.declared.names for each in parameters):
        hint = f"-m names the manifest; the message goes with --message: `{example}`"
    return UsageError(f"{command}: {what} is missing: {_lowered(explained)}", hint=hint)


def _without_value(command: str, option: str, usage: str) -> UsageError:
    said = next((p.declared for p in _parameters(command) if option in p.declared.names), None)
    value = str(said.settings.get("metavar", "")) if said is not None else ""
    return UsageError(f"{command}: {option} needs a value", hint=f"{option} {value}; {usage}")


def _parameters(command: str) -> tuple[ParameterSpec, ...]:
    return parameters_of(body_of(command)) if command else ()


def _example(command: str) -> str:
    """A line of the command's own examples, without a manifest and a component of ours."""
    examples = about(body_of(command)).examples
    return re.sub(r" (-m|-c) \S+", "", examples[0][0]) if examples else ""


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
