from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.carry.came_through import carried_files
from patchkit.carry import CarryReport, carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.carry.cascade import waiting, waits
from patchkit.carry.engine import joint_changes
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.repository import Repository
from patchkit.model.diff_parse import parse_diff
from patchkit.model.mail import parse_patch
from patchkit.model.objects import Base, CommitId, TreeId
from patchkit.model.outcome import FileResult, Status
from patchkit.model.patch import Identity
from patchkit.stack.build import SeriesPatch
from patchkit.stack.patch_files import CommitChange
from tests.model.oracle import Objects, git_diff
from tests.support.laws import share
from tests.support.repos import Files, Symlink, Upstream, executable, make_patch

TEXT = "".join(f"line {number}\n" for number in range(1, 31))


def carry(upstream: Upstream, old: Files, new: Files, *patches: bytes) -> CarryReport:
    first, second = upstream.commit(old), upstream.commit(new)
    here, there = (
        Base(each, TreeId(upstream.tree(each)), "1700000000 +0000") for each in (first, second)
    )
    series = [
        SeriesPatch(f"{number}.patch", parse_patch(data, name="x"))
        for number, data in enumerate(patches)
    ]
    with reading(Repository(upstream.path)) as reader:
        return carry_stack(reader, here, there, series)


def statuses(report: CarryReport) -> list[Status]:
    return [outcome.status for outcome in report.outcomes]


def test_onto_the_same_files(upstream: Upstream) -> None:
    patch = make_patch({"f": TEXT}, {"f": TEXT.replace("15", "x")})
    report = carry(upstream, {"f": TEXT}, {"other": "x"}, patch)
    assert statuses(report) == [Status.UNCHANGED]
    assert report.clean


def test_unchanged_means_as_on_the_old_base(upstream: Upstream) -> None:
    patch = make_patch({"f": TEXT}, {"f": TEXT.replace("15", "x")})
    moved = "more\n" + TEXT
    assert statuses(carry(upstream, {"f": moved}, {"other": "x"}, patch)) == [Status.UNCHANGED]
    assert statuses(carry(upstream, {"f": TEXT}, {"f": moved}, patch)) == [Status.SHIFTED]


def test_onto_a_base_that_contains_it(upstream: Upstream) -> None:
    before: Files = {"f": TEXT, "run": "x\n", "l": "x", "gone": "x\n", "r": TEXT, "b": b"\x00"}
    after: Files = {
        "f": TEXT.replace("15", "x"),
        "run": executable("x\n"),
        "new": "n\n",
        "l": Symlink("f"),
        "gone": None,
        "r": None,
        "s": TEXT.replace("3", "4"),
        "b": b"\x00\x01",
    }
    patch = make_patch(before, after)
    assert statuses(carry(upstream, before, after, patch)) == [Status.ABSORBED]


def test_onto_a_base_that_contains_a_part_of_it(upstream: Upstream) -> None:
    before: Files = {"f": TEXT, "gone": "x\n", "r": TEXT, "b": b"\x00"}
    after: Files = {
        "f": TEXT.replace("15", "x"),
        "new": "n\n",
        "gone": None,
        "r": None,
        "s": TEXT.replace("3", "4"),
        "b": b"\x00\x01",
    }
    report = carry(upstream, before, {**after, "new": None}, make_patch(before, after))
    assert statuses(report) == [Status.MERGED]  # what is left of it: one file
    assert [f.path for f in report.outcomes[0].files if f.status.applies] == ["new"]
    with reading(Repository(upstream.path)) as reader:
        assert carried_files(report, reader)["f"] == TEXT.replace("15", "x").encode()


def test_a_second_place_does_not_hide_that_it_is_contained(upstream: Upstream) -> None:
    block = "a\nb\nc\n" * 10
    patch = make_patch({"f": block}, {"f": block[:12] + "new\n" + block[12:]})
    contained = {"f": block[:12] + "new\n" + block[12:]}
    assert statuses(carry(upstream, {"f": block}, contained, patch)) == [Status.ABSORBED]


def test_a_conflict_leaves_the_others_alone(upstream: Upstream) -> None:
    one = make_patch({"f": TEXT}, {"f": TEXT.replace("15", "x")})
    two = make_patch({"g": TEXT}, {"g": TEXT.replace("15", "x")})
    old: Files = {"f": TEXT, "g": TEXT}
    report = carry(upstream, old, {"f": TEXT.replace("line 15", "other")}, one, two)
    assert statuses(report) == [Status.CONFLICTED, Status.UNCHANGED]
    assert not report.clean


def test_a_second_conflict_does_not_hide_what_waits_for_the_first(upstream: Upstream) -> None:
    old: Files = {"f": TEXT, "g": TEXT}
    patched = TEXT.replace("line 15", "x")
    patches = [make_patch({name: TEXT}, {name: patched}) for name in old]
    patches.append(make_patch({"f": patched}, {"f": patched.replace("x\n", "x\ny\n")}))
    other = TEXT.replace("line 15", "other")
    report = carry(upstream, old, {"f": other, "g": other}, *patches)
    assert statuses(report) == [Status.CONFLICTED, Status.CONFLICTED, Status.WAITING]
    assert report.outcomes[2].files[0].waits_for == ("0.patch",)


@pytest.mark.parametrize(
    ("here", "there", "answer"),
    [
        (Status.CONFLICTED, Status.MERGED, True),
        (Status.CONFLICTED, Status.CONFLICTED, False),
        (Status.MERGED, Status.SHIFTED, True),
        (Status.MERGED, Status.MERGED, False),
        (Status.SHIFTED, Status.UNCHANGED, False),
    ],
)
def test_what_waits(here: Status, there: Status, answer: bool) -> None:
    assert waits(here, there) is answer
    flagged = FileResult("f", here, confidence=0.5, reasons=("why",), review=True)
    file = waiting(flagged, ("a.patch", "b.patch"))
    assert (file.status, file.review, file.confidence) == (Status.WAITING, False, 0.0)
    assert file.reasons == ("waits for a.patch, b.patch",)


def test_a_patch_from_elsewhere_leaves_the_base_of_the_others(upstream: Upstream) -> None:
    here = upstream.commit({"f": TEXT + "more\n", "g": TEXT})
    there = upstream.tree(upstream.commit({"f": TEXT}, parents=()))
    base = Base(here, TreeId(upstream.tree(here)), "1700000000 +0000")
    series = [
        SeriesPatch(name, parse_patch(make_patch({name: TEXT}, {name: TEXT + "end\n"}), name=name))
        for name in "fg"
    ]
    options = CarryOptions(made_on={"f": CommitChange(there, there, "", Identity("A", "a@b"))})
    with reading(Repository(upstream.path)) as reader:
        report = carry_stack(reader, base, base, series, options)
    assert statuses(report)[1] is Status.UNCHANGED


def test_changes_of_one_file_are_joined_and_those_of_others_are_not() -> None:
    one, other = (b"--- a/%c\n+++ b/%c\n@@ -1 +1 @@\n-a\n+b\n" % (name, name) for name in b"fg")
    changes = joint_changes(parse_diff(one + other + one))
    assert [(each.path, len(each.hunks)) for each in changes] == [("f", 2), ("g", 1)]


@pytest.mark.parametrize(
    ("old", "after", "new"),
    [
        ({}, {"d/x": "ours\n"}, {"d": "a file\n"}),
        ({}, {"d": "ours\n"}, {"d/x": "a file\n"}),
        ({"f": TEXT}, {"f": None, "d/g": TEXT}, {"d": "a file\n", "f": TEXT + "more\n"}),
    ],
)
def test_a_folder_and_a_file_of_one_name_are_a_conflict(
    upstream: Upstream, old: Files, after: Files, new: Files
) -> None:
    other = make_patch({"g": TEXT}, {"g": TEXT.replace("15", "x")})
    report = carry(upstream, {**old, "g": TEXT}, new, make_patch(old, after), other)
    assert statuses(report) == [Status.CONFLICTED, Status.UNCHANGED]
    assert Status.CONFLICTED in [each.status for each in report.outcomes[0].files]
    assert not report.clean


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n"]), max_size=12).map("".join)


@pytest.mark.slow
@settings(max_examples=share(130))
@given(LINES, LINES)
def test_law_onto_the_same_base_and_onto_the_result(old: str, new: str) -> None:
    before, after = {"f": (0o100644, old.encode())}, {"f": (0o100644, new.encode())}
    if before == after:
        return
    series = [SeriesPatch("x.patch", parse_patch(git_diff(before, after), name="x"))]
    objects = Objects()
    bases = [
        Base(CommitId("0" * 40), TreeId(objects.tree(files)), "0 +0000")
        for files in (before, after)
    ]
    assert statuses(carry_stack(objects, bases[0], bases[0], series)) == [Status.UNCHANGED]
    assert statuses(carry_stack(objects, bases[0], bases[1], series)) == [Status.ABSORBED]
