"""Git upstreams: exactly the pinned commit, from servers of every kind."""

from __future__ import annotations

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


@pytest.fixture
def target(tmp_path: Path) -> Repository:
    return init_repository(tmp_path / "target.git")


@pytest.fixture
def fetching(tmp_path: Path) -> Fetching:
    return Fetching("demo", tmp_path / "cache", Silent(), Stop())


def test_only_the_commit_itself_is_fetched(
    upstream: Upstream, target: Repository, fetching: Fetching
) -> None:
    parent = upstream.commit({"a": "1\n", "run": executable("x\n")})
    commit = upstream.commit({"b": "2\n"})
    upstream.commit({"c": "3\n"})

    fetch_commit(GitSource(upstream.url), commit, target, fetching)

    assert tree_files(target.git_dir, commit) == upstream.files(commit)
    assert target.commit(parent) is None
    assert shallow_commits(target.git_dir) == {commit}
    assert list(fetching.scratch.iterdir()) == []


def test_a_commit_on_no_branch_is_fetched(
    upstream: Upstream, target: Repository, fetching: Fetching
) -> None:
    upstream.commit({"a": "1\n"})
    commit = upstream.commit({"a": "2\n"}, branch="gone")
    upstream.git("update-ref", "-d", "refs/heads/gone")

    fetch_commit(GitSource(upstream.url), commit, target, fetching)

    assert target.commit(commit) == commit


@pytest.mark.parametrize("track", [None, "main", "other", "v*", "gone"])
def test_a_server_that_gives_out_branches_only(
    upstream: Upstream, target: Repository, fetching: Fetching, track: str | None
) -> None:
    commit = upstream.commit({"a": "1\n"})
    upstream.commit({"a": "2\n"})
    upstream.commit({"z": "1\n"}, branch="other", parents=())
    with dumb_server(upstream) as url:
        fetch_commit(GitSource(url), commit, target, fetching, track=track)

    assert tree_files(target.git_dir, commit) == {"a": b"1\n"}


def test_the_tracked_branch_is_enough(
    upstream: Upstream, target: Repository, fetching: Fetching
) -> None:
    commit = upstream.commit({"a": "1\n"})
    other = upstream.commit({"z": "1\n"}, branch="other", parents=())
    with dumb_server(upstream) as url:
        fetch_commit(GitSource(url), commit, target, fetching, track="main")

    assert target.commit(other) is None


def test_a_server_with_the_old_protocol(
    upstream: Upstream,
    target: Repository,
    fetching: Fetching,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = upstream.commit({"a": "1\n"})
    upstream.commit({"a": "2\n"})
    ssh = tmp_path / "ssh"  # the user's own, and one that does not hand GIT_PROTOCOL on
    ssh.write_text('#!/bin/sh\nunset GIT_PROTOCOL\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH", str(ssh))

    fetch_commit(GitSource(f"ssh://git.invalid{upstream.path}"), commit, target, fetching)

    assert tree_files(target.git_dir, commit) == {"a": b"1\n"}


def test_mirrors_are_tried_in_order(
    upstream: Upstream, target: Repository, fetching: Fetching, tmp_path: Path
) -> None:
    other = Upstream.create(tmp_path / "other.git")
    other.commit({"z": "1\n"})
    commit = upstream.commit({"a": "1\n"})
    source = GitSource(f"git://127.0.0.1:{dead_port()}/r.git", (other.url, upstream.url))

    fetch_commit(source, commit, target, fetching)

    assert target.commit(commit) == commit


def test_every_failure_is_told(
    upstream: Upstream, target: Repository, fetching: Fetching, tmp_path: Path
) -> None:
    upstream.commit({"a": "1\n"})
    source = GitSource(
        f"git://user:secret@127.0.0.1:{dead_port()}/r.git",
        (upstream.url, f"file://{tmp_path}/nothing.git"),
    )

    with pytest.raises(SurroundingsError) as caught:
        fetch_commit(source, CommitId("1" * 40), target, fetching)

    dead, absent, nothing = caught.value.problems
    assert "cannot be reached" in dead.what
    assert "secret" not in dead.what
    assert absent.what == f"{upstream.url}: does not have commit {'1' * 40}"
    assert "mirror" in absent.hint
    assert "nothing.git" in nothing.what
    assert list((target.git_dir / "objects" / "pack").glob("*")) == []


def test_a_damaged_upstream_gives_what_it_has(
    upstream: Upstream, target: Repository, fetching: Fetching
) -> None:
    files = {f"{n}.txt": f"{n}\n" for n in range(30)}
    commit = upstream.commit(files)
    lost = [lose_blob(upstream, f"{n}\n") for n in (3, 17)]

    fetch_commit(GitSource(upstream.url), commit, target, fetching)

    assert absent_blobs(target) == set(lost)
    assert target.git("cat-file", "blob", f"{commit}:4.txt").out == b"4\n"
    assert target.git("cat-file", "-e", lost[0], accept=(0, 1, 128)).code != 0


def test_a_whole_mirror_is_better_than_a_damaged_upstream(
    upstream: Upstream, target: Repository, fetching: Fetching, tmp_path: Path
) -> None:
    whole = Upstream.create(tmp_path / "whole.git")
    files = {"a": "1\n", "b": "2\n"}
    commit = upstream.commit(files)
    assert whole.commit(files) == commit
    lose_blob(upstream, "1\n")

    fetch_commit(GitSource(upstream.url, (whole.url,)), commit, target, fetching)

    assert absent_blobs(target) == frozenset()
    assert tree_files(target.git_dir, commit) == {"a": b"1\n", "b": b"2\n"}


def test_credentials_come_from_the_users_helper(
    upstream: Upstream, target: Repository, fetching: Fetching
) -> None:
    commit = upstream.commit({"a": "1\n"})
    helper = "!f() { echo username=ann; echo password=pass; }; f"
    with dumb_server(upstream, login="ann:pass") as url:
        with pytest.raises(SurroundingsError, match="authentication needed") as caught:
            fetch_commit(GitSource(url), commit, target, fetching)
        (Path.home() / ".gitconfig").write_text(f'[credential]\n\thelper = "{helper}"\n')
        fetch_commit(GitSource(url), commit, target, fetching)

    assert "credential helper" in caught.value.problems[0].hint
    assert target.commit(commit) == commit
