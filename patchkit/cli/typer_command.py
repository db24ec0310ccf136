"""Commands as typer commands: typer is what decides on a command line that is not plain."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, NoReturn

import typer

from patchkit.cli.command import Body
from patchkit.cli.parameters import Parameter, parameters
from patchkit.errors import UsageError

# The base of typer's usage errors; typer carries its own copy of click, which has no public name.
_CommandLineError: Any = typer.BadParameter.__mro__[2]


def parse_with_typer(name: str, body: Body, arguments: list[str]) -> dict[str, Any]:
    """Keyword -> value of what the command line says; raises UsageError."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(add_help_option=False)(_collector(body))
    try:
        values: dict[str, Any] = typer.main.get_command(app).main(
            arguments, prog_name=f"patchkit {name}", standalone_mode=False
        )
    except _CommandLineError as error:
        _refuse(name, error)
    return values


def _collector(body: Body) -> Any:
    """A function with the body's signature, in typer's terms, that returns its arguments."""

    def collect(**values: Any) -> dict[str, Any]:
        return values

    signature = [_for_typer(each) for each in parameters(body)]
    collect.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    collect.__annotations__ = {each.name: each.annotation for each in signature}
    return collect


def _for_typer(parameter: Parameter) -> inspect.Parameter:
    kind = parameter.type if parameter.default is not None else parameter.type | None
    declared: Any
    if parameter.names:
        declared = typer.Option(
            *parameter.names,
            metavar=parameter.metavar or None,
            envvar=parameter.variable or None,
            min=parameter.minimum,
        )
    else:
        declared = typer.Argument(metavar=parameter.metavar)
    return inspect.Parameter(
        parameter.keyword,
        inspect.Parameter.KEYWORD_ONLY,
        default=parameter.default,
        annotation=Annotated[kind, declared],
    )


def _refuse(name: str, error: Any) -> NoReturn:
    message = " ".join(error.format_message().split())
    message = message[:1].lower() + message[1:].removesuffix(".")
    raise UsageError(message, hint=f"see `patchkit {name} --help`") from None
