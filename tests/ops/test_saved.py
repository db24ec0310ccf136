"""What was set aside in a checkout is listed and shown by `undo`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.ops.shouting import ONE, TWO, shouted
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, git_in

#: What was set aside, as JSON.
Work = dict[str, Any]


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    project.component("demo", upstream, shouted(), {"one.patch": ONE, "two.patch": TWO})
    project.prepare("apply").ok()
    return project


def saved(project: Project) -> list[Work]:
    found: list[Work] = project.run("undo", "--show", "--json").ok().json["saved"]
    return found


def shape(project: Project) -> tuple[bytes, ...]:
    """What git says of the checkout, and its refs but for the saved ones."""
    folder = project.checkout("demo")
    return (
        git_in(folder, "status", "--porcelain=v2"),
        git_in(folder, "diff", "HEAD"),
        git_in(folder, "for-each-ref", "refs/heads", "refs/patchkit/base", "refs/patchkit/applied"),
    )


@pytest.fixture
def folder(demo: Project) -> Path:
    return demo.checkout("demo")


@pytest.fixture
def work(demo: Project, folder: Path) -> Work:
    """Edits of every sort that were set aside: a changed file, a removed one, a new one that git
    knows, an untracked one.
    """
    text = (folder / "a.py").read_text()
    (folder / "a.py").write_text(text.replace("line 30\n", "line thirty\n"))
    (folder / "b.py").unlink()
    write_files(folder, {"new.py": "new\n", "notes.txt": b"notes\r\n\x00"})
    git_in(folder, "add", "new.py")
    return force_away(demo)


def forced(project: Project) -> str:
    """The command that `apply --force` prints, which took a patch away."""
    (project.root / "patches/demo/series").write_text("one.patch\n")
    ran = project.run("apply", "--accept", "--force").ok()
    return ran.out.partition("to get it back:\n")[2].partition("\n")[0]


def force_away(project: Project) -> Work:
    """What `apply --force` set aside, once the checkout is where it was."""
    forced(project)
    path = project.root / "patches/demo/series"
    path.write_text("one.patch\ntwo.patch\n")
    project.prepare("apply", "--accept").ok()
    return saved(project)[0]


@pytest.mark.slow
def test_git_brings_edits_back(demo: Project, folder: Path, work: Work) -> None:
    assert (work["kind"], work["component"]) == ("edits", "demo")
    assert work["what"] == ["a.py", "b.py", "new.py", "notes.txt"]
    assert work["why"] == "edits in the checkout"
    listed = demo.run("undo", "--show").ok().shows(work["id"])
    assert work["restore"] in listed.err
    (folder / "a.py").write_text("mine\n" + (folder / "a.py").read_text())
    shown = demo.run("undo", "--show", work["id"][:9]).ok()
    shown.shows("+line thirty", "diff --git a/new.py b/new.py")
    assert "notes.txt" not in shown.out  # it was never gone
    _, _, git = work["restore"].partition(" | ")
    subprocess.run(git, shell=True, check=True, capture_output=True, input=shown.out.encode())
    text = (folder / "a.py").read_text()
    assert text.startswith("mine\n") and "line thirty\n" in text
    assert not (folder / "b.py").exists()
    assert (folder / "notes.txt").read_bytes() == b"notes\r\n\x00"
    assert (folder / "new.py").read_text() == "new\n"
    assert demo.run("undo", "--show", work["id"][:9]).ok().out.count("diff --git") == 1  # a.py
    demo.git("add", "new.py")
    demo.run("refresh", "--rest", "rest").ok()
    assert "line thirty" in demo.read("patches/demo/rest.patch")


@pytest.mark.slow
@pytest.mark.parametrize("committed", [False, True])
def test_what_is_printed_brings_edits_back_beside_what_stayed(
    demo: Project, folder: Path, patchkit_file: Path, *, committed: bool
) -> None:
    """Edits two lines from what the patches change, and an untracked file that is there still."""
    text = (folder / "a.py").read_text()
    (folder / "a.py").write_text(text.replace("line 22\n", "line twenty-two\n"))
    (folder / "b.py").write_text("mine\n")
    if committed:
        git_in(folder, "commit", "-q", "-m", "My own", "b.py")
    write_files(folder, {"notes.txt": "notes\n"})
    mine = {name: (folder / name).read_text() for name in ("a.py", "b.py", "notes.txt")}
    printed = forced(demo)
    assert (folder / "notes.txt").exists()
    assert "line twenty-two" not in (folder / "a.py").read_text()
    typed(printed, demo, patchkit_file)
    if not committed:  # on the patches as they are now
        mine["a.py"] = mine["a.py"].replace("LINE 20", "line 20")
    assert {name: (folder / name).read_text() for name in mine} == mine


def test_edits_that_the_patches_make_as_well_are_all_there(demo: Project, folder: Path) -> None:
    text = (folder / "a.py").read_text()
    (folder / "a.py").write_text(text.replace("LINE 20", "line 20"))
    assert forced(demo) == "  nothing: the files have all of it"
    assert saved(demo)[0]["restore"] == ""
    assert "brings" not in demo.run("undo", "--show").ok().err


def typed(line: str, project: Project, patchkit_file: Path) -> None:
    """A command as it stands, in the project's folder."""
    path = {**os.environ, "PATH": f"{patchkit_file.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", line], cwd=project.root, env=path, check=False)
    assert done.returncode == 0


def test_commits_come_back_with_their_edits(demo: Project, patchkit_file: Path) -> None:
    folder = demo.checkout("demo")
    (folder / "b.py").write_text("mine\n")
    git_in(folder, "commit", "-q", "-a", "-m", "My own")
    (folder / "c.py").write_text("c\n")
    work = force_away(demo)
    assert work["why"] == "commits and edits in the checkout"
    typed(work["restore"], demo, patchkit_file)
    assert (folder / "b.py").read_text() == "mine\n"
    assert (folder / "c.py").read_text() == "c\n"


def test_a_stack_is_shown_and_not_merged(demo: Project) -> None:
    demo.run("drop", "two").ok()
    (work,) = saved(demo)
    assert (work["kind"], work["what"]) == ("stack", ["one.patch", "two.patch"])
    shown = demo.run("undo", "--show", work["id"]).ok().out
    assert shown.index("# one.patch") < shown.index("# two.patch") < shown.index("+LINE 20")
    assert "switch --create saved-work" in work["restore"]


def test_git_deletes_what_was_saved(demo: Project, work: Work) -> None:
    demo.git("update-ref", "-d", work["ref"])
    assert saved(demo) == []


@pytest.mark.parametrize("given", ["nothing", ""])
def test_what_cannot_be_wished_for(demo: Project, given: str) -> None:
    demo.run("undo", "--show", given).ends(2, "no such saved work")


def test_nothing_is_said_of_what_is_not_there(demo: Project, tmp_path: Path) -> None:
    demo.run("undo", "--show").ok().says("nothing is saved")
    away = ("--workspace", str(tmp_path / "none"))
    demo.run("undo", "--show", *away).ok().says("nothing is saved")


def test_saved_work_whose_ref_is_damaged_is_not_left_out(demo: Project, work: Work) -> None:
    path = demo.checkout("demo") / ".git" / work["ref"]
    path.write_bytes(b"")
    for words in (("--show",), ("--show", work["id"])):
        demo.run("undo", *words).ends(
            5, f"ignoring broken ref {work['ref']}", "git fsck --unreachable"
        )
