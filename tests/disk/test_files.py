"""One writer for all files: old bytes or new bytes, whatever happens in between."""

from __future__ import annotations

import errno
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.disk.files import (
    UNFINISHED,
    read_given,
    read_plain,
    replace_file,
    sync_folder,
    write_beside,
    write_folder,
)
from patchkit.errors import BadInputError, SurroundingsError
from tests.workspace.killing import killed_at


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.touch()
    replace_file(tmp_path / "new", b"data\r\n\x00")
    assert (tmp_path / "new").read_bytes() == b"data\r\n\x00"
    assert mode(tmp_path / "new") == mode(other)


@pytest.mark.parametrize(("bits", "runs"), [(0o640, 0o750), (0o600, 0o700), (0o755, 0o755)])
def test_who_may_read_a_program_may_run_it(tmp_path: Path, bits: int, runs: int) -> None:
    path = tmp_path / "run.sh"
    path.touch()
    path.chmod(bits)
    assert mode(write_beside(path, b"new", executable=True)) == runs
    assert mode(write_beside(path, b"new")) == bits


@pytest.mark.parametrize("bits", [0o600, 0o644, 0o755])
def test_the_mode_is_kept(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(bits)
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert mode(path) == bits


def test_extended_attributes_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("no extended attributes here")
    replace_file(path, b"new")
    assert os.getxattr(path, "user.note") == b"kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_root_leaves_files_to_their_owners(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o6755)
    os.chown(path, 1234, 2345)
    path.chmod(0o6755)
    os.chown(tmp_path, 1234, 2345)
    replace_file(path, b"new")
    replace_file(tmp_path / "more", b"new")
    assert [(each.stat().st_uid, each.stat().st_gid) for each in (path, tmp_path / "more")] == [
        (1234, 2345)
    ] * 2
    assert path.stat().st_mode & 0o7777 == 0o6755


def test_the_target_of_a_symbolic_link_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "folder" / "target"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link = tmp_path / "link"
    link.symlink_to("folder/target")
    replace_file(link, b"new", named=True)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_link_that_nobody_named_leads_nowhere(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"somebody's")
    target.chmod(0o600)
    link.symlink_to(target)
    replace_file(link, b"new")
    assert (link.is_symlink(), link.read_bytes()) == (False, b"new")
    assert target.read_bytes() == b"somebody's"
    assert link.stat().st_mode & 0o111 == 0


def test_nothing_else_is_left_behind(tmp_path: Path) -> None:
    replace_file(tmp_path / "file", b"1")
    replace_file(tmp_path / "file", b"2")
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["file"]


def test_beside_is_in_the_same_folder_and_complete(tmp_path: Path) -> None:
    beside = write_beside(tmp_path / ("n" * 250), b"data")
    assert beside.parent == tmp_path
    assert beside.name.endswith(UNFINISHED)
    assert beside.read_bytes() == b"data"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SurroundingsError, match="cannot be written: No such file"):
        replace_file(tmp_path / "none" / "file", b"")


def test_a_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        replace_file(pipe, b"a report", named=True)
        assert os.read(reader, 100) == b"a report"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert not list(tmp_path.glob(f"*{UNFINISHED}"))


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(SurroundingsError, match="folder cannot be written"):
        replace_file(tmp_path / "folder", b"")
    assert not list(tmp_path.glob(f".*{UNFINISHED}"))


_ENDLESS = """
import sys
from pathlib import Path
from patchkit.disk.files import replace_file
print("ready", flush=True)
while True:
    for letter in b"ab":
        replace_file(Path(sys.argv[1]), bytes([letter]) * 100_000)
"""


@pytest.mark.slow
def test_a_kill_leaves_old_or_new(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 100_000)
    for delay in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", _ENDLESS, str(path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            for _ in range(delay * 7):
                assert len(set(path.read_bytes())) == 1
            process.kill()
        data = path.read_bytes()
        assert len(data) == 100_000
        assert len(set(data)) == 1


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """An empty folder."""
    folder = tmp_path / "beside"
    folder.mkdir()
    return folder


def test_a_folder_is_there_whole_or_not_at_all(beside: Path) -> None:
    target, files = beside / "folder", {"one": b"1\n", "two": b"2\n"}
    for point in range(1, 100):
        killed = killed_at(point, lambda: write_folder(target, files))
        found = {path.name: path.read_bytes() for path in target.glob("*")}
        assert found in ({}, files)
        if not killed:
            break
        if found:
            for path in target.iterdir():
                path.unlink()
    assert [path.name for path in beside.iterdir()] == ["folder"]


def test_a_folder_with_something_in_it_is_left_alone(beside: Path) -> None:
    (beside / "folder").mkdir()
    (beside / "folder" / "mine").touch()
    with pytest.raises(SurroundingsError, match="folder cannot be written"):
        write_folder(beside / "folder", {"one": b"1\n"})
    assert [path.name for path in beside.rglob("*")] == ["folder", "mine"]


def test_folders_above_it_are_made(beside: Path) -> None:
    write_folder(beside / "new/er/folder", {"one": b"1\n"})
    assert (beside / "new/er/folder/one").read_bytes() == b"1\n"


def test_a_file_where_a_folder_above_it_should_be(beside: Path) -> None:
    (beside / "file").touch()
    with pytest.raises(SurroundingsError, match="folder cannot be written"):
        write_folder(beside / "file/folder", {"one": b"1\n"})
    assert [path.name for path in beside.iterdir()] == ["file"]


@pytest.mark.parametrize("failure", [OSError(errno.EIO, "broken"), KeyboardInterrupt()])
def test_what_ends_it_after_the_rename_is_what_is_told(
    beside: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    sync = os.fsync

    def fail_on_folders(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise failure
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fail_on_folders)
    expected = SurroundingsError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        replace_file(beside / "file", b"new")
    assert (beside / "file").read_bytes() == b"new"
    assert len(list(beside.iterdir())) == 1


def test_a_file_system_that_cannot_sync_folders_is_no_failure(
    beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EINVAL, "not here")

    path = write_beside(beside / "file", b"new")
    monkeypatch.setattr(os, "fsync", fail)
    sync_folder(path.parent)


def test_an_interrupt_leaves_nothing_beside(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_file(beside / "file", b"new")
    assert list(beside.iterdir()) == []


def test_a_file_that_no_descriptor_is_left_for_is_not_called_wrong(tmp_path: Path) -> None:
    """Callers take an OSError for one of the file; this is none."""
    path = tmp_path / "file"
    path.write_bytes(b"data")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, most[1]))
    try:
        with pytest.raises(SurroundingsError, match="file: Too many open files"):
            read_plain(path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
    assert read_plain(path) == b"data"
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "none")


def test_a_file_whose_size_is_not_known_is_read_to_its_end() -> None:
    path = Path("/proc/version")
    if not path.exists():
        pytest.skip("no such file here")
    assert read_plain(path) == path.read_bytes()


@pytest.mark.parametrize("where", ["", "demo.yaml:3"])
def test_a_file_that_is_not_there_is_named_by_who_gave_it(tmp_path: Path, where: str) -> None:
    path = tmp_path / "none.patch"
    with pytest.raises(BadInputError) as error:
        read_given(path, where) if where else read_given(path)
    assert error.value.problems[0].where == (where or str(path))
