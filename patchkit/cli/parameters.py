"""What a command takes, read off its signature: for help, completion and the reference."""

from __future__ import annotations

import inspect
import types
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from typer.models import ArgumentInfo, OptionInfo

from patchkit.cli.command import Body


class Parameter(Struct, frozen=True):
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


def parameters(body: Body) -> list[Parameter]:
    """The options and arguments of a command, in the order declared."""
    hints = get_type_hints(body, include_extras=True)
    return [
        _parameter(name, hints[name], each.default)
        for name, each in inspect.signature(body).parameters.items()
    ]


def _parameter(keyword: str, hint: object, default: object) -> Parameter:
    kind, declared = _declaration(keyword, hint)
    choices = _choices(kind)
    word = "" if kind is bool else "WORD" if choices else keyword.upper()
    return Parameter(
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
