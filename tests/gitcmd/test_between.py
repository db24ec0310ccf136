"""What is known of the commits between two bases, and what is not."""

from __future__ import annotations

from pathlib import Path

from patchkit.gitcmd.commit_history import Between, that_touched, touches_of
from patchkit.gitcmd.repository import Repository
from tests.support.repos import Upstream, git_in


def test_a_shallow_repository_blames_nobody(upstream: Upstream, tmp_path: Path) -> None:
    """The commit at which it was cut off seems to have brought every file."""
    old = upstream.commit({"a.txt": "a\n"})
    new = upstream.commit({"a.txt": "a\nmore\n"}, "Say more (#7)")
    whole = Between(Repository(upstream.path), old, new)
    told = f"{new[:10]} Say more (#7)"
    assert (whole.brought_by("a.txt", b"more"), whole.changed_by("a.txt")) == (told, (told,))
    git_in(tmp_path, "init", "-q", "--bare", "cut")
    for commit in (old, new):
        git_in(tmp_path / "cut", "fetch", "-q", "--depth=1", upstream.url, commit)
    rootless = Between(
        Repository(upstream.path), old, upstream.commit({"a.txt": "b\n"}, parents=())
    )
    assert rootless.changed_by("a.txt") == ()
    cut = Between(Repository(tmp_path / "cut"), old, new)
    assert (cut.brought_by("a.txt", b"more"), cut.changed_by("a.txt")) == ("", ())


def test_only_the_commits_that_touched_the_lines(upstream: Upstream) -> None:
    old = upstream.commit({"a.txt": "a\nb\n", "b.txt": "b\n"})
    said = upstream.commit({"a.txt": "A\nb\n"}, "Say A (#7)")
    upstream.commit({"a.txt": "A\nB\n"}, "Say B (#8)")
    new = upstream.commit({"b.txt": "B\n"}, "Say B elsewhere (#9)")
    repository = Repository(upstream.path)
    touches = touches_of(repository, old, new, "a.txt")
    assert [each.told.split(": ")[1] for each in touches] == ["Say B (#8)", "Say A (#7)"]
    # ids in full: they are asked for at the server
    assert all(len(oid) == 40 for each in touches for oid in each.blobs)
    (found,) = that_touched(repository, touches, [b"a"])
    assert found.told.startswith(f"{said[:10]} 2023-11-1")
    assert that_touched(repository, touches, [b"c"]) == ()
    assert touches_of(repository, "0" * 39 + "1", new, "a.txt") == ()
