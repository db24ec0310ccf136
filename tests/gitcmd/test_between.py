"""What is known of the commits between two bases, and what is not."""

from __future__ import annotations

from pathlib import Path

from patchkit.gitcmd.between import Between
from patchkit.gitcmd.repository import Repository
from tests.support.repos import Upstream, git_in


def test_a_shallow_repository_blames_nobody(upstream: Upstream, tmp_path: Path) -> None:
    """The commit at which it was cut off seems to have brought every file."""
    old = upstream.commit({"a.txt": "a\n"})
    new = upstream.commit({"a.txt": "a\nmore\n"}, "Say more (#7)")
    whole = Between(Repository(upstream.path), old, new)
    told = f"{new[:12]} Say more (#7)"
    assert (whole.brought_by("a.txt", b"more"), whole.changed_by("a.txt")) == (told, (told,))
    git_in(tmp_path, "init", "-q", "--bare", "cut")
    for commit in (old, new):
        git_in(tmp_path / "cut", "fetch", "-q", "--depth=1", upstream.url, commit)
    cut = Between(Repository(tmp_path / "cut"), old, new)
    assert (cut.brought_by("a.txt", b"more"), cut.changed_by("a.txt")) == ("", ())
