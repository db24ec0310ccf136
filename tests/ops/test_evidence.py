"""What can be looked at of upstream where a bump waits, and from outside by `show`."""

from __future__ import annotations

import pytest

from tests.ops.test_resume import Bumping, stack
from tests.support.projects import Project
from tests.support.repos import Upstream, git_in

__all__ = ["stack"]


def remotes(stack: Bumping) -> list[str]:
    return stack.git("for-each-ref", "--format=%(refname)", "refs/remotes").split()


@pytest.mark.slow
def test_git_shows_upstreams_commit_where_a_bump_waits(stack: Bumping, upstream: Upstream) -> None:
    assert stack.bump().code == 3
    full = str(upstream.resolve("main~2"))
    shown = stack.git("show", full[:10])
    real = git_in(upstream.path, "show", full).decode().strip()
    assert shown[shown.index("diff --git") :] == real[real.index("diff --git") :]
    assert f"Upstream-Commit: {full}" in shown
    assert "Say five (#7)" in shown
    diff = stack.git("diff", "patchkit/old-pin", "patchkit/new-pin", "--stat")
    assert "3 files changed" in diff
    stack.git("fsck", "--full", "--strict")
    stack.git("gc", "-q", "--prune=now")
    assert stack.git("show", full[:10]) == shown


@pytest.mark.slow
@pytest.mark.parametrize("end", ["abort", "skip", "undo", "apply --force"])
def test_nothing_of_it_is_left_at_the_end(stack: Bumping, upstream: Upstream, end: str) -> None:
    before = stack.state
    assert stack.bump().code == 3
    assert len(remotes(stack)) == 3
    ran = stack.run(*end.split())
    if ran.code == 3:
        assert stack.run("abort").code == 0
    assert remotes(stack) == []
    if end in ("abort", "undo"):
        assert stack.state == before


@pytest.mark.slow
def test_the_users_own_remotes_stay(stack: Bumping) -> None:
    head = stack.git("rev-parse", "HEAD").strip()
    for name in ("refs/remotes/origin/main", "refs/remotes/origin/0123456789"):
        stack.git("update-ref", name, head)
    assert stack.bump().code == 3
    stack.run("abort").ok()
    assert remotes(stack) == ["refs/remotes/origin/0123456789", "refs/remotes/origin/main"]


@pytest.mark.slow
def test_a_ref_of_the_users_stays_whatever_its_name(stack: Bumping, upstream: Upstream) -> None:
    """Ten digits, as ours have: made before the wait, while it lasts, and in place of one."""
    full = str(upstream.resolve("main~2"))
    head = stack.git("rev-parse", "HEAD").strip()
    mine = {"refs/remotes/0123456789": head, f"refs/remotes/{full[:10]}": head}
    for name in mine:
        stack.git("update-ref", name, head)
    assert stack.bump().code == 3
    assert stack.git("rev-parse", f"refs/remotes/{full[:10]}") == head
    stack.run("abort").ok()
    assert remotes(stack) == sorted(mine)
    for name in mine:
        stack.git("update-ref", "-d", name)
    assert stack.bump().code == 3
    for name in ("refs/remotes/abcdefabcd", f"refs/remotes/{full[:10]}"):
        stack.git("update-ref", name, head)
    stack.resolve("a.txt", "upstream FIVE\nsix\n")
    assert stack.run("continue").code == 3
    assert stack.run("undo").code == 0
    stack.run("abort").ok()
    assert remotes(stack) == sorted([f"refs/remotes/{full[:10]}", "refs/remotes/abcdefabcd"])


@pytest.mark.slow
def test_show_knows_patches_and_commits(stack: Bumping, upstream: Upstream) -> None:
    one = (stack.project.root / "patches/demo/one.patch").read_bytes()
    assert stack.run("show", "1").ok().out.encode() == one
    assert stack.run("show", "one").ok().out.encode() == one
    assert stack.bump().code == 3
    full = str(upstream.resolve("main~2"))
    shown = stack.run("show", full[:10]).ok().out
    assert shown.startswith(f"commit {full}\n")
    assert "+upstream five" in shown
    assert stack.run("show", full).ok().out == shown
    assert stack.run("show", full[:10], "--json").ok().json["name"] == full


@pytest.mark.slow
def test_show_prints_what_a_waiting_bump_has_carried(stack: Bumping) -> None:
    assert stack.bump().code == 3
    stack.resolve("a.txt", "upstream FIVE\nsix\n")
    assert stack.run("continue").code == 3
    shown = stack.run("show", "one").ok().out
    assert "+upstream FIVE" in shown
    three = (stack.project.root / "patches/demo/three.patch").read_bytes()
    assert stack.run("show", "three").ok().out.encode() == three


def test_what_is_neither_is_refused(stack: Bumping) -> None:
    for word, said in (("nothing", "no such patch"), ("0123456789", "no such patch")):
        ran = stack.run("show", word)
        assert (ran.code, said in ran.err) == (2, True), ran.err


def test_a_commit_before_the_pin_is_shown(project: Project, upstream: Upstream) -> None:
    """Its tree was not fetched to look along the branch."""
    upstream.git("config", "uploadpack.allowFilter", "true")
    _, old, _, pin, _ = (upstream.commit({"a.txt": f"{number}\n"}) for number in range(5))
    project.component("demo", upstream, pin, {}, track="main")
    project.run("drift").ok()
    assert "-0\n+1\n" in project.run("show", old).ok().out
