"""An extension can be taken away, and anybody can bring one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from patchkit import entry_points
from patchkit.errors import ExitCode
from patchkit.manifest.types import KEYS
from tests.support.commands import Ran, run_process
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, make_patch

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent.name for path in (ROOT / "patchkit/extensions").glob("*/__init__.py"))

#: Of the core's tests: whole modules, those that are not slow.
_CORE = (
    "tests/cli/test_main.py",
    "tests/ops/test_apply.py",
    "tests/ops/test_check.py",
)

_COMMAND = """\
from patchkit.cli.command import command
from patchkit import entry_points
from patchkit.errors import ExitCode
from patchkit.manifest.types import KEYS

@command("manifest", examples=[("patchkit shout", "loudly")], ok="shouted")
def shout(session):
    \"\"\"Say the manifest's name loudly.\"\"\"
    session.terminal.document(session.manifest_path.stem.upper())
    return ExitCode.OK
"""

_KEYS = """\
from typing import Annotated

from msgspec import Struct

from patchkit.manifest.types import Line

class LoudKeys(Struct, frozen=True):
    \"\"\"Keys of a component.\"\"\"

    motto: Annotated[Line, "What to shout."] = ""
"""

_FINDINGS = """\
from patchkit.model.finding import Finding, Severity

def quiet(run):
    def look(checked):
        from loud.keys import LoudKeys

        motto = checked.component.added(LoudKeys).motto
        if motto and motto != motto.upper():
            what = f"{motto} is not loud, for {len(checked.patches)} patches"
            yield Finding(Severity.ERROR, "quiet", what, checked.component.name)

    return look
"""

_POINTS = """\
[patchkit.commands]
shout = loud:shout
check --only volume = loud:shout
gone = loud_gone:gone
check --only gone = loud_gone:gone

[patchkit.keys]
component.motto = loud.keys:LoudKeys

[patchkit.findings]
volume = loud.findings:quiet
"""


@pytest.fixture
def foreign(tmp_path: Path) -> dict[str, str]:
    """The environment in which a package with an extension is installed."""
    write_files(
        tmp_path,
        {
            "site/loud/__init__.py": _COMMAND,
            "site/loud/keys.py": _KEYS,
            "site/loud/findings.py": _FINDINGS,
            "site/loud-1.dist-info/entry_points.txt": _POINTS,
            "manifests/hello.yaml": "version: 1\n",
        },
    )
    return {**os.environ, "PYTHONPATH": f"{tmp_path / 'site'}:{ROOT}"}


@pytest.mark.slow
def test_a_foreign_extension_brings_commands_and_forms_of_ours(
    tmp_path: Path, foreign: dict[str, str]
) -> None:
    def patchkit(*argv: str) -> Ran:
        return run_process(*argv, cwd=tmp_path, environment=foreign)

    assert patchkit("shout").ok().out == "HELLO\n"
    patchkit("--help").ok().shows("\nExtensions:\n  shout  Say the manifest's name loudly\n")
    patchkit("shuot").says("did you mean shout or show?")
    volume = ("check", "--only", "volume")
    assert patchkit(*volume).ok().out == "HELLO\n"
    page = " ".join(patchkit("check", "--help").ok().out.split())
    assert "check --only volume Say the manifest's name loudly" in page
    patchkit("check", "--only", "volum").says("did you mean volume?")
    ran = patchkit("gone").ends(5)
    assert ran.err.startswith("error: an extension cannot be loaded: No module named 'loud_gone'\n")


@pytest.mark.slow
def test_a_foreign_extension_brings_a_key_and_a_finding(
    project: Project, upstream: Upstream, foreign: dict[str, str]
) -> None:
    pin = upstream.commit({"a.txt": "one\n"}, "base")
    patch = make_patch({"a.txt": "one\n"}, {"a.txt": "two\n"}, subject="Two")
    project.component("demo", upstream, pin, {"two.patch": patch}, motto="hush")
    line = "hush is not loud, for 1 patches"
    for _ in range(2):  # also of the manifest that was kept
        run_process("check", cwd=project.root, environment=foreign).ends(1).shows(line)
    run_process("check", cwd=project.root).ends(
        ExitCode.BAD_INPUT, "components.demo.motto is an unknown key"
    )


@pytest.mark.slow
def test_a_patch_whose_recipe_nothing_reads_is_refused(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    pin = upstream.commit({"a.txt": "one\n"}, "base")
    body = "Because.\n\nRecipe: two.recipe.yml"
    patch = make_patch({"a.txt": "one\n"}, {"a.txt": "two\n"}, subject="Two", body=body)
    project.component("demo", upstream, pin, {"two.patch": patch})
    project.write({"patches/demo/two.recipe.yml": "version: 1\n"})
    write_files(tmp_path, {"patchkit_cli-0.dist-info/entry_points.txt": "[patchkit.commands]\n"})
    without = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ran = run_process("check", cwd=project.root, environment=without)
    assert ran.code == ExitCode.FINDING
    assert "no extension that reads it is installed" in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_each_can_be_taken_away(folder: str, tmp_path: Path) -> None:
    """Without it its words are none, or say that it cannot be loaded; so with its keys."""
    environment = _without([folder], tmp_path)
    lines = (distribution("patchkit-cli").read_text("entry_points.txt") or "").split("\n")
    own = [line for line in lines if f" = patchkit.extensions.{folder}." in line]
    names = [line.partition(" = ")[0] for line in own]
    words = [name for name in names if name in entry_points.named("patchkit.commands")]
    keys = [name for name in names if name in entry_points.named(KEYS)]
    assert own
    for word in words:
        run_process(*word.split(), cwd=tmp_path, environment=environment).ends(
            ExitCode.ENVIRONMENT, "an extension cannot be loaded"
        )
    for name in keys:
        assert "an extension cannot be loaded" in _with_key(name, tmp_path, environment)
    _declare(tmp_path, [line for line in lines if line not in own])
    for name in keys:
        _with_key(name, tmp_path, environment)
    for word in words:
        run_process(*word.split(), cwd=tmp_path, environment=environment).ends(ExitCode.USAGE)


@pytest.mark.slow
def test_the_core_stands_alone(tmp_path: Path) -> None:
    """The core's tests pass without any of them.

    That none of them needs another is what `tests/test_layering.py` reads from their imports.
    """
    environment = _without(FOLDERS, tmp_path)
    lines = (distribution("patchkit-cli").read_text("entry_points.txt") or "").split("\n")
    _declare(tmp_path, [line for line in lines if " = patchkit.extensions." not in line])
    for name in ("tests", "bench", "tools", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("build"))
    shutil.rmtree(tmp_path / "tests/extensions")
    for name in ("pyproject.toml", "ARCHITECTURE.md"):
        shutil.copy(ROOT / name, tmp_path)
    tests = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow"]
    done = subprocess.run(
        [*tests, *_CORE], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]


def _without(folders: list[str], home: Path) -> dict[str, str]:
    """The environment of a copy of patchkit that lacks those extensions."""
    shutil.copytree(ROOT / "patchkit", home / "patchkit")
    for folder in folders:
        shutil.rmtree(home / "patchkit/extensions" / folder)
    return {**os.environ, "PYTHONPATH": str(home)}


def _declare(home: Path, entry_points_lines: list[str]) -> None:
    """Let the copy in `home` have those entry points, before those that are installed."""
    text = "\n".join(entry_points_lines)
    write_files(home, {"patchkit_cli-0.dist-info/entry_points.txt": text})


def _with_key(name: str, folder: Path, environment: dict[str, str]) -> str:
    """What is said of a manifest that has a key which an extension would bring."""
    title, _, key = name.rpartition(".")
    value = {"component": f"    {key}: {{}}", "verify-step": f"    verify: [{{{key}: a}}]"}
    pin = "1" * 40
    text = f"""\
version: 1
components:
  demo:
    source: {{git: https://example.com/demo.git}}
    pin: "{pin}"
{value.get(title, f"{key}: {{}}")}
"""
    write_files(folder, {"manifests/keyed.yaml": text})
    ran = run_process("check", "--only", "manifest", "keyed", cwd=folder, environment=environment)
    assert ran.code == ExitCode.BAD_INPUT, ran
    said = ran.out + ran.err
    assert "keyed.yaml:6" in said
    assert key in said or title == "verify-step"
    return said
