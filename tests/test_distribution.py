"""What is published: sdist and wheel are the same bytes wherever they are built, and work alone.

Only with PATCHKIT_TEST_BUILD=1: a package index has to be there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent

pytestmark = [
    pytest.mark.index,
    pytest.mark.skipif(
        not os.environ.get("PATCHKIT_TEST_BUILD"),
        reason="PATCHKIT_TEST_BUILD=1 builds and installs",
    ),
    pytest.mark.slow,
]


def _built(folder: Path, *, umask: int, when: int) -> dict[str, bytes]:
    """Name -> bytes of what is built from a copy with other modes and times."""
    copy = folder / "copy"
    listed = subprocess.run(
        ["git", "-C", str(_ROOT), "ls-files", "-z"], capture_output=True, check=True
    )
    for name in map(os.fsdecode, listed.stdout.split(b"\0")[:-1]):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(_ROOT / name, target)
        target.chmod((target.stat().st_mode | 0o666) & ~umask)
        os.utime(target, (when, when))
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist")]
    subprocess.run(command, cwd=copy, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in (folder / "dist").iterdir()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return _built(tmp_path_factory.mktemp("first"), umask=0o022, when=1_700_000_000)


def test_the_same_bytes_wherever_they_are_built(built: dict[str, bytes], tmp_path: Path) -> None:
    again = _built(tmp_path, umask=0o077, when=1_000_000_000)
    assert sorted(name.rpartition(".")[2] for name in built) == ["gz", "whl"]
    assert {name for name in built if built[name] != again.get(name)} == set()


def test_nothing_is_in_it_that_does_not_belong_there(
    built: dict[str, bytes], tmp_path: Path
) -> None:
    for name, data in built.items():
        path = tmp_path / name
        path.write_bytes(data)
        if name.endswith(".whl"):
            with zipfile.ZipFile(path) as wheel:
                names = wheel.namelist()
            assert {each.partition("/")[0].partition("-")[0] for each in names} == {
                "patchkit",
                "patchkit_cli",
            }
            shared = {each.partition(".data/data/")[2] for each in names} - {""}
            assert shared > {
                "share/man/man1/patchkit.1",
                "share/bash-completion/completions/patchkit",
                "share/zsh/site-functions/_patchkit",
                "share/fish/vendor_completions.d/patchkit.fish",
            }
        else:
            with tarfile.open(path) as sdist:
                names = sdist.getnames()
        assert not [each for each in names if "__pycache__" in each or "/.venv" in each]


def _pythons() -> list[str]:
    """One interpreter for each Python from 3.10 on that this machine has.

    They are looked for on PATH and in $PATCHKIT_TEST_PYTHONS (folders, separated like PATH).
    """
    if not os.environ.get("PATCHKIT_TEST_BUILD"):
        return [sys.executable]
    path = os.pathsep.join([os.environ.get("PATCHKIT_TEST_PYTHONS", ""), os.environ["PATH"]])
    named = {f"3.{minor}": shutil.which(f"python3.{minor}", path=path) for minor in range(10, 20)}
    named[f"3.{sys.version_info[1]}"] = sys.executable
    able = [each for each in named.values() if each and _makes_environments(each)]
    assert able
    return able


def _makes_environments(python: str) -> bool:
    script = "import ensurepip, venv, sys; sys.exit(sys.version_info < (3, 10))"
    return subprocess.run([python, "-c", script], capture_output=True, check=False).returncode == 0


def _run(*argv: str, cwd: Path) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize("python", _pythons())
def test_the_wheel_works_in_a_bare_environment(
    python: str, built: dict[str, bytes], tmp_path: Path
) -> None:
    (name,) = (each for each in built if each.endswith(".whl"))
    (tmp_path / name).write_bytes(built[name])
    bare = tmp_path / "bare"
    _run(python, "-m", "venv", str(bare), cwd=tmp_path)
    pip = (str(bare / "bin/python"), "-m", "pip")
    quiet = ("--quiet", "--quiet", "--disable-pip-version-check")
    _run(*pip, "install", *quiet, str(tmp_path / name), cwd=tmp_path)
    _run(*pip, "check", cwd=tmp_path)
    assert (bare / "share/man/man1/patchkit-apply.1").is_file()
    _carries_a_patch(str(bare / "bin/patchkit"), tmp_path)


def _carries_a_patch(program: str, folder: Path) -> None:
    """The main job with an upstream made on the spot: pin, edit, record, apply, bump."""

    def commit(text: str) -> str:
        (folder / "up").mkdir(exist_ok=True)
        (folder / "up/a.py").write_text(text)
        _run(*git, "add", "a.py", cwd=folder)
        _run(*git, "commit", "-qm", "A change", cwd=folder)
        return _run(*git, "rev-parse", "HEAD", cwd=folder).strip()

    git = ("git", "-C", str(folder / "up"), "-c", "user.name=A", "-c", "user.email=a@example.com")
    _run("git", "init", "-q", "up", cwd=folder)
    lines = [f"line {number}\n" for number in range(9)]
    pin = commit("".join(lines))
    where = ("--git", f"file://{folder}/up", "--ref", pin)
    _run(program, "init", "demo", *where, cwd=folder)
    _run(program, "check", "--only", "manifest", cwd=folder)
    _run(program, "init", "--schema", cwd=folder)
    _run(program, "apply", cwd=folder)
    (edited,) = (folder / "workspace").glob("*/a.py")
    edited.write_text("".join([*lines[:7], "ours\n", lines[8]]))
    new = (
        program,
        "refresh",
        "--new",
        "ours",
        "--message",
        "Ours",
        "-m",
        "demo",
        "-c",
        edited.parent.name,
    )
    _run(*new, cwd=folder)
    _run(program, "check", cwd=folder)
    newest = commit("".join(["theirs\n", *lines[1:]]))
    _run(program, "bump", edited.parent.name, "--to", newest, cwd=folder)
    _run(program, "apply", cwd=folder)
    assert edited.read_text() == "".join(["theirs\n", *lines[1:7], "ours\n", lines[8]])
