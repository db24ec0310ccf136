"""Objects that are not there, and objects that git cannot open: two different errors."""

from __future__ import annotations

import os
import resource
import signal
import sys
import zlib
from pathlib import Path

import pytest

from patchkit.gitcmd.first_parent import missing_objects
from patchkit.gitcmd.object_reader import (
    MissingObjectError,
    ObjectReader,
    write_objects,
)
from patchkit.gitcmd.process import NoAnswerError
from patchkit.gitcmd.repository import Repository, borrow_objects, init_repository
from patchkit.model.objects import TreeId, make_object
from tests.support.repos import Upstream


def _children() -> set[int]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {int(each) for task in tasks for each in task.read_text().split()}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return init_repository(tmp_path / "r.git")


def test_an_object_that_is_not_there_is_missing(repository: Repository) -> None:
    blob = make_object("blob", b"not written")
    with ObjectReader(repository) as reader, pytest.raises(MissingObjectError, match=blob.oid):
        reader.blob(blob.oid)


def test_a_git_that_runs_reads_what_is_brought_later(repository: Repository) -> None:
    first, *later = (make_object("blob", b"%d" % number) for number in range(4))
    write_objects(repository, [first])
    with ObjectReader(repository) as reader:
        before = _children()
        assert reader.blob(first.oid) == b"0"
        running = _children() - before
        for blob in later:
            write_objects(repository, [blob])
            assert reader.blob(blob.oid) == blob.payload
        assert _children() - before == running


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process")
def test_an_object_that_git_cannot_open_is_not_said_to_be_missing(repository: Repository) -> None:
    """git says "missing" where it has no descriptor left for the pack, too."""
    first, second = make_object("blob", b"first"), make_object("blob", b"second")
    write_objects(repository, [first])
    before = _children()
    with ObjectReader(repository) as reader:
        assert reader.blob(first.oid) == b"first"
        write_objects(repository, [second])
        (git,) = _children() - before
        resource.prlimit(git, resource.RLIMIT_NOFILE, (3, 3))
        with pytest.raises(NoAnswerError, match="git cannot read"):
            reader.blob(second.oid)
        assert reader.blob(second.oid) == b"second"  # by another git


@pytest.mark.skipif(sys.platform != "linux", reason="children of a process")
def test_a_git_that_ended_says_nothing_of_an_object(repository: Repository) -> None:
    blob = make_object("blob", b"first")
    write_objects(repository, [blob])
    before = _children()
    with ObjectReader(repository) as reader:
        assert reader.blob(blob.oid) == b"first"
        (git,) = _children() - before
        os.kill(git, signal.SIGKILL)
        with pytest.raises(NoAnswerError):
            reader.blob(blob.oid)


def test_a_blob_of_which_git_gives_the_size_alone_is_no_empty_file(repository: Repository) -> None:
    """git says how large it is, and ends when it reads on."""
    text = bytes(range(256)) * 40
    blob = make_object("blob", text)
    file = repository.git_dir / "objects" / blob.oid[:2] / blob.oid[2:]
    file.parent.mkdir()
    file.write_bytes(zlib.compress(b"blob %d\0" % len(text) + text, 0)[:2000])
    with ObjectReader(repository) as reader:
        with pytest.raises(NoAnswerError):
            reader.read_present([blob.oid])
        with pytest.raises(NoAnswerError):
            reader.blob(blob.oid)


def test_the_root_of_a_commit_is_its_tree_and_of_a_tree_itself(upstream: Upstream) -> None:
    commit = upstream.commit({"a": "1\n"})
    tree, absent = TreeId(upstream.tree(commit)), TreeId("1" * 40)
    with ObjectReader(Repository(upstream.path)) as reader:
        assert [reader.root(each) for each in (commit, tree, absent)] == [tree, tree, absent]
        assert sorted(reader.tree(tree)) == ["a"], "the same git answers on"


def test_a_ref_is_found_wherever_git_keeps_it(upstream: Upstream) -> None:
    commit = upstream.commit({"a": "1\n"})
    repository = Repository(upstream.path)
    upstream.branch("deep/b", commit)
    for _ in range(2):
        assert repository.ref("refs/heads/main") == repository.ref("refs/heads/deep/b") == commit
        for absent in ("refs/heads/deep", "refs/heads/none", "refs/heads/main/x"):
            assert repository.ref(absent) is None
        upstream.git("pack-refs", "--all")
    assert not (upstream.path / "refs/heads/main").exists()
    upstream.git("symbolic-ref", "refs/heads/also", "refs/heads/main")
    assert repository.ref("refs/heads/also") == commit


def test_a_repository_has_no_objects_until_one_is_put_there(tmp_path: Path) -> None:
    bare, loose, lent = (init_repository(tmp_path / f"{name}.git") for name in ("a", "b", "c"))
    other = init_repository(tmp_path / "w" / ".git", work_tree=tmp_path / "w")
    assert all(each.has_no_objects for each in (bare, loose, lent, other))
    blob = make_object("blob", b"1\n")
    write_objects(bare, [blob])
    loose.git("hash-object", "-w", "--stdin", stdin=b"1\n")
    borrow_objects(lent.git_dir, [bare.git_dir / "objects"])
    for each in (bare, loose, lent):
        assert not each.has_no_objects
        assert missing_objects(each, [blob.oid]) == frozenset()
    assert missing_objects(other, [blob.oid]) == {blob.oid}


@pytest.mark.skipif(sys.platform != "linux", reason="children by /proc")
def test_a_git_that_an_interrupt_ended_has_answered_nothing(upstream: Upstream) -> None:
    """On a terminal ^C reaches the gits of all threads: check called a component failed for it."""
    commit = upstream.commit({"a": "1\n"})
    repository = Repository(upstream.path)
    ended = "alias.end=!kill -INT $(ps -o ppid= -p $$)"
    with pytest.raises(KeyboardInterrupt):
        repository.git("-c", ended, "end")
    before = _children()
    with ObjectReader(repository) as reader:
        reader.commit(commit)
        (git,) = _children() - before
        os.kill(git, signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            reader.commit("0" * 40)
