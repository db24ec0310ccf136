"""Verbs on the series: edit, drop, move, fold, split, `refresh --new --staged`; and `undo`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ops.shouting import ONE, TWO, shouted
from tests.support.projects import Project, write_files
from tests.support.repos import Files, Upstream, git_in, make_patch

THREE = make_patch(
    shouted(3, 20),
    {**shouted(3, 20, 35, 10), "b.py": "B\n"},
    subject="Shout three lines",
    body="All of them.",
)
NEAR = make_patch(shouted(3), shouted(3, 4), subject="Shout line 4", body="Beside line 3.")
_OVER: Files = {"a.py": str(shouted(3, 4)["a.py"]).replace("LINE 3\n", "Line 3!\n"), "b.py": "b\n"}
OVER = make_patch(shouted(3, 4), _OVER, subject="Shout line 3 less", body="On line 3.")


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    project.component(
        "demo", upstream, shouted(), {"one.patch": ONE, "two.patch": TWO, "three.patch": THREE}
    )
    series = project.root / "patches/demo/series"
    series.write_text("# top\n\none.patch\n# about two\ntwo.patch # keep\nthree.patch\n")
    project.prepare("apply").ok()
    return project


def worktree(project: Project) -> dict[str, bytes]:
    folder = project.checkout("demo")
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {p.name: p.read_bytes() for p in files if ".git" not in p.relative_to(folder).parts}


def subjects(project: Project) -> list[str]:
    log = ("log", "--reverse", "--format=%s", "refs/patchkit/base..")
    return project.git(*log).decode().splitlines()


def series(project: Project) -> str:
    return project.read("patches/demo/series")


def agrees(project: Project) -> None:
    """The checkout is at the stack, the lock knows it, and nothing is left to do."""
    project.run("status").ok().shows("applied")
    assert project.run("apply", "--locked").ok().out.startswith("✓ unchanged")
    project.run("refresh").ok().shows("unchanged")


VERBS = {
    "edit": ("edit", "two", "--message", "Shout the twentieth\n\nNew reason."),
    "rename": ("edit", "two", "--name", "twenty"),
    "drop": ("drop", "two"),
    "move": ("move", "three", "--to", "1"),
    "fold": ("fold", "two", "--to", "one"),
    "split": ("split", "three", "--new", "b-only", "--file", "b.py"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_one_transaction_and_is_undone(demo: Project, verb: str) -> None:
    before, files, tip = demo.product, worktree(demo), subjects(demo)
    with demo.untouched():
        demo.run(*VERBS[verb], "--dry-run").ok().says("a dry run: nothing was written")
    demo.run(*VERBS[verb]).ok()
    assert demo.product != before
    assert (worktree(demo) == files) == (verb != "drop")
    agrees(demo)
    demo.run("undo").ok()
    assert (demo.product, worktree(demo), subjects(demo)) == (before, files, tip)
    agrees(demo)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_works_without_a_checkout(demo: Project, verb: str, tmp_path: Path) -> None:
    away = ("--workspace", str(tmp_path / "none"))
    before = demo.product
    demo.run(*VERBS[verb], *away).ok()
    after = demo.product
    demo.run("check").ok()
    for name, data in before.items():
        (demo.root / name).parent.mkdir(parents=True, exist_ok=True)
        (demo.root / name).write_bytes(data)
    for name in after.keys() - before.keys():
        (demo.root / name).unlink()
    demo.run(*VERBS[verb]).ok()
    assert demo.product == after


@pytest.mark.parametrize("verb", VERBS)
def test_edits_of_the_checkout_stay_edits_or_are_in_the_way(demo: Project, verb: str) -> None:
    file = demo.checkout("demo") / "b.py"
    file.write_text("mine\n")
    if verb == "drop":
        with demo.untouched():
            demo.run(*VERBS[verb]).ends(1, "the checkout has edits")
        return
    before = demo.product
    demo.run(*VERBS[verb]).ok()
    assert file.read_text() == "mine\n"
    demo.run("status").ok().shows("edited")
    demo.run("undo").ok()
    assert (demo.product, file.read_text()) == (before, "mine\n")
    demo.run("status").ok().shows("edited")


def test_edit_changes_the_words_or_the_name_and_nothing_else(demo: Project) -> None:
    old = (demo.root / "patches/demo/two.patch").read_bytes()
    demo.run("edit", "2", "--message", "Shout the twentieth\n\nNew reason.").ok()
    new = old.replace(b"Shout line 20", b"Shout the twentieth").replace(b"Why not.", b"New reason.")
    assert (demo.root / "patches/demo/two.patch").read_bytes() == new
    assert subjects(demo)[1] == "Shout the twentieth"
    demo.run("edit", "tw", "--name", "twenty.patch").ok()
    assert series(demo) == "# top\n\none.patch\n# about two\ntwenty.patch # keep\nthree.patch\n"
    assert not (demo.root / "patches/demo/two.patch").exists()
    assert (demo.root / "patches/demo/twenty.patch").read_bytes() == new
    agrees(demo)


def test_drop_keeps_the_stack_under_a_ref(demo: Project) -> None:
    ran = demo.run("drop", "one", "3").ok()
    assert series(demo) == "# top\n\n# about two\ntwo.patch # keep\n"
    ran.says("refs/patchkit/saved/")
    assert worktree(demo)["a.py"] == str(shouted(20)["a.py"]).encode()


@pytest.fixture
def overlapping(project: Project, upstream: Upstream) -> Project:
    """near.patch changes the line next to that of one.patch, over.patch the very line."""
    patches = {"one.patch": ONE, "near.patch": NEAR, "over.patch": OVER}
    project.component("demo", upstream, shouted(), patches)
    project.prepare("apply").ok()
    return project


def test_what_needs_a_patch_keeps_it_from_being_dropped_or_moved(overlapping: Project) -> None:
    with overlapping.untouched():
        for command in (("drop", "one"), ("move", "over", "--to", "1"), ("move", "1", "--to", "3")):
            overlapping.run(*command).ends(
                1,
                "over.patch needs one.patch: a.py, hunk 1\n",
                "git rebase -i in the checkout, then refresh",
            )
        overlapping.run("drop", "one").says("patches/demo/over.patch:11: over.patch")


@pytest.mark.slow
def test_move_merges_hunks_that_are_next_to_each_other(overlapping: Project) -> None:
    files, before = worktree(overlapping), overlapping.product
    overlapping.run("move", "near", "--to", "1").ok().says(
        "near.patch was merged without one.patch"
    )
    assert worktree(overlapping) == files
    assert subjects(overlapping) == ["Shout line 4", "Shout line 3", "Shout line 3 less"]
    near = overlapping.read("patches/demo/near.patch")
    assert ("\n line 3\n-line 4\n+LINE 4\n" in near, "LINE 3" in near) == (True, False)
    agrees(overlapping)
    overlapping.run("move", "near", "--to", "3").ok()  # past several
    assert subjects(overlapping)[2] == "Shout line 4"
    assert worktree(overlapping) == files
    agrees(overlapping)
    overlapping.run("undo").ok()
    overlapping.run("undo").ok()
    assert (overlapping.product, worktree(overlapping)) == (before, files)


def test_drop_carries_the_later_patches_over_the_hole(overlapping: Project) -> None:
    before = overlapping.product
    overlapping.run("drop", "near").ok().says("over.patch was merged without near.patch")
    assert worktree(overlapping)["a.py"].startswith(b"line 1\nline 2\nLine 3!\nline 4\n")
    agrees(overlapping)
    overlapping.run("undo").ok()
    assert overlapping.product == before
    overlapping.run("drop", "one", "over").ok()
    assert worktree(overlapping)["a.py"].startswith(b"line 1\nline 2\nline 3\nLINE 4\n")
    agrees(overlapping)


def test_what_takes_a_patch_back_is_dropped_with_it(project: Project, upstream: Upstream) -> None:
    back = make_patch(shouted(3), shouted(), subject="Whisper line 3", body="After all.")
    project.component("demo", upstream, shouted(), {"one.patch": ONE, "back.patch": back})
    project.prepare("apply").ok()
    with project.untouched():
        for argv in (("drop", "one"), ("move", "back", "--to", "1")):
            project.run(*argv).ends(1, "back.patch would change nothing")
    project.run("drop", "one", "back").ok()


def test_git_takes_a_patch_apart_line_by_line(demo: Project) -> None:
    """As after `git reset -p HEAD~1`: the line in the middle of three.patch is a commit of its own.

    A refresh makes a patch of it, and no file changes.
    """
    checkout, files = demo.checkout("demo"), worktree(demo)
    (checkout / "a.py").write_text(str(shouted(3, 20, 35)["a.py"]))
    git_in(checkout, "commit", "-qa", "--amend", "--no-edit")
    (checkout / "a.py").write_bytes(files["a.py"])
    git_in(checkout, "commit", "-qam", "Shout line 10")
    demo.run("refresh").ok()
    assert subjects(demo)[2:] == ["Shout three lines", "Shout line 10"]
    three, tenth = (demo.read(f"patches/demo/{n}.patch") for n in ("three", "shout-line-10"))
    assert ("+LINE 35" in three, "+LINE 10" in three, "+B" in three) == (True, False, True)
    assert ("+LINE 35" in tenth, "+LINE 10" in tenth, "+B" in tenth) == (False, True, False)
    assert worktree(demo) == files
    agrees(demo)


def test_move_takes_the_comment_along(demo: Project) -> None:
    demo.run("move", "two", "--to", "three").ok()
    assert series(demo) == "# top\n\none.patch\nthree.patch\n# about two\ntwo.patch # keep\n"
    assert subjects(demo) == ["Shout line 3", "Shout three lines", "Shout line 20"]


def test_fold_brings_patches_together(demo: Project) -> None:
    files = worktree(demo)
    demo.run("fold", "three", "--to", "one", "--message", "Shout most").ok()
    assert subjects(demo) == ["Shout most", "Shout line 20"]
    demo.run("fold", "one", "--to", "two").ok()
    assert subjects(demo) == ["Shout line 20"]
    assert [p.name for p in (demo.root / "patches/demo").glob("*.patch")] == ["two.patch"]
    assert worktree(demo) == files
    agrees(demo)


def test_split_by_hunk(demo: Project) -> None:
    demo.run("split", "three", "--new", "last", "--file", "a.py:2", "--message", "Shout 35").ok()
    text = demo.read("patches/demo/last.patch")
    assert ("+LINE 35" in text, "+LINE 10" in text, "+B" in text) == (True, False, False)
    assert subjects(demo)[2:] == ["Shout three lines", "Shout 35"]
    agrees(demo)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("drop", "t"), "t: several patches start with it"),
        (("drop", "tow"), "hint: did you mean two.patch?"),
        (("drop", "9"), "9: no such patch"),
        (("edit", "one", "--name", "two"), "two.patch is there already"),
        (("edit", "one", "--name", "a b"), "is not a valid patch name"),
        (("move", "one"), "is missing"),
        (("move", "one", "--to", "4"), "4: no such patch"),
        (("fold", "one", "--to", "one"), "cannot be folded into itself"),
        (("split", "one", "--new", "x"), "--file is missing"),
        (("split", "one", "--new", "x", "--file", "a.py"), "choose a part of it"),
        (("split", "one", "--new", "x", "--file", "z.py"), "does not change z.py"),
        (("split", "one", "--new", "x", "--file", "a.py:7"), "has no hunk 7 in a.py"),
        (("edit", "one", "--message", " "), "the message is empty"),
        (("edit", "one"), "--message TEXT or --name NAME is missing"),
    ],
)
def test_what_cannot_be_wished_for(demo: Project, argv: tuple[str, ...], said: str) -> None:
    with demo.untouched():
        demo.run(*argv).ends(2, said)


def test_a_patch_of_a_shared_series_is_not_taken_from_others(
    demo: Project, upstream: Upstream
) -> None:
    text = demo.read("manifests/demo.yaml")
    demo.write({"manifests/other.yaml": text})
    before = demo.product
    demo.run("move", "two", "--to", "1", "-m", "demo").ok()
    assert (demo.root / "manifests/other.lock.json").exists()  # what it comes to there is known
    demo.run("undo", "-m", "demo").ok()
    assert (demo.root / "patches/demo/series").read_bytes() == before["patches/demo/series"]
    with demo.untouched():
        demo.run("drop", "two", "-m", "demo").ends(
            1, "demo of other.yaml: would lose two.patch", "copy the patches"
        )
    demo.run("edit", "two", "--name", "twenty", "-m", "demo").ok()  # taken from none


def test_new_takes_what_is_staged(demo: Project) -> None:
    checkout = demo.checkout("demo")
    (checkout / "b.py").write_text("staged\n")
    git_in(checkout, "add", "b.py")
    write_files(checkout, {"b.py": "staged\nand more\n", "a.py": "other\n"})
    demo.run("refresh", "--new", "part", "--staged", "--message", "Stage it").ok()
    text = demo.read("patches/demo/part.patch")
    assert ("+staged" in text, "and more" in text, "a.py" in text) == (True, False, False)
    assert (checkout / "b.py").read_text() == "staged\nand more\n"
    diff = git_in(checkout, "diff", "HEAD", "--name-only").decode().split()
    assert diff == ["a.py", "b.py"]


@pytest.mark.parametrize("verb", VERBS)
def test_what_was_killed_between_files_and_checkout_is_finished(
    demo: Project, verb: str, tmp_path: Path
) -> None:
    """The files say what the verb made, the checkout is where it was: the next run brings it."""
    old = demo.git("for-each-ref", "--format=%(objectname) %(refname)")
    demo.run(*VERBS[verb]).ok()
    after, tip = demo.product, subjects(demo)
    for row in old.decode().splitlines():
        oid, name = row.split()
        demo.git("update-ref", name, oid)
    demo.git("reset", "-q", "--hard")
    demo.run(*VERBS[verb])
    assert (demo.product, subjects(demo)) == (after, tip)
    agrees(demo)


def test_the_same_again_is_nothing(demo: Project) -> None:
    demo.run("move", "one", "--to", "3").ok()
    demo.run("move", "one", "--to", "3").ok().shows("unchanged")
    demo.run("undo").ok()
    assert subjects(demo)[0] == "Shout line 3"


BROKEN = make_patch(
    shouted(), {"a.py": str(shouted()["a.py"]).replace("line 3\n", "l 3\n"), "b.py": "b\n"}
)


@pytest.fixture
def broken(demo: Project) -> Project:
    """bad.patch, which does not apply, stands before three.patch."""
    (demo.root / "patches/demo/bad.patch").write_bytes(BROKEN)
    listed = "one.patch\n# mine\nbad.patch\ntwo.patch # keep\nthree.patch\n"
    demo.write({"patches/demo/series": listed})
    demo.run("check").ends(1)
    return demo


@pytest.mark.parametrize(
    "argv",
    [
        ("edit", "bad", "--message", "It is broken\n\nStill."),
        ("edit", "three", "--message", "Behind it"),
        ("edit", "bad", "--name", "worse"),
        ("edit", "three", "--name", "third"),
        ("drop", "bad"),
        ("drop", "bad", "three"),
        ("move", "bad", "--to", "4"),
        ("move", "two", "--to", "1"),
    ],
    ids=" ".join,
)
def test_a_series_that_does_not_apply_is_edited_and_that_is_undone(
    broken: Project, argv: tuple[str, ...]
) -> None:
    before, files = broken.product, worktree(broken)
    with broken.untouched():
        broken.run(*argv, "--dry-run").ok()
    ran = broken.run(*argv).ok()
    assert (broken.product != before) and worktree(broken) == files
    assert ("bad.patch still does not apply" in ran.err) == (
        argv[0] != "drop" and "worse" not in argv
    )
    assert broken.run("check").code == (0 if argv[0] == "drop" else 1)
    broken.run("undo").ok()
    assert (broken.product, worktree(broken)) == (before, files)


def test_the_words_of_a_patch_that_does_not_apply_change_and_nothing_else(broken: Project) -> None:
    path = broken.root / "patches/demo/bad.patch"
    old = path.read_bytes()
    broken.run("edit", "bad", "--message", "It is broken\n\nStill.").ok()
    new = path.read_bytes()
    assert new.endswith(old[old.index(b"diff --git") :])
    assert b"It is broken" in new and b"\n\nStill." in new


def test_what_applies_stays_so_in_a_series_that_does_not(broken: Project) -> None:
    (broken.root / "patches/demo/near.patch").write_bytes(NEAR)
    with (broken.root / "patches/demo/series").open("a") as file:
        file.write("near.patch\n")
    with broken.untouched():
        broken.run("drop", "one").ends(1, "near.patch would not apply any more")
        for argv in (("fold", "two", "--to", "one"), VERBS["split"]):
            broken.run(*argv).ends(1, "the series does not apply")


def test_a_patch_behind_a_dropped_one_applies_and_the_checkout_follows(broken: Project) -> None:
    broken.run("drop", "bad").ok()
    broken.run("apply").ok()
    agrees(broken)
