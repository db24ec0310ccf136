"""What is generated from the commands is fresh, and says what it should."""

from __future__ import annotations

import re

import pytest

from patchkit.cli.catalog import all_commands
from patchkit.cli.command import about, summary
from tools.help_pages import all_pages, paragraphs, parameters
from tools.json_reference import json_reference
from tools.reference import command_reference, stale_files


@pytest.mark.slow
def test_nothing_generated_is_stale() -> None:
    assert stale_files() == [], "run `python -m tools.reference`"


def test_pages_fit_80_columns() -> None:
    lines = [line for page in all_pages().values() for line in page.splitlines()]
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("name", all_commands())
def test_a_command_tells_all_about_itself(name: str) -> None:
    told = about(name)
    assert 0 in told.exits
    assert paragraphs(name)[0] == f"{summary(name)}."
    assert summary(name)[:1].isupper()
    assert len(summary(name)) <= 60
    assert told.examples
    assert all(f"patchkit {name}" in line for line in told.examples)
    known = {each for parameter in parameters(name) for each in parameter.names}
    assert ("--json" in known) == bool(told.result)
    for parameter in parameters(name):
        assert parameter.help[:1].isupper(), parameter.keyword
        assert parameter.help.endswith("."), parameter.keyword
    for line in told.examples:
        ours = line.partition(f"patchkit {name}")[2].partition("|")[0]
        words = [word.partition("=")[0] for word in ours.split()]
        assert {w for w in words if w.startswith("-")} <= known, line


def test_the_reference_names_every_command() -> None:
    text = "".join(command_reference().values())
    assert [name for name in all_commands() if f"## patchkit {name}\n" not in text] == []


def test_a_field_in_the_json_reference_has_its_own_comment() -> None:
    page = json_reference({"bisect": "patchkit.extensions.bisect.bisection:BisectReport"})
    rows = dict(re.findall(r"^\| `(\w+)` \|(?: [^|]* \|)? ?(.*?) ?\|$", page, re.MULTILINE))
    assert rows["command"] == "what was run"
    assert rows["known"] == ""
    assert rows["among"] == "one of some: those between cannot be judged"
