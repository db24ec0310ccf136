"""URLs: two spellings of one repository share a cache, two repositories never do."""

from __future__ import annotations

import pytest

from patchkit.model.names import folder_name, normal_url, readable_url


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example/Org/repo.git",
        "https://git.example/Org/repo",
        "https://git.example/Org/repo/",
        "https://GIT.example:443/Org/repo.git/",
        "https://user:secret@git.example//Org/repo.git",
        "ssh://git@git.example:22/Org/repo.git",
        "git@git.example:Org/repo.git",
        "git.example:Org/repo",
        "git://git.example/Org/repo",
    ],
)
def test_spellings_of_one_repository(url: str) -> None:
    assert normal_url(url) == "git.example/Org/repo"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://git.example/org/repo", "https://git.example/Org/repo"),
        ("https://git.example/org/repo", "https://git.example:8443/org/repo"),
        ("file:///srv/repo.git", "https://srv/repo.git"),
        ("file:///srv/a/repo", "file:///srv/b/repo"),
    ],
)
def test_different_repositories(one: str, other: str) -> None:
    assert folder_name(normal_url(one)) != folder_name(normal_url(other))


def test_a_folder_name_is_readable_and_short() -> None:
    name = folder_name("git.example/" + "long/" * 60 + "repo")

    assert "-repo-" in name
    assert len(name) < 64
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_passwords_are_not_shown() -> None:
    assert readable_url("https://user:s3cret@git.example/r") == "https://git.example/r"
    assert readable_url("git@git.example:r") == "git@git.example:r"
