"""`git rebase -i` in a checkout: `refresh` makes the same of the patches as of the commits."""

from __future__ import annotations

import shlex

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.stacked import Stacked, lines, small_patches


@pytest.fixture
def stack(project: Project, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> Stacked:
    monkeypatch.setenv("GIT_EDITOR", "true")
    made = Stacked.of(project, upstream, small_patches())
    series = project.root / "patches/demo/series"
    series.write_text("# the first\none.patch # stays\n\ntwo.patch\n# the last\nthree.patch\n")
    return made


def rebase(stack: Stacked, wanted: str, *, message: str = "") -> None:
    """Rebase with the rows of `wanted` ("pick 1"), each number a commit of the stack; `message` is
    what the user writes where git asks for one.
    """
    commits = stack.git("rev-list", "--reverse", "refs/patchkit/base..HEAD").split()
    rows = (row.split(" ") for row in wanted.split(", "))
    todo = "".join(f"{verb} {commits[int(number) - 1]}\n" for verb, number in rows)
    write = """sh -c 'printf %s "$0" > "$1"'"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_SEQUENCE_EDITOR", f"{write} {shlex.quote(todo)}")
        if message:
            patch.setenv("GIT_EDITOR", f"{write} {shlex.quote(message)}")
        stack.git("rebase", "-q", "-i", "refs/patchkit/base")


def refreshed(stack: Stacked) -> None:
    """After a refresh patches and checkout agree, and the patches give the files of the commits."""
    tree = stack.git("rev-parse", "HEAD^{tree}")
    stack.run("refresh").ok()
    assert stack.git("rev-parse", "HEAD^{tree}") == tree
    stack.settled()
    assert "# the first" in stack.patch("series").decode()


def test_reordered(stack: Stacked) -> None:
    before = stack.project.files()
    rebase(stack, "pick 3, pick 1, pick 2")
    refreshed(stack)
    assert stack.series == ["three.patch", "one.patch", "two.patch"]
    assert stack.changed(before) == ["series"]
    assert "one.patch # stays\n" in stack.patch("series").decode()


def test_dropped(stack: Stacked) -> None:
    before = stack.project.files()
    rebase(stack, "pick 1, drop 2, pick 3")
    stack.run("refresh", "--dry-run").shows("its commit is gone")
    refreshed(stack)
    assert stack.changed(before) == ["-two.patch", "series"]
    saved = stack.git("for-each-ref", "--format=%(refname)", "refs/patchkit/saved")
    assert "Patch two" in stack.git("log", "--format=%s", saved)


@pytest.mark.parametrize("verb", ["squash", "fixup"])
def test_squashed(stack: Stacked, verb: str) -> None:
    before = stack.project.files()
    rebase(stack, f"pick 1, {verb} 2, pick 3")
    refreshed(stack)
    assert stack.series == ["one.patch", "three.patch"]
    assert stack.changed(before) == ["-two.patch", "one.patch", "series"]
    text = stack.patch("one.patch").decode()
    assert "Patchkit-Patch" not in text
    assert ("Patch one\n\nFor a test.\n\nPatch two\n\nFor a test.\n\ndiff" in text) == (
        verb == "squash"
    )
    assert {"+five", "+twenty"} <= {*stack.patch("one.patch").decode().splitlines()}


def test_reworded(stack: Stacked) -> None:
    before = stack.project.files()
    rebase(stack, "pick 1, reword 2, pick 3", message="Another subject\n\nAnother reason.")
    refreshed(stack)
    assert stack.changed(before) == ["two.patch"]
    assert stack.patch("two.patch").startswith(
        b"From: Ann Author <ann@example.com>\nDate: Wed, 15 Nov 2023 10:00:00 +0000\n"
        b"Subject: Another subject\n\nAnother reason.\n\ndiff --git"
    )


def test_edited(stack: Stacked) -> None:
    before = stack.project.files()
    rebase(stack, "edit 1, pick 2, pick 3")
    stack.edit("a.txt", "five\n", "FIVE\n")
    stack.git("commit", "-q", "-a", "--amend", "--no-edit")
    stack.git("rebase", "--continue")
    refreshed(stack)
    assert "+FIVE" in stack.patch("one.patch").decode()
    assert set(stack.changed(before)) <= {"one.patch", "two.patch"}


def test_split(stack: Stacked) -> None:
    rebase(stack, "pick 1, pick 2, edit 3")
    stack.git("reset", "-q", "HEAD~1")
    stack.git("commit", "-q", "-am", "Say ten\n\nPatchkit-Patch: three.patch")
    stack.git("add", "added.txt")
    stack.git("commit", "-q", "-m", "Add a file")
    stack.git("rebase", "--continue")
    refreshed(stack)
    assert stack.series == ["one.patch", "two.patch", "three.patch", "add-a-file.patch"]


def test_one_that_stopped_is_not_taken_up(stack: Stacked) -> None:
    before = stack.everything()
    rebase(stack, "edit 1, pick 2, pick 3")
    stack.edit("a.txt", "five\n", "FIVE\n")
    stack.run("refresh").ends(1, "in the middle of a rebase")
    stack.git("rebase", "--abort")
    assert stack.everything()[:2] == before[:2]


def test_a_conflict_on_the_way_is_resolved_as_git_does(stack: Stacked) -> None:
    stack.edit("a.txt", "five\n", "5\n")
    stack.git("commit", "-qam", "Say 5")
    rebase(stack, "pick 2, pick 3, pick 1, pick 4")
    refreshed(stack)
    assert stack.series == ["two.patch", "three.patch", "one.patch", "say-5.patch"]
    assert (
        lines({5: "5\n", 6: "six\n", 20: "twenty\nand more\n"})
        == (stack.checkout / "a.txt").read_text()
    )
