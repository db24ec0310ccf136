"""`patchkit mcp`, as its library's own client finds it: what is answered, taken and refused."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
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
#: What a person would make of the two conflicts, as files and as what is proposed.
_FIRST = {
    "serve.py": _NEW["serve.py"].replace(_STREAM, _BOTH),
    "conf.txt": _CONF.replace("cuda", "npu:0"),
}
_LAST = {"serve.py": _FIRST["serve.py"].replace(_FLUSH, _BOTH_SAY)}
_ONE_MERGED = {"serve.py": [_BOTH], "conf.txt": ["device npu:0\n"]}
_TWO_MERGED = {"serve.py": [_BOTH_SAY]}
_DROPPED = [_NPU, _STREAM, "device npu", "device cuda:0"]

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

    async def conflict(self) -> str:
        return str((await self.json("conflict"))["conflict"])

    async def propose(self, files: Mapping[str, Sequence[str]], *dropped: str) -> CallToolResult:
        given = {"conflict": await self.conflict(), "files": files, "dropped": dropped}
        return await self.call("propose_merge", **given)


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
        assert {"propose_merge", "propose_bump", "tests"}.isdisjoint(each.name for each in tools)
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
    assert json.loads(said["conflict"][0]) == stack.run("mcp", "--only", "conflict").json
    assert json.loads(said["drift"][0])["schema"] == "patchkit/drift/2"


def test_a_conflict_is_told_with_all_of_its_sides(stack: Waiting) -> None:
    stack.bumped()

    async def script(client: Client) -> Any:
        return await client.json("conflict")

    found = talk(stack.project, script)
    halted = found["halted"]
    assert (halted["patch"], halted["later"]) == ("one.patch", ["two.patch"])
    assert (halted["subject"], halted["reason"]) == ("Serve on the NPU", "We do.")
    assert [each["path"] for each in halted["files"]] == ["conf.txt", "serve.py"]
    assert ["Stream (#7)" in each["upstream"][0] for each in halted["files"]] == [True, True]
    parted = (" ", _STREAM, "+||||||| ", "+", _CUDA, "+=======\n", "+", _NPU, "+>>>>>>> one.patch")
    assert re.search(".*".join(map(re.escape, parted)), found["diff"], re.DOTALL)
    assert found["resolutions"] == {}


def test_where_nothing_waits_that_is_said(stack: Waiting) -> None:
    async def script(client: Client) -> list[CallToolResult]:
        return [
            await client.call("conflict"),
            await client.call("propose_merge", conflict="1" * 40, files={"serve.py": ["x\n"]}),
            await client.call("no_such_tool"),
        ]

    first, second, third = talk(stack.project, script, "--allow-write")
    found = json.loads(_text(first))
    assert (found["conflict"], found["halted"], found["diff"]) == ("", None, "")
    assert second.is_error and "no bump or import is in progress" in _text(second)
    assert third.is_error and "propose_merge" in _text(third)


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


# What is taken.


def test_a_whole_bump_by_proposals(stack: Waiting, upstream: Upstream) -> None:
    async def script(client: Client) -> tuple[Any, CallToolResult, CallToolResult, Any]:
        bump = await client.json("propose_bump", to="main")
        first = await client.propose(_ONE_MERGED, *_DROPPED)
        last = await client.propose(_TWO_MERGED, _SAY, _FLUSH)
        return bump, first, last, (await client.json("conflict"))["resolutions"]

    bump, first, last, kept = talk(stack.project, script, "--allow-write")
    assert (bump["schema"], bump["exit_code"]) == ("patchkit/bump/2", 3)
    assert not first.is_error and not last.is_error, _text(first) + _text(last)
    halted = json.loads(_text(first))
    assert (halted["schema"], halted["exit_code"]) == ("patchkit/mcp-only-merge/2", 3)
    assert halted["components"][0]["halted"]["patch"] == "two.patch"
    done = json.loads(_text(last))
    assert done["exit_code"] == 0
    patches = {each["name"]: each for each in done["components"][0]["patches"]}
    assert {each["attention"] for each in patches.values()} == {"flagged"}
    (file,) = patches["two.patch"]["files"]
    assert file["review"] and file["merged_by"].startswith("a proposal (held: it parses, ")
    assert "dropped as named: 2" in file["merged_by"]
    assert stack.read("serve.py") == _LAST["serve.py"]
    assert stack.read("conf.txt") == _FIRST["conf.txt"]
    assert upstream.at("main") in stack.project.read("manifests/demo.yaml")
    stack.run("check").ok()
    stack.run("status", "--strict").ok()
    assert len(kept) == 3
    assert all("\nMerged-By: a proposal (held: " in text for text in kept.values())
    (conf,) = [text for text in kept.values() if " in conf.txt\n" in text]
    assert "held: lines of both sides, later patches" in conf


def test_what_was_proposed_can_be_undone_step_by_step(stack: Waiting) -> None:
    stack.bumped()
    before = stack.state_but_kept

    async def script(client: Client) -> CallToolResult:
        return await client.propose(_ONE_MERGED, *_DROPPED)

    assert not talk(stack.project, script, "--allow-write").is_error
    stack.run("undo").ok()
    assert stack.state_but_kept == before


def test_of_two_clients_at_once_one_is_taken(stack: Waiting) -> None:
    stack.bumped()

    async def script(client: Client) -> list[CallToolResult]:
        found = await client.conflict()
        results: list[CallToolResult] = []

        async def propose(one: Client) -> None:
            given = {"conflict": found, "files": _ONE_MERGED, "dropped": _DROPPED}
            results.append(await one.call("propose_merge", **given))

        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(propose, client)
            await anyio.to_thread.run_sync(
                lambda: results.append(
                    talk(stack.project, lambda c: _propose(c, found), "--allow-write")
                )
            )
        return results

    results = talk(stack.project, script, "--allow-write")
    assert [each.is_error for each in results].count(False) == 1
    assert stack.read("serve.py").startswith(_FIRST["serve.py"].partition("def stop")[0])
    assert ">>>>>>> two.patch" in stack.read("serve.py")


async def _propose(client: Client, conflict: str) -> CallToolResult:
    return await client.call(
        "propose_merge", conflict=conflict, files=_ONE_MERGED, dropped=_DROPPED
    )


# What is refused.


def _as(path: str, *texts: str) -> dict[str, Any]:
    """The good proposal, with other texts for a file."""
    return {"files": {**_ONE_MERGED, path: texts}}


def _and(path: str) -> dict[str, Any]:
    """The good proposal, and a file more."""
    return {"files": {**_ONE_MERGED, path: ["x = 1\n"]}}


_MARKED = f"<<<<<<< upstream\n{_STREAM}=======\n{_NPU}>>>>>>> one.patch\n"
_ELSE = f"{_BOTH}\n\ndef check(model):\n    pass\n"
#: What is wrong with a proposal -> how it differs from the good one, and what is said of it.
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "empty": (_as("serve.py", ""), "nothing is left"),
    "only blanks": (_as("serve.py", "\n\n  \n"), "serve.py:6"),
    "huge": (_as("serve.py", _BOTH + "# x\n" * 600_000), "far larger than its sides"),
    "huge of a text": (_as("conf.txt", "x" * (2 << 20)), "far larger than its sides"),
    "no text": (_as("serve.py"), "has 1 conflict, and 0 are merged"),
    "a text too many": (_as("serve.py", _BOTH, _BOTH), "has 1 conflict, and 2 are merged"),
    "half a line": (_as("serve.py", "    return answer(model, dev"), "does not parse"),
    "half a file": (_as("serve.py", _FIRST["serve.py"][:120]), "serve.py"),
    "a whole file": (_as("serve.py", _FIRST["serve.py"]), "twice"),
    "a whole text": (_as("conf.txt", _FIRST["conf.txt"]), "doubled a line"),
    "markers": (_as("serve.py", _MARKED), "serve.py:6"),
    "one marker": (_as("serve.py", f"{_BOTH}>>>>>>> one.patch\n"), "serve.py:7"),
    "markers in a text": (
        _as("conf.txt", "<<<<<<< upstream\ndevice npu:0\n=======\n>>>>>>> x\n"),
        "left conflict markers, at line 2",
    ),
    "upstream's": (_as("serve.py", _STREAM), "the change would be lost"),
    "the patched": ({**_as("serve.py", _NPU), "dropped": [_NPU, "device npu"]}, "stream=True"),
    "the base": (_as("serve.py", _CUDA), "is there still"),
    "binary": (_as("conf.txt", "device npu:0\n\0"), "binary"),
    "outside": (_and("../serve.py"), "../serve.py"),
    "far outside": (_and("../../patches/demo/series"), "patches/demo/series"),
    "absolute": (_and("/etc/hostname"), "/etc/hostname"),
    "spelt otherwise": (_and("./serve.py"), "./serve.py"),
    "of git": (_and(".git/config"), ".git/config"),
    "not in conflict": (_and("other.py"), "other.py"),
    "a new file": (_and("new.py"), "new.py"),
    "one of two": ({"files": {"serve.py": [_BOTH]}}, "conf.txt"),
    "none": ({"files": {}}, "conf.txt"),
    "a line elsewhere": (_as("serve.py", f"{_BOTH}\ndef check(model):\n"), "parse"),
    "lines above": (_as("serve.py", f"    check(model)\n{_BOTH}"), "doubled a line"),
    "lines below": (_as("conf.txt", "device npu:0\nend\n"), "doubled a line"),
    "a renamed function": (_as("serve.py", f"{_BOTH}\n\ndef answer(model): ...\n"), "twice"),
    "a name of nothing": (_as("serve.py", _BOTH.replace("model,", "modell,")), "modell"),
    "no Python": (_as("serve.py", _BOTH.replace(")", "")), "does not parse"),
    "no block": (_as("serve.py", _BOTH.strip() + "\n"), "does not parse"),
    "twice": (_as("serve.py", _BOTH + _STREAM), "is named, and kept"),
    "another function": (_as("serve.py", _ELSE), "twice"),
    "upstream's line unnamed": ({"dropped": [_NPU, "device npu", "device cuda:0"]}, "stream=True"),
    "the patch's line unnamed": ({"dropped": [_STREAM, "device npu", "device cuda:0"]}, "npu"),
    "nothing named": ({"dropped": []}, "is gone"),
    "others named": ({"dropped": ["return 0", "x"]}, "is gone"),
    "another one named": ({"dropped": [*_DROPPED, "return 0"]}, "`return 0` is named, and kept"),
    "an old conflict": ({"conflict": "0" * 40}, "another conflict waits"),
    "no conflict": ({"conflict": ""}, "another conflict waits"),
    "no component": ({"component": "none"}, "none"),
    "an option": ({"component": "--force"}, "component"),
    "a path for a manifest": ({"manifest": "../demo"}, "manifest"),
    "an unknown argument": ({"force": True}, "force"),
    "no mapping": ({"files": [_BOTH]}, "files"),
    "no list of texts": ({"files": {**_ONE_MERGED, "serve.py": _BOTH}}, "files"),
    "a number for a text": ({"files": {**_ONE_MERGED, "serve.py": [3]}}, "files"),
    "no list": ({"dropped": "all"}, "dropped"),
}


def test_no_bad_proposal_lands(stack: Waiting) -> None:
    """Nor changes a byte: not of the checkout, its index and refs, nor of the project."""
    stack.bumped()
    before = stack.all_there_is
    assert len(BAD) >= 47

    async def script(client: Client) -> list[str]:
        found = await client.conflict()
        wrong = []
        for what, (given, said) in BAD.items():
            good = {"conflict": found, "files": _ONE_MERGED, "dropped": _DROPPED}
            result = await client.call("propose_merge", **(good | given))
            if not result.is_error or said not in _text(result) or stack.all_there_is != before:
                problems = re.findall(r'"what": .*|"where": .*', _text(result)) or _text(result)
                wrong.append(f"{what}: {result.is_error} {stack.all_there_is == before} {problems}")
        good_one = await client.propose(_ONE_MERGED, *_DROPPED)
        return [*wrong, *([_text(good_one)] if good_one.is_error else [])]

    wrong = talk(stack.project, script, "--allow-write")
    assert wrong == [], "\n".join(wrong)


def test_work_in_the_checkout_is_not_replaced(stack: Waiting) -> None:
    """Edits of the file, a link in its place, a staged file, a commit: each stays as it is."""
    stack.bumped()
    file = stack.checkout / "serve.py"

    def staged() -> None:
        file.unlink()
        for name, text in _FIRST.items():
            stack.write(name, text)
        stack.git("add", *_FIRST)

    edits: list[Callable[[], object]] = [
        partial(stack.write, "serve.py", _FIRST["serve.py"]),
        file.unlink,
        partial(file.symlink_to, "/etc/hostname"),
        staged,
        partial(stack.git, "commit", "-q", "-m", "by hand"),
    ]

    async def script(client: Client) -> None:
        found = await client.conflict()
        for edit in edits:
            edit()
            before = stack.all_there_is
            said = await _propose(client, found)
            assert said.is_error and "somebody works on it" in _text(said), _text(said)
            assert stack.all_there_is == before

    talk(stack.project, script, "--allow-write")


def test_a_bump_without_fuzz_takes_no_proposal(stack: Waiting) -> None:
    stack.run("bump", "demo", "--to", "main", "--no-fuzz").ends(3)
    before = stack.all_there_is

    async def script(client: Client) -> CallToolResult:
        return await client.propose(_ONE_MERGED, *_DROPPED)

    result = talk(stack.project, script, "--allow-write")
    assert result.is_error and "one.patch" in _text(result)
    assert stack.all_there_is == before


# What runs, and what is owed.


def _with_commands(project: Project, ran: Path) -> None:
    path = project.root / "manifests/demo.yaml"
    data = yaml.safe_load(path.read_text())
    data["mergers"] = [{"files": ["**"], "run": f"touch {ran}-merger; exit 1"}]
    demo = data["components"]["demo"]
    demo["verify"] = [{"run": f"touch {ran}-verify"}]
    demo["upstream_tests"] = {"run": f"touch {ran}-tests; exit 9"}
    path.write_text(yaml.safe_dump(data, sort_keys=False))


async def _all_of_it(client: Client) -> tuple[str, CallToolResult]:
    await client.json("propose_bump", to="main")
    first = await client.propose(_ONE_MERGED, *_DROPPED)
    assert not first.is_error, _text(first)
    last = await client.propose(_TWO_MERGED, _SAY, _FLUSH)
    await client.call("tests")
    await client.call("check")
    return str(json.loads(_text(last))["components"][0]["patches"]), last


def test_no_command_runs_and_all_are_owed(stack: Waiting, tmp_path: Path) -> None:
    _with_commands(stack.project, tmp_path / "ran")
    said, last = talk(stack.project, _all_of_it, "--allow-write")
    assert not last.is_error
    assert list(tmp_path.glob("ran*")) == []
    lines = stack.project.read("manifests/demo.yaml").splitlines()
    places = {int(each) for each in re.findall(r"owed: manifests/demo.yaml:(\d+)", said)}
    owed = "\n".join(line for each in places for line in lines[each - 1 : each + 2])
    assert len(places) == 3 and all(
        f"ran-{each}" in owed for each in ("merger", "verify", "tests")
    ), owed


def test_with_the_flag_they_run(stack: Waiting, tmp_path: Path) -> None:
    _with_commands(stack.project, tmp_path / "ran")
    _, last = talk(stack.project, _all_of_it, "--allow-write", "--run-tests")
    assert not last.is_error
    ran = {each.name for each in tmp_path.glob("ran*")}
    assert ran == {"ran-merger", "ran-verify", "ran-tests"}


def test_a_command_that_fails_holds_a_proposal_up(stack: Waiting) -> None:
    path = stack.project.root / "manifests/demo.yaml"
    data = yaml.safe_load(path.read_text())
    data["components"]["demo"]["verify"] = [{"run": "grep -q no-such-word serve.py"}]
    path.write_text(yaml.safe_dump(data, sort_keys=False))

    async def script(client: Client) -> tuple[CallToolResult, tuple[object, ...]]:
        await client.json("propose_bump", to="main")
        assert not (await client.propose(_ONE_MERGED, *_DROPPED)).is_error
        before = stack.all_there_is
        return await client.propose(_TWO_MERGED, _SAY, _FLUSH), before

    result, before = talk(stack.project, script, "--allow-write", "--run-tests")
    assert result.is_error and "no-such-word" in _text(result)
    assert "manifests/demo.yaml:" in _text(result)
    assert stack.all_there_is == before


def test_what_check_would_say_holds_it_up(stack: Waiting) -> None:
    """A step of `verify` that holds now, and would not with the proposal."""
    path = stack.project.root / "manifests/demo.yaml"
    data = yaml.safe_load(path.read_text())
    data["components"]["demo"]["verify"] = [{"absent": "npu:0", "files": ["conf.txt"]}]
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    stack.bumped()
    before = stack.all_there_is

    async def script(client: Client) -> CallToolResult:
        return await client.propose(_ONE_MERGED, *_DROPPED)

    result = talk(stack.project, script, "--allow-write")
    assert result.is_error and "conf.txt:2" in _text(result)
    assert stack.all_there_is == before


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


def test_no_secret_of_a_mirror_is_told(stack: Waiting, tmp_path: Path) -> None:
    """In git's configuration or pip's, whatever fails with it."""
    url = "http://bot:hunter2hunter2@127.0.0.1:9/"
    mirror = tmp_path / "gitconfig"
    mirror.write_text(f'[url "{url}"]\n\tinsteadOf = https://example.com/\n')
    path = stack.project.root / "manifests/demo.yaml"
    data = yaml.safe_load(path.read_text())
    data["components"]["demo"]["source"] = {"git": "https://example.com/demo.git"}
    pin = {"version": "1.0", "sha256": "1" * 64}
    data["components"]["wheel"] = {"source": {"index": "demo"}, "pin": pin}
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    env = {"GIT_CONFIG_GLOBAL": str(mirror), "PIP_INDEX_URL": url, "PIP_CONFIG_FILE": os.devnull}

    async def script(client: Client) -> list[str]:
        asked = {"show": {"what": "main"}, "propose_bump": {"to": "main"}}
        tools = (await client.session.list_tools()).tools
        said = []
        for tool in tools:
            for component in ("demo", "wheel"):
                given = {"component": component, **asked.get(tool.name, {})}
                said.append(_text(await client.call(tool.name, **given)))
        return said

    cache = str(tmp_path / "empty")
    said = "\n".join(talk(stack.project, script, "--allow-write", "--cache", cache, **env))
    assert "127.0.0.1" in said and "hunter2" not in said, said


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
