"""`undo`: the last changes of a checkout are taken back, one after the other."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from patchkit.disk.transaction import JOURNAL
from patchkit.ops.undo import MOST
from tests.ops.shouting import LINES, ONE, TWO, shouted
from tests.support.projects import Project
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


def files(project: Project) -> dict[str, bytes]:
    """The project's files but for the workspace."""
    found = (path for path in sorted(project.root.rglob("*")) if path.is_file())
    names = {path.relative_to(project.root): path for path in found}
    return {str(n): path.read_bytes() for n, path in names.items() if n.parts[0] != "workspace"}


def checkout(project: Project, name: str = "demo") -> tuple[str, ...]:
    """Where it is, and what git says of its files."""
    folder = project.checkout(name)
    refs = ("refs/heads", "refs/patchkit/base", "refs/patchkit/applied")
    return (
        git_in(folder, "for-each-ref", *refs).decode(),
        git_in(folder, "status", "--porcelain").decode(),
        git_in(folder, "diff", "HEAD").decode(),
    )


def whats(project: Project) -> list[str]:
    listed = json.loads(project.run("undo", "--list", "--json").ok().out)
    return [each["what"] for each in listed["changes"]]


@pytest.mark.slow
def test_changes_are_taken_back_one_after_the_other(demo: Project) -> None:
    """A verb after a bump does not make the bump impossible to undo."""
    states = [(files(demo), checkout(demo))]

    def done(*argv: str) -> None:
        demo.run(*argv).ok()
        states.append((files(demo), checkout(demo)))

    done("bump", "--to", "main")
    done("edit", "one", "--message", "Other words")
    done("move", "two", "--to", "1")
    done("drop", "one")
    assert [each.partition(":")[0] for each in whats(demo)[:3]] == ["drop", "move", "edit"]
    assert whats(demo)[3] == "bump to main"
    for before in states[-2::-1]:
        demo.run("undo").ok()
        assert (files(demo), checkout(demo)) == before
    assert demo.run("undo").code == 1


def test_an_import_is_taken_back(demo: Project, tmp_path: Path) -> None:
    demo.run("edit", "one", "--message", "Other words").ok()
    before = (files(demo), checkout(demo))
    path = tmp_path / "more.patch"
    path.write_bytes(make_patch(shouted(3, 20), shouted(3, 20, 35), subject="Shout line 35"))
    demo.run("import", str(path)).ok()
    assert files(demo) != before[0]
    assert [each.partition(":")[0] for each in whats(demo)] == ["import", "edit"]
    demo.run("undo").ok()
    assert (files(demo), checkout(demo)) == before


def test_an_abort_stops_undo_once(demo: Project, upstream: Upstream) -> None:
    demo.run("edit", "one", "--message", "Other words").ok()
    upstream.commit({"a.py": "other\n"}, "Rewrite a")
    assert demo.run("bump", "--to", "main").code == 3
    demo.run("abort").ok()
    before = (files(demo), checkout(demo))
    assert whats(demo)[0] == "abort"
    ran = demo.run("undo")
    assert (ran.code, "abort cannot be undone" in ran.err) == (1, True)
    assert (files(demo), checkout(demo)) == before
    demo.run("undo").ok()
    assert files(demo) != before[0]


@pytest.mark.slow
def test_so_many_and_no_more(demo: Project) -> None:
    names = ["one", *(f"name-{number}" for number in range(MOST + 2))]
    for old, new in itertools.pairwise(names):
        demo.run("rename", old, new).ok()
    assert len(whats(demo)) == MOST
    for _ in range(MOST):
        demo.run("undo").ok()
    ran = demo.run("undo")
    assert (ran.code, "there is nothing to undo" in ran.err) == (1, True)
    assert "name-1.patch" in (demo.root / "patches/demo/series").read_text()


def test_what_was_changed_since_stops_it(demo: Project) -> None:
    demo.run("rename", "one", "first").ok()
    demo.run("edit", "two", "--message", "Other words").ok()
    path = demo.root / "patches/demo/two.patch"
    good = path.read_bytes()
    path.write_bytes(b"X-Note: mine\n" + good)
    before = files(demo)
    ran = demo.run("undo")
    assert (ran.code, "patches/demo/two.patch changed since" in ran.err) == (1, True)
    assert files(demo) == before
    listed = demo.run("undo", "--list").ok()
    assert "two.patch changed since" in listed.err
    path.write_bytes(good)
    demo.run("undo").ok()
    demo.run("undo").ok()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["refresh", "new"])
def test_what_was_taken_up_is_an_edit_again(demo: Project, command: str) -> None:
    folder = demo.checkout("demo")
    (folder / "b.py").write_text("mine\n")
    (folder / "a.py").write_text("".join(LINES).replace("line 3\n", "Line 3!\n"))
    (folder / "new.py").write_text("new\n")
    git_in(folder, "add", "new.py", "b.py")
    (folder / "b.py").write_text("mine, and more\n")
    before = (files(demo), checkout(demo))
    demo.run(command, *(["part", "-m", "x"] if command == "new" else ["--new", "rest"]))
    demo.run(*("new", "part") if command == "new" else ("refresh", "--new", "rest"))
    assert files(demo) != before[0]
    assert checkout(demo)[1] == ""
    ran = demo.run("undo").ok()
    assert (files(demo), checkout(demo)) == before
    assert "the patches as they were made are kept as refs/patchkit/saved/" in ran.err
    demo.run(*("new", "part") if command == "new" else ("refresh", "--new", "rest")).ok()


def test_new_from_the_index_is_taken_back(demo: Project) -> None:
    folder = demo.checkout("demo")
    (folder / "b.py").write_text("staged\n")
    (folder / "new.py").write_text("new\n")
    git_in(folder, "add", "b.py", "new.py")
    (folder / "b.py").write_text("staged\nand more\n")
    before = (files(demo), checkout(demo))
    demo.run("new", "part", "--staged").ok()
    (folder / "b.py").write_text("later\n")
    demo.run("undo").ok()
    assert (files(demo), checkout(demo)[:2]) == (before[0], before[1][:2])
    assert (folder / "b.py").read_text() == "later\n"
    assert git_in(folder, "show", ":b.py") == b"staged\n"


def test_commits_that_became_patches_are_kept(demo: Project) -> None:
    folder = demo.checkout("demo")
    (folder / "b.py").write_text("mine\n")
    git_in(folder, "commit", "-q", "-a", "-m", "My own")
    own = git_in(folder, "rev-parse", "HEAD").decode().strip()
    before = files(demo)
    demo.run("refresh").ok()
    assert (demo.root / "patches/demo/my-own.patch").exists()
    ran = demo.run("undo").ok()
    assert files(demo) == before
    assert git_in(folder, "status", "--porcelain").decode() == " M b.py\n"
    assert own in git_in(folder, "for-each-ref", "refs/patchkit/saved").decode()
    assert "your commits are kept as refs/patchkit/saved/" in ran.err


@pytest.mark.parametrize("how", ["commit", "gone"])
def test_a_refresh_stays_where_its_edits_would_be_nowhere(demo: Project, how: str) -> None:
    folder = demo.checkout("demo")
    (folder / "b.py").write_text("mine\n")
    demo.run("new", "part").ok()
    before = files(demo)
    if how == "commit":
        git_in(folder, "commit", "-q", "--allow-empty", "-m", "later")
    else:
        folder.rename(folder.with_name("elsewhere"))
    ran = demo.run("undo")
    assert (ran.code, files(demo)) == (1, before)
    assert "or at another stack" in ran.err


@pytest.mark.slow
def test_components_are_taken_back_on_their_own(demo: Project, upstream: Upstream) -> None:
    """They share a lock: what it says of another component is left alone."""
    pin = upstream.resolve("refs/tags/v1")
    demo.component("other", upstream, str(pin), {"mine.patch": ONE})
    demo.prepare("apply").ok()
    for name in ("demo", "other"):
        (demo.checkout(name) / "b.py").write_text(f"{name}\n")
    before = files(demo)
    demo.run("refresh", "--new", "rest").ok()
    after = files(demo)
    assert len(whats(demo)) == 2
    demo.run("undo", "-c", "demo").ok()
    now = files(demo)
    assert {n for n in after if n not in now} == {"patches/demo/rest.patch"}
    demo.run("undo").ok()
    assert files(demo) == before
    assert [checkout(demo, name)[1] for name in ("demo", "other")] == [" M b.py\n"] * 2


def test_a_change_that_was_never_made_is_passed_over(demo: Project) -> None:
    """Killed before its files were written: the record is there, the change is not."""
    demo.run("rename", "one", "first").ok()
    record = demo.root / "workspace/.patchkit/demo.undo.json"
    early = files(demo)
    demo.run("rename", "two", "second").ok()
    text = record.read_bytes()
    demo.run("undo").ok()
    record.write_bytes(text)
    demo.run("edit", "two", "--message", "Other words").ok()
    assert len(whats(demo)) == 2
    demo.run("undo").ok()
    assert files(demo) == early
    demo.run("undo").ok()
    assert (demo.root / "patches/demo/one.patch").exists()


def test_a_change_that_the_next_command_finishes_is_undone(demo: Project) -> None:
    """It failed behind its commit point, with no file renamed yet: the record stays."""
    before, journal = files(demo), demo.root / JOURNAL
    with failing_once("os.rename", journal.exists):
        assert demo.run("bump", "demo", "--to", "main").code == 5
    assert journal.exists()
    demo.run("status")  # finishes it
    assert files(demo) != before
    demo.run("undo").ok()
    assert files(demo) == before


def test_a_record_that_the_system_does_not_open_is_not_written_over(demo: Project) -> None:
    demo.run("rename", "one", "first").ok()
    record = demo.root / "workspace/.patchkit/demo.undo.json"
    text = record.read_bytes()
    record.unlink()
    record.mkdir()
    before = files(demo)
    ran = demo.run("rename", "two", "second")
    assert (ran.code, "demo.undo.json" in ran.err) == (5, True), ran.err
    assert files(demo) == before
    record.rmdir()
    record.write_bytes(text)
    assert whats(demo) == ["rename: one.patch is called first.patch"]


def test_a_record_of_the_version_before_is_read(demo: Project) -> None:
    before = files(demo)
    demo.run("rename", "one", "first").ok()
    record = demo.root / "workspace/.patchkit/demo.undo.json"
    row = json.loads(record.read_bytes())["changes"][0]
    old = {name: row[name] for name in ("component", "files", "before", "after", "bump")}
    record.write_text(json.dumps({"version": 1, **old}))
    demo.run("undo").ok()
    now = files(demo)
    del now["manifests/demo.lock.json"], before["manifests/demo.lock.json"]
    assert now == before


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 2, "changes": [{}]}', "\x00"])
def test_a_record_that_cannot_be_read_is_none(demo: Project, text: str, tmp_path: Path) -> None:
    demo.run("rename", "one", "first").ok()
    (demo.root / "workspace/.patchkit/demo.undo.json").write_text(text)
    ran = demo.run("undo")
    assert (ran.code, "there is nothing to undo" in ran.err) == (1, True)
    demo.run("rename", "first", "one").ok()
    demo.run("undo").ok()
