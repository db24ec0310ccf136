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
        else:
            with tarfile.open(path) as sdist:
                names = sdist.getnames()
        assert not [each for each in names if "__pycache__" in each or "/.venv" in each]


def test_the_wheel_works_in_a_bare_environment(built: dict[str, bytes], tmp_path: Path) -> None:
    (name,) = (each for each in built if each.endswith(".whl"))
    (tmp_path / name).write_bytes(built[name])
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "bare")], check=True)
    python = tmp_path / "bare" / "bin" / "python"
    quiet = ("--quiet", "--quiet", "--disable-pip-version-check")
    install = [str(python), "-m", "pip", "install", *quiet, str(tmp_path / name)]
    subprocess.run(install, check=True, cwd=tmp_path)
    subprocess.run([str(python), "-m", "pip", "check"], check=True, capture_output=True)
    program = tmp_path / "bare" / "bin" / "patchkit"
    commit = "0123456789abcdef0123456789abcdef01234567"
    commands = (
        ["init", "demo", "--git", "https://example.com/demo.git", "--commit", commit],
        ["manifest", "lint"],
        ["manifest", "schema"],
        ["status"],
        ["--help"],
    )
    for words in commands:
        done = subprocess.run(
            [str(program), *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
