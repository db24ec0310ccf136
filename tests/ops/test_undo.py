"""`undo`: the last changes of a checkout are taken back, one after the other."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from patchkit.disk.files import DRAFT, JOURNAL
from patchkit.workspace.checkout import Checkout
from patchkit.workspace.operations import MOST, Operation, operations, record
from tests.ops.shouting import LINES, ONE, TWO, shouted
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, git_in, make_patch
from tests.workspace.killing import failing_once


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    pin = upstream.commit(shouted())
    upstream.tag("v1", pin)
    project.component("demo", upstream, pin, {"one.patch": ONE, "two.patch": TWO})
    upstream.commit({**shouted(), "c.py": "new\n"}, "Add c")
    project.prepare("apply").ok()
    return project


def checkout(project: Project, name: str = "demo") -> tuple[str, ...]:
    """Where it is, and what git says of its files."""
    folder = project.checkout(name)
    refs = ("refs/heads", "refs/patchkit/base", "refs/patchkit/applied")
    return (
        git_in(folder, "for-each-ref", *refs).decode(),
        git_in(folder, "status", "--porcelain").decode(),
        git_in(folder, "diff", "HEAD").decode(),
    )


def state(project: Project) -> tuple[dict[str, bytes], tuple[str, ...]]:
    return project.product, checkout(project)


def whats(project: Project) -> list[str]:
    listed = project.run("undo", "--list", "--json").ok().json
    return [each["what"] for each in listed["changes"]]


def test_an_abort_stops_undo_once(demo: Project, upstream: Upstream) -> None:
    demo.run("edit", "one", "--message", "Other words").ok()
    upstream.commit({"a.py": "other\n"}, "Rewrite a")
    demo.run("bump", "--to", "main").ends(3)
    demo.run("abort").ok()
    before = demo.product
    assert whats(demo)[0] == "abort"
    with demo.untouched():
        demo.run("undo").ends(1, "abort cannot be undone")
    demo.run("undo").ok()
    assert demo.product != before


def test_what_was_changed_since_stops_it(demo: Project) -> None:
    demo.run("edit", "one", "--name", "first").ok()
    demo.run("edit", "two", "--message", "Other words").ok()
    path = demo.root / "patches/demo/two.patch"
    good = path.read_bytes()
    path.write_bytes(b"X-Note: mine\n" + good)
    with demo.untouched():
        demo.run("undo").ends(1, "patches/demo/two.patch changed since")
        demo.run("undo", "--list").ok().says("two.patch changed since")
    path.write_bytes(good)
    demo.run("undo").ok()
    demo.run("undo").ok()


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--rest", "--new"])
def test_what_was_taken_up_is_an_edit_again(demo: Project, option: str) -> None:
    """And is taken up again, with what was edited since as edits."""
    folder = demo.checkout("demo")
    write_files(
        folder,
        {
            "b.py": "mine\n",
            "a.py": "".join(LINES).replace("line 3\n", "Line 3!\n"),
            "new.py": "new\n",
        },
    )
    git_in(folder, "add", "new.py", "b.py")
    (folder / "b.py").write_text("mine, and more\n")
    before = state(demo)
    demo.run("refresh", option, "part")
    after = state(demo)
    assert (after[0] != before[0], after[1][1]) == (True, "")
    demo.run("undo").ok().says("the patches as they were made are kept as refs/patchkit/saved/")
    assert state(demo) == before
    demo.run("undo", "--redo").ok()
    assert state(demo) == after
    demo.run("undo").ok()
    (folder / "b.py").write_text("mine, and even more\n")
    demo.run("undo", "--redo").ok()
    assert (demo.product, checkout(demo)[1]) == (after[0], " M b.py\n")
    assert (folder / "b.py").read_text() == "mine, and even more\n"


def test_new_from_the_index_is_taken_back(demo: Project) -> None:
    folder = demo.checkout("demo")
    write_files(folder, {"b.py": "staged\n", "new.py": "new\n"})
    git_in(folder, "add", "b.py", "new.py")
    (folder / "b.py").write_text("staged\nand more\n")
    before = state(demo)
    demo.run("refresh", "--new", "part", "--staged").ok()
    (folder / "b.py").write_text("later\n")
    demo.run("undo").ok()
    assert (demo.product, checkout(demo)[:2]) == (before[0], before[1][:2])
    assert (folder / "b.py").read_text() == "later\n"
    assert git_in(folder, "show", ":b.py") == b"staged\n"


def test_commits_that_became_patches_are_kept(demo: Project) -> None:
    folder = demo.checkout("demo")
    (folder / "b.py").write_text("mine\n")
    git_in(folder, "commit", "-q", "-a", "-m", "My own")
    own = git_in(folder, "rev-parse", "HEAD").decode().strip()
    before = demo.product
    demo.run("refresh").ok()
    assert (demo.root / "patches/demo/my-own.patch").exists()
    ran = demo.run("undo").ok()
    assert demo.product == before
    assert git_in(folder, "status", "--porcelain").decode() == " M b.py\n"
    assert own in git_in(folder, "for-each-ref", "refs/patchkit/saved").decode()
    ran.says("your commits are kept as refs/patchkit/saved/")


@pytest.mark.parametrize("how", ["commit", "gone"])
def test_a_refresh_stays_where_its_edits_would_be_nowhere(demo: Project, how: str) -> None:
    folder = demo.checkout("demo")
    (folder / "b.py").write_text("mine\n")
    demo.run("refresh", "--new", "part").ok()
    if how == "commit":
        git_in(folder, "commit", "-q", "--allow-empty", "-m", "later")
    else:
        folder.rename(folder.with_name("elsewhere"))
    with demo.untouched():
        demo.run("undo").ends(1, "new: part: the checkout is ")


def history(project: Project) -> Path:
    return project.root / "workspace/.patchkit/history.git"


def test_an_operation_that_was_never_made_is_passed_over(demo: Project) -> None:
    """Killed before its files were written: the record is there, the change is not."""
    demo.run("edit", "one", "--name", "first").ok()
    early = demo.product
    demo.run("edit", "two", "--name", "second").ok()
    last = max((history(demo) / "refs/patchkit/demo").iterdir())
    oid = last.read_text()
    demo.run("undo").ok()
    last.write_text(oid)
    demo.run("edit", "two", "--message", "Other words").ok()
    assert [each.partition(":")[0] for each in whats(demo)[:2]] == ["edit", "edit"]
    demo.run("undo").ok()
    assert demo.product == early
    demo.run("undo").ok()
    assert (demo.root / "patches/demo/one.patch").exists()


def test_a_change_that_the_next_command_finishes_is_undone(demo: Project) -> None:
    """It failed behind its commit point, with no file renamed yet: the record stays."""
    before, journal = demo.product, demo.root / JOURNAL
    with failing_once("os.rename", journal.exists):
        demo.run("bump", "demo", "--to", "main").ends(5)
    assert journal.exists()
    demo.run("status")  # finishes it
    assert demo.product != before
    demo.run("undo").ok()
    assert demo.product == before


def test_what_cannot_be_read_is_not_passed_over(demo: Project) -> None:
    """Nor does it stop what comes after it, and the hint forgets it."""
    demo.run("edit", "one", "--name", "first").ok()
    packs = history(demo) / "objects/pack"
    (pack,) = sorted(packs.glob("*.pack"), key=lambda path: path.stat().st_mtime)[-1:]
    pack.chmod(0o644)
    pack.write_bytes(b"no pack")
    before = demo.product
    demo.run("undo").ends(5, "what was done cannot be read")
    assert demo.product == before
    demo.run("edit", "two", "--name", "second").ok()
    demo.run("undo").ok()
    assert demo.product == before
    ran = demo.run("undo")
    (hint,) = re.findall("hint: (rm .*?)  forgets", ran.err)
    subprocess.run(hint, shell=True, check=True)
    assert "cannot be read" not in demo.run("undo", "--list").ok().err


def test_a_record_names_no_file_outside_of_the_project(demo: Project, tmp_path: Path) -> None:
    """A workspace may have come with a project."""
    place = Checkout(demo.root / "workspace", demo.checkout("demo"), "demo")
    (tmp_path / "mine").write_text("mine\n")
    operation = Operation("demo", "x", {"../../mine": (b"theirs\n", b"mine\n")})
    record(place, demo.root, operation)
    demo.run("undo").ends(5)
    assert (tmp_path / "mine").read_text() == "mine\n"


def test_the_repository_is_sound_and_small(demo: Project) -> None:
    """Each operation has all of its objects, and what is too old goes with them."""
    place = Checkout(demo.root / "workspace", demo.checkout("demo"), "demo")
    for number in range(MOST + 3):
        text = f"{number}\n".encode()
        record(place, demo.root, Operation("demo", f"edit {number}", {"a/file": (None, text)}))
        (demo.root / "a").mkdir(exist_ok=True)
        (demo.root / "a/file").write_bytes(text)
    git = history(demo)
    done = list(operations(place))
    assert len(done) == len([*git.glob("objects/pack/*.pack")]) == MOST
    git_in(git, "fsck", "--strict")
    assert not (git / "objects/info/alternates").exists()
    ref = f"refs/patchkit/demo/{Path(done[0].ref).name}"
    assert git_in(git, "show", f"{ref}:after/a/file") == text


# -- redo -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_was_undone_is_done_again(demo: Project, tmp_path: Path) -> None:
    """One after the other, in their order; until something else is done."""
    more = tmp_path / "more.patch"
    more.write_bytes(make_patch(shouted(3, 20), shouted(3, 20, 35), subject="Shout line 35"))
    states = [state(demo)]
    verbs = [
        ("bump", "--to", "main"),
        ("edit", "one", "--message", "Other words"),
        ("import", str(more)),
        ("move", "two", "--to", "1"),
        ("drop", "one"),
    ]
    for verb in verbs:
        demo.run(*verb).ok()
        states.append(state(demo))
    assert whats(demo)[len(verbs) - 1] == "bump to main"
    for before in states[-2::-1]:
        demo.run("undo").ok()
        assert state(demo) == before
    done = [each.partition(" ")[0] for each in whats(demo)[-len(verbs) :]]
    assert done == ["bump", "edit:", "import:", "move:", "drop:"]
    for after in states[1:]:
        ran = demo.run("undo", "--redo").ok()
        assert ran.out.startswith("✓ redone  demo")
        assert state(demo) == after
    demo.run("undo", "--redo").ends(1, "there is nothing to redo")
    demo.run("undo").ok()
    demo.run("edit", "two", "--name", "second").ok()
    demo.run("undo", "--redo").ends(1, "there is nothing to redo")


def test_a_command_that_fails_leaves_what_can_be_redone(demo: Project) -> None:
    demo.run("edit", "one", "--name", "first").ok()
    after = demo.product
    demo.run("undo").ok()
    with failing_once("os.rename", (demo.root / DRAFT).exists):
        demo.run("edit", "two", "--name", "second").ends(5)
    demo.run("undo", "--redo").ok()
    assert demo.product == after


# -- edits in the checkout ----------------------------------------------------------------------


def test_edits_of_other_files_stay_when_the_checkout_moves(demo: Project) -> None:
    folder, before = demo.checkout("demo"), demo.product
    demo.run("bump", "--to", "main").ok()
    write_files(folder, {"b.py": "mine\n", "more.py": "staged\n"})
    git_in(folder, "add", "more.py")
    (folder / "notes.txt").write_text("notes\n")
    for redo in ((), ("--redo",), ()):
        demo.run("undo", *redo).ok()
        assert checkout(demo)[1] == " M b.py\nA  more.py\n?? notes.txt\n"
        assert (folder / "c.py").exists() == bool(redo)
        assert (folder / "b.py").read_text() == "mine\n"
    assert demo.product == before


@pytest.mark.parametrize("how", ["edited", "committed", "untracked"])
def test_nothing_changes_where_an_edit_is_in_the_way(demo: Project, how: str) -> None:
    folder = demo.checkout("demo")
    demo.run("bump", "--to", "main").ok()
    if how == "untracked":
        demo.run("undo").ok()
    (folder / "c.py").write_text("mine\n")
    if how == "committed":
        git_in(folder, "commit", "-q", "-a", "-m", "mine")
    with demo.untouched():
        ran = demo.run("undo", *(["--redo"] if how == "untracked" else [])).says("hint: ")
    assert ran.code in (1, 5), ran


# -- apply ----------------------------------------------------------------------------------------


def _repinned(demo: Project, upstream: Upstream) -> tuple[str, ...]:
    """The pin moved by hand: `apply --accept` moves the checkout."""
    demo.repin(upstream.at("main"))
    return ("apply", "--accept")


def test_an_apply_that_writes_the_lock_alone_is_taken_back(demo: Project) -> None:
    series = demo.root / "patches/demo/series"
    series.write_text("# a comment\n" + series.read_text())
    path = demo.root / "patches/demo/two.patch"
    path.write_bytes(b"X-Note: mine\n" + path.read_bytes())
    before = state(demo)
    demo.run("apply").ok()
    after = state(demo)
    assert after != before
    demo.run("undo").ok()
    assert state(demo) == before
    demo.run("apply").ok()
    assert state(demo) == after
    count = len(whats(demo))
    demo.run("apply").ok()  # which does nothing
    assert len(whats(demo)) == count


@pytest.mark.slow
@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("committed", [False, True])
def test_what_apply_went_over_is_an_edit_again(
    demo: Project, upstream: Upstream, moves: bool, committed: bool
) -> None:
    folder = demo.checkout("demo")
    command = _repinned(demo, upstream) if moves else ("apply",)
    before = state(demo)
    (folder / "a.py").write_text("mine\n")
    if committed:
        git_in(folder, "commit", "-q", "-a", "-m", "mine")
    (folder / "new.py").write_text("staged\n")
    git_in(folder, "add", "new.py")
    (folder / "new.py").write_text("staged\nand more\n")
    (folder / "b.py").unlink()
    write_files(folder, {"c.py": "in the way\n", "notes.txt": "notes\n"})
    demo.run(*command, "--force").ok()
    after = state(demo)
    assert after[1][2] == ""
    demo.run("undo").ok()
    assert (demo.product, checkout(demo)[0]) == (before[0], before[1][0])
    rows = {" M a.py", " D b.py", "AM new.py", "?? c.py", "?? notes.txt"}
    if committed:
        rows = {each.replace(" M a.py", "M  a.py") for each in rows}
    assert set(checkout(demo)[1].splitlines()) == rows
    assert (folder / "a.py").read_text() == "mine\n"
    assert (folder / "c.py").read_text() == "in the way\n"
    assert git_in(folder, "show", ":new.py") == b"staged\n"
    demo.run("undo", "--redo").ok()
    assert state(demo) == after


def test_a_checkout_that_was_made_stays(demo: Project) -> None:
    """`undo` says so once, rather than take back something older."""
    with demo.untouched():
        demo.run("undo").ends(1, "apply, which made the checkout", "cannot be undone")
    assert whats(demo) == []


@pytest.mark.slow
def test_what_one_command_did_to_several_components_is_taken_back_together(
    demo: Project, upstream: Upstream
) -> None:
    """All of it or nothing; the ones that are named, alone; and an apply that made checkouts."""
    old = upstream.at("v1")
    for name in ("more", "most"):
        demo.component(name, upstream, old, {"one.patch": ONE})
    demo.run("apply").ok()  # which made two
    ran = demo.run("undo")
    assert (ran.code, ran.err.count("cannot be undone")) == (1, 2)
    names = ("demo", "more", "most")

    def places() -> list[tuple[str, ...]]:
        return [checkout(demo, each) for each in names]

    before = places()
    demo.repin(upstream.at("main"))
    written = demo.product
    demo.run("apply", "--accept").ok()
    after, lock = places(), demo.product
    assert all(one != other for one, other in zip(before, after, strict=True))
    (demo.checkout("most") / "c.py").write_text("mine\n")
    demo.run("undo").ends(1, "c.py changed since")
    assert places()[:2] == after[:2]
    git_in(demo.checkout("most"), "checkout", "-q", "c.py")
    ran = demo.run("undo").ok()
    assert (places(), ran.out.count("undone")) == (before, 3)
    assert demo.product == written  # with one lock for all
    demo.run("undo", "--redo").ok()
    assert (places(), demo.product) == (after, lock)
    demo.run("undo", "-c", "more").ok()
    assert places() == [after[0], before[1], after[2]]
    report = demo.run("undo", "--json").ok().json
    assert [report["component"], *(each["component"] for each in report["also"])] == [
        "demo",
        "most",
    ]
    assert (places(), demo.product) == (before, written)


@pytest.mark.slow
def test_a_verb_on_a_checkout_that_is_behind_is_taken_back_as_one(
    demo: Project, tmp_path: Path
) -> None:
    """Also where edits are merged into what the patches are, and then taken up."""
    more = make_patch({}, {"more.py": "more\n"}, subject="Add more")
    (tmp_path / "more.patch").write_bytes(more)
    demo.run("import", str(tmp_path / "more.patch")).ok()  # the checkout stays
    before = state(demo)
    for argv in (("edit", "one", "--message", "Other words"), ("refresh",)):
        _there_and_back(demo, *argv)
        demo.run("undo").ok()
        assert state(demo) == before
    (demo.checkout("demo") / "a.py").write_text(str(shouted(3, 20)["a.py"]) + "mine\n")
    _there_and_back(demo, "refresh", "--rest", "mine")


def _there_and_back(project: Project, *argv: str) -> None:
    before = state(project)
    project.run(*argv).ok()
    after = state(project)
    project.run("undo").ok()
    assert state(project) == before
    project.run("undo", "--redo").ok()
    assert state(project) == after
