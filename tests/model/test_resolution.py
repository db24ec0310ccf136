"""A remembered resolution reads back as it was, and belongs to one conflict."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from patchkit.errors import BadInputError
from patchkit.model.diff_parse import parse_diff
from patchkit.model.objects import TreeEntry
from patchkit.model.resolution import (
    Resolution,
    conflict_key,
    format_resolution,
    other_result,
    parse_resolution,
)

DIFF = b"--- a/f\n+++ b/f\n@@ -3,2 +3,2 @@\n a\n-b\n+c\n"
(CHANGE,) = parse_diff(DIFF)
OLD, NEW = TreeEntry(0o100644, "1" * 40), TreeEntry(0o100755, "a" * 40)
KEY = conflict_key(CHANGE, "f", OLD, NEW)


@pytest.mark.parametrize("result", [NEW, TreeEntry(0o120000, "b" * 40), None])
def test_it_reads_back(result: TreeEntry | None) -> None:
    data = format_resolution(Resolution(KEY, OLD, result, (), ""), "one.patch", "f", DIFF)
    assert data.startswith(b"Subject: Resolve one.patch in f\n\nConflict: ")
    assert b"Merged-By" not in data
    read = parse_resolution(data, "r.resolution")
    assert (read.key, read.upstream, read.result) == (KEY, OLD, result)
    assert (read.where, [change.hunks for change in read.changes]) == (
        "r.resolution",
        [tuple(replace(hunk, line=read.changes[0].hunks[0].line) for hunk in CHANGE.hunks)],
    )


def test_the_key_is_of_this_conflict_alone() -> None:
    further_down = parse_diff(DIFF.replace(b"-3,2 +3,2", b"-9,2 +8,2"))[0]
    assert conflict_key(further_down, "f", OLD, NEW) == KEY
    others = [
        conflict_key(parse_diff(DIFF.replace(b"+c", b"+d"))[0], "f", OLD, NEW),
        conflict_key(replace(CHANGE, new_mode=0o100755), "f", OLD, NEW),
        conflict_key(CHANGE, "g", OLD, NEW),
        conflict_key(CHANGE, "f", NEW, NEW),
        conflict_key(CHANGE, "f", OLD, OLD),
        conflict_key(CHANGE, "f", OLD, None),
    ]
    assert len({KEY, *others}) == 7


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Conflict: ", "Conflict: x", "is not a recorded resolution"),
        ("Upstream: ", "Up: ", "is not a recorded resolution"),
        ("Result: ", "Made: ", "is not a recorded resolution"),
        ("Result: 100755", "Result: 160000", "names no file"),
    ],
)
def test_a_damaged_one_is_refused(old: str, new: str, said: str) -> None:
    data = format_resolution(Resolution(KEY, OLD, NEW, (), ""), "one.patch", "f", DIFF)
    with pytest.raises(BadInputError, match=rf"^r\.resolution: .*{said}"):
        parse_resolution(data.replace(old.encode(), new.encode()), "r.resolution")


def test_another_result_is_told_with_the_file() -> None:
    error = other_result(Resolution(KEY, OLD, NEW, (), "r.resolution"))
    assert str(error) == "r.resolution: gives another result than the one that was recorded"
