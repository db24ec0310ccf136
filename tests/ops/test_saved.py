"""What was set aside in a checkout is listed, shown and brought back, by `undo`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ops.shouting import ONE, TWO, shouted
from tests.support.commands import Ran
from tests.support.meanwhile import run_meanwhile
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, git_in
from tests.workspace.killing import killed_at

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


def force_away(project: Project) -> Work:
    """What `apply --force` set aside."""
    path = project.root / "patches/demo/series"
    path.write_text("one.patch\n")
    project.prepare("apply", "--accept", "--force").ok()
    path.write_text("one.patch\ntwo.patch\n")
    project.prepare("apply", "--accept").ok()
    return saved(project)[0]


@pytest.mark.slow
def test_edits_come_back_and_go_again(demo: Project, folder: Path, work: Work) -> None:
    assert (work["kind"], work["component"]) == ("edits", "demo")
    assert work["what"] == ["a.py", "b.py", "new.py", "notes.txt"]
    assert work["why"] == "edits in the checkout"
    assert work["id"] in demo.run("undo", "--show").ok().out
    demo.run("undo", "--show", work["id"][:9]).ok().shows(
        "+line thirty", "diff --git a/new.py b/new.py"
    )
    before = shape(demo)
    demo.run("undo", f"--restore={work['ref']}").ok().shows("restored")
    assert "line thirty" in (folder / "a.py").read_text()
    assert not (folder / "b.py").exists()
    assert (folder / "notes.txt").read_bytes() == b"notes\r\n\x00"
    status = git_in(folder, "status", "--porcelain").decode().splitlines()
    assert status == [" M a.py", " D b.py", "A  new.py", "?? notes.txt"]  # it was never gone
    after = shape(demo)
    demo.run("undo", "--restore", work["id"]).ok().shows("all of it already")
    assert saved(demo)[-1]["id"] == work["id"]
    demo.run("undo").ok()
    assert shape(demo) == before
    demo.run("undo", "--restore", "last").ok()
    assert shape(demo) == after
    demo.run("refresh", "--rest", "rest").ok()
    assert "line thirty" in demo.read("patches/demo/rest.patch")


@pytest.mark.slow
def test_they_are_merged_into_other_edits(demo: Project, folder: Path, work: Work) -> None:
    (folder / "notes.txt").unlink()
    text = (folder / "a.py").read_text()
    (folder / "a.py").write_text("mine\n" + text)
    git_in(folder, "add", "a.py")
    (folder / "a.py").write_text("mine\n" + text + "more\n")
    before = shape(demo)
    demo.run("undo", "--restore", work["id"]).ok()
    now = (folder / "a.py").read_text()
    assert now == ("mine\n" + text + "more\n").replace("line 30\n", "line thirty\n")
    assert git_in(folder, "show", ":a.py").decode() == "mine\n" + text  # the index is as it was
    assert (folder / "notes.txt").exists()
    demo.run("undo").ok()
    assert shape(demo) == before


@pytest.mark.parametrize("how", ["lines", "untracked", "removed"])
def test_nothing_is_replaced_that_differs(
    demo: Project, folder: Path, work: Work, how: str
) -> None:
    if how == "lines":
        text = (folder / "a.py").read_text()
        (folder / "a.py").write_text(text.replace("line 30\n", "line XXX\n"))
        said = "has other changes at the same lines: 30"
    elif how == "untracked":
        (folder / "notes.txt").write_text("other notes\n")
        said = "untracked and in the way: notes.txt"
    else:
        (folder / "b.py").write_text("kept\n")
        said = "was changed, added or removed since"
    with demo.untouched():
        demo.run("undo", "--restore", work["id"]).ends(1, said)


@pytest.mark.slow
def test_undo_refuses_once_the_files_changed(demo: Project, folder: Path, work: Work) -> None:
    demo.run("undo", "--restore", work["id"]).ok()
    text = (folder / "a.py").read_text()
    (folder / "a.py").write_text("later\n")
    with demo.untouched():
        demo.run("undo").ends(1, "a.py changed since")
    write_files(folder, {"a.py": text, "other.txt": "later\n"})
    git_in(folder, "add", "other.txt")
    demo.run("undo").ok()
    assert git_in(folder, "status", "--porcelain") == b"A  other.txt\n?? notes.txt\n"


def test_commits_come_back_with_their_edits(demo: Project) -> None:
    folder = demo.checkout("demo")
    (folder / "b.py").write_text("mine\n")
    git_in(folder, "commit", "-q", "-a", "-m", "My own")
    (folder / "c.py").write_text("c\n")
    work = force_away(demo)
    assert work["why"] == "commits and edits in the checkout"
    (folder / "c.py").unlink()
    demo.run("undo", "--restore", work["id"]).ok()
    assert (folder / "b.py").read_text() == "mine\n"
    assert (folder / "c.py").read_text() == "c\n"


def test_a_stack_is_shown_and_not_merged(demo: Project) -> None:
    demo.run("drop", "two").ok()
    (work,) = saved(demo)
    assert (work["kind"], work["what"]) == ("stack", ["one.patch", "two.patch"])
    shown = demo.run("undo", "--show", work["id"]).ok().out
    assert shown.index("# one.patch") < shown.index("# two.patch") < shown.index("+LINE 20")
    demo.run("undo", "--restore", work["id"]).ends(1, "switch --create saved-work")


def test_git_deletes_what_was_saved(demo: Project, work: Work) -> None:
    demo.git("update-ref", "-d", work["ref"])
    assert saved(demo) == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--show", "nothing"), "no such saved work"),
        (("--restore", ""), "no such saved work"),
    ],
)
def test_what_cannot_be_wished_for(demo: Project, argv: tuple[str, ...], said: str) -> None:
    demo.run("undo", *argv).ends(2, said)


def test_nothing_is_said_of_what_is_not_there(demo: Project, tmp_path: Path) -> None:
    demo.run("undo", "--show").ok().says("nothing is saved")
    away = ("--workspace", str(tmp_path / "none"))
    demo.run("undo", "--show", *away).ok().says("nothing is saved")


@pytest.mark.slow
def test_what_is_written_while_files_are_replaced_is_named(
    demo: Project, folder: Path, work: Work
) -> None:
    text = (folder / "a.py").read_text()
    with (folder / "a.py").open("a") as editor:
        ran = demo.run("undo", "--restore", work["id"], "--json").ok()
        editor.write("mine\n")
    (place,) = ran.json["also_saved"]
    assert Path(place).read_text() == text + "mine\n"
    demo.run("undo").ok()
    assert (folder / "a.py").read_text() == text
    with (folder / "a.py").open("a"):
        said = demo.run("undo", "--restore", work["id"]).ok()
    assert f"kept as {folder}" in said.out + said.err


@pytest.mark.slow
def test_a_kill_leaves_edits_that_were_merged_to_undo(
    demo: Project, folder: Path, work: Work
) -> None:
    """Wherever it strikes: the edited file is as it was, or `undo` makes it so."""
    text = "mine\n" + (folder / "a.py").read_text()
    (folder / "a.py").write_text(text)
    merged = text.replace("line 30\n", "line thirty\n")
    journal = folder / ".git/patchkit/move/journal.json"

    def restore() -> Ran:
        return demo.run("undo", "--restore", work["id"])

    found = set()
    point = 1
    while killed_at(point, restore, once=journal.exists):
        found.add((folder / "a.py").read_text())
        if point % 2:
            restore().ok()  # it finishes the move
            assert (folder / "a.py").read_text() == merged
        demo.run("undo").ok()
        assert (folder / "a.py").read_text() == text
        assert not journal.exists()
        point += 3
    assert found == {text, merged}


def test_what_is_staged_while_undo_runs_stays_staged(
    demo: Project, folder: Path, work: Work
) -> None:
    path = folder / "a.py"
    demo.run("undo", "--restore", work["id"]).ok()

    def stage() -> None:
        before = path.read_bytes()
        path.write_text("mine\n")
        git_in(path.parent, "add", "a.py")
        path.write_bytes(before)

    run_meanwhile("undo", cwd=demo.root, git="'ls-files', '--stage'", change=stage)
    assert git_in(path.parent, "show", ":a.py") == b"mine\n"


def test_saved_work_whose_ref_is_damaged_is_not_left_out(demo: Project, work: Work) -> None:
    path = demo.checkout("demo") / ".git" / work["ref"]
    path.write_bytes(b"")
    for words in (("--show",), ("--show", work["id"])):
        demo.run("undo", *words).ends(
            5, f"ignoring broken ref {work['ref']}", "git fsck --unreachable"
        )
