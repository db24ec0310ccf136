"""`patchkit mcp`, as its library's own client finds it: what is answered, taken and refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
import yaml
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult

from tests.ops.test_resume import Bumping
from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

pytestmark = pytest.mark.slow

_BASE = """\
import os


def serve(model):
    check(model)
    return answer(model, device="cuda")


def check(model):
    assert os.path.exists(model)


def answer(model, device):
    return model.run(device)


def stop(reason):
    print(reason)
    return 0
"""
_CUDA, _NPU = (
    '    return answer(model, device="cuda")\n',
    '    return answer(model, device="npu")\n',
)
_STREAM = '    return answer(model, device="cuda", stream=True)\n'
_BOTH = '    return answer(model, device="npu", stream=True)\n'
_PRINT, _SAY = "    print(reason)\n", '    print("stopped:", reason)\n'
_FLUSH, _BOTH_SAY = "    print(reason, flush=True)\n", '    print("stopped:", reason, flush=True)\n'
_CONF = "port 1\ndevice cuda\nend\n"

_ONE = {"serve.py": _BASE.replace(_CUDA, _NPU), "conf.txt": _CONF.replace("cuda", "npu")}
_TWO = {"serve.py": _ONE["serve.py"].replace(_PRINT, _SAY)}
_NEW = {
    "serve.py": _BASE.replace(_CUDA, _STREAM)
    .replace(_PRINT, _FLUSH)
    .replace("device)", "device, stream)"),
    "conf.txt": _CONF.replace("cuda", "cuda:0"),
}
_Answer = TypeVar("_Answer")


class Waiting(Bumping):
    """A stack of two patches for serve.py, and a bump that meets a conflict in each."""

    def bumped(self) -> Waiting:
        self.prepare("bump", "demo", "--to", "main").ends(3)
        return self

    @property
    def all_there_is(self) -> tuple[object, ...]:
        return (*self.state, self.project.everything())


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Waiting:
    base = {"serve.py": _BASE, "conf.txt": _CONF, "other.py": "x = 1\n"}
    pin = upstream.commit(base, "The base")
    patches = {
        "one.patch": make_patch(base, {**base, **_ONE}, subject="Serve on the NPU", body="We do."),
        "two.patch": make_patch({**base, **_ONE}, {**base, **_ONE, **_TWO}, subject="Say so"),
    }
    project.component("demo", upstream, pin, patches, track="main")
    stack = Waiting.applied(project)
    upstream.commit(_NEW, "Stream (#7)")
    return stack


class Client:
    """A session with a server; what tools say is read as JSON where it is."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        with anyio.fail_after(120):
            return await self.session.call_tool(tool, arguments)

    async def json(self, tool: str, **arguments: Any) -> Any:
        return json.loads(_text(await self.call(tool, **arguments)))


def _text(result: CallToolResult) -> str:
    text: str = result.content[0].text  # type: ignore[union-attr]
    return text


def talk(
    project: Project, script: Callable[[Client], Awaitable[_Answer]], *argv: str, **env: str
) -> _Answer:
    """What a script comes to that talks to a server in the project's folder."""

    async def whole() -> _Answer:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "patchkit", "mcp", *argv],
            cwd=project.root,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), **env},
        )
        with Path(os.devnull).open("w") as log:
            async with (
                stdio_client(server, log) as streams,
                ClientSession(*streams) as session,
            ):
                await session.initialize()
                return await script(Client(session))

    return anyio.run(whole)


# What is answered.


def test_tools_say_what_their_commands_print(stack: Waiting) -> None:
    """Without the flag there is no other one, and to look changes nothing."""
    stack.bumped()

    async def script(client: Client) -> dict[str, tuple[str, bool | None]]:
        tools = (await client.session.list_tools()).tools
        assert all(each.annotations and each.annotations.read_only_hint for each in tools)
        assert {"propose_bump", "tests"}.isdisjoint(each.name for each in tools)
        asked = {"show": {"what": "one.patch"}}
        said: dict[str, tuple[str, bool | None]] = {}
        for tool in tools:
            result = await client.call(tool.name, **asked.get(tool.name, {}))
            said[tool.name] = _text(result), result.is_error
        return said

    before = stack.all_there_is
    said = talk(stack.project, script)
    assert stack.all_there_is == before
    assert {name for name, (_, wrong) in said.items() if wrong} == set()
    for name in ("status", "check", "log", "plan"):
        ran = stack.run(name, "--json")
        assert json.loads(said[name][0]) == ran.json, name
    assert json.loads(said["show"][0]) == stack.run("show", "one.patch", "--json").json
    assert json.loads(said["drift"][0])["schema"] == "patchkit/drift/2"


def test_a_long_answer_comes_in_pages(stack: Waiting) -> None:
    stack.project.write({"patches/demo/one.patch": _long_message(stack)})

    async def script(client: Client) -> list[CallToolResult]:
        pages = [await client.call("show", what="one.patch", page=number) for number in (1, 2, 9)]
        return [*pages, await client.call("show", what="one.patch", page=0)]

    first, second, ninth, none = talk(stack.project, script)
    said = [each.content[1].text for each in (first, second, ninth)]  # type: ignore[union-attr]
    assert said == [f"cut: this is page {n} of 3" for n in (1, 2, 9)]
    assert len(_text(first)) == 40_000
    assert (_text(first) + _text(second)).count("all of it") > 6_000
    assert _text(ninth) == ""
    assert none.is_error


def _long_message(stack: Waiting) -> bytes:
    data = (stack.project.root / "patches/demo/one.patch").read_bytes()
    return data.replace(b"We do.", b"all of it\n" * 8_000)


# What is proposed.


def test_a_bump_is_proposed_and_no_command_runs(stack: Waiting, tmp_path: Path) -> None:
    path = stack.project.root / "manifests/demo.yaml"
    data = yaml.safe_load(path.read_text())
    data["mergers"] = [{"files": ["**"], "run": f"touch {tmp_path}/ran-merger; exit 1"}]
    data["components"]["demo"]["verify"] = [{"run": f"touch {tmp_path}/ran-verify"}]
    path.write_text(yaml.safe_dump(data, sort_keys=False))

    async def script(client: Client) -> Any:
        await client.call("check")
        return await client.json("propose_bump", to="main")

    bump = talk(stack.project, script, "--allow-write")
    assert (bump["schema"], bump["exit_code"]) == ("patchkit/bump/2", 3)
    assert list(tmp_path.glob("ran*")) == []
    stack.run("abort").ok()
    talk(stack.project, script, "--allow-write", "--run-tests")
    assert {each.name for each in tmp_path.glob("ran*")} == {"ran-merger", "ran-verify"}


def test_no_secret_is_told(stack: Waiting, tmp_path: Path) -> None:
    """Nor is anything written but in the project and the cache."""
    home = tmp_path / "own"
    home.mkdir()
    secret = {"GITHUB_TOKEN": "hunter2hunter2", "TMPDIR": str(home), "HOME": str(home)}
    stack.project.write({"patches/demo/one.patch": _named(stack)})

    async def script(client: Client) -> list[str]:
        asked = {"show": {"what": "one.patch"}, "propose_bump": {"to": "hunter2hunter2"}}
        tools = (await client.session.list_tools()).tools
        said = [await client.call(each.name, **asked.get(each.name, {})) for each in tools]
        return [_text(each) for each in said]

    said = "\n".join(talk(stack.project, script, "--allow-write", **secret))
    assert "hunter2" not in said and "***" in said
    assert [path for path in home.rglob("*") if path.is_file()] == []


def _named(stack: Waiting) -> bytes:
    data = (stack.project.root / "patches/demo/one.patch").read_bytes()
    return data.replace(b"We do.", b"hunter2hunter2")


# How it ends.


class Server:
    """A server whose messages a test writes by itself, and which runs a command without end."""

    def __init__(self, stack: Waiting, tmp_path: Path) -> None:
        path = stack.project.root / "manifests/demo.yaml"
        data = yaml.safe_load(path.read_text())
        self.began = tmp_path / "began"
        run = f"echo $$ > {self.began}; exec sleep 600"
        data["components"]["demo"]["verify"] = [{"run": run}]
        path.write_text(yaml.safe_dump(data, sort_keys=False))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "patchkit", "mcp", "--allow-write", "--run-tests"],
            cwd=stack.project.root,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        who = {"name": "test", "version": "1"}
        start = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who}
        self.say("initialize", id=1, params=start)
        assert json.loads(self.line())["result"]["serverInfo"]["name"] == "patchkit"
        self.say("notifications/initialized")

    def say(self, method: str, **more: Any) -> None:
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, **more}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def line(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def hang(self) -> int:
        """Ask what runs without end; the process that does."""
        self.say("tools/call", id=2, params={"name": "check", "arguments": {}})
        _until(lambda: self.began.exists() and self.began.read_text().strip() != "")
        return int(self.began.read_text())

    def ended(self) -> int:
        try:
            self.process.communicate(timeout=40)
        finally:
            self.process.kill()
        return self.process.returncode


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def _runs(process: int) -> bool:
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(stack: Waiting, tmp_path: Path, number: int, *, busy: bool) -> None:
    """And what it waits for, though its client does not go away."""
    server = Server(stack, tmp_path)
    running = server.hang() if busy else 0
    server.process.send_signal(number)
    _until(lambda: server.process.poll() is not None)
    assert server.ended() == 130
    assert not busy or not _runs(running)
    stack.run("status").ok()


def test_a_client_that_goes_away_in_mid_call_takes_the_call_along(
    stack: Waiting, tmp_path: Path
) -> None:
    server = Server(stack, tmp_path)
    running = server.hang()
    assert server.process.stdin is not None
    server.process.stdin.close()
    server.process.stdin = None
    assert server.ended() == 0
    _until(lambda: not _runs(running))
    stack.run("check").ok()


def test_a_call_that_is_taken_back_ends_and_the_server_goes_on(
    stack: Waiting, tmp_path: Path
) -> None:
    server = Server(stack, tmp_path)
    running = server.hang()
    server.say("notifications/cancelled", params={"requestId": 2, "reason": "test"})
    _until(lambda: not _runs(running))
    server.say("tools/call", id=3, params={"name": "status", "arguments": {}})
    while (said := json.loads(server.line())).get("id") != 3:
        pass
    assert "patchkit/status/2" in said["result"]["content"][0]["text"]
    server.process.kill()
    server.process.communicate()


def test_what_is_no_call_ends_nothing(stack: Waiting, tmp_path: Path) -> None:
    """Noise, half a message, and a file for a client."""
    server = Server(stack, tmp_path)
    assert server.process.stdin is not None
    server.process.stdin.write(b'\xff\xfe noise\n{"jsonrpc": \n[]\n\n')
    server.say("tools/call", id=3, params={"name": "status", "arguments": {}})
    while (said := json.loads(server.line())).get("id") != 3:
        pass
    assert not said["result"].get("isError")
    server.process.stdin.close()
    server.process.stdin = None
    assert server.ended() == 0


def test_without_the_library_that_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    ran: Ran = project.run("mcp")
    ran.ends(5, "needs the library mcp", "pip install 'patchkit-cli[mcp]'")
    assert ran.out == ""
