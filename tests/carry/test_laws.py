"""Laws of carrying, on generated histories: renames, line ends, binary files, modes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.carry import CarryReport, carry_stack
from patchkit.model.base import Base
from patchkit.model.mail import parse_patch
from patchkit.model.outcome import Status
from patchkit.stack import SeriesPatch
from tests.model.oracle import Objects, Snapshot, git_diff

LINE = st.sampled_from(["alpha = 1", "beta(two)", "    gamma", "    return", "", "delta"])
END = st.sampled_from(["\n", "\r\n"])
MODE = st.sampled_from([0o100644, 0o100755])


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """A text with one kind of line end, with or without a last one."""
    end = draw(END)
    text = end.join(draw(st.lists(LINE, min_size=1, max_size=9)))
    return (text + draw(st.sampled_from(["", end]))).encode()


CONTENTS = st.one_of(texts(), st.binary(max_size=6).map(lambda data: b"\0" + data))
TREES = st.dictionaries(
    st.sampled_from(["a.py", "b.txt", "c/d", "c/e"]), st.tuples(MODE, CONTENTS), min_size=1
)


def series_between(*trees: Snapshot) -> list[SeriesPatch]:
    """A patch for each step, as git writes it."""
    pairs = [(old, new) for old, new in pairwise(trees) if old != new]
    diffs = [git_diff(old, new, "--binary", "--full-index", "-M") for old, new in pairs]
    return [
        SeriesPatch(f"{number}.patch", parse_patch(diff, name="x"))
        for number, diff in enumerate(diffs)
    ]


def carried(
    objects: Objects, old: str, new: str, series: list[SeriesPatch], *, careful: bool = False
) -> CarryReport:
    bases = [Base(digit * 40, tree, "0 +0000") for digit, tree in (("1", old), ("2", new))]
    return carry_stack(objects, bases[0], bases[1], series, careful=careful)


@settings(max_examples=40)
@given(TREES, TREES, TREES)
def test_law_to_the_same_base_nothing_changes(old: Snapshot, one: Snapshot, two: Snapshot) -> None:
    objects = Objects()
    series = series_between(old, one, two)
    tree = objects.tree(old)
    report = carried(objects, tree, tree, series)
    assert {each.status for each in report.outcomes} <= {Status.UNCHANGED}
    assert report.stack.tree == objects.tree(two)
    assert not any(each.review for each in report.outcomes)


@settings(max_examples=40)
@given(TREES, TREES, TREES)
def test_law_nothing_is_dropped_without_a_word(
    old: Snapshot, new: Snapshot, patched: Snapshot
) -> None:
    """What lands is the patch's file or a merge of its lines; what does not is a conflict."""
    series = series_between(old, patched)
    if not series:
        return
    objects = Objects()
    report = carried(objects, objects.tree(old), objects.tree(new), series)
    (outcome,) = report.outcomes
    if outcome.status is Status.CONFLICTED:
        assert report.stack.tree == objects.tree(new)
        assert any(each.status is Status.CONFLICTED for each in outcome.files)
        return
    for path, (_, data) in patched.items():
        if old.get(path) == patched[path] or path not in report.carried["0.patch"]:
            continue
        result = report.carried["0.patch"][path]
        assert result is not None
        flagged = any(each.review for each in outcome.files)
        added = {x.strip() for x in data.split(b"\n")} - {b""}
        known = b"\n".join(text for _, text in old.values())  # it may be a renamed one
        added -= {x.strip() for x in known.split(b"\n")}
        if not flagged:
            assert added <= {x.strip() for x in result.split(b"\n")}


@settings(max_examples=30)
@given(TREES, TREES, TREES)
def test_law_careful_accepts_no_more(old: Snapshot, new: Snapshot, patched: Snapshot) -> None:
    series = series_between(old, patched)
    objects = Objects()
    trees = objects.tree(old), objects.tree(new)
    bold, careful = (carried(objects, *trees, series, careful=each) for each in (False, True))
    assert not any(each.review for each in careful.outcomes)
    for one, other in zip(bold.outcomes, careful.outcomes, strict=True):
        if not one.review:
            assert one.tree == other.tree


@settings(max_examples=30)
@given(TREES, TREES)
def test_law_onto_the_result_it_is_absorbed(old: Snapshot, patched: Snapshot) -> None:
    series = series_between(old, patched)
    objects = Objects()
    report = carried(objects, objects.tree(old), objects.tree(patched), series)
    assert {each.status for each in report.outcomes} <= {Status.ABSORBED}
    assert report.stack.tree == objects.tree(patched)


@settings(max_examples=30)
@given(TREES, TREES)
def test_law_there_and_back_again(old: Snapshot, patched: Snapshot) -> None:
    """Over a base that differs in other files only, the patch comes back as it was."""
    series = series_between(old, patched)
    objects = Objects()
    other = {**old, "more": (0o100644, b"more\n")}
    there = carried(objects, objects.tree(old), objects.tree(other), series)
    back = carried(objects, objects.tree(other), objects.tree(old), series)
    assert back.stack.tree == objects.tree(patched)
    assert there.stack.tree == objects.tree({**patched, "more": (0o100644, b"more\n")})
