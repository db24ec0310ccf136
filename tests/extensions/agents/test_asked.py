"""How a call is spelt and told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import ValidationError

from patchkit.extensions.agents.asked import TOOLS, CallPlace, ToolArguments
from patchkit.extensions.agents.server import _without_variables
from patchkit.model.decoding import from_builtins
from tests.support.commands import run


def _line(tool: str, *, run: bool = False, **given: object) -> list[str]:
    (found,) = [each for each in TOOLS if each.name == tool]
    place = CallPlace(offline=True, run=run)
    return list(place.command_line(found, from_builtins(given, ToolArguments)))


def test_no_value_is_read_as_an_option() -> None:
    assert _line("show", what="--output=x") == ["show", "--json", "--offline", "--", "--output=x"]
    assert _line("drift", to="--force") == ["drift", "--json", "--to=--force", "--offline"]
    assert _line("status", component="a@1.2") == ["status", "--json", "--component=a@1.2"]
    assert _line("check", run=True)[-1] == "--run"
    assert "--run" not in _line("check")
    assert _line("propose_merge", files={"a.py": ["--x"]}, dropped=["--y"]) == [
        *("mcp", "--only", "merge", "--json", "--offline")
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"component": "--force"},
        {"component": "../x"},
        {"manifest": "/etc/passwd"},
        {"manifest": ""},
        {"what": "a\nb"},
        {"to": "a\0b"},
        {"page": 0},
        {"other": 1},
    ],
)
def test_what_is_no_argument_is_refused(given: Mapping[str, object]) -> None:
    with pytest.raises(ValidationError):
        from_builtins(given, ToolArguments)


def test_schemas_name_what_a_tool_takes() -> None:
    schemas = {each.name: each.schema for each in TOOLS}
    assert set(schemas["status"]["properties"]) == {"manifest", "component", "page"}
    assert schemas["propose_bump"]["required"] == ["to"]
    assert schemas["propose_merge"]["required"] == ["conflict", "files"]
    assert all(each["additionalProperties"] is False for each in schemas.values())


def test_the_page_names_what_there_is() -> None:
    """Each tool, and each argument of a proposal that is no place."""
    page = Path(__file__).parents[3] / "docs/howto/drive-from-a-program.md"
    section = page.read_text(encoding="utf-8").partition("\n## A model's program: MCP\n")[2]
    named = set(re.findall(r"`([a-z_]+)`", section))
    tools = {each.name for each in TOOLS}
    assert named - tools <= {"verify", "upstream_tests", "dropped", "problems"}
    assert tools <= named
    flags = set(re.findall(r"`(--[a-z-]+)`", section))
    assert flags == {"--allow-write", "--run-tests"} <= {*run("mcp", "--help").out.split()}


def test_secrets_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", 'qu"oted-key')
    monkeypatch.setenv("PASSWD", "short")
    text = '"said": "qu\\"oted-key is short"'
    assert _without_variables(text) == '"said": "*** is short"'
