"""Help pages as text of 80 columns, made from what the command functions declare."""

from __future__ import annotations

import inspect
import textwrap
import types
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from typer.models import ArgumentInfo, OptionInfo

from patchkit.cli.catalog import GROUPS
from patchkit.cli.command import About, Body, about, load_command
from patchkit.errors import ExitCode

# What a command takes, read off its signature: for help, completion and the reference.


class CommandParameter(Struct, frozen=True):
    """One option or argument.

    `keyword` is the function's, `type` its type without None; `names` are the option's, short ones
    first, empty for an argument. `metavar` is "" for a flag.
    """

    keyword: str
    type: Any
    names: tuple[str, ...]
    metavar: str
    help: str
    default: object
    choices: tuple[str, ...]
    variable: str

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is inspect.Parameter.empty

    @property
    def repeatable(self) -> bool:
        """Whether it may be given several times."""
        return get_origin(self.type) is list

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
        if self.default in (inspect.Parameter.empty, None, False, ()):
            return ""
        if isinstance(self.default, Enum):
            return str(self.default.value)
        return self.default.as_posix() if isinstance(self.default, Path) else str(self.default)


def parameters(body: Body) -> list[CommandParameter]:
    """The options and arguments of a command, in the order declared."""
    hints = get_type_hints(body, include_extras=True)
    return [
        _parameter(name, hints[name], each.default)
        for name, each in inspect.signature(body).parameters.items()
    ]


def _parameter(keyword: str, hint: object, default: object) -> CommandParameter:
    kind, declared = _declaration(keyword, hint)
    choices = _choices(kind)
    word = "" if kind is bool else "WORD" if choices else keyword.upper()
    return CommandParameter(
        keyword=keyword,
        type=kind,
        names=_names(declared),
        metavar=declared.metavar or word,
        help=declared.help or "",
        default=default,
        choices=choices,
        variable=str(declared.envvar or ""),
    )


def _declaration(keyword: str, hint: object) -> tuple[Any, OptionInfo | ArgumentInfo]:
    """(type without None, declaration) of an annotation."""
    # before Python 3.11 a default of None wraps the annotation in Optional
    for each in (hint, *get_args(hint)):
        if get_origin(each) is Annotated:
            kind, declared = get_args(each)[:2]
            return _without_none(kind), declared
    raise TypeError(f"{keyword}: declare it as Annotated[..., typer.Option(...)]")


def _names(declared: OptionInfo | ArgumentInfo) -> tuple[str, ...]:
    if isinstance(declared, ArgumentInfo):
        return ()
    # within Annotated the first name lands where a default would stand
    names = (declared.default, *(declared.param_decls or ()))
    return tuple(sorted((each for each in names if isinstance(each, str)), key=len))


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    (only,) = (each for each in get_args(kind) if each is not type(None))
    return only


def _choices(kind: Any) -> tuple[str, ...]:
    element = get_args(kind)[0] if get_origin(kind) is list else kind
    if isinstance(element, type) and issubclass(element, Enum):
        return tuple(str(member.value) for member in element)
    return ()


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


#: What `patchkit` alone shows: a command line for each task of the daily round.
_ROUND = (
    ("init NAME --git URL --ref TAG", "pin an upstream in a new manifest"),
    ("import FOLDER", "adopt patches that you have"),
    ("apply", "fetch, patch and check out upstreams"),
    ("status", "show where each checkout is"),
    ("refresh", "record edits in the patches"),
    ("check", "find patches that do not apply"),
    ("drift", "name the commit that broke a patch"),
    ("bump COMPONENT --to TAG", "move to another upstream version"),
    ("undo", "take the last change back"),
)


def daily_round() -> str:
    """The page of `patchkit` without a command."""
    rows = [(f"patchkit {line}", meaning) for line, meaning in _ROUND]
    lines = ["Carry patches on pinned upstreams.", "", *_two_columns(rows, 42), ""]
    lines += ["`patchkit --help` lists all commands, `patchkit COMMAND --help` explains one."]
    return "\n".join(lines) + "\n"


def overview() -> str:
    """The page of patchkit itself."""
    lines = [
        "Usage: patchkit COMMAND [OPTIONS]",
        "",
        "Patch stacks on pinned upstreams: apply them, check them, see them drift.",
    ]
    for title, commands in GROUPS.items():
        rows = [(name, summary(load_command(name))) for name in commands]
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
        part if part.startswith(" ") else "\n".join(_fill(part, 0)) for part in paragraphs(body)
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
