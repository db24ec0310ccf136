"""What a command tells about itself beyond its signature: examples, exit codes, its JSON result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TypeVar

from msgspec import Struct

from patchkit.cli.catalog import COMMANDS
from patchkit.errors import ExitCode

Body = Callable[..., ExitCode]
_Body = TypeVar("_Body", bound=Body)


class About(Struct, frozen=True):
    """A command's own words in its help page and in docs/reference.

    `examples` are (command line, what it does); `exits` says what each exit code means here, the
    codes that every command shares left out; `result` is "module:class" of the class that
    `--json` prints, empty for a command without.
    """

    examples: tuple[tuple[str, str], ...]
    exits: Mapping[ExitCode, str]
    result: str


_ABOUT: dict[Body, About] = {}


def command(
    *,
    examples: Sequence[tuple[str, str]],
    exits: Mapping[ExitCode, str],
    result: str = "",
) -> Callable[[_Body], _Body]:
    """Declare a function as the body of a command; see About for the arguments."""

    def declare(body: _Body) -> _Body:
        _ABOUT[body] = About(tuple(examples), dict(exits), result)
        return body

    return declare


def load_command(name: str) -> Body:
    """The body of a command of the catalog; imports its module."""
    module, function = COMMANDS[name].split(":")
    body: Body = getattr(import_module(f"patchkit.cli.commands.{module}"), function)
    return body


def about(body: Body) -> About:
    """What a body's `command` declaration says."""
    return _ABOUT[body]
