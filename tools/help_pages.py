"""Help pages as text of 80 columns, for man pages, and what the reference says of commands."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct

from patchkit.cli.application import groups
from patchkit.cli.catalog import all_commands
from patchkit.cli.command import About, about, body_of, load_command, summary
from patchkit.cli.command import paragraphs as paragraphs_of
from patchkit.errors import ExitCode


class CommandParameter(Struct, frozen=True):
    """One option or argument.

    `keyword` is the function's; `names` are the option's, short ones first, empty for an argument.
    `metavar` is "" for a flag; `variable` stands for the option, "" for none.
    """

    keyword: str
    names: tuple[str, ...]
    metavar: str
    help: str
    default: object
    choices: tuple[str, ...]
    variable: str
    required: bool
    repeatable: bool

    @property
    def label(self) -> str:
        """As it stands at the left of the page."""
        if not self.names:
            return f"{self.metavar}{'...' if self.repeatable else ''}"
        indent = "" if not self.names[0].startswith("--") else "    "
        return f"{indent}{', '.join(self.names)} {self.metavar}".rstrip()

    @property
    def description(self) -> str:
        """The help text with what else there is to know."""
        notes = [f"one of {', '.join(self.choices)}"] if self.choices else []
        notes += ["required"] if self.required and self.names else []
        notes += [f"default: {self._shown_default}"] if self._shown_default else []
        notes += [f"or ${self.variable}"] if self.variable else []
        return self.help + (f" [{'; '.join(notes)}]" if notes else "")

    @property
    def _shown_default(self) -> str:
        if self.default in (None, False, ()):
            return ""
        if isinstance(self.default, Enum):
            return str(self.default.value)
        return self.default.as_posix() if isinstance(self.default, Path) else str(self.default)


def parameters(name: str) -> list[CommandParameter]:
    """The options and arguments of a command, in the order declared."""
    return [_parameter(each) for each in load_command(name).params if each.name != "help"]


def _parameter(declared: Any) -> CommandParameter:
    choices = tuple(map(str, getattr(declared.type, "choices", ())))
    is_option = declared.param_type_name == "option"
    word = (
        "" if getattr(declared, "is_flag", False) else "WORD" if choices else declared.name.upper()
    )
    return CommandParameter(
        keyword=declared.name,
        names=tuple(sorted(declared.opts, key=len)) if is_option else (),
        metavar="" if getattr(declared, "is_flag", False) else declared.metavar or word,
        help=declared.help or "",
        default=declared.default,
        choices=choices,
        variable=str(declared.envvar or ""),
        required=declared.required,
        repeatable=declared.multiple if is_option else declared.nargs == -1,
    )


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


def all_pages() -> dict[str, str]:
    """Command -> its page; "" is patchkit itself."""
    return {"": overview(), **{name: command_page(name) for name in all_commands()}}


def overview() -> str:
    """The page of patchkit itself."""
    lines = [
        "Usage: patchkit COMMAND [OPTIONS]",
        "",
        "Patch stacks on pinned upstreams: apply them, check them, see them drift.",
    ]
    for title, commands in groups().items():
        rows = [(name, summary(name)) for name in commands]
        lines += ["", f"{title}:", *_two_columns(rows, 20)]
    rows = [("COMMAND --help", "how a command works, with examples"), ("--version", "the version")]
    lines += ["", "Options:", *_two_columns(rows, 20)]
    return "\n".join(lines) + "\n"


def command_page(name: str) -> str:
    """The page of one command."""
    told = about(name)
    parts = [_usage(name), _description(name)]
    options = [each for each in parameters(name) if each.names]
    arguments = [each for each in parameters(name) if not each.names]
    for title, group in (("Arguments", arguments), ("Options", options)):
        if group:
            rows = [(each.label, each.description) for each in group]
            parts.append("\n".join([f"{title}:", *_two_columns(rows, 26)]))
    parts += [_examples(told), _exits(told)]
    return "\n\n".join(parts) + "\n"


def paragraphs(name: str) -> list[str]:
    """The paragraphs of a command's description; indented ones are kept, others are one line."""
    return paragraphs_of(body_of(name))


def _usage(name: str) -> str:
    declared = parameters(name)
    words = [f"Usage: patchkit {name}"]
    words += ["[OPTIONS]"] if any(each.names for each in declared) else []
    for each in declared:
        if not each.names:
            words.append(each.label if each.required else f"[{each.label}]")
    return " ".join(words)


def _description(name: str) -> str:
    return "\n\n".join(
        part if part.startswith(" ") else "\n".join(_fill(part, 0)) for part in paragraphs(name)
    )


def _examples(told: About) -> str:
    lines = ["Examples:"]
    for line, meaning in told.examples.items():
        lines += [f"  {line}", *_fill(meaning, 6)]
    return "\n".join(lines)


def _exits(told: About) -> str:
    rows = [(str(code), meaning) for code, meaning in told.all_exits()]
    return "\n".join(["Exit codes:", *_two_columns(rows, 5)])


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
