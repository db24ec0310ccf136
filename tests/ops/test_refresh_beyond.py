"""Refresh where more than one stack is concerned: other manifests, repositories, pins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.stacked import NAMES, STATES, Stacked, lines, published, small_patches

pytestmark = pytest.mark.slow


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Stacked:
    return Stacked.of(project, upstream, small_patches())


def _shared(project: Project, upstream: Upstream, *, far: bool) -> Stacked:
    """Two manifests take one series; in the other one's base, line 5's neighbours may differ."""
    stack = Stacked.of(project, upstream, small_patches())
    text = lines({26: "twenty-six\n"}) if far else lines({24: "twenty-four\n"})
    pin = upstream.commit({"a.txt": text}, "Upstream moved on")
    entry = [{"series": "patches/demo/series"}]
    project.component("demo", upstream, pin, manifest="other", patches=entry, checkout="other")
    project.prepare("apply", "-m", "other").ok()
    return stack


def _refresh(stack: Stacked, *argv: str) -> Ran:
    return stack.run("refresh", "-m", "demo", *argv)


def test_a_shared_series_may_change_while_it_applies_for_the_other(
    project: Project, upstream: Upstream
) -> None:
    stack = _shared(project, upstream, far=True)
    stack.edit("a.txt", "five\n", "5\n")
    _refresh(stack).ok()
    assert b"+5\n" in stack.patch("one.patch")
    # the other's lock follows, so that its apply takes the new files without a question
    project.run("apply", "-m", "other").ok().shows("moved")
    assert "5\n" in project.checkout("other").joinpath("a.txt").read_text()


def test_a_change_that_the_other_cannot_bear_is_refused(
    project: Project, upstream: Upstream
) -> None:
    stack = _shared(project, upstream, far=False)
    stack.edit("a.txt", "and more\nline 21\n", "and MORE\nline twenty-one\n")
    with stack.untouched():
        _refresh(stack).ends(
            1, "demo of other.yaml: two.patch would not apply there any more", "copy the patches"
        )


def test_another_stack_whose_upstream_is_not_here_is_no_blank_cheque(
    stack: Stacked, project: Project, tmp_path: Path
) -> None:
    stranger = Upstream.create(tmp_path / "stranger.git")
    entry = [{"series": "patches/demo/series"}]
    project.component("demo", stranger, STATES[0], manifest="other", patches=entry)
    stack.edit("a.txt", "five\n", "5\n")
    _refresh(stack).ends(1, "is not here to try them")


# -- patches of other repositories -----------------------------------------------------------


@pytest.fixture
def pinned(project: Project, upstream: Upstream, tmp_path: Path) -> Stacked:
    """one.patch comes from a trainer's repository; the series has two.patch and three.patch."""
    patches = small_patches()
    project.series("demo", {name: patches[name] for name in NAMES[1:]})
    entries: list[dict[str, object]] = [published(tmp_path), {"series": "patches/demo/series"}]
    project.component("demo", upstream, STATES[0], patches=entries)
    return Stacked.applied(project)


def test_an_edit_of_a_published_patch_is_asked_for(pinned: Stacked) -> None:
    """Those of the own patches go on as ever."""
    pinned.edit("a.txt", "twenty\n", "20\n")
    pinned.run("refresh").ok()
    assert b"+20\n" in pinned.patch("two.patch")
    pinned.edit("a.txt", "five\n", "5\n")
    pinned.run("refresh").ends(1).shows("one.patch cannot be rewritten")
    pinned.run("refresh", "--patch", "one").ends(2)
    pinned.run("refresh", "--patch", "two").ok()
    assert b"-five\n" in pinned.patch("two.patch")
    pinned.settled()


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ((2,), "one.patch has no commit in the stack any more"),
        ((2, 0, 1), "three.patch is on the wrong side of one.patch"),
    ],
)
def test_a_published_patch_keeps_its_commit_and_its_place(
    pinned: Stacked, order: tuple[int, ...], said: str
) -> None:
    commits = pinned.git("rev-list", "--reverse", "refs/patchkit/base..HEAD").split()
    pinned.git("reset", "-q", "--hard", "refs/patchkit/base")
    pinned.git("cherry-pick", *(commits[number] for number in order))
    pinned.run("refresh").ends(4, said)


# -- a pin that was edited by hand -----------------------------------------------------------


def test_patches_are_made_anew_for_a_pin_that_they_fit(stack: Stacked, upstream: Upstream) -> None:
    """But for one that the new pin contains."""
    before = stack.project.files()
    stack.project.repin(upstream.commit({"a.txt": "a new first line\n" + lines(), **STATES[3]}))
    stack.run("refresh").ok().shows(
        "carried",
        "shifted  one.patch, two.patch",
        "the new pin contains it",
        "the checkout is there",
    )
    assert stack.changed(before) == ["-three.patch", "one.patch", "series", "two.patch"]
    assert "@@ -3,8 +3,8 @@" in stack.patch("one.patch").decode()
    stack.settled()


def test_a_patch_that_does_not_fit_the_new_pin_halts(stack: Stacked, upstream: Upstream) -> None:
    stack.project.repin(upstream.commit({"a.txt": lines({5: "upstream was here\n"})}))
    with stack.untouched():
        product = stack.project.product
        stack.run("refresh").ends(3, "stopped at one.patch").shows("one.patch")
        assert stack.project.product == product
        stack.run("abort").ok()


def test_a_patch_that_must_be_merged_is_flagged_for_review(
    stack: Stacked, upstream: Upstream
) -> None:
    stack.project.repin(
        upstream.commit({"a.txt": lines({4: "line 4\nline 4, upstream\n"})}, "Say more")
    )
    with stack.untouched():
        stack.run("refresh", "--no-fuzz", "--dry-run").ends(3)
    stack.run("refresh").ok().shows(
        "~ merged  one.patch  flagged",
        "lines 5-7 (5-6 as patched): upstream changed adjacent lines",
        " Say more): see that it belongs there",
        "the checkout is there",
    )
    assert "line 4, upstream\nfive\n" in (stack.checkout / "a.txt").read_text()
    stack.settled()


def test_edits_go_into_the_patches_before_these_go_to_a_new_pin(
    stack: Stacked, upstream: Upstream
) -> None:
    moved = upstream.commit({"d.txt": "d\n"})
    stack.project.repin(moved)
    stack.edit("a.txt", "five\n", "5\n")
    stack.run("refresh", "-n").says("patchkit refresh -m demo -c demo  takes them up")
    stack.run("refresh").ok().says("patchkit refresh -m demo -c demo  carries them there")
    assert b"+5\n" in stack.patch("one.patch")
    assert stack.git("rev-parse", "refs/patchkit/base") != moved
    stack.run("refresh").ok()
    assert stack.git("rev-parse", "refs/patchkit/base") == moved
    stack.settled()


@pytest.fixture
def two(project: Project, upstream: Upstream) -> tuple[Stacked, Stacked]:
    """Components `demo` and `second` with patches of their own."""
    pin = upstream.commit(STATES[0])
    for name in ("demo", "second"):
        project.component(name, upstream, pin, small_patches())
    return Stacked.applied(project), Stacked.applied(project, "second")


def test_one_component_that_fails_does_not_keep_the_other(
    project: Project, two: tuple[Stacked, Stacked]
) -> None:
    two[0].edit("a.txt", "line 30\n", "thirty\n")
    two[1].edit("a.txt", "five\n", "5\n")
    project.run("refresh").ends(1).shows("ambiguous  demo", "refreshed  second")
    assert b"+5\n" in (project.root / "patches/second/one.patch").read_bytes()
    program = [sys.executable, "-m", "patchkit", "refresh"]
    both = subprocess.run(
        program,
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout
    assert both.index("unchanged  second") < both.index("error: demo: "), "what to do comes last"


def test_files_that_are_not_checked_out_are_no_edits(stack: Stacked) -> None:
    """As in a sparse checkout, or where no server has a file's contents. Looking leaves nothing."""
    stack.git("update-index", "--skip-worktree", "c.txt")
    (stack.checkout / "c.txt").unlink()
    stack.edit("a.txt", "five\n", "5\n")
    before = sorted((stack.checkout / ".git").rglob("*"))
    stack.run("refresh", "--dry-run", "--diff").ok().shows("+5")
    assert sorted((stack.checkout / ".git").rglob("*")) == before
    ran = stack.run("refresh").ok()
    assert "c.txt" not in ran.out
    assert "c.txt" in stack.git("ls-tree", "--name-only", "HEAD")
    assert stack.git("ls-files", "-t", "c.txt") == "S c.txt"
    stack.settled()


def test_a_checkout_that_cannot_be_moved_is_told_and_moved_by_the_next_refresh(
    project: Project, two: tuple[Stacked, Stacked]
) -> None:
    """The patch files are written by then; the other component goes on."""
    for each in two:
        each.edit("a.txt", "five\n", "5\n")
    lock = two[0].checkout / ".git/index.lock"
    lock.touch()
    said = "error: demo: the patch files are written, the checkout's branch is still behind them"
    project.run("refresh").ends(5, "index.lock exists", f"{said}\nhint: patchkit refresh")
    assert b"+5\n" in two[0].patch("one.patch")
    assert two[1].git("status", "--porcelain") == ""
    lock.unlink()
    project.run("refresh").ok().shows("the checkout is at what the patches are now")
    two[0].settled()


def test_a_patch_that_another_names_does_not_go_away(
    stack: Stacked, project: Project, upstream: Upstream
) -> None:
    """Its file would be deleted, and the other manifest left without it."""
    entries = [{"patch": f"patches/demo/{name}"} for name in NAMES]
    pin = stack.git("rev-parse", "refs/patchkit/base")
    project.component("demo", upstream, pin, entries, manifest="other", checkout="other")
    project.prepare("apply", "-m", "other").ok()
    stack.git("reset", "-q", "--hard", "HEAD~1")
    with stack.untouched():
        _refresh(stack).ends(
            1,
            "demo of other.yaml: could not be read any more: patches/demo/three.patch is not there",
        )


# -- several components in one run -----------------------------------------------------------


def test_each_component_gets_its_series_into_the_manifest(
    project: Project, upstream: Upstream
) -> None:
    """One manifest, changed for two components in one run."""
    pin = upstream.commit(STATES[0])
    names = ("left", "right")
    for name in names:
        project.component(name, upstream, pin)
    project.prepare("apply", "-m", "demo").ok()
    for name in names:
        file = project.checkout(name) / "a.txt"
        file.write_text(file.read_text().replace("line 30\n", "thirty\n"))
    project.run("refresh", "-m", "demo", "--rest", "one").ok()
    text = project.read("manifests/demo.yaml")
    assert all(f"series: patches/{name}/series" in text for name in names)
    ran = project.run("apply", "-m", "demo").ok()
    assert ran.out.count("unchanged") == 2


def _twice(project: Project, upstream: Upstream) -> tuple[Stacked, Stacked]:
    """Two components of one manifest that take the same patches."""
    left = Stacked.of(project, upstream, small_patches())
    pin = left.git("rev-parse", "refs/patchkit/base")
    entries = [{"patch": f"patches/demo/{name}"} for name in NAMES]
    project.component("right", upstream, pin, entries)
    return left, Stacked.applied(project, "right")


def test_two_edits_of_one_patch_do_not_overwrite_each_other(
    project: Project, upstream: Upstream
) -> None:
    left, right = _twice(project, upstream)
    left.edit("a.txt", "five\n", "left\n")
    right.edit("a.txt", "six\n", "right\n")
    project.run("refresh").ends(
        1,
        "right: patches/demo/one.patch is changed by another component's edits",
        "hint: patchkit refresh -m demo -c right  once more",
    )
    assert b"+left\n" in left.patch("one.patch")
    # both edits are in one place
    project.run("refresh", "-m", "demo", "-c", "right").says(
        "a.txt: has other changes at the same lines: 5"
    )
    text = (right.checkout / "a.txt").read_text()
    assert "<<<<<<< the patches\nleft\nsix\n" in text
    head, _, rest = text.partition("<<<<<<< ")
    (right.checkout / "a.txt").write_text(f"{head}left\nright\n{rest.partition('edits')[2][1:]}")
    right.git("add", "--update")
    project.run("refresh", "-m", "demo", "-c", "right").ok()
    assert b"+left\n+right\n" in left.patch("one.patch")


def test_edits_of_another_shared_patch_do_not_mix_unseen(
    project: Project, upstream: Upstream
) -> None:
    left, right = _twice(project, upstream)
    left.edit("a.txt", "five\n", "left\n")
    right.edit("added.txt", "new\n", "right\n")
    project.run("refresh").ends(1, "right: patches/demo/one.patch is changed by")
    assert b"+new\n" in left.patch("three.patch")
    assert "right\n" in (right.checkout / "added.txt").read_text()


def test_the_same_edit_in_both_is_one_edit(project: Project, upstream: Upstream) -> None:
    both = _twice(project, upstream)
    for each in both:
        each.edit("a.txt", "five\n", "both\n")
    project.run("refresh").ok()
    assert b"+both\n" in both[0].patch("one.patch")
    assert project.run("apply").ok().out.count("unchanged") == 2
