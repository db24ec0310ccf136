"""What is wrong with a command line that typer refuses, in our words where the mistake is a common
one, with a line that would do.
"""

from __future__ import annotations

import re
from typing import Any

from patchkit.cli.catalog import split_command
from patchkit.cli.command import load_command
from patchkit.errors import UsageError


def usage_error(error: Any, argv: list[str]) -> UsageError:
    """The error of ours for one of typer's; `argv` is the command line."""
    words = argv[2:] if argv[:1] == ["-C"] else argv
    message = " ".join(error.format_message().split())
    message = _lowered(message).removesuffix(".")
    if (found := split_command(words)) is None:
        return _outside_commands(words, message)
    command, parameters = found[0], load_command(found[0]).params
    usage = f"see `patchkit {command} --help`"
    kind, parameter = type(error).__name__, getattr(error, "param", None)
    if kind == "NoSuchOption":
        what = f"{command}: no such option: {error.option_name}"
        meant = " or ".join(error.possibilities or ())
        return UsageError(what, hint=f"did you mean {meant}?" if meant else usage)
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
    return re.sub(r" (-m|-c) \S+", "", next(iter(load_command(command).about.examples)))


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]
