"""Help pages as text of 80 columns, made from what the command functions declare."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable

from patchkit.cli.catalog import GROUPS
from patchkit.cli.command import About, Body, about, is_written, load_command
from patchkit.cli.parameters import parameters
from patchkit.errors import ExitCode

_WIDTH = 80

#: What the codes mean wherever a command does not say more.
SHARED_EXITS = {
    ExitCode.OK: "done, nothing found",
    ExitCode.FINDING: "a finding: a patch does not apply, drift, local work in the way",
    ExitCode.USAGE: "the command line is wrong",
    ExitCode.HALTED: "stopped on a conflict; the next step is printed",
    ExitCode.BAD_INPUT: "bad input: manifest, series, patch file",
    ExitCode.ENVIRONMENT: "git or surroundings: missing, too old, fetch failed, locked",
    ExitCode.BUG: "a bug; the path of a log with the details is printed",
    ExitCode.INTERRUPTED: "interrupted",
}


def overview() -> str:
    """The page of patchkit itself."""
    lines = [
        "Usage: patchkit COMMAND [OPTIONS]",
        "",
        "Patch stacks on pinned upstreams: apply them, check them, see them drift.",
    ]
    for title, commands in GROUPS.items():
        rows = [(name, summary(load_command(name))) for name in commands if is_written(name)]
        lines += ["", f"{title}:", *_two_columns(rows, 20)]
    rows = [("COMMAND --help", "how a command works, with examples"), ("--version", "the version")]
    lines += ["", "Options:", *_two_columns(rows, 20)]
    return "\n".join(lines) + "\n"


def command_page(name: str) -> str:
    """The page of one command."""
    body = load_command(name)
    told = about(body)
    parts = [_usage(name, body), _description(body)]
    options = [each for each in parameters(body) if each.names]
    arguments = [each for each in parameters(body) if not each.names]
    for title, group in (("Arguments", arguments), ("Options", options)):
        if group:
            rows = [(each.label, each.description) for each in group]
            parts.append("\n".join([f"{title}:", *_two_columns(rows, 26)]))
    parts += [_examples(told), _exits(told)]
    return "\n\n".join(parts) + "\n"


def summary(body: Body) -> str:
    """The first line of a command's docstring, without the full stop."""
    return paragraphs(body)[0].removesuffix(".")


def paragraphs(body: Body) -> list[str]:
    """The docstring's paragraphs; indented ones are kept as they are, others are one line."""
    text = inspect.getdoc(body) or ""
    return [part if part.startswith(" ") else " ".join(part.split()) for part in text.split("\n\n")]


def exits(told: About) -> list[tuple[int, str]]:
    """(code, meaning) of every code that the command names, and of usage errors."""
    codes = {ExitCode.USAGE: SHARED_EXITS[ExitCode.USAGE]} | dict(told.exits)
    return sorted((int(code), meaning) for code, meaning in codes.items())


def _usage(name: str, body: Body) -> str:
    declared = parameters(body)
    words = [f"Usage: patchkit {name}"]
    words += ["[OPTIONS]"] if any(each.names for each in declared) else []
    for each in declared:
        if not each.names:
            words.append(each.label if each.required else f"[{each.label}]")
    return " ".join(words)


def _description(body: Body) -> str:
    return "\n\n".join(
        part if part.startswith(" ") else textwrap.fill(part, _WIDTH) for part in paragraphs(body)
    )


def _examples(told: About) -> str:
    lines = ["Examples:"]
    for line, meaning in told.examples:
        lines += [f"  {line}", *_fill(meaning, 6)]
    return "\n".join(lines)


def _exits(told: About) -> str:
    return "\n".join(["Exit codes:", *_two_columns([(str(c), m) for c, m in exits(told)], 5)])


def _two_columns(rows: Iterable[tuple[str, str]], left: int) -> list[str]:
    lines = []
    for label, text in rows:
        wrapped = _fill(text, left) or [""]
        if len(label) + 4 > left:
            lines += [f"  {label}", *wrapped]
        else:
            lines += [f"  {label}".ljust(left) + wrapped[0].lstrip(), *wrapped[1:]]
    return lines


def _fill(text: str, indent: int) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
