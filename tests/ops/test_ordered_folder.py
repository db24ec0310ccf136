"""`- {folder: DIR, order: name}`: patches that a folder orders by their names are used where they
are, and whoever takes them by `git am DIR/*` still gets the tree that patchkit makes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ops.shouting import ONE, TWO, shouted
from tests.support.projects import Project, write_files
from tests.support.repos import Upstream, git_in, make_patch

pytestmark = pytest.mark.slow

THREE = make_patch(
    shouted(3, 20), {**shouted(3, 20, 35), "b.py": "B\n"}, subject="Shout two", body="Both."
)
FILES = {"0001-one.patch": ONE, "0002-two.patch": TWO, "0004-three.patch": THREE}


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    write_files(project.root / "package/demo", FILES)
    entry = {"folder": "package/demo", "order": "name"}
    project.component("demo", upstream, shouted(), [entry])
    project.prepare("apply").ok()
    return project


def names(project: Project) -> list[str]:
    return [path.name for path in sorted((project.root / "package/demo").iterdir())]


def agrees(project: Project, tmp_path: Path) -> None:
    """The checkout is at the stack, and `git am FOLDER/*` gives its tree."""
    project.run("apply", "--locked").ok()
    project.run("refresh").ok().shows("unchanged")
    own = tmp_path / "own"
    git_in(tmp_path, "clone", "-q", str(project.checkout("demo")), str(own))
    git_in(own, "fetch", "-q", "origin", "refs/patchkit/base")
    git_in(own, "checkout", "-q", "FETCH_HEAD")
    files = [str(path) for path in sorted((project.root / "package/demo").iterdir())]
    git_in(own, "-c", "user.name=a", "-c", "user.email=a@b", "am", "-q", *files)
    tree = project.git("rev-parse", "HEAD^{tree}")
    assert git_in(own, "rev-parse", "HEAD^{tree}") == tree


def test_it_is_used_where_it_is(demo: Project, tmp_path: Path) -> None:
    assert names(demo) == list(FILES)
    demo.run("check", "--strict").ends(1)  # the patches lack an Upstream-Status, and no more
    agrees(demo, tmp_path)


VERBS = {
    "drop": (("drop", "2"), ["0001-one.patch", "0004-three.patch"]),
    "move": (("move", "1", "--to", "3"), ["0002-two.patch", "0004-three.patch", "0005-one.patch"]),
    "back": (("move", "3", "--to", "1", "--canonical"), [
        "0001-three.patch", "0002-one.patch", "0003-two.patch"
    ]),
    "rename": (("edit", "2", "--name", "twenty"), [
        "0001-one.patch", "0002-twenty.patch", "0004-three.patch"
    ]),
    "fold": (("fold", "2", "--to", "1"), ["0001-one.patch", "0004-three.patch"]),
    "split": (("split", "3", "--new", "b-only", "--file", "b.py"), [
        *FILES, "0005-b-only.patch"
    ]),
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_leaves_other_numbers_alone(demo: Project, tmp_path: Path, verb: str) -> None:
    argv, after = VERBS[verb]
    before, data = demo.product, demo.files("package/demo")
    demo.run(*argv).ok()
    assert names(demo) == after
    if verb == "rename":  # the bytes are what they were, under another name
        assert sorted(demo.files("package/demo").values()) == sorted(data.values())
    agrees(demo, tmp_path)
    demo.run("undo").ok()
    assert demo.product == before


def test_a_move_that_finds_no_number_says_how(demo: Project, tmp_path: Path) -> None:
    with demo.untouched():
        ran = demo.run("move", "3", "--to", "2").ends(4, "no number is free for 0004-three.patch")
    assert "--canonical" in ran.err
    demo.run("move", "3", "--to", "2", "--canonical").ok()
    assert names(demo) == ["0001-one.patch", "0002-three.patch", "0003-two.patch"]
    agrees(demo, tmp_path)


def test_a_part_between_two_numbers(demo: Project, tmp_path: Path) -> None:
    demo.run("move", "3", "--to", "2", "--canonical").ok()
    part = ("split", "2", "--new", "b-only", "--file", "b.py")
    with demo.untouched():
        demo.run(*part).ends(4, "no number is free for b-only.patch between 0002-three.patch and")
    demo.run(*part, "--canonical").ok().shows("0003-b-only.patch has a part of 0002-three.patch")
    assert names(demo)[2:] == ["0003-b-only.patch", "0004-two.patch"]
    agrees(demo, tmp_path)


def test_new_commits_and_edits_get_numbers(demo: Project, tmp_path: Path) -> None:
    (demo.checkout("demo") / "b.py").write_text("new\n")
    demo.run("refresh", "--new", "rework-b").ok().shows("0005-rework-b.patch")
    checkout = demo.checkout("demo")
    (checkout / "c.py").write_text("c\n")
    git_in(checkout, "add", "c.py")
    git_in(checkout, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "Add c")
    demo.run("refresh").ok()
    assert names(demo) == [*FILES, "0005-rework-b.patch", "0006-add-c.patch"]
    agrees(demo, tmp_path)


def test_imported_patches_are_numbered_on(demo: Project, tmp_path: Path) -> None:
    more = make_patch(
        {**shouted(3, 20, 35), "b.py": "B\n"}, {**shouted(3, 20, 35), "b.py": "BB\n"}, subject="BB"
    )
    write_files(tmp_path / "in", {"0001-bb.patch": more})
    demo.run("import", str(tmp_path / "in")).ok()
    assert names(demo) == [*FILES, "0005-bb.patch"]
    demo.run("apply").ok()
    agrees(demo, tmp_path)


def test_a_bump_keeps_the_numbers(demo: Project, upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit({**shouted(20), "new.py": "n\n"})
    demo.run("bump", "--to", "main").ok()
    assert names(demo) == ["0001-one.patch", "0004-three.patch"]
    agrees(demo, tmp_path)


def test_a_mirror_tree_of_files(project: Project, upstream: Upstream) -> None:
    """One patch a file, in the folders of the files: any order gives the tree."""
    before = {"src/a.py": "a\n", "src/deep/b.py": "b\n", "z.py": "z\n"}
    patches = {
        f"{path}.patch": make_patch({path: text}, {path: text.upper()}, subject=f"Shout {path}")
        for path, text in list(before.items())[:2]
    }
    write_files(project.root / "mirror", patches)
    project.component("demo", upstream, before, [{"folder": "mirror", "order": "path"}])
    project.run("apply").ok()
    assert (project.checkout("demo") / "src/deep/b.py").read_text() == "B\n"
    # a new one sorts before the others, which do not need it
    (project.checkout("demo") / "z.py").write_text("Z\n")
    project.run("refresh", "--new", "also/z.py").ok()
    there = sorted(project.files("mirror"))
    assert there == [
        "mirror/also/z.py.patch",
        "mirror/src/a.py.patch",
        "mirror/src/deep/b.py.patch",
    ]
    project.run("apply", "--locked").ok()
    project.run("refresh").ok().shows("unchanged")
    status = project.run("status").ok()
    assert "lock" not in status.out + status.err
    with project.untouched():
        project.run("move", "1", "--to", "3").ends(1, "its name says where")


def test_what_is_wrong_is_said_at_the_manifests_line(project: Project, upstream: Upstream) -> None:
    entry = {"folder": "patches/none", "order": "name"}
    project.component("demo", upstream, shouted(), [entry])
    project.run("check").ends(4, "patches/none is not there")
    write_files(project.root / "patches/none", {"a b.patch": ONE, "1-x.patch": ONE})
    project.run("check").ends(4, "'a b.patch' is not a valid patch name")
    (project.root / "patches/none/a b.patch").rename(project.root / "patches/none/c.patch")
    project.component("demo", upstream, shouted(), [{**entry, "order": "number"}])
    project.run("check").ends(4, "c.patch begins with no number")
    project.component("demo", upstream, shouted(), [{"folder": "patches/none"}])
    project.run("check").ends(4, "order is missing")


def test_a_link_out_of_the_project_is_refused(
    demo: Project, tmp_path: Path, upstream: Upstream
) -> None:
    (tmp_path / "out.patch").write_bytes(THREE)
    (demo.root / "package/demo/0004-three.patch").unlink()
    (demo.root / "package/demo/0004-three.patch").symlink_to(tmp_path / "out.patch")
    demo.run("check").ends(4, "0004-three.patch")
