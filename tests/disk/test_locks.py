"""One holder of a lock file at a time, and none that has ended."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patchkit.disk.files import FileLock, locked
from patchkit.model.progress import Stop


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    one, other = FileLock(path), FileLock(path)
    one.release()  # has nothing yet
    assert one.acquire(0)
    assert not other.acquire(0.06)
    one.release()
    one.release()  # has nothing any more, and takes nothing from anybody
    assert other.acquire(0)
    assert not one.acquire(0)
    assert path.exists()


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    script = "import os, pathlib, patchkit.disk.files as f\n"
    script += f"l = f.FileLock(pathlib.Path({str(path)!r}))\n"
    script += "assert l.acquire(0)\nprint(flush=True)\ninput()"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert not FileLock(path).acquire(0)
        holder.kill()
        holder.wait()
    assert FileLock(path).acquire(0)


def test_a_file_deleted_on_the_way_locks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.lock"
    flock = fcntl.flock

    def flock_deleted(descriptor: int, operation: int) -> None:
        monkeypatch.undo()
        path.unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_deleted)
    lock = FileLock(path)
    assert lock.acquire(1)
    assert not FileLock(path).acquire(0)  # the file that is there now is the one that is locked


def test_no_link_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        FileLock(path).acquire(0)
    assert not (tmp_path / "elsewhere").exists()


def test_who_has_to_wait_says_so_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, waits = tmp_path / "new" / "a.lock", []
    with locked(path, Stop(), lambda: waits.append("free")):
        holder = FileLock(path)
        assert not holder.acquire(0)
    assert holder.acquire(0)
    assert waits == []
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("slept before it said a word"))
    with locked(path, Stop(), holder.release):
        assert not holder.acquire(0)
