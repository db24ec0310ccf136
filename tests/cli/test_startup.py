"""Nothing loads what it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream

_SCRIPT = """\
import sys
sys.path[:] = {path!r}
from patchkit.cli.main import run
run(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
"""


def _loaded(*argv: str, cwd: Path | None = None) -> set[str]:
    """The top-level modules, and patchkit's own, that a command line leaves loaded."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _SCRIPT.format(path=sys.path), *argv],
        cwd=cwd,
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
    "platformdirs",
}


@pytest.mark.parametrize("argv", [(), ("--version",), ("--help",)])
def test_questions_about_the_command_line_load_no_command(argv: tuple[str, ...]) -> None:
    loaded = _loaded(*argv)
    assert loaded & (_HEAVY - {"typer"}) == set()
    assert {m for m in loaded if m.startswith("patchkit.cli.commands")} == set()


def test_a_command_loads_no_other_command() -> None:
    loaded = _loaded("init", "--schema")
    commands = {m for m in loaded if m.startswith("patchkit.cli.commands.")}
    assert commands == {"patchkit.cli.commands.manifest"}
    assert loaded & (_HEAVY - {"typer"}) == set()


_UNUSED = {
    *("rich", "git", "jinja2", "unidiff", "jsonschema", "ast_grep_py"),
    *("ssl", "asyncio", "email", "http"),
    "yaml",  # a manifest read before
}


@pytest.mark.parametrize("argv", [("status",), ("apply",), ("check",), ("log",)])
def test_a_command_without_need_of_the_network_loads_nothing_for_it(
    argv: tuple[str, ...], project: Project, upstream: Upstream
) -> None:
    project.patched(upstream, {"a": "1\n"}, {"a": "2\n"}, patch="two.patch", body="Because.")
    project.run("apply").ok()
    loaded = _loaded(*argv, cwd=project.root)
    home = {"log": "views"}.get(argv[0], argv[0])
    assert f"patchkit.ops.{home}" in loaded
    assert loaded & _UNUSED == set()
    stages = {m.split(".")[1] for m in loaded if m.startswith("patchkit.")}
    assert stages & {"recipes", "residual", "rendering", "machine", "drift", "carry"} == set()


_FRAMES = """\
import sys, threading
sys.path[:] = {path!r}
from patchkit.cli.main import run

def ours(frame):
    found = []
    while frame is not None:
        if "/patchkit/" in frame.f_code.co_filename:
            found.append(frame.f_code.co_name)
        frame = frame.f_back
    return found[::-1]

def look(frame, event, _):
    if event == "call" and frame.f_code.co_name == {work!r}:
        found = ours(frame)
        if threading.current_thread() is not threading.main_thread():
            above = ours(sys._current_frames()[threading.main_thread().ident])
            found = above[: above.index("in_parallel") + 1] + found
        seen.append(found[found.index("run") + 1 :])

seen = []
threading.setprofile(look)
sys.setprofile(look)
run(sys.argv[1:])
sys.setprofile(None)
print(*seen[0], file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "work", "most"),
    [
        (("apply",), "build", 12),
        (("bump", "demo", "--to", "main", "--dry-run"), "carry_stack", 15),
    ],
)
def test_few_calls_lead_from_the_command_line_to_the_work(
    argv: tuple[str, ...], work: str, most: int, project: Project, upstream: Upstream
) -> None:
    project.patched(upstream, {"a": "1\n"}, {"a": "2\n"}, patch="two.patch", body="Because.")
    upstream.commit({"a": "1\n", "b": "1\n"})
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _FRAMES.format(path=sys.path, work=work), *argv],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=True,
    )
    calls = done.stderr.splitlines()[-1].split()
    assert len(calls) <= most, calls
