"""The quick parser agrees with typer on every command line that it takes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.cli.declare import Argument, Option
from patchkit.cli.plain import Row, parse_plain
from patchkit.cli.reference import parameter_rows
from patchkit.cli.typer_command import parse_with_typer
from patchkit.errors import ExitCode, UsageError


def _body(
    *,
    first: Annotated[str, Argument(metavar="FIRST", help="F.")],
    more: Annotated[list[Path] | None, Argument(metavar="MORE", help="M.")] = None,
    manifest: Annotated[str | None, Option("--manifest", "-m", help="M.")] = None,
    component: Annotated[list[str] | None, Option("--component", "-c", help="C.")] = None,
    workspace: Annotated[Path, Option("--workspace", envvar="WORK", help="W.")] = Path("w"),
    jobs: Annotated[int, Option("--jobs", "-j", minimum=1, help="J.")] = 4,
    quiet: Annotated[bool, Option("--quiet", "-q", help="Q.")] = False,
) -> ExitCode:
    """Do it."""
    raise AssertionError


_DEFAULTS: dict[str, Any] = {
    "more": None,
    "manifest": None,
    "component": None,
    "workspace": Path("w"),
    "jobs": 4,
    "quiet": False,
}


_ROWS = [Row(*row) for row in parameter_rows(_body)]


def test_whole_names_and_their_values_are_plain() -> None:
    line = ["a", "-c", "x", "--component=y", "--jobs", "3", "b", "-q", "--workspace", "d/e"]
    assert parse_plain(_ROWS, line) == {
        "first": "a",
        "more": [Path("b")],
        "component": ["x", "y"],
        "workspace": Path("d/e"),
        "jobs": 3,
        "quiet": True,
    }


@pytest.mark.parametrize(
    "line",
    [
        [],  # the argument is required
        ["a", "--nope"],
        ["a", "--man", "x"],
        ["a", "-mx"],
        ["a", "-qm", "x"],
        ["a", "--manifest"],
        ["a", "--manifest="],
        ["a", "--manifest", "-q"],
        ["a", "--quiet=yes"],
        ["a", "--jobs", "0"],
        ["a", "--jobs", "²"],
        ["a", "--", "b"],
        ["a", "-"],
        [""],
    ],
)
def test_the_rest_is_left_to_typer(line: list[str]) -> None:
    assert parse_plain(_ROWS, line) is None


_VALUES = ["a", "b c", "é", "x=y", "0", "7", "", "-", "--", "-5"]
_OPTIONS = ["-m", "--manifest", "-c", "--component", "-j", "--jobs", "-q", "--quiet", "--workspace"]
_ODD = ["--manifest=q", "--component=", "--jobs=2", "--workspace=w/x", "-qc", "-mz", "-m=1", "--no"]
_words = st.sampled_from([*_VALUES, *_OPTIONS, *_ODD])


@pytest.fixture
def _variable_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORK", "")


@pytest.mark.usefixtures("_variable_restored")
@given(st.lists(_words, max_size=6), st.sampled_from([None, "", "from/env"]))
def test_what_is_plain_means_the_same_to_typer(line: list[str], variable: str | None) -> None:
    os.environ.pop("WORK", None)
    if variable is not None:
        os.environ["WORK"] = variable
    values = parse_plain(_ROWS, line)
    if values is not None:
        assert _DEFAULTS | values == parse_with_typer("do", _body, line)


def test_typers_errors_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="no such option: --nope") as caught:
        parse_with_typer("do", _body, ["a", "--nope"])
    assert caught.value.problems[0].hint == "see `patchkit do --help`"
