"""Sets of files that change together: all of them or none, whatever happens on the way."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from patchkit.errors import BadInputError, SurroundingsError
from patchkit.transaction import JOURNAL, recover, write_set
from tests.workspace.killing import killed_at

OLD = {"patches/a/one.patch": b"1\n", "patches/a/two.patch": b"2\n", "patches/a/series": b"s\n"}
NEW = {
    "patches/a/one.patch": b"one\n",
    "patches/a/series": b"new\n",
    "patches/a/three.patch": b"3\n",
    "patches/b/deep/four.patch": b"4\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with OLD in it."""
    folder = tmp_path / "project"
    folder.mkdir()
    _fill(folder)
    return folder


def _fill(root: Path) -> None:
    for name, data in OLD.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _writes(root: Path) -> dict[Path, bytes | None]:
    writes: dict[Path, bytes | None] = {root / name: data for name, data in NEW.items()}
    return writes | {root / "patches/a/two.patch": None}


def _files(root: Path) -> dict[str, bytes]:
    """Everything but what a killed writer may leave beside."""
    found = (path for path in root.rglob("*") if path.is_file() and path.suffix != ".patchkit-tmp")
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def test_a_set_is_written_and_leaves_nothing_behind(root: Path) -> None:
    write_set(root, _writes(root))
    assert _files(root) == NEW
    assert not list(root.rglob("*.patchkit-tmp"))


def test_killed_anywhere_the_set_is_old_or_new(tmp_path: Path) -> None:
    outcomes = set()
    for point in range(1, 200):
        root = tmp_path / str(point)
        root.mkdir()
        _fill(root)
        killed = killed_at(point, partial(write_set, root, _writes(root)))
        rolled = recover(root)
        files = _files(root)
        assert files in (OLD, NEW), f"a mixture after a kill at {point}"
        assert not (rolled and files == OLD)
        outcomes.add((files == NEW, rolled))
        write_set(root, _writes(root))
        assert _files(root) == NEW
        if not killed:
            break
    else:
        pytest.fail("the work never came to its end")
    # killed before the journal, after it, and not at all or after the last step
    assert outcomes == {(False, False), (True, True), (True, False)}


def test_a_kill_while_recovering_is_recovered_from(tmp_path: Path) -> None:
    for first in range(1, 200):
        root = tmp_path / str(first)
        root.mkdir()
        _fill(root)
        if not killed_at(first, partial(write_set, root, _writes(root))):
            break
        if not (root / JOURNAL).exists():
            continue
        for point in range(1, 50):
            if not killed_at(point, partial(recover, root)):
                break
        assert _files(root) == NEW


def test_the_same_bytes_are_not_written(root: Path) -> None:
    path = root / "patches/a/series"
    before = path.stat().st_ino
    write_set(root, {path: b"s\n"})
    assert path.stat().st_ino == before


def test_modes_and_links_stay(root: Path) -> None:
    real, link = root / "patches/a/series", root / "linked"
    real.chmod(0o640)
    link.symlink_to(real)
    write_set(root, {link: b"through\n"})
    assert link.is_symlink()
    assert (real.read_bytes(), real.stat().st_mode & 0o777) == (b"through\n", 0o640)


def test_a_folder_that_is_left_empty_goes(root: Path) -> None:
    write_set(root, {root / name: None for name in OLD})
    assert not (root / "patches").exists()


def test_a_full_disk_changes_nothing(root: Path) -> None:
    """A limit on the size of files stands in for the disk: the third file is too large for it."""
    program = (
        "import sys; from pathlib import Path; from patchkit.transaction import write_set\n"
        "from patchkit.errors import SurroundingsError\n"
        "root = Path(sys.argv[1])\n"
        "writes = {root / 'patches/a/one.patch': b'x', root / 'n/e/w': b'x',"
        " root / 'patches/a/series': b'y' * 100_000}\n"
        "try: write_set(root, writes)\n"
        "except SurroundingsError as error: print(error)\n"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = subprocess.run(
        [sys.executable, "-B", "-c", program, str(root)],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)},
    )
    assert "series cannot be written: File too large" in done.stdout
    assert _files(root) == OLD
    assert not list(root.rglob("*.patchkit-tmp"))
    assert not (root / "n").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_writable_changes_nothing(root: Path) -> None:
    (root / "patches/a").chmod(0o500)
    with pytest.raises(SurroundingsError):
        write_set(root, _writes(root))
    (root / "patches/a").chmod(0o700)
    assert _files(root) == OLD


def test_nothing_to_recover_is_nothing(root: Path) -> None:
    assert not recover(root)
    assert not recover(root / "absent")


@pytest.mark.parametrize("text", ["", "{}", '{"version": 2, "steps": []}', '{"version": 1}'])
def test_a_journal_that_cannot_be_read_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / JOURNAL).write_text(text)
    with pytest.raises(BadInputError, match=JOURNAL):
        recover(tmp_path)
    assert (tmp_path / JOURNAL).exists()


def test_a_journal_cannot_reach_outside_of_the_project(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "precious").write_bytes(b"!")
    steps = [{"path": "../precious", "from": None}]
    (root / JOURNAL).write_text(json.dumps({"version": 1, "steps": steps}))
    with pytest.raises(BadInputError):
        recover(root)
    assert (tmp_path / "precious").read_bytes() == b"!"
