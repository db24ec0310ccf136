"""How a command declares an option or an argument, without loading typer.

They stand within `Annotated[...]`, as typer's own do, and `patchkit.cli.typer_command` hands them
over to typer. The metavar decides what the shell completes: MANIFEST, COMPONENT, PATCH, DIR, FILE;
other words complete nothing. An enum as type gives choices.
"""

from __future__ import annotations


class Option:
    """An option by its `names` ("--manifest", "-m"); of type bool it is a flag.

    `envvar` is a variable that stands in for it, `minimum` the least number it takes.
    """

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str = "",
        envvar: str = "",
        minimum: int | None = None,
    ) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.envvar = envvar
        self.minimum = minimum


class Argument(Option):
    """An argument, known by its place."""

    def __init__(self, *, help: str, metavar: str = "") -> None:
        super().__init__(help=help, metavar=metavar)
