"""What can be looked at of upstream where a bump waits, and from outside by `show`."""

from __future__ import annotations

import pytest

from tests.ops.test_resume import Bumping, stack
from tests.support.projects import Project
from tests.support.repos import Upstream

__all__ = ["stack"]


@pytest.mark.slow
def test_a_checkout_that_waits_has_commits_of_upstream_and_none_that_upstream_lacks(
    stack: Bumping, upstream: Upstream
) -> None:
    """What a conflict names is printed by `show`; the two pins are git's in the checkout."""
    before = stack.state
    stopped = stack.bump().ends(3)
    named = upstream.at("main~2")[:10]
    stopped.shows(f"{named} ", "Say five (#7)")
    stack.run("show", named).ok().shows("Say five (#7)")
    refs = stack.git("for-each-ref", "--format=%(refname)").split()
    assert [each for each in refs if not each.startswith(("refs/patchkit/", "refs/heads/"))] == []
    old, new = (upstream.at(each) for each in ("main~3", "main"))
    assert "3 files changed" in stack.git("diff", old, new, "--stat")
    stack.git("fsck", "--full", "--strict")
    stack.run("abort").ok()
    assert stack.state == before


@pytest.mark.slow
def test_show_knows_patches_and_commits(stack: Bumping, upstream: Upstream) -> None:
    """What a bump that waits has carried are commits of the checkout."""
    for word in ("1", "one"):
        assert stack.run("show", word).ok().stdout == stack.patch("one.patch")
    stack.bump().ends(3)
    full = upstream.at("main~2")
    shown = stack.run("show", full[:10]).ok().shows("+upstream five").out
    assert shown.startswith(f"commit {full}\n")
    assert stack.run("show", full).ok().out == shown
    assert stack.run("show", full[:10], "--json").ok().json["name"] == full
    stack.resolve_one()
    assert "+upstream FIVE" in stack.git("log", "-p", "refs/patchkit/base..")
    assert stack.run("show", "three").ok().stdout == stack.patch("three.patch")


def test_what_is_neither_is_refused(stack: Bumping) -> None:
    for word in ("nothing", "0123456789"):
        stack.run("show", word).ends(2, "no such patch")


def test_a_commit_before_the_pin_is_shown(project: Project, upstream: Upstream) -> None:
    """Its tree was not fetched to look along the branch."""
    upstream.git("config", "uploadpack.allowFilter", "true")
    _, old, _, pin, _ = (upstream.commit({"a.txt": f"{number}\n"}) for number in range(5))
    project.component("demo", upstream, pin, {}, track="main")
    project.run("drift").ok()
    project.run("show", old).ok().shows("-0\n+1\n")
