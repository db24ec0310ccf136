"""Files without end, and patches that promise more than they have: bounded time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from base64 import b85encode
from pathlib import Path

import pytest

from patchkit.disk.files import read_plain
from tests.support.commands import run_process
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

pytestmark = pytest.mark.slow

_HEAD = b"diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n one\n+"


def test_a_file_is_read_as_far_as_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"1234")
    assert read_plain(path, most=4) == b"1234"
    with pytest.raises(OSError, match="is larger than 0 MiB"):
        read_plain(path, most=3)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_not_waited_for(
    project: Project, upstream: Upstream, patchkit_file: Path, kind: str
) -> None:
    patches = {"x.patch": make_patch({"a.txt": "one\n"}, {"a.txt": "two\n"})}
    project.component("demo", upstream, {"a.txt": "one\n"}, patches)
    project.run("apply").ok()
    patch = project.root / "patches/demo/x.patch"
    patch.unlink()
    if kind == "pipe":
        os.mkfifo(patch)
    else:
        patch.symlink_to("/dev/zero")
    for words in (("check",), ("status",), ("import", "patches/demo", "--dry-run")):
        ran = run_process(*words, cwd=project.root, timeout=30, program=[patchkit_file])
        assert ran.code in (2, 4, 5), ran.err
        assert "bug" not in ran.err


def test_an_endless_patch_is_refused_in_little_memory(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, {"a.txt": "one\n"}, {"x.patch": b""})
    with (project.root / "patches/demo/x.patch").open("wb") as stream:
        stream.write(_HEAD)
        stream.truncate(3 << 30)  # 3 GiB in one line, none of it on disk
    ran, peak = _measured(project.root, "check")
    assert ran.returncode == 4
    assert b"is larger than 128 MiB" in ran.stderr
    assert peak < 400 << 20


def test_a_long_line_costs_some_times_its_length(project: Project, upstream: Upstream) -> None:
    size = 8 << 20
    patch = _HEAD + b"x" * size + b"\n"
    project.component("demo", upstream, {"a.txt": "one\n"}, {"x.patch": patch})
    ran, peak = _measured(project.root, "check")
    assert ran.returncode == 0, ran.stderr
    assert peak < (100 << 20) + 8 * size


def test_a_bomb_in_a_binary_patch_does_not_go_off(project: Project, upstream: Upstream) -> None:
    bomb = zlib.compress(bytes(1 << 25), 9)
    lines = [b"z" + b85encode(bomb[at : at + 52], pad=True) for at in range(0, len(bomb) - 52, 52)]
    patch = make_patch({"a.bin": b"\0a"}, {"a.bin": b"\0b"}, subject=None)
    head = patch[: patch.index(b"literal")]
    for size in (b"10", b"99999999999999999"):
        data = head + b"literal " + size + b"\n" + b"\n".join(lines) + b"\n\n"
        project.component("demo", upstream, {"a.bin": b"\0a"}, {"x.patch": data})
        ran, peak = _measured(project.root, "check")
        assert ran.returncode == 4, ran.stderr
        assert b"inflate" in ran.stderr
        # a length that is promised and kept is allowed; this one is not even kept
        assert peak < (100 << 20 if size == b"10" else 300 << 20)


def _measured(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[bytes], int]:
    """A command that ended, and the most memory that its process had, in bytes."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the memory of a process is read from /proc")
    # not ru_maxrss: that counts what the process that started it held
    program = (
        "import re, sys; from patchkit.cli.main import run; code = run(sys.argv[1:]);"
        "status = open('/proc/self/status').read(); sys.stdout.write("
        "re.search(r'VmHWM:\\s+(\\d+)', status)[1]); sys.exit(code)"
    )
    command = [sys.executable, "-c", program, *words, "--quiet"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=120)
    return done, int(done.stdout.split()[-1].rpartition(b"}")[2]) << 10
