"""`patchkit mcp`, and what takes a merge that is proposed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from patchkit.cli.command import command
from patchkit.cli.session import Session
from patchkit.errors import ExitCode

RunOption = Annotated[
    bool,
    typer.Option(
        "--run-tests",
        help="Run the commands of the manifest about what is proposed: mergers, `verify` and "
        "upstream's tests. Read them first.",
    ),
]


@command(
    "workspace store",
    examples={
        "patchkit mcp": "what a client starts, to look at the project in this folder",
        "patchkit mcp --allow-write": "and to propose bumps, and merges for their conflicts",
    },
    ok="the client has gone",
    group="For agents",
)
def mcp(
    session: Session,
    *,
    write: Annotated[
        bool,
        typer.Option(
            "--allow-write",
            help="Take proposals, too: bumps, and merges for conflicts that wait. They must hold "
            "what patchkit can look at, and are flagged.",
        ),
    ] = False,
    run: RunOption = False,
) -> ExitCode:
    """Serve the project to a model's program, over stdio (MCP).

    The client starts it in the project's folder, asks for status, check, drift, plan, patches,
    commits and what a conflict is about, and gets the JSON that the commands print. Nothing is
    changed unless it is started with --allow-write. It needs `pip install 'patchkit-cli[mcp]'`.
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


@command(
    "manifest component workspace json",
    examples={
        "patchkit mcp --only conflict": "what the tool `conflict` tells",
    },
    ok="told, whether one waits or not",
    bad_input="the manifest or a resolution cannot be read",
    result="patchkit.extensions.agents.conflict_report:ConflictReport",
    group="For agents",
)
def conflict(session: Session) -> ExitCode:
    """Tell what the conflict that waits is about, as JSON.

    With all conflicts that are remembered as resolved.
    """
    from patchkit.extensions.agents.conflict_report import read_conflict
    from patchkit.report.json import envelope

    report = read_conflict(session.manifest, session.component, session.workspace)
    session.terminal.document(envelope("mcp --only conflict", report, ExitCode.OK))
    return ExitCode.OK


@command(
    "manifest component workspace store json quiet",
    examples={
        "patchkit mcp --only merge": "what the tool `propose_merge` does",
    },
    ok="all patches are carried: pin, patches and lock are written",
    finding="it does not hold, and nothing was changed",
    halted="the next conflict is in the checkout",
    bad_input="what is proposed cannot be read",
    result="patchkit.ops.refresh_report:BumpReport",
    group="For agents",
)
def merge(session: Session, *, run: RunOption = False) -> ExitCode:
    """Go on from a conflict with a merge that is proposed.

    It comes on stdin, as JSON with `conflict`, `files` and `dropped`, as the tool `propose_merge`
    of `patchkit mcp` takes them. What holds is flagged, and remembered like a merger's.
    """
    import sys

    from msgspec import DecodeError

    from patchkit.cli.commands.resume import go_on
    from patchkit.errors import BadInputError, Problem
    from patchkit.extensions.agents.asked import ToolArguments
    from patchkit.extensions.agents.proposed_merge import propose_merge
    from patchkit.model.decoding import from_json
    from patchkit.ops.refresh_input import ResumeStep

    def propose(*asked: Any) -> Any:
        # read only now: what is wrong with the command line comes first
        try:
            given = from_json(sys.stdin.buffer.read(), ToolArguments)
        except DecodeError as error:
            raise BadInputError(Problem(f"is no proposal: {error}", "stdin")) from error
        return propose_merge(*asked, given=given, run=run)

    return go_on(session, "mcp --only merge", ResumeStep.CONTINUE, propose=propose)
