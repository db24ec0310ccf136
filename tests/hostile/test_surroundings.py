"""Odd places, odd clocks, many at once, servers that cut: work goes on, or says what is wrong."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from patchkit.disk.files import JOURNAL
from tests.support.commands import run
from tests.support.projects import Project
from tests.support.repos import Upstream, git_in, make_patch, tree_files
from tests.support.servers import Reply, http_server
from tests.support.stacked import STATES, Stacked, small_patches

pytestmark = pytest.mark.slow

PLACES = {
    "blanks": "a folder  with blanks ",
    "a newline": "one\ntwo",
    "no UTF-8": os.fsdecode(b"caf\xe9"),
    "an option": "--force",
    "quotes": 'it\'s "here" $HOME `x` \\ * ?',
}


@pytest.mark.parametrize("place", PLACES)
def test_a_project_anywhere(upstream: Upstream, tmp_path: Path, place: str) -> None:
    root = tmp_path / PLACES[place] / "project"
    root.mkdir(parents=True)
    stack = Stacked.of(Project(root), upstream, small_patches())
    assert stack.git("rev-list", "--count", "refs/patchkit/base..HEAD") == "3"
    stack.edit("a.txt", "five\n", "5\n")
    stack.run("refresh").ok()
    assert b"+5\n" in stack.patch("one.patch")
    stack.settled()
    for words in ("check", "status", "export --format quilt -o out"):
        stack.run(*words.split()).ok()
    assert (root / "out" / "series").read_text() == "one.patch\ntwo.patch\nthree.patch\n"


def test_a_cache_and_a_workspace_anywhere(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    project.component("demo", upstream, STATES[0], small_patches())
    odd = [tmp_path / PLACES[name] for name in ("a newline", "no UTF-8", "quotes")]
    for cache, workspace in pairwise(odd):
        where = ("--cache", str(cache / "cache"), "--workspace", str(workspace / "work"))
        project.run("apply", *where).ok()
        assert "five" in (workspace / "work" / "demo" / "a.txt").read_text()
        project.run("apply", *where).ok().shows("unchanged")


@pytest.mark.parametrize("when", [0, 2**33])
def test_a_clock_that_is_wrong(project: Project, upstream: Upstream, when: int) -> None:
    """An edit of the same size whose time says that it is old, or not yet to come."""
    stack = Stacked.of(project, upstream, small_patches())
    stack.edit("a.txt", "five\n", "FIVE\n")
    os.utime(stack.checkout / "a.txt", (when, when))
    assert stack.run("apply").code == 1  # the edit is seen
    stack.run("status", "--json").shows("a.txt")
    stack.run("refresh").ok()
    assert b"+FIVE\n" in stack.patch("one.patch")
    stack.settled()


def test_links_in_the_place_of_our_own_files(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    """Whoever made a project may have put them there; nothing is written where they lead."""
    stack = Stacked.of(project, upstream, small_patches())
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine\n")
    history = project.root / "workspace" / ".patchkit" / "history.git"
    lock = project.root / "manifests" / "demo.lock.json"
    lock.unlink()
    for path, target in ((lock, "new"), (project.root / JOURNAL, "journal")):
        path.symlink_to(outside / target)
    stack.run("apply", "--accept").ok()
    bump = ("bump", "demo", "--to", upstream.commit({"new.txt": "new\n"}, "moves on"))
    if history.exists():
        history.rename(tmp_path / "history")
    history.symlink_to(outside)
    stack.run(*bump).ends(5, "history.git is a symbolic link")
    history.unlink()
    stack.run(*bump).ok()
    assert [path.read_text() for path in outside.iterdir()] == ["mine\n"]
    own = history.parent.rename(tmp_path / "own")
    history.parent.symlink_to(own)
    (stack.checkout / "new.txt").write_text("mine\n")
    stack.run("apply", "--force").ends(5, "is a symbolic link")


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [
        ("status >&-", 0, b""),
        ("status <&- >&- 2>&-", 0, b""),
        ("status 2>/dev/full", 0, b"demo"),
        ("status --json >/dev/full", 5, b"error: the output cannot be written: No space"),
        ("--version >/dev/full", 5, b"error: the output cannot be written: No space"),
        ("apply --help >/dev/full", 5, b"error: the output cannot be written: No space"),
    ],
)
def test_streams_that_are_closed_or_full(
    project: Project, upstream: Upstream, streams: str, code: int, said: bytes
) -> None:
    project.component("demo", upstream, STATES[0], small_patches())
    command = f"{shlex.quote(sys.executable)} -m patchkit {streams}"
    ran = subprocess.run(["sh", "-c", command], cwd=project.root, capture_output=True, check=False)
    assert ran.returncode == code, ran.stderr
    assert said in ran.stdout + ran.stderr
    assert b"Traceback" not in ran.stderr


def test_two_saves_in_one_second_are_two(project: Project, upstream: Upstream) -> None:
    stack = Stacked.of(project, upstream, small_patches())
    for text in ("first\n", "second\n"):
        (stack.checkout / "a.txt").write_text(text)
        project.run("apply", "--force").ok()
    saved = stack.git("for-each-ref", "--format=%(refname)", "refs/patchkit/saved/").split()
    texts = {git_in(stack.checkout, "show", f"{ref}:a.txt") for ref in saved}
    assert {b"first\n", b"second\n"} <= texts


def _at_once(project: Project, *lines: tuple[str, ...]) -> list[int]:
    """The exit codes of command lines that run at the same time."""
    children = []
    for argv in lines:
        child = os.fork()
        if child == 0:
            code = 99
            try:
                ran = run(*argv, cwd=project.root)
                os.write(2, ran.stdout + ran.stderr)
                code = ran.code
            finally:
                os._exit(code)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def test_twenty_at_once_on_one_cache(project: Project, upstream: Upstream, tmp_path: Path) -> None:
    """Each in a workspace of its own, with nothing cached."""
    project.component("demo", upstream, STATES[0], small_patches())
    places = [tmp_path / f"work{number}" for number in range(20)]
    codes = _at_once(project, *(("apply", "--workspace", str(place)) for place in places))
    assert codes == [0] * 20
    trees = [tree_files(place / "demo", "HEAD") for place in places]
    assert trees == [trees[0]] * 20
    assert not list((tmp_path / "home" / "cache" / "scratch").glob("*"))


def test_five_at_once_on_one_workspace(project: Project, upstream: Upstream) -> None:
    """Applies and refreshes of one edit: it is in the patch at the end, and nothing else is."""
    stack = Stacked.of(project, upstream, small_patches())
    stack.edit("a.txt", "five\n", "5\n")
    codes = {*_at_once(project, ("apply",), ("refresh",), ("apply",), ("refresh",), ("apply",))}
    assert codes <= {0, 1, 5}, codes
    stack.run("refresh").ok()
    assert b"+5\n" in stack.patch("one.patch")
    stack.settled()


@pytest.mark.parametrize("damage", ["gone", "rotten", "half"])
def test_a_cache_that_goes_bad_under_a_checkout(
    project: Project, upstream: Upstream, tmp_path: Path, damage: str
) -> None:
    stack = Stacked.of(project, upstream, small_patches())
    repos = tmp_path / "home" / "cache" / "repos"
    (repository,) = repos.iterdir()
    if damage == "gone":
        repository.rename(tmp_path / "away")
    for pack in repository.glob("objects/pack/*"):
        pack.chmod(0o644)
        if damage == "half":
            pack.unlink()
            pack.write_bytes(b"PACK")
    if damage == "rotten":
        (repository / "HEAD").write_text("rotten\n")
    assert stack.git("fsck", "--connectivity-only") == ""  # a checkout has its own
    stack.edit("a.txt", "five\n", "5\n")
    stack.run("refresh").ok()
    stack.settled()


def _component(project: Project, url: str, pin: str) -> None:
    project.write(
        {
            "manifests/demo.yaml": "version: 1\ncomponents:\n  demo:\n"
            f"    source: {{git: '{url}'}}\n    pin: '{pin}'\n    track: main\n"
        }
    )


@pytest.mark.parametrize("sent", [0, 40_000])
def test_a_git_server_that_cuts_and_then_does_not(
    project: Project, upstream: Upstream, sent: int
) -> None:
    pin = upstream.commit({f"f{n}.txt": os.urandom(3000).hex() for n in range(20)})
    upstream.git("repack", "-adq")
    upstream.git("update-server-info")
    with http_server() as server:
        for path in upstream.path.rglob("*"):
            if path.is_file():
                data, name = path.read_bytes(), path.relative_to(upstream.path).as_posix()
                cut = sent if path.suffix == ".pack" else None
                server.replies[f"/r.git/{name}"] = Reply(data, sent=cut)
        refs = server.replies["/r.git/info/refs"]
        server.replies["/r.git/info/refs?service=git-upload-pack"] = refs
        _component(project, f"{server.url}/r.git", pin)
        ran = project.run("fetch").ends(5)
        assert "bug" not in ran.err
        for reply in server.replies.values():
            assert isinstance(reply, Reply)
            reply.sent = None
        project.run("fetch").ok()
        project.run("fetch", "--verify", "--offline").ok()


def test_a_name_that_differs_by_case_only(project: Project, upstream: Upstream) -> None:
    """Two patches in one series that some file systems take for one are refused everywhere."""
    patch = make_patch(STATES[0], STATES[1])
    project.component("demo", upstream, STATES[0], {"one.patch": patch, "One.patch": patch})
    project.run("check").ends(4, "case")
