"""Packs that move between repositories: whole, and independent of where they came from."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from patchkit.gitcmd.object_reader import write_objects
from patchkit.gitcmd.remote import fetch
from patchkit.gitcmd.repository import RefChange, Repository, init_repository
from patchkit.gitcmd.scratch import (
    add_shallow_commits,
    adopt,
    discard,
    link_packs,
    shallow_commits,
    staging,
    sweep,
)
from patchkit.model.objects import CommitId, make_object
from tests.support.repos import Upstream


def test_nothing_stays_of_a_stage_that_failed(tmp_path: Path) -> None:
    target = init_repository(tmp_path / "target.git")
    try:
        with staging(target, tmp_path / "scratch") as stage:
            write_objects(stage, [make_object("blob", b"half")])
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass

    assert list((tmp_path / "scratch").iterdir()) == []
    assert list((target.git_dir / "objects" / "pack").glob("*")) == []


def test_a_stage_asks_only_for_what_the_target_lacks(upstream: Upstream, tmp_path: Path) -> None:
    first = upstream.commit({f"{n}": f"{n}\n" for n in range(20)})
    second = upstream.commit({"new": "brand new\n"})
    target = init_repository(tmp_path / "target.git")
    _bring(upstream, first, target, tmp_path)

    received = _bring(upstream, second, target, tmp_path)

    assert received == 3  # a commit, a tree, a blob
    assert shallow_commits(target.git_dir) == {first, second}
    assert target.git("fsck", "--connectivity-only", second).code == 0


def test_linked_packs_outlive_their_source(upstream: Upstream, tmp_path: Path) -> None:
    commit = upstream.commit({"a": "1\n"})
    source = init_repository(tmp_path / "source.git")
    _bring(upstream, commit, source, tmp_path)
    checkout = init_repository(tmp_path / "checkout" / ".git")

    link_packs(source, checkout.git_dir)
    link_packs(source, checkout.git_dir)  # what is there stays
    add_shallow_commits(checkout.git_dir, shallow_commits(source.git_dir))
    shutil.rmtree(source.git_dir)

    assert checkout.git("cat-file", "blob", f"{commit}:a").out == b"1\n"


def test_shallow_commits_add_up(tmp_path: Path) -> None:
    add_shallow_commits(tmp_path, frozenset({CommitId("b" * 40)}))
    add_shallow_commits(tmp_path, frozenset({CommitId("a" * 40)}))

    assert (tmp_path / "shallow").read_text() == f"{'a' * 40}\n{'b' * 40}\n"


def test_discarding_is_whole_and_needs_nothing(tmp_path: Path) -> None:
    repository = init_repository(tmp_path / "r.git")

    discard(repository, tmp_path / "scratch")
    discard(repository, tmp_path / "scratch")

    assert not repository.git_dir.exists()
    assert list((tmp_path / "scratch").iterdir()) == []


def _bring(upstream: Upstream, commit: str, target: Repository, tmp_path: Path) -> int:
    """Fetch one commit as upstream/git.py does; how many objects arrived."""
    counts = [0]
    with staging(target, tmp_path / "scratch") as stage:
        fetch(
            stage,
            upstream.url,
            [f"{commit}:refs/fetched/pin"],
            options=["--depth=1"],
            listener=lambda _done, total: counts.append(total or 0),
        )
        adopt(stage, target)
    target.update_refs([RefChange(f"refs/patchkit/pins/{commit}", commit)], reason="test")
    return max(counts)


def test_only_what_is_old_is_swept(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name / "sub").mkdir(parents=True)
    two_days_ago = time.time() - 2 * 24 * 60 * 60
    os.utime(tmp_path / "old", (two_days_ago, two_days_ago))

    sweep(tmp_path)
    sweep(tmp_path / "nothing")

    assert (tmp_path / "new").exists()
    assert not (tmp_path / "old").exists()
