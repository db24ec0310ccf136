"""The server: what a client asks is answered by a process of its own, as the command would be.

Each call runs patchkit in a new process. So nothing that a call read, locked or left half done
stays, several calls run at once, and a call that its client cancels ends as if by ^C.
The only user of mcp and anyio.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from msgspec import ValidationError

from patchkit import __version__
from patchkit.errors import ExitCode, UsageError
from patchkit.extensions.agents.asked import TOOLS, CallPlace, Tool, ToolArguments
from patchkit.manifest.types import without_secret
from patchkit.model.decoding import from_builtins

#: The longest line of a client's, in bytes.
_MOST = 64 << 20
#: Characters of a page: what a model can take in at once.
_PAGE = 40_000
#: Seconds that a call has to end once nobody waits for it.
_PATIENCE = 20.0

# the project's folder may hold modules of any name: none is imported from there
_START = "import sys; sys.path[:] = [path for path in sys.path if path]; "
_COMMAND = _START + "from patchkit.cli.main import main; main()"

_SECRET = re.compile(r"(?i)token|secret|passw|askpass|credential|api_?key|auth")
_SHORTEST_SECRET = 6

_DONE = (ExitCode.OK, ExitCode.HALTED)

_SAYS = """\
patchkit carries patches on pinned upstreams. Tools answer with the JSON that its commands print: \
`exit_code` is 0 for done, 1 for a finding, 3 for a conflict that waits. To move a component: \
`propose_bump`; where it stops, read `conflict`, then `propose_merge`. What does not hold comes \
back in `problems`, and nothing was changed; what is owed is for a person."""


async def serve(place: CallPlace, write: bool) -> None:
    """Answer one client on stdin and stdout until it goes away."""
    offered = {
        tool.name: tool
        for tool in TOOLS
        if (write or not tool.writes) and (place.run or not tool.only_runs)
    }

    async def listed(_context: object, _asked: object) -> types.ListToolsResult:
        tools = [
            types.Tool(
                name=tool.name,
                description=tool.about,
                input_schema=tool.schema,
                annotations=types.ToolAnnotations(read_only_hint=not tool.writes),
            )
            for tool in offered.values()
        ]
        return types.ListToolsResult(tools=tools)

    async def called(_context: object, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            if asked.name not in offered:
                raise UsageError(f"there are {', '.join(offered)}, and no {asked.name}")
            given = from_builtins(asked.arguments or {}, ToolArguments)
            argv = place.command_line(offered[asked.name], given)
            ran = await _run(argv, json.dumps(asked.arguments))
            texts, wrong = _answer(offered[asked.name], given.page, *ran)
        except (UsageError, ValidationError) as error:
            texts, wrong = [str(error)], True
        content: list[Any] = [types.TextContent(text=text) for text in texts]
        return types.CallToolResult(content=content, is_error=wrong)

    server: Server[Any] = Server(
        "patchkit",
        version=__version__,
        instructions=_SAYS,
        on_list_tools=listed,
        on_call_tool=called,
    )
    lines = cast("anyio.AsyncFile[str]", _Lines())
    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            tasks.start_soon(_cancel_on_signal, scope)
            async with stdio_server(stdin=lines) as (read, written):
                await server.run(read, written, server.create_initialization_options())
        tasks.cancel_scope.cancel()
    if scope.cancelled_caught:
        raise KeyboardInterrupt


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
    """End all that runs in order: an exception in the middle of the loop would leave calls."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


class _Lines:
    """The lines of stdin; a thread that waits for one, as the library has it, no ^C would end.

    They end with the client, and at a line that is too long for any call.
    """

    async def __aiter__(self) -> AsyncIterator[str]:
        kept = bytearray()
        while len(kept) <= _MOST:
            with suppress(OSError):  # of a file, which is always ready
                await anyio.wait_readable(0)
            data = os.read(0, 1 << 20)
            if not data:
                return
            *lines, rest = data.split(b"\n")
            for line in lines:
                yield (kept + line).decode("utf-8", "replace")
                kept.clear()
            kept += rest


def _answer(tool: Tool, page: int, code: int, out: str) -> tuple[list[str], bool]:
    """The page that is asked for of what a process said, with a word where it is not all; and
    whether something is wrong, or was not done.
    """
    text = _without_variables(out if tool.verbatim else without_secret(out))
    if not text:
        raise UsageError(f"{tool.name} ended with {code}: stderr says why")
    count = -(-len(text) // _PAGE)
    texts = [text[(page - 1) * _PAGE : page * _PAGE]]
    if count > 1:
        texts.append(f"cut: this is page {page} of {count}")
    return texts, code not in (_DONE if tool.writes else (*_DONE, ExitCode.FINDING))


def _without_variables(text: str) -> str:
    """A text without what stands in environment variables for secrets."""
    for name, value in os.environ.items():
        if _SECRET.search(name) and len(value) >= _SHORTEST_SECRET:
            text = text.replace(json.dumps(value, ensure_ascii=False)[1:-1], "***")
    return text


async def _run(words: Iterable[str], given: str) -> tuple[int, str]:
    """The exit code and the output of a process of patchkit's, which can read what is given from
    stdin; given up, it ends as ^C ends it.

    Its group is not ours: a ^C on the terminal reaches it through us, once. What it says on stderr
    is not for the client.
    """
    argv = [sys.executable, "-c", _COMMAND, *words]
    with TemporaryFile() as asked, TemporaryFile() as out:
        asked.write(given.encode())
        asked.seek(0)
        process = await anyio.open_process(
            argv, stdin=asked, stdout=out, stderr=None, start_new_session=True
        )
        try:
            code = await process.wait()
        finally:
            with anyio.CancelScope(shield=True), suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
                with anyio.move_on_after(_PATIENCE):
                    await process.wait()
                os.killpg(process.pid, signal.SIGKILL)  # git, too, where it is left
        out.seek(0)
        return code, out.read().decode("utf-8", "replace")
