"""Git upstreams: exactly the pinned commit, from servers of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.pins import absent_blobs
from patchkit.gitcmd.repository import Repository, init_repository
from patchkit.gitcmd.scratch import shallow_commits
from patchkit.manifest.values import GitSource
from patchkit.model.objects import CommitId
from patchkit.model.progress import Silent, Stop
from patchkit.upstream.fetching import Fetching
from patchkit.upstream.git import fetch_commit
from tests.support.damage import lose_blob
from tests.support.dumb import dumb_server
from tests.support.repos import Upstream, executable, tree_files
from tests.support.servers import dead_port


@dataclass(frozen=True)
class Target:
    """A repository that commits are fetched into."""

    repository: Repository
    fetching: Fetching

    def fetch(self, commit: str, url: str, *mirrors: str, track: str | None = None) -> None:
        source = GitSource(url, mirrors)
        fetch_commit(source, CommitId(commit), self.repository, self.fetching, track=track)

    def has(self, commit: str) -> bool:
        return self.repository.commit(commit) is not None

    def files(self, commit: str) -> dict[str, bytes]:
        return tree_files(self.repository.git_dir, commit)


@pytest.fixture
def target(tmp_path: Path) -> Target:
    fetching = Fetching("demo", tmp_path / "cache", Silent(), Stop())
    return Target(init_repository(tmp_path / "target.git"), fetching)


def test_only_the_commit_itself_is_fetched(upstream: Upstream, target: Target) -> None:
    parent = upstream.commit({"a": "1\n", "run": executable("x\n")})
    commit = upstream.commit({"b": "2\n"})
    upstream.commit({"c": "3\n"})

    target.fetch(commit, upstream.url)

    assert target.files(commit) == upstream.files(commit)
    assert not target.has(parent)
    assert shallow_commits(target.repository.git_dir) == {commit}
    assert list(target.fetching.scratch.iterdir()) == []


def test_a_commit_on_no_branch_is_fetched(upstream: Upstream, target: Target) -> None:
    upstream.commit({"a": "1\n"})
    commit = upstream.commit({"a": "2\n"}, branch="gone")
    upstream.git("update-ref", "-d", "refs/heads/gone")

    target.fetch(commit, upstream.url)

    assert target.has(commit)


@pytest.mark.parametrize("track", [None, "main", "other", "v*", "gone"])
def test_a_server_that_gives_out_branches_only(
    upstream: Upstream, target: Target, track: str | None
) -> None:
    commit = upstream.commit({"a": "1\n"})
    upstream.commit({"a": "2\n"})
    other = upstream.commit({"z": "1\n"}, branch="other", parents=())
    with dumb_server(upstream) as url:
        target.fetch(commit, url, track=track)

    assert target.files(commit) == {"a": b"1\n"}
    assert target.has(other) == (track != "main")  # which is enough


def test_a_server_with_the_old_protocol(
    upstream: Upstream, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = upstream.commit({"a": "1\n"})
    upstream.commit({"a": "2\n"})
    ssh = tmp_path / "ssh"  # the user's own, and one that does not hand GIT_PROTOCOL on
    ssh.write_text('#!/bin/sh\nunset GIT_PROTOCOL\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(ssh))

    target.fetch(commit, f"ssh://git.invalid{upstream.path}")

    assert target.files(commit) == {"a": b"1\n"}


def test_every_failure_is_told(upstream: Upstream, target: Target) -> None:
    upstream.commit({"a": "1\n"})
    url = f"git://user:secret@127.0.0.1:{dead_port()}/r.git"

    with pytest.raises(SurroundingsError) as caught:
        target.fetch("1" * 40, url, upstream.url, "file:///nothing.git")

    dead, absent, nothing = caught.value.problems
    assert "cannot be reached" in dead.what
    assert "secret" not in dead.what
    assert absent.what == f"{upstream.url}: does not have commit {'1' * 40}"
    assert "mirror" in absent.hint
    assert "nothing.git" in nothing.what
    assert list((target.repository.git_dir / "objects" / "pack").glob("*")) == []
    commit = upstream.commit({"a": "2\n"})
    target.fetch(commit, url, "file:///nothing.git", upstream.url)  # the next is tried
    assert target.has(commit)


def test_a_damaged_upstream_gives_what_it_has(upstream: Upstream, target: Target) -> None:
    commit = upstream.commit({f"{n}.txt": f"{n}\n" for n in range(30)})
    lost = [lose_blob(upstream, f"{n}\n") for n in (3, 17)]

    target.fetch(commit, upstream.url)

    git = target.repository.git
    assert absent_blobs(target.repository) == set(lost)
    assert git("cat-file", "blob", f"{commit}:4.txt").out == b"4\n"
    assert git("cat-file", "-e", lost[0], accept=(0, 1, 128)).code != 0


def test_a_whole_mirror_is_better_than_a_damaged_upstream(
    upstream: Upstream, target: Target, tmp_path: Path
) -> None:
    whole = Upstream.create(tmp_path / "whole.git")
    commit, same = (each.commit({"a": "1\n", "b": "2\n"}) for each in (upstream, whole))
    assert same == commit
    lose_blob(upstream, "1\n")

    target.fetch(commit, upstream.url, whole.url)

    assert absent_blobs(target.repository) == frozenset()
    assert target.files(commit) == {"a": b"1\n", "b": b"2\n"}


def test_credentials_come_from_the_users_helper(upstream: Upstream, target: Target) -> None:
    commit = upstream.commit({"a": "1\n"})
    helper = "!f() { echo username=ann; echo password=pass; }; f"
    with dumb_server(upstream, login="ann:pass") as url:
        with pytest.raises(SurroundingsError, match="authentication needed") as caught:
            target.fetch(commit, url)
        (Path.home() / ".gitconfig").write_text(f'[credential]\n\thelper = "{helper}"\n')
        target.fetch(commit, url)

    assert "credential helper" in caught.value.problems[0].hint
    assert target.has(commit)
