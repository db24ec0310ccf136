"""Help pages as text of 80 columns, made from what the command functions declare."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.models import ArgumentInfo, OptionInfo

from patchkit.cli.catalog import GROUPS
from patchkit.cli.command import About, Body, about, is_written, load_command
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


@dataclass(frozen=True, slots=True)
class Parameter:
    """One option or argument as the user sees it.

    `names` are the option's, short ones first, empty for an argument. `metavar` is "" for a flag.
    `default` is "" where there is none to show.
    """

    names: tuple[str, ...]
    metavar: str
    help: str
    default: str
    required: bool
    repeatable: bool
    choices: tuple[str, ...]
    variable: str

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
        notes += [f"default: {self.default}"] if self.default else []
        notes += [f"or ${self.variable}"] if self.variable else []
        return self.help + (f" [{'; '.join(notes)}]" if notes else "")


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


def parameters(body: Body) -> list[Parameter]:
    """The options and arguments of a command, in the order declared."""
    hints = get_type_hints(body, include_extras=True)
    return [
        _parameter(name, hints[name], each.default)
        for name, each in inspect.signature(body).parameters.items()
    ]


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


def _parameter(name: str, hint: object, default: object) -> Parameter:
    assert get_origin(hint) is Annotated, f"{name}: declare it as Annotated[..., typer.Option(...)]"
    kind, info = get_args(hint)[:2]
    assert isinstance(info, OptionInfo | ArgumentInfo)
    flag = kind is bool
    is_option = isinstance(info, OptionInfo)
    names = sorted(_declared_names(info), key=len) if is_option else []
    choices = _choices(kind)
    return Parameter(
        names=tuple(names),
        metavar="" if flag else info.metavar or _metavar(name, choices),
        help=info.help or "",
        default=_default(default),
        required=default is inspect.Parameter.empty,
        repeatable=_is_list(kind),
        choices=choices,
        variable=str(info.envvar or ""),
    )


def _declared_names(info: OptionInfo | ArgumentInfo) -> list[str]:
    # within Annotated the first name lands where a default would stand
    names = (info.default, *(info.param_decls or ()))
    return [each for each in names if isinstance(each, str)]


def _metavar(name: str, choices: tuple[str, ...]) -> str:
    return "WORD" if choices else name.upper()


def _default(default: object) -> str:
    if default in (inspect.Parameter.empty, None, False, ()):
        return ""
    if isinstance(default, Enum):
        return str(default.value)
    return default.as_posix() if isinstance(default, Path) else str(default)


def _choices(kind: Any) -> tuple[str, ...]:
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and issubclass(each, Enum):
            return tuple(str(member.value) for member in each)
    return ()


def _is_list(kind: Any) -> bool:
    return any(get_origin(each) is list for each in (kind, *get_args(kind)))


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
