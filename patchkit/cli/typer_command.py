"""Commands as typer knows them: for lines that are not plain, for help pages and the reference."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from patchkit.cli.command import (
    REQUIRED,
    Body,
    OptionSpec,
    ParameterSpec,
    about,
    body_of,
    call_body,
    declare_alike,
    parameters_of,
)
from patchkit.errors import ExitCode


def run_by_typer(name: str, words: Sequence[str]) -> ExitCode:
    """Run a command; what is wrong with the line is an exception of typer's (`failure.py`)."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(add_help_option=False)(load_command(name))
    command = typer.main.get_command(app)
    # not `command.main`: it takes a broken pipe for an error of its own
    with command.make_context(f"patchkit {name}", list(words)) as context:
        return ExitCode(command.invoke(context))


@cache
def load_command(name: str) -> Body:
    """A command of the catalog, with all its options as its signature; imports its module."""
    body = body_of(name)

    def command(**options: Any) -> ExitCode:
        return call_body(body, options)

    declared = [_declared(each) for each in parameters_of(body)]
    command.__doc__ = body.__doc__
    command.__annotations__ = {each.name: each.annotation for each in declared}
    command.__signature__ = inspect.Signature(declared)  # type: ignore[attr-defined]
    declare_alike(command, about(body))
    return command


def _declared(parameter: ParameterSpec) -> inspect.Parameter:
    said = parameter.declared
    form: Any = typer.Option if isinstance(said, OptionSpec) else typer.Argument
    return inspect.Parameter(
        parameter.keyword,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if parameter.default is REQUIRED else parameter.default,
        annotation=Annotated[parameter.kind, form(*said.names, **said.settings)],
    )
