"""Versions that only tags know."""

from __future__ import annotations

import pytest

from patchkit.errors import SurroundingsError
from patchkit.extensions.planning.metadata import TaggedVersions
from patchkit.extensions.planning.plan_report import Declaration
from patchkit.gitcmd.first_parent import first_parents
from patchkit.gitcmd.repository import Repository
from tests.support.repos import Upstream

BY_TAGS = Declaration("engine", "", (), by_tags=True)


def test_each_commit_has_the_version_that_its_build_would_give_it(upstream: Upstream) -> None:
    """Another product's tags do not count; those of a branch do once it is merged."""
    ids = [upstream.commit({"a": f"{number}\n"}) for number in range(6)]
    side = upstream.commit({"b": "b\n"}, branch="side", parents=(ids[1],))
    ids.append(upstream.commit({"b": "b\n"}, parents=(ids[-1], side)))
    ids.append(upstream.commit({"a": "end\n"}))
    tags = {"v1.0": ids[0], "v1.1rc1": ids[2], "1.1": ids[3], "1.2": side, "gateway-v9.0": ids[4]}
    unknown = {"v7.0": "1" * 40, "nightly": ids[5]}
    repository = Repository(upstream.path)
    versions = TaggedVersions(repository, lambda: {**tags, **unknown})
    line = first_parents(repository, ids[0], ids[-1])
    found = versions.along(line, [(0, BY_TAGS)])
    assert [(position, each.version) for position, each in found] == [
        (0, "1.0"),
        (1, "1.1.dev0"),
        (2, "1.1rc1"),
        (3, "1.1"),
        (4, "1.2.dev0"),
        (6, "1.3.dev0"),
    ]
    assert versions.at(ids[3], BY_TAGS).version == "1.1"
    assert versions.at(ids[4], BY_TAGS).version == "1.2.dev0"
    # offline they are known from then on
    again = TaggedVersions(repository, dict)
    assert again.along(line, [(0, BY_TAGS)]) == found


def test_a_version_that_metadata_says_is_not_asked_for(upstream: Upstream) -> None:
    commit, repository = upstream.commit({"a": "a\n"}), Repository(upstream.path)

    def refuse() -> dict[str, str]:
        raise AssertionError

    declared = Declaration("engine", "1.0", ())
    assert TaggedVersions(repository, refuse).at(commit, declared) == declared
    assert TaggedVersions(repository, dict).at(commit, BY_TAGS).version == ""


def test_a_damaged_tag_is_not_left_out(upstream: Upstream) -> None:
    commit = upstream.commit({"a": "a\n"})
    repository = Repository(upstream.path)
    assert TaggedVersions(repository, lambda: {"v1.0": commit}).at(commit, BY_TAGS).version == "1.0"
    (repository.git_dir / "refs/patchkit/tags/v1.0").write_bytes(b"")
    with pytest.raises(SurroundingsError, match=r"broken ref refs/patchkit/tags/v1\.0"):
        TaggedVersions(repository, dict).at(commit, BY_TAGS)
