"""What a repository's history tells about paths and blobs; nothing where there is none."""

from __future__ import annotations

import pytest

from patchkit.gitcmd.commit_history import Between, commit_with
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import CommitId
from tests.support.repos import Upstream, git_in

TEXT = "".join(f"line {n}\n" for n in range(20))


def blob(upstream: Upstream, revision: str, path: str) -> str:
    return upstream.git("rev-parse", f"{revision}:{path}").decode().strip()


@pytest.fixture
def repository(upstream: Upstream) -> Repository:
    return Repository(upstream.path)


def test_renames_are_followed_one_after_the_other(
    upstream: Upstream, repository: Repository
) -> None:
    first = upstream.commit({"a.py": TEXT, "[odd] *.py": TEXT + "odd\n"})
    upstream.commit({"a.py": None, "b/a.py": TEXT + "x\n"})
    upstream.commit({"b/a.py": None, "c/z.rs": TEXT + "x\ny\n"})
    upstream.commit({"c/z.rs": "another\n"})
    tip = upstream.commit({"[odd] *.py": None, "even.py": TEXT + "odd\n"})
    past = Between(repository, CommitId(first), CommitId(tip))
    assert past.renamed("a.py") == "c/z.rs"
    assert past.renamed("[odd] *.py") == "even.py"


def test_deleted_or_never_there_is_no_rename(upstream: Upstream, repository: Repository) -> None:
    first = upstream.commit({"a.py": TEXT, "b.py": "b\n"})
    past = Between(repository, CommitId(first), CommitId(upstream.commit({"a.py": None})))
    assert past.renamed("a.py") is None
    assert past.renamed("never.py") is None


def test_the_commit_is_the_newest_with_all_blobs(
    upstream: Upstream, repository: Repository
) -> None:
    first = upstream.commit({"a": "1\n", "b": "1\n"})
    one = upstream.commit({"a": "2\n"}, "Both as wanted")
    upstream.commit({"b": "2\n"})
    tip = upstream.commit({"a": "3\n", "c": "1\n"})
    wanted = {"a": blob(upstream, one, "a")[:8], "b": blob(upstream, one, "b")}
    assert commit_with(repository, [tip], wanted) == one
    assert commit_with(repository, [tip], wanted | {"a": "f" * 40}) is None
    of_the_base = {"a": blob(upstream, first, "a"), "b": blob(upstream, first, "b")}
    assert commit_with(repository, [tip], of_the_base) == first


def test_shallow_history_answers_none(
    upstream: Upstream, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = upstream.commit({"a.py": TEXT})
    wanted = {"a.py": blob(upstream, first, "a.py")}
    upstream.commit({"a.py": None, "b.py": TEXT})
    shallow = tmp_path_factory.mktemp("shallow")
    git_in(shallow, "clone", "-q", "--bare", "--depth=1", upstream.url, str(shallow / "r.git"))
    repository = Repository(shallow / "r.git")
    tip = repository.commit("HEAD") or ""
    assert Between(repository, CommitId(first), CommitId(tip)).renamed("a.py") is None
    assert commit_with(repository, [CommitId(tip)], wanted) is None
