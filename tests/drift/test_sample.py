"""Few versions of a file are carried to, and those between them have what they have."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from patchkit.drift.sample import ChangeGroup, FileVersion, grouped, thin_out
from patchkit.model.mail import parse_patch
from patchkit.model.objects import TreeEntry, make_object
from patchkit.model.patch import FileChange
from tests.support.repos import make_patch

LINES = [f"line {number}\n" for number in range(40)]


def change_of(line: int, path: str = "a.txt") -> FileChange:
    new = "".join([*LINES[:line], "ours\n", *LINES[line + 1 :]])
    (change,) = parse_patch(make_patch({path: "".join(LINES)}, {path: new}), name="x").changes
    return change


class FileLine:
    """Versions of one file, one a commit, and what is carried of them."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        entries = [TreeEntry(0o100644, make_object("blob", text.encode()).oid) for text in texts]
        self.start = {"a.txt": entries[0]}
        self.touches: dict[int, dict[str, TreeEntry | None]] = {
            number: {"a.txt": entry} for number, entry in enumerate(entries[1:], 1)
        }
        self.entries = entries
        self.carried: list[int] = []

    def thinned(self, verdicts: list[str], *, sure: bool = False) -> list[str]:
        """What a walk over what is left says of every version; `sure`: by their marks alone."""

        def carry(_group: ChangeGroup, version: FileVersion) -> object:
            self.carried.append(version.position)
            return verdicts[version.position]

        def mark_all(_group: ChangeGroup, versions: Sequence[FileVersion]) -> list[object]:
            return ["line 20\n" in self.texts[each.position] for each in versions]

        (group,) = grouped([((0, 0), change_of(20), frozenset({"a.txt"}))])
        thin_out(self.touches, self.start, group, mark_all=mark_all, carry=None if sure else carry)
        told: list[str] = []
        shown = self.start["a.txt"]
        for position in range(len(self.entries)):
            entry = self.touches.get(position, {}).get("a.txt", shown)
            assert entry is not None
            shown = entry
            told.append(verdicts[self.entries.index(shown)])
        return told


def passing_by(count: int) -> list[str]:
    return ["".join([*LINES, f"more {number}\n"]) for number in range(count)]


def test_commits_that_pass_by_are_taken_for_what_stands_at_both_ends() -> None:
    line = FileLine(passing_by(200))
    assert line.thinned(["fits"] * 200) == ["fits"] * 200
    assert sorted(line.carried) == [0, 199]
    assert not any(line.touches.values())


@pytest.mark.parametrize("seed", range(6))
def test_each_commit_that_brings_something_else_is_found(seed: int) -> None:
    at = sorted(Random(seed).sample(range(1, 300), 3))
    verdicts = ["fits"] * at[0] + ["merged"] * (at[1] - at[0]) + ["conflicted"] * (300 - at[1])
    line = FileLine(passing_by(300))
    assert line.thinned(verdicts) == verdicts
    assert len(line.carried) < 30


def test_what_was_broken_and_mended_is_no_part_of_what_stands_around_it() -> None:
    """Where the lines of a hunk go and come again, a run ends, however alike both ends are."""
    texts = passing_by(100)
    for number in (40, 41, 42, 43, 44, 45, 46, 47, 48, 49):
        texts[number] = texts[number].replace("line 20\n", "theirs\n")
    verdicts = ["conflicted" if 40 <= number < 50 else "fits" for number in range(100)]
    line = FileLine(texts)
    assert line.thinned(verdicts) == verdicts
    assert len(line.carried) == 6


def test_a_short_run_is_carried_whole() -> None:
    verdicts = ["fits", "conflicted", "fits", "fits", "merged"]
    line = FileLine(passing_by(5))
    assert line.thinned(verdicts) == verdicts


def test_where_marks_tell_all_nothing_is_carried() -> None:
    texts = passing_by(50)
    texts[20] = texts[20].replace("line 20\n", "theirs\n")
    line = FileLine(texts)
    verdicts = ["conflicted" if number == 20 else "fits" for number in range(50)]
    assert line.thinned(verdicts, sure=True) == verdicts
    assert not line.carried


def test_changes_of_one_file_are_looked_at_together() -> None:
    rows = [
        ((0, 0), change_of(3), frozenset({"a.txt"})),
        ((0, 1), change_of(3, "b.txt"), frozenset({"b.txt"})),
        ((1, 0), change_of(9), frozenset({"a.txt", "lib/a.txt"})),
        ((2, 0), change_of(9, "lib/a.txt"), frozenset({"lib/a.txt"})),
    ]
    found = {group.numbers: group.paths for group in grouped(rows)}
    assert found == {
        ((0, 1),): frozenset({"b.txt"}),
        ((0, 0), (1, 0), (2, 0)): frozenset({"a.txt", "lib/a.txt"}),
    }
