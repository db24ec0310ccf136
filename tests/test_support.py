"""The test kit itself: what it builds is what git sees."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.commands import Ran, run, run_process
from tests.support.golden import Golden
from tests.support.kept import _look, _rows, run_or_recall, without_stat
from tests.support.laws import share
from tests.support.projects import Project, write_files
from tests.support.repos import (
    Files,
    Submodule,
    Symlink,
    Upstream,
    executable,
    git_in,
    make_patch,
)


def test_commits_build_on_each_other(upstream: Upstream) -> None:
    first = upstream.commit({"a": "1\n", "d/b": b"\0\xff", 'we"ird\nname': "x"})
    second = upstream.commit({"a": "2\n", "d/b": None}, "Change a")
    assert upstream.files(first) == {"a": b"1\n", "d/b": b"\0\xff", 'we"ird\nname': b"x"}
    assert upstream.files() == {"a": b"2\n", 'we"ird\nname': b"x"}
    assert upstream.git("log", "--format=%H %s").decode() == (
        f"{second} Change a\n{first} Change files\n"
    )


def test_modes_links_and_submodules(upstream: Upstream) -> None:
    upstream.commit({"run": executable("x"), "l": Symlink("run"), "s": Submodule("1" * 40)})
    listing = upstream.git("ls-tree", "main").decode().split("\n")
    assert [line[:6] for line in listing if line] == ["120000", "100755", "160000"]
    upstream.git("fsck", "--strict")


_NAMES = st.sampled_from(["a", "b", "a/b", "a/b/c", "a.b", "a-b", "b/a", "b/c", "z/\xe9", "a/b/d"])
_CONTENTS = st.sampled_from([None, "1\n", b"\xff", executable("x"), Symlink("a"), ""])


@given(st.lists(st.dictionaries(_NAMES, _CONTENTS, max_size=5), min_size=2, max_size=4))
@settings(max_examples=share(20))
def test_law_commits_are_those_of_fast_import(changes: list[Files]) -> None:
    signed = f"Ann Author <ann@example.com> {1700000060} +0000"
    head = f"author {signed}\ncommitter {signed}\n".encode()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = (Upstream.create(Path(folder) / name) for name in ("ours", "theirs"))
        for files in changes:
            tip = theirs.resolve("refs/heads/main")
            commit = theirs.fast_import(files, "A\xe9", "main", (tip,) if tip else (), head)
            assert replace(ours, _commits=0).commit(files, "A\xe9") == commit
        ours.git("fsck", "--strict")


def test_a_branch_can_leave_main(upstream: Upstream) -> None:
    first = upstream.commit({"a": "1\n"})
    side = upstream.commit({"b": "1\n"}, branch="side", parents=(first,))
    lone = upstream.commit({"c": "1\n"}, branch="lone", parents=())
    assert upstream.resolve("main") == first
    assert upstream.files(side) == {"a": b"1\n", "b": b"1\n"}
    assert upstream.files(lone) == {"c": b"1\n"}


def test_a_made_patch_applies(tmp_path: Path) -> None:
    patch = make_patch({"a": "1\n2\n"}, {"a": "1\nx\n"}, subject="Change a", body="Because.")
    assert patch.startswith(b"From: Ann Author <ann@example.com>\nDate: ")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("1\n2\n")
    git_in(tmp_path / "tree", "apply", "-", stdin=patch)
    assert (tmp_path / "tree" / "a").read_text() == "1\nx\n"


def test_the_environment_is_sealed(tmp_path: Path) -> None:
    assert Path.cwd() == tmp_path
    assert Path.home() == tmp_path / "home"
    done = subprocess.run(["git", "var", "GIT_EDITOR"], capture_output=True, text=True, check=True)
    assert done.stdout == "false\n"
    assert [name for name in os.environ if name.startswith(("PIP_", "HTTP", "http"))] == []


def test_a_project_has_what_a_user_has(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a": "1\n"})
    path = project.component("demo", upstream, pin, {"one.patch": b"x\n"}, strip=2)
    assert path.read_text() == (
        "version: 1\ncomponents:\n  demo:\n    source:\n"
        f"      git: {upstream.url}\n    pin: {pin}\n"
        "    patches:\n    - series: patches/demo/series\n    strip: 2\n"
    )
    assert project.files() == {
        "patches/demo/one.patch": b"x\n",
        "patches/demo/series": b"one.patch\n",
    }


def test_in_process_and_as_a_process_are_the_same() -> None:
    inside, outside = run("vershun"), run_process("vershun")
    assert inside == outside
    assert inside.code == 2
    assert inside.err.startswith("error: vershun: no such command\n")


def test_what_is_recalled_is_what_was_made(tmp_path: Path) -> None:
    work, calls = tmp_path / "project", 0

    def change() -> Ran:
        nonlocal calls
        calls += 1
        git_in(work, "init", "-q")
        (work / "was-folder/file").unlink()
        (work / "was-folder").rmdir()
        (work / "was-folder").write_text("a file\n")
        (work / "was-file").unlink()
        (work / "was-file/below").mkdir(parents=True, mode=0o700)
        (work / "was-file/below/run").write_text("run\n")
        (work / "was-file/below/run").chmod(0o777)
        (work / "gone").unlink()
        (work / "shut").chmod(0o700)
        (work / "link").symlink_to("nowhere")
        git_in(work, "add", "--all")
        (work / "link").unlink()
        (work / "was-folder").write_text("another file\n")
        return run("version")

    def begin_and_look() -> dict[str, tuple[int, bytes | None]]:
        work.mkdir()
        write_files(work, {"gone": "", "was-file": "", "was-folder/file": "", "shut/in": "stays"})
        run_or_recall(change, ("a test",), work)
        found = _look(tmp_path)
        index = found[f"{work}/.git/index"][1]
        assert index is not None
        unedited = [os.fsdecode(path) for at, path in _rows(index) if _says_so(index, at, path)]
        assert unedited == ["shut/in", "was-file/below/run"]
        git_in(work, "fsck")
        assert (
            git_in(work, "status", "--short")
            == b"AD link\nA  shut/in\nA  was-file/below/run\nAM was-folder\n"
        )
        found[f"{work}/.git/index"] = 0, without_stat(index)
        shutil.rmtree(work)
        return found

    def _says_so(index: bytes, at: int, path: bytes) -> bool:
        try:
            now = (work / os.fsdecode(path)).stat()
        except OSError:
            return False
        (inode,) = struct.unpack_from(">I", index, at + 20)
        (size,) = struct.unpack_from(">I", index, at + 36)
        return (inode, size) == (now.st_ino & 0xFFFFFFFF, now.st_size)

    assert begin_and_look() == begin_and_look()
    assert calls == 1


def test_a_served_patchkit_says_the_same_and_is_no_child(patchkit_file: Path) -> None:
    served = run_process("vershun", program=[patchkit_file])
    assert served == run("vershun")
    with pytest.raises(ChildProcessError):  # the tracer of faults waits for all children
        os.waitpid(-1, os.WNOHANG)


def test_golden_takes_out_what_changes(tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "project").mkdir()
    with pytest.raises(AssertionError, match="missing"):
        golden("never-written", run("version"))
    ran = run("fetch", "-m", str(tmp_path / "project" / "x"))
    assert "PROJECT/x" in golden._text(ran)
