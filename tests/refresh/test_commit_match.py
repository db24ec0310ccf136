"""Commits that find their patches again."""

from __future__ import annotations

import pytest

from patchkit.model.objects import CommitId, TreeId
from patchkit.model.patch import Identity
from patchkit.refresh.draft import CommitContents, CommitMatching, KnownPatch, match_commits
from patchkit.stack.build import StackCommit

_ANN = Identity("Ann", "ann@example.com", "1 +0000")


def known(*names: str) -> list[KnownPatch]:
    """Patches named for their subjects and diffs; each touches a file of its own."""
    return [
        KnownPatch(f"{name}.patch", f"Do {name}", name.encode(), frozenset({f"{name}.py"}))
        for name in names
    ]


def commit(subject: str, patch: str | None = None) -> StackCommit:
    name = None if patch is None else f"{patch}.patch"
    return StackCommit(
        CommitId("0" * 40), TreeId("0" * 40), CommitId("0" * 40), _ANN, subject, name
    )


def match(
    commits: list[StackCommit], patches: list[KnownPatch], looks: dict[int, tuple[str, str]]
) -> CommitMatching:
    """`looks` maps a commit's index to its diff and its file."""

    def look(index: int) -> CommitContents:
        diff, file = looks.get(index, ("another diff", "another.py"))
        return CommitContents(diff.encode(), frozenset({file}))

    return match_commits(commits, patches, {"taken.patch"}, look)


def test_the_trailer_names_the_patch_wherever_the_commit_stands() -> None:
    commits = [commit("Other words", "b"), commit("Do a", "a")]
    assert match(commits, known("a", "b"), {}).names == ("b.patch", "a.patch")


def test_of_two_with_one_trailer_the_later_is_new() -> None:
    found = match([commit("Do a", "a"), commit("Do more", "a")], known("a"), {})
    assert found.names == ("a.patch", "do-more.patch")


@pytest.mark.parametrize(
    ("subject", "look"),
    [
        ("Other words", ("b", "b.py")),  # the same diff
        ("Do b", ("changed", "elsewhere.py")),  # the same subject
        ("Other words", ("changed", "b.py")),  # the same place and file
    ],
)
def test_a_lost_trailer_is_found_again(subject: str, look: tuple[str, str]) -> None:
    commits = [commit("Do a", "a"), commit(subject), commit("Do c", "c")]
    found = match(commits, known("a", "b", "c"), {1: look})
    assert found.names == ("a.patch", "b.patch", "c.patch")
    assert not found.dropped


def test_what_is_like_nothing_is_new_and_the_missing_one_dropped() -> None:
    commits = [commit("Do a", "a"), commit("Wholly new"), commit("Do c", "c")]
    found = match(commits, known("a", "b", "c"), {1: ("x", "x.py")})
    assert found.names[1] == "wholly-new.patch"
    assert found.dropped == ("b.patch",)


def test_two_that_could_be_the_missing_one_are_both_new() -> None:
    found = match([commit("Do a"), commit("Do a")], known("a"), {})
    assert found.names == ("do-a.patch", "do-a-2.patch")
    assert found.dropped == ("a.patch",)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("taken", "taken-2.patch"),
        ("TAKEN", "taken-2.patch"),
        ("[core] Fix it (again)", "fix-it-again.patch"),
        ("修复", "patch.patch"),
        ("", "patch.patch"),
    ],
)
def test_a_new_patch_is_named_for_its_subject(subject: str, name: str) -> None:
    assert match([commit(subject)], [], {}).names == (name,)
