"""The options that many commands share do with each of them what they promise.

Which commands have such an option, the table of abilities says: each row there that names a test
of this module is a case of it. A command succeeds here in the state, and with the words, that
`test_exits` knows for it, or that stand below.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest

from patchkit.errors import ExitCode
from patchkit.report.json import one_word
from tests.cli.test_exits import CASES, Scene
from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Upstream

pytestmark = pytest.mark.slow

#: What befalls a project, and the words that are run then.
_Line: TypeAlias = tuple[Callable[[Scene], None], tuple[str, ...]]

_TABLE = Path(__file__).parents[1] / "data" / "abilities.tsv"

#: Of each command a line with which it succeeds.
_SUCCEEDS: dict[str, _Line] = {
    **{command: (state, argv) for command, code, state, argv in CASES if code == 0},
    "init --schema": ((lambda _: None), ("init", "--schema")),
}


def _taking(option: str) -> list[str]:
    """The commands whose `option` the table leaves to this module."""
    rows = (row.split("\t") for row in _TABLE.read_text("utf-8").split("\n")[1:-1])
    here = f"tests/cli/{Path(__file__).name}::"
    abilities = (now.rpartition(" ") for _, now, test in rows if test.startswith(here))
    return [command for command, _, last in abilities if last == option]


@pytest.fixture
def scene(project: Project, upstream: Upstream) -> Scene:
    return Scene(project, upstream)


def _applied_and_bumped(scene: Scene) -> None:
    scene.applied()
    scene.bumped()


def _patch_is_upstream(scene: Scene) -> None:
    """A patch of another repository is pinned, and applied."""
    data = (scene.project.root / "patches/demo/greet-warmly.patch").read_bytes()
    commit = scene.upstream.commit({"warm.patch": data}, branch="patches")
    entry = {"git": scene.upstream.url, "commit": commit, "path": "warm.patch"}
    entry["sha256"] = sha256(data).hexdigest()
    scene.project.component("demo", scene.upstream, scene.pin, [entry])
    scene.applied()


@pytest.mark.parametrize("command", _taking("--quiet"))
def test_quiet_prints_no_result(command: str, scene: Scene) -> None:
    before, argv = _SUCCEEDS[command]
    before(scene)
    loud = _run_and_put_back(scene.project, *argv)
    quiet = scene.project.run(*argv, "--quiet")
    assert (quiet.code, quiet.out) == (loud.code, "")
    assert len(quiet.err) <= len(loud.err)
    assert len(quiet.err) < len(loud.err + loud.out)


@pytest.mark.parametrize("command", _taking("--json"))
def test_json_is_an_envelope(command: str, scene: Scene) -> None:
    before, argv = _SUCCEEDS[command]
    before(scene)
    ran = scene.project.run(*argv, "--json").ok()
    name = "ci" if command == "ci --merge" else one_word(command)  # as one run over all
    assert ran.json["schema"] == f"patchkit/{name}/2"
    assert ran.json["exit_code"] == 0


@pytest.mark.parametrize("command", _taking("--manifest"))
def test_manifest_chooses_one_of_two(command: str, scene: Scene) -> None:
    before, argv = _SUCCEEDS[command]
    before(scene)
    scene.project.write({"manifests/other.yaml": "colour: red\n"})
    scene.project.run(*argv, "--manifest", "other").ends(
        ExitCode.BAD_INPUT, "error: manifests/other.yaml:1: version is missing"
    )
    scene.project.run(*argv, "--manifest", "demo").ok()


#: Where a command that succeeds above needs nothing of upstream.
_FROM_UPSTREAM: dict[str, _Line] = {
    "show": (Scene.halted, ("show", "main")),
}


@pytest.mark.parametrize("command", _taking("--offline"))
def test_offline_asks_no_network(command: str, scene: Scene, tmp_path: Path) -> None:
    """The upstream can be reached, but nothing of it is in the cache."""
    before, argv = (_SUCCEEDS | _FROM_UPSTREAM)[command]
    before(scene)
    ran = scene.project.run(*argv, "--cache", "../cold", "--offline").ends(
        ExitCode.FINDING if command == "check --only installed" else ExitCode.ENVIRONMENT
    )
    assert "in the cache" in ran.err + ran.out
    ran.says("--offline")
    assert _kept(tmp_path / "cold") == set()


@pytest.mark.parametrize("command", _taking("--cache"))
def test_cache_is_where_upstream_is_kept(command: str, scene: Scene, tmp_path: Path) -> None:
    before, argv = (_SUCCEEDS | _FROM_UPSTREAM)[command]
    before(scene)
    cold = tmp_path / "cold"
    if command in ("continue", "skip"):  # the old pin has to be there
        scene.project.run("fetch", "--cache", "../cold").ok()
    had = _kept(cold)
    scene.project.run(*argv, "--cache", "../cold").ok()
    assert _kept(cold) > had


#: Where what a command succeeds with above has nothing to do with a checkout.
_IN_WORKSPACE: dict[str, _Line] = {
    "check": (Scene.halted, ("check",)),
    "ci": (Scene.halted, ("ci",)),
    "bump": (_applied_and_bumped, ("bump", "demo", "--to", "main")),
    "export": (Scene.applied, ("export", "--branch", "ours")),
}


@pytest.mark.parametrize("command", _taking("--workspace"))
def test_workspace_is_where_checkouts_are(command: str, scene: Scene, tmp_path: Path) -> None:
    before, argv = (_SUCCEEDS | _IN_WORKSPACE)[command]
    before(scene)
    default, elsewhere = scene.project.root / "workspace", tmp_path / "elsewhere"
    if default.exists():
        default.rename(elsewhere)
    plain = _run_and_put_back(scene.project, *argv)
    had = _files(elsewhere)
    ran = scene.project.run(*argv, "--workspace", "../elsewhere").ok()
    assert not default.exists()
    assert (ran.code, ran.out) != (plain.code, plain.out) or _files(elsewhere) != had


def _run_and_put_back(project: Project, *argv: str) -> Ran:
    """What a command does, after which all files are as they were."""
    place = project.root.parent
    with TemporaryDirectory(dir=place.parent) as kept:
        shutil.copytree(place, kept, symlinks=True, dirs_exist_ok=True)
        ran = project.run(*argv)
        for path in place.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        shutil.copytree(kept, place, symlinks=True, dirs_exist_ok=True)
    return ran


def _kept(cache: Path) -> set[str]:
    """The files of a cache that hold what came from an upstream: git objects, and single files."""
    return {path.name for place in ("objects", "files") for path in cache.rglob(f"{place}/**/*")}


def _files(folder: Path) -> dict[str, bytes]:
    """All files but git's indexes, which a look at a checkout may write."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "index"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
