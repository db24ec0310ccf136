"""`patchkit mcp`."""

from __future__ import annotations

from typing import Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.session import Session
from patchkit.errors import ExitCode


@command(
    "workspace store",
    examples=[
        ("patchkit mcp", "what a client starts, to look at the project in this folder"),
        ("patchkit mcp --allow-write", "and to move pins"),
    ],
    exits={ExitCode.OK: "the client has gone"},
    group="For agents",
)
def mcp(
    session: Session,
    *,
    write: Annotated[
        bool,
        typer.Option(
            "--allow-write",
            help="Take bumps, too, which are proposed by the pin to move to.",
        ),
    ] = False,
    run: Annotated[
        bool,
        typer.Option(
            "--run-tests",
            help="Run the commands of the manifest about what is proposed: mergers, `verify` and "
            "upstream's tests. Read them first.",
        ),
    ] = False,
) -> ExitCode:
    """Serve the project to a model's program, over stdio (MCP).

    The client starts it in the project's folder, asks for status, check, drift, plan, patches and
    commits, and gets the JSON that the commands print. Nothing is changed unless it is started with
    --allow-write. It needs `pip install 'patchkit-cli[mcp]'`.
    """
    import os
    from importlib.util import find_spec

    from patchkit.errors import SurroundingsError

    if find_spec("mcp") is None:
        hint = "pip install 'patchkit-cli[mcp]'"
        raise SurroundingsError("`patchkit mcp` needs the library mcp", hint=hint)
    import anyio

    from patchkit.extensions.agents.asked import CallPlace
    from patchkit.extensions.agents.server import serve

    # what is started takes it from there
    os.environ["PATCHKIT_CACHE"] = str(session.store.cache)
    os.environ["PATCHKIT_WORKSPACE"] = str(session.workspace)
    place = CallPlace(session.store.offline, run)
    anyio.run(serve, place, write)
    return ExitCode.OK
