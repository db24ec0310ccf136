"""One workspace, several manifests; and what a dry run foresees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, git_in, make_patch

BASE: Files = {"a.py": "one\n", "b.py": "two\n", ".gitignore": "*.log\n"}
ONE = make_patch(BASE, {**BASE, "a.py": "ONE\n"}, subject="Shout")
TWO = make_patch(BASE, {**BASE, "new.py": "new\n"}, subject="Add")
MORE: Files = {**BASE, "big/c.py": "c\n"}


@pytest.fixture
def two(project: Project, upstream: Upstream) -> Project:
    """Manifests `left` and `right` with a component `demo` of one upstream; left is applied."""
    project.component("demo", upstream, BASE, {"one.patch": ONE}, manifest="left")
    entries = [{"patch": "patches/demo/one.patch"}]
    project.component("demo", upstream, MORE, entries, manifest="right")
    project.prepare("apply", "-m", "left").ok()
    return project


def test_the_same_upstream_is_moved_and_it_is_said_who_had_it(two: Project) -> None:
    two.run("apply", "-m", "right").ok().shows("was on base", "of manifest left")
    again = two.run("apply", "-m", "right").ok()
    assert "left" not in again.out
    snapshot = two.run("status", "-m", "right", "--json").component["snapshot"]
    assert (snapshot["state"], snapshot["manifest"]) == ("applied", "right")


def test_the_stack_of_both_is_only_noted(two: Project) -> None:
    text = two.read("manifests/left.yaml")
    two.write({"manifests/twin.yaml": text})
    two.run("apply", "-m", "twin").ok().shows("unchanged")
    two.run("apply", "-m", "right").ok()
    two.run("apply", "-m", "twin").ok()
    two.run("apply", "-m", "right").ok().shows("of manifest twin")


@pytest.fixture
def strangers(two: Project, tmp_path: Path) -> Project:
    """A further manifest `other` whose component `demo` has quite another upstream."""
    other = Upstream.create(tmp_path / "other.git")
    two.component("demo", other, {"x.py": "x\n"}, manifest="other")
    return two


def test_another_upstream_is_refused_with_the_ways_out(strangers: Project) -> None:
    beside = strangers.root / "workspace-2"
    with strangers.untouched():
        for argv in (["apply"], ["apply", "--dry-run"]):
            strangers.run(*argv, "-m", "other").ends(
                1,
                "demo: manifest left made it, of another upstream: file:/",
                f"patchkit apply -m other -c demo --workspace {beside}",
            ).shows("refused  demo  something else is in the way; checkout unchanged")
    strangers.run("status", "-m", "other").ok().shows("other branch", "manifest left made it")
    strangers.run("refresh", "-m", "other").ends(1, "manifest left made it")


def test_by_force_the_other_checkout_is_kept_whole(strangers: Project) -> None:
    checkout = strangers.checkout("demo")
    (checkout / "b.py").write_text("mine\n")
    ran = strangers.run("apply", "-m", "other", "--force").ok()
    (kept,) = checkout.parent.glob("demo.saved-*")
    assert kept.name in ran.out
    assert (kept / "b.py").read_text() == "mine\n"
    assert (checkout / "x.py").read_text() == "x\n"
    assert not (checkout / "b.py").exists()


def test_a_manifest_may_change_the_upstream_of_its_own_component(
    strangers: Project, upstream: Upstream
) -> None:
    text = strangers.read("manifests/other.yaml")
    strangers.write({"manifests/left.yaml": text})
    strangers.run("apply", "-m", "left", "--accept").ok().shows("moved")
    assert (strangers.checkout("demo") / "x.py").read_text() == "x\n"


def test_a_checkout_that_says_nothing_is_anybodys(strangers: Project) -> None:
    (strangers.checkout("demo") / ".git/patchkit/made-for.json").write_text("{")
    strangers.run("apply", "-m", "other").ok().shows("moved")


# -- dry runs --------------------------------------------------------------------------------


@pytest.fixture
def coming(project: Project, upstream: Upstream) -> Project:
    """An applied component `demo`; the patch two.patch, which adds new.py, came since."""
    project.component("demo", upstream, BASE, {"one.patch": ONE})
    project.prepare("apply").ok()
    project.series("demo", {"one.patch": ONE, "two.patch": TWO})
    return project


def _dry(project: Project, *argv: str) -> Ran:
    """What a dry run says; it is held to write nothing."""
    before = sorted(project.root.rglob("*"))
    with project.untouched():
        ran = project.run("apply", "--accept", "--dry-run", *argv)
    assert sorted(project.root.rglob("*")) == before
    return ran


def test_a_dry_run_foresees_what_is_in_the_way(coming: Project) -> None:
    _dry(coming).shows("moved  demo  2 patches, 1 file changed")
    (coming.checkout("demo") / "new.py").write_text("mine\n")
    _dry(coming).ends(1, "untracked and in the way of the stack: new.py")
    _dry(coming, "--force").ok()
    coming.run("apply", "--accept").ends(1, "in the way of the stack: new.py")


def test_a_dry_run_foresees_what_no_force_can_save(coming: Project) -> None:
    folder = coming.checkout("demo") / "new.py"
    folder.mkdir()
    git_in(folder, "init", "-q")
    _dry(coming, "--force").ends(1, "no commit can hold it: new.py/")
    coming.run("apply", "--accept", "--force").ends(1)


def test_a_dry_run_foresees_edits_that_git_was_told_not_to_see(coming: Project) -> None:
    checkout = coming.checkout("demo")
    coming.series("demo", {"two.patch": TWO})
    git_in(checkout, "update-index", "--assume-unchanged", "a.py")
    (checkout / "a.py").write_text("mine\n")
    _dry(coming).ends(1, "1 edited file: a.py")


@pytest.mark.slow
def test_the_manifest_whose_bump_waits_is_meant(two: Project, upstream: Upstream) -> None:
    upstream.commit({**MORE, "a.py": "uno\n"})
    for undo in ("abort", "undo"):
        two.run("bump", "-m", "left", "demo", "--to", "main").ends(3)
        two.run(undo).ok()
        assert two.run("abort").code == 2  # nothing says which
    two.run("apply", "-m", "right").ok()
    two.run("bump", "-m", "right", "demo", "--to", "main").ends(3)
    two.write({"manifests/broken.yaml": "version: 1\n"})
    two.run("skip", "-c", "nobody").ends(2)
    assert two.run("continue", "-c", "demo", "--accept", "--json").json["manifest"] == "right"
