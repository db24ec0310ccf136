"""The test kit itself: what it builds is what git sees."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.commands import Ran, run, run_process
from tests.support.golden import Golden
from tests.support.kept import _look, run_or_recall, without_stat
from tests.support.laws import share
from tests.support.projects import write_files
from tests.support.repos import Files, Symlink, Upstream, executable, git_in

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


def test_the_environment_is_sealed(tmp_path: Path) -> None:
    assert Path.cwd() == tmp_path
    assert Path.home() == tmp_path / "home"
    done = subprocess.run(["git", "var", "GIT_EDITOR"], capture_output=True, text=True, check=True)
    assert done.stdout == "false\n"
    assert [name for name in os.environ if name.startswith(("PIP_", "HTTP", "http"))] == []


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
        git_in(work, "fsck")
        changed = git_in(work, "diff-files", "--name-only")
        assert changed == b"link\nwas-folder\n"
        assert git_in(work, "status", "--short") == (
            b"AD link\nA  shut/in\nA  was-file/below/run\nAM was-folder\n"
        )
        index = f"{work}/.git/index"
        found[index] = 0, without_stat(found[index][1] or b"")
        shutil.rmtree(work)
        return found

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
