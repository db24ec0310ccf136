"""Nothing loads what it does not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SCRIPT = """\
import sys
sys.path[:] = {path!r}
from patchkit.cli.main import run
run(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
"""


def _loaded(*argv: str) -> set[str]:
    """The top-level modules, and patchkit's own, that a command line leaves loaded."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _SCRIPT.format(path=sys.path), *argv],
        capture_output=True,
        text=True,
        check=True,
    )
    modules = done.stderr.splitlines()[-1].split()
    return {m for m in modules if m.startswith("patchkit.")} | {m.split(".")[0] for m in modules}


_HEAVY = {
    "typer",
    "pydantic",
    "rich",
    "git",
    "jinja2",
    "unidiff",
    "yaml",
    "filelock",
    "platformdirs",
}
_STANDARD = {"typing", "dataclasses", "inspect", "subprocess", "pathlib", "json", "logging", "re"}


@pytest.mark.parametrize(
    "argv",
    [("--version",), ("--help",), ("version", "--help"), ("__complete", "version", "-")],
)
def test_questions_about_the_command_line_load_nothing(argv: tuple[str, ...]) -> None:
    loaded = _loaded(*argv)
    assert loaded & (_HEAVY | _STANDARD) == set()
    assert {m for m in loaded if m.startswith("patchkit.")} <= {
        "patchkit.cli",
        "patchkit.cli.catalog",
        "patchkit.cli.complete",
        "patchkit.cli.complete_names",
        "patchkit.cli.help",
        "patchkit.cli.main",
        "patchkit.cli.table",
    }


def test_a_command_loads_no_other_command() -> None:
    loaded = _loaded("version")
    commands = {m for m in loaded if m.startswith("patchkit.cli.commands.")}
    assert commands == {"patchkit.cli.commands.version"}
    assert loaded & (_HEAVY - {"typer", "pydantic"}) == set()
