"""From edits and commits in a checkout to patch files, on a real stack of three small patches."""

from __future__ import annotations

import pytest

from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, make_patch
from tests.support.stacked import NAMES, STATES, Stacked, lines, small_patches


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Stacked:
    """one.patch (a.txt lines 5, 6), two.patch (a.txt line 20), three.patch (b.txt, added.txt)."""
    return Stacked.of(project, upstream, small_patches())


# -- nothing to do ---------------------------------------------------------------------------


def test_without_an_edit_nothing_is_written(stack: Stacked) -> None:
    """Nor for a file that was touched, an untracked one, or commits put back as they were."""
    write_files(
        stack.checkout, {"a.txt": (stack.checkout / "a.txt").read_bytes(), "notes.txt": "mine\n"}
    )
    head = stack.git("rev-parse", "HEAD")
    stack.git("commit", "-q", "--allow-empty", "-m", "Aside")
    stack.git("reset", "-q", "--hard", head)
    files = [*stack.project.root.rglob("patches/**/*"), *stack.project.root.glob("manifests/*")]
    before = [(path, path.stat().st_mtime_ns, path.stat().st_ino) for path in files]
    stack.run("refresh").ok().shows("unchanged")
    stack.run("refresh", "--new", "nothing").ends(1, "there are no edits")
    assert before == [(path, path.stat().st_mtime_ns, path.stat().st_ino) for path in files]


# -- uncommitted edits -----------------------------------------------------------------------


def test_later_patches_on_the_file_are_carried_exactly(stack: Stacked) -> None:
    before = stack.project.files()
    stack.edit("a.txt", "five\n", "5\n5 and a half\n")
    ran = stack.run("refresh").ok()
    assert stack.changed(before) == ["one.patch", "two.patch"]
    ran.shows("shifted    two.patch", "content    patches/demo/one.patch")
    assert stack.git("show", "HEAD:a.txt") == (stack.checkout / "a.txt").read_text().strip()
    assert b"5 and a half" not in stack.patch("two.patch")
    stack.settled()


def test_edits_of_several_patches_go_their_ways(stack: Stacked) -> None:
    """Each into the patch that last touched its line, below the same header."""
    before = stack.project.files()
    stack.edit("a.txt", "five\n", "5\n")
    stack.edit("a.txt", "twenty\n", "20\n")
    stack.edit("added.txt", "new\n", "newer\n")
    tree = (stack.checkout / "a.txt").read_bytes(), (stack.checkout / "added.txt").read_bytes()
    foreseen = stack.run("refresh", "--dry-run", "--json").ok().json
    (component,) = foreseen["components"]
    assert [each["patch"] for each in component["edits"]] == list(NAMES)
    assert {each["revision"] for each in component["patches"]} == {"content"}
    assert component["files"] == sorted(f"patches/demo/{name}" for name in NAMES)
    stack.run("refresh").ok().shows("added.txt:1  three.patch  changes its lines")
    for name, line in zip(NAMES, (b"+5\n", b"+20\n", b"+newer\n"), strict=True):
        assert line in stack.patch(name)
        (head, *_), (old, *_) = (
            data.split(b"diff --git")
            for data in (stack.patch(name), before[f"patches/demo/{name}"])
        )
        assert head == old
    after = (stack.checkout / "a.txt").read_bytes(), (stack.checkout / "added.txt").read_bytes()
    assert tree == after
    stack.settled()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("six\n", "six\nand seven\n"),  # added directly below
        ("five\n", "before\nfive\n"),  # added directly above
        ("five\nsix\n", "six\n"),  # one of its lines removed
        ("five\n", "line 5\n"),  # taken back
        ("six\nline 7\n", "SIX\nline seven\n"),  # with a neighbour of the base
    ],
)
def test_what_lies_with_a_patch_belongs_to_it(stack: Stacked, old: str, new: str) -> None:
    stack.edit("a.txt", old, new)
    two = stack.patch("two.patch").split(b"@@", 2)[2]
    stack.run("refresh").ok()
    assert stack.patch("two.patch").split(b"@@", 2)[2] == two
    stack.settled()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("line 30\n", "thirty\n"),  # no patch near
        ("line 30\n", "line 30\nnew\n"),
        ("line 30\n", ""),
        ("line 7\n", "seven\n"),  # next to a patch, but the line is the base's
    ],
)
def test_what_lies_with_no_patch_is_asked_for(stack: Stacked, old: str, new: str) -> None:
    stack.edit("a.txt", old, new)
    with stack.untouched():
        stack.run("refresh").ends(
            1,
            "patchkit refresh -m demo -c demo --rest my-change",
            "patchkit refresh -m demo -c demo --patch ",
        ).shows("touches lines of no patch")


@pytest.mark.slow
def test_an_edit_between_two_patches_names_both(stack: Stacked) -> None:
    stack.git("reset", "-q", "--hard", "HEAD~1")
    stack.edit("a.txt", "six\n", "six\nlater\n")
    stack.git("commit", "-qam", "Add a neighbour")
    stack.run("refresh").ok()
    assert stack.series == ["one.patch", "two.patch", "add-a-neighbour.patch"]
    stack.edit("a.txt", "six\nlater\n", "six or later\n")
    stack.run("refresh").ends(1).shows("lines of several patches: one.patch, add-a-neighbour.patch")
    stack.run("refresh", "--patch", "one").ends(2, "add-a-neighbour.patch comes later")
    stack.run("refresh", "--patch", "add-a-neighbour").ok()
    stack.settled()


def test_new_makes_a_patch_of_what_is_ambiguous(stack: Stacked) -> None:
    stack.edit("a.txt", "line 30\n", "thirty\n")
    stack.edit("a.txt", "five\n", "5\n")
    stack.run("refresh", "--rest", "thirty", "--message", "Spell 30\n\nBetter.").ok()
    assert stack.series == [*NAMES, "thirty.patch"]
    assert stack.patch("thirty.patch").startswith(
        b"From: Ursula User <user@example.com>\nDate: Fri, 2 Jan 2026 03:04:05 +0000\n"
        b"Subject: Spell 30\n\nBetter.\n\ndiff --git a/a.txt b/a.txt\n"
    )
    assert b"+5\n" in stack.patch("one.patch")
    stack.settled()


def test_a_new_patch_for_which_nothing_is_left_is_told(stack: Stacked) -> None:
    stack.edit("a.txt", "five\n", "5\n")
    stack.run("refresh", "--rest", "fives").ok().says(
        "fives.patch was not made: each edit is next to a patch's lines",
        "patchkit undo  and then  patchkit refresh --new fives",
    )
    assert stack.series == [*NAMES]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--patch", "nobody"), "nobody: no such patch"),
        (("--new", "one"), "one.patch is there already"),
        (("--new", "ONE.patch"), "ONE.patch is there already"),
        (("--new", "no good"), "is not a valid patch name"),
        (("--new", "x", "--patch", "one"), "exclude each other"),
        (("--message", "x"), "is for a new patch"),
        (("--staged",), "is for a new patch"),
    ],
)
def test_a_wrong_wish_is_a_usage_error(stack: Stacked, argv: tuple[str, ...], words: str) -> None:
    stack.edit("a.txt", "line 30\n", "thirty\n")
    stack.run("refresh", *argv).ends(2, words)


def test_what_is_asked_for_goes_to_the_patch_that_is_named(stack: Stacked) -> None:
    """A new file counts once git knows it; what belongs to a patch goes there all the same."""
    (stack.checkout / "fresh.txt").write_text("fresh\n")
    stack.git("add", "fresh.txt")
    (stack.checkout / "c.txt").unlink()
    stack.edit("a.txt", "line 30\n", "thirty\n")
    stack.edit("a.txt", "five\n", "5\n")
    stack.run("refresh").ends(1).shows(
        "a new file", "removes the file", "touches lines of no patch"
    )
    stack.run("refresh", "--patch", "three").ok()
    for words in (b"new file mode 100644", b"deleted file mode", b"+thirty\n"):
        assert words in stack.patch("three.patch")
    assert b"+5\n" in stack.patch("one.patch")
    stack.settled()


def test_a_mode_goes_to_the_patch_that_added_the_file(stack: Stacked) -> None:
    """And that the file goes away."""
    (stack.checkout / "added.txt").chmod(0o755)
    stack.edit("added.txt", "file\n", "files\n")
    stack.run("refresh").ok()
    assert b"new file mode 100755" in stack.patch("three.patch")
    assert b"+files\n" in stack.patch("three.patch")
    stack.settled()
    (stack.checkout / "added.txt").unlink()
    stack.run("refresh").ok()
    assert b"added.txt" not in stack.patch("three.patch")
    stack.settled()


def test_a_patch_that_changes_nothing_any_more_leaves_and_is_kept_under_a_ref(
    stack: Stacked,
) -> None:
    stack.edit("a.txt", "twenty\nand more\n", "line 20\n")
    ran = stack.run("refresh").ok()
    assert stack.series == ["one.patch", "three.patch"]
    assert not (stack.project.root / "patches/demo/two.patch").exists()
    ran.shows("is empty now")
    ref = ran.err.split("is kept as ")[1].split()[0]
    assert "Patch two" in stack.git("log", "--format=%s", ref)
    stack.settled()


def test_a_dry_run_says_all_and_writes_nothing(stack: Stacked) -> None:
    stack.edit("a.txt", "five\n", "5\n")
    index = (stack.checkout / ".git" / "index").read_bytes()
    with stack.untouched():
        stack.run("refresh", "--dry-run", "--diff").ok().shows(
            "would refresh  demo", "a.txt:5  one.patch", "-+five\n++5\n"
        )
    assert (stack.checkout / ".git" / "index").read_bytes() == index


# -- commits ---------------------------------------------------------------------------------


def test_commits_and_edits_together(stack: Stacked) -> None:
    stack.edit("c.txt", "line 3\n", "three\n")
    stack.git("commit", "-qam", "Spell 3")
    stack.edit("c.txt", "three\n", "THREE\n")
    stack.edit("a.txt", "five\n", "5\n")
    stack.run("refresh").ok()
    assert b"+THREE\n" in stack.patch("spell-3.patch")
    assert b"+5\n" in stack.patch("one.patch")
    stack.settled()


def test_a_merge_in_the_stack_is_refused(stack: Stacked) -> None:
    stack.git("checkout", "-q", "-b", "side", "HEAD~1")
    stack.edit("c.txt", "line 3\n", "three\n")
    stack.git("commit", "-qam", "Aside")
    stack.git("checkout", "-q", "patchkit")
    stack.git("merge", "-q", "--no-edit", "side")
    stack.run("refresh").ends(4, "is a merge")


# -- checkouts that are not ready ------------------------------------------------------------


def test_without_a_checkout_there_is_nothing_to_do(project: Project, upstream: Upstream) -> None:
    project.component("demo", upstream, STATES[0], small_patches())
    project.run("refresh").ok().shows("absent")


def test_another_branch_is_refused(stack: Stacked) -> None:
    stack.git("checkout", "-q", "-b", "topic")
    stack.run("refresh").ends(1, "on branch topic")


def test_a_checkout_without_patches_does_not_empty_the_series(stack: Stacked) -> None:
    stack.git("reset", "-q", "--hard", "refs/patchkit/base")
    with stack.untouched():
        stack.run("refresh").ends(1, "no patch is applied")


@pytest.mark.slow
@pytest.mark.parametrize("edited", [False, True])
def test_patches_that_changed_since_are_not_overwritten(stack: Stacked, *, edited: bool) -> None:
    """The checkout goes to them, with its edits."""
    series = stack.project.root / "patches/demo/series"
    series.write_text("one.patch\ntwo.patch\n")
    if edited:
        stack.edit("a.txt", "five\n", "5\n")
    dry = stack.run("refresh", "--dry-run").ends(1, "patches changed since")
    assert "and so did the checkout" in dry.err or not edited
    ran = stack.run("refresh").ok()
    assert ("the checkout is at what the patches are now" in ran.out) != edited
    assert series.read_text() == "one.patch\ntwo.patch\n"
    assert (b"+5\n" in stack.patch("one.patch")) == edited
    assert "line 10\n" in (stack.checkout / "b.txt").read_text()
    stack.settled()


# -- where patches stand ---------------------------------------------------------------------


def test_what_stands_above_the_diff_is_kept_to_the_byte(
    project: Project, upstream: Upstream
) -> None:
    patches = small_patches()
    head = b"# quilt text\r\nDescription: odd  \n\tand tabs\nForwarded: no\n---\n a.txt | 4\n\n"
    diff = patches["one.patch"].partition(b"diff --git")[2]
    tail = b"-- \nold mailer 1.0\n"
    patches["one.patch"] = head + b"diff --git" + diff + tail
    stack = Stacked.of(project, upstream, patches)
    stack.edit("a.txt", "five\n", "5\n")
    stack.run("refresh").ok()
    assert stack.patch("one.patch").startswith(head + b"diff --git a/a.txt b/a.txt\n")
    assert stack.patch("one.patch").endswith(tail)
    stack.settled()


def test_what_is_no_diff_stays_in_its_place(project: Project, upstream: Upstream) -> None:
    """Comments of a series; a patch of words only; an empty one, as `git format-patch` makes it."""
    words = b"From: A <a@example.com>\nSubject: To be written\n\nSoon.\n"
    one, *others = small_patches().items()
    patches = dict([("nothing.patch", b""), one, ("words.patch", words), *others])
    stack = Stacked.of(project, upstream, patches)
    text = "# ours\n" + "# upstream soon\n\n".join(f"{name}  # really\n" for name in patches)
    project.write({"patches/demo/series": text})
    before = project.files()
    stack.edit("c.txt", "line 3\n", "three\n")
    stack.run("refresh", "--new", "fourth").ok()
    assert stack.patch("series").decode() == text + "fourth.patch\n"
    assert stack.changed(before) == ["fourth.patch", "series"]
    stack.settled()


@pytest.mark.parametrize(("strip", "folder"), [(0, ""), (2, ""), (1, "src")])
def test_other_layouts(project: Project, upstream: Upstream, strip: int, folder: str) -> None:
    """Paths without a/, with a folder too many, and below a folder of the upstream."""
    inner = {"a.txt": lines({5: "five\n"})}
    patch = make_patch({"a.txt": lines()}, inner)
    for side in (b"a/", b"b/"):
        patch = patch.replace(side + b"a.txt", {0: b"", 1: side, 2: side + b"x/"}[strip] + b"a.txt")
    root = f"{folder}/" if folder else ""
    project.component(
        "demo",
        upstream,
        {f"{root}a.txt": lines(), f"{root}b.txt": lines()},
        {"one.patch": patch},
        strip=strip,
        subdirectory=folder,
    )
    stack = Stacked.applied(project)
    stack.edit(f"{root}a.txt", "five\n", "5\n")
    stack.edit(f"{root}b.txt", "line 9\n", "nine\n")
    stack.run("refresh", "--rest", "two").ok()
    name = {0: b"a.txt", 1: b"a/a.txt", 2: b"a/x/a.txt"}[strip]
    assert b"--- " + name + b"\n" in stack.patch("one.patch")
    assert b"--- " + name.replace(b"a.txt", b"b.txt") + b"\n" in stack.patch("two.patch")
    stack.settled()


def test_a_rename_is_followed_to_the_lines_before_it(project: Project, upstream: Upstream) -> None:
    base = {"old.txt": lines()}
    first = {"old.txt": lines({5: "five\n"})}
    moved = {"old.txt": None, "new.txt": lines({5: "five\n", 30: "thirty\n"})}
    patches = {
        "first.patch": make_patch(base, first),
        "moved.patch": make_patch(base | first, moved),
    }
    assert b"rename from old.txt" in patches["moved.patch"]
    project.component("demo", upstream, base, patches)
    stack = Stacked.applied(project)
    stack.edit("new.txt", "five\n", "5\n")
    stack.edit("new.txt", "thirty\n", "30\n")
    stack.run("refresh").ok()
    assert b"+5\n" in stack.patch("first.patch")
    assert b"rename from old.txt" in stack.patch("moved.patch")
    assert b"+30\n" in stack.patch("moved.patch")
    stack.settled()


def test_a_component_without_a_series_gets_one(project: Project, upstream: Upstream) -> None:
    path = project.component("demo", upstream, STATES[0])
    stack = Stacked.applied(project)
    stack.edit("a.txt", "line 5\n", "five\n")
    stack.run("refresh", "--new", "one").ok()
    assert stack.series == ["one.patch"]
    assert "series: patches/demo/series" in path.read_text()
    stack.settled()


def test_a_message_that_a_patch_file_cannot_hold_is_written_so_that_it_comes_back(
    stack: Stacked,
) -> None:
    stack.edit("c.txt", "line 3\n", "three\n")
    stack.git("commit", "-qam", "Odd\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b")
    message = stack.git("log", "-1", "--format=%B")
    stack.run("refresh").ok()
    assert stack.git("log", "-1", "--format=%B").startswith(message)
    assert stack.patch("odd.patch").count(b"\n+three\n") == 1
    stack.settled()


def test_canonical_writes_every_diff_anew_and_once(project: Project, upstream: Upstream) -> None:
    """A raw diff without blob ids, at an offset, made for other files: apply takes it as it is."""
    patches = small_patches()
    raw = (
        patches["one.patch"]
        .partition(b"--- a/a.txt")[2]
        .replace(b"@@ -2,8 +2,8 @@", b"@@ -4,8 +4,8 @@")
    )
    patches["one.patch"] = b"Five and six.\n\n--- a/a.txt" + raw
    stack = Stacked.of(project, upstream, patches)
    stack.run("refresh").ok().shows("unchanged")
    stack.run("refresh", "--canonical").ok().shows("shifted    one.patch")
    assert stack.patch("one.patch").startswith(
        b"Five and six.\n\ndiff --git a/a.txt b/a.txt\nindex "
    )
    assert b"@@ -2,8 +2,8 @@" in stack.patch("one.patch")
    stack.run("refresh", "--canonical").ok().shows("unchanged")
    stack.settled()


def test_a_raw_patch_that_is_not_concerned_keeps_its_bytes(
    project: Project, upstream: Upstream
) -> None:
    patches = small_patches()
    patches["two.patch"] = b"--- a/a.txt" + patches["two.patch"].partition(b"--- a/a.txt")[2]
    stack = Stacked.of(project, upstream, patches)
    stack.edit("a.txt", "five\n", "5\n")
    stack.run("refresh").ok().shows("unchanged  2 patches")
    assert stack.patch("two.patch") == patches["two.patch"]
    stack.settled()
