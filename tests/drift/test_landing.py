"""What a subject tells about how a commit landed, and the pages of hosts."""

from __future__ import annotations

import pytest

from patchkit.drift.describe import (
    commit_page,
    is_revert,
    page_of,
    request_page,
)
from patchkit.model.objects import CommitId
from patchkit.model.upstream_intent import request_number


@pytest.mark.parametrize(
    ("subject", "number"),
    [
        ("Fix it (#12)", 12),
        ("Fix it (#12) (#34)  ", 34),
        ("Merge pull request #7 from a/b", 7),
        ("!56 Fix it", 56),
        ("Fix it (!9)", 9),
        ("See merge request group/project!78", 78),
        ("Fix #12", None),
        ("(#12) fix it", None),
        ("", None),
    ],
)
def test_the_request_of_a_subject(subject: str, number: int | None) -> None:
    assert request_number(subject) == number


@pytest.mark.parametrize(
    ("subject", "reverts"),
    [
        ('Revert "Fix it"', True),
        ('Reapply "Fix it"', True),
        ("revert: fix it", True),
        ("Revert(core): fix it", True),
        ("Reverting is hard", False),
        ('Do not Revert "x"', False),
    ],
)
def test_reverts(subject: str, reverts: bool) -> None:
    assert is_revert(subject) is reverts


@pytest.mark.parametrize(
    ("url", "page"),
    [
        ("https://GitHub.com/NVIDIA/Megatron-LM.git", "https://github.com/NVIDIA/Megatron-LM"),
        ("http://example.com/a/b/", "https://example.com/a/b"),
        ("ssh://git@example.com:2222/a/b.git", "https://example.com/a/b"),
        ("git@github.com:a/b.git", "https://github.com/a/b"),
        ("example.com:a/b", "https://example.com/a/b"),
        ("git://example.com/a b/c~d", "https://example.com/a%20b/c~d"),
        ("https://example.com/", None),
        ("https://exa mple.com/a", None),
        ("file:///tmp/a.git", None),
        ("/tmp/a.git", None),
        ("git@example.com:", None),
    ],
)
def test_the_page_of_a_repository(url: str, page: str | None) -> None:
    assert page_of(url) == page


def test_the_pages_of_commits_and_requests() -> None:
    github, gitlab = "https://github.com/a/gitlab", "https://gitlab.example.com/a/b"
    gitee = "https://gitee.com/a/b"
    assert commit_page(github, CommitId("12ab")) == "https://github.com/a/gitlab/commit/12ab"
    assert commit_page(gitlab, CommitId("12ab")) == "https://gitlab.example.com/a/b/-/commit/12ab"
    assert commit_page(None, CommitId("12ab")) is None
    assert request_page(github, 1) == "https://github.com/a/gitlab/pull/1"
    assert request_page(gitlab, 1) == "https://gitlab.example.com/a/b/-/merge_requests/1"
    assert request_page(gitee, 1) == "https://gitee.com/a/b/pulls/1"
    assert request_page(None, 1) is None
    assert request_page(github, None) is None
