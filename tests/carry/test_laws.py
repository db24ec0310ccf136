"""Laws of carrying, on generated histories: renames, line ends, binary files, modes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.carry.came_through import carried_files
from patchkit.carry import CarryReport, carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.repository import Repository
from patchkit.model.mail import parse_patch
from patchkit.model.objects import Base, CommitId, TreeId
from patchkit.model.outcome import Status
from patchkit.model.tree import Overlay, Tree
from patchkit.stack.build import SeriesPatch
from tests.model.oracle import Objects, Snapshot, git_diff
from tests.support.laws import share
from tests.support.repos import Upstream, make_patch

pytestmark = pytest.mark.slow

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
    bases = [
        Base(CommitId(digit * 40), TreeId(tree), "0 +0000")
        for digit, tree in (("1", old), ("2", new))
    ]
    return carry_stack(objects, bases[0], bases[1], series, CarryOptions(careful=careful))


@settings(max_examples=share(130))
@given(TREES, TREES, TREES)
def test_law_to_the_same_base_nothing_changes(old: Snapshot, one: Snapshot, two: Snapshot) -> None:
    objects = Objects()
    series = series_between(old, one, two)
    tree = objects.tree(old)
    report = carried(objects, tree, tree, series)
    assert {each.status for each in report.outcomes} <= {Status.UNCHANGED}
    assert report.stack.tree == objects.tree(two)
    assert not any(each.review for each in report.outcomes)


@settings(max_examples=share(130))
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
    came = carried_files(report, objects)
    for path, (_, data) in patched.items():
        if old.get(path) == patched[path] or path not in came:
            continue
        result = came[path]
        assert result is not None
        flagged = any(each.review for each in outcome.files)
        added = {x.strip() for x in data.split(b"\n")} - {b""}
        known = b"\n".join(text for _, text in old.values())  # it may be a renamed one
        added -= {x.strip() for x in known.split(b"\n")}
        if not flagged:
            assert added <= {x.strip() for x in result.split(b"\n")}


@settings(max_examples=share(100))
@given(TREES, TREES, TREES)
def test_law_careful_accepts_no_more(old: Snapshot, new: Snapshot, patched: Snapshot) -> None:
    series = series_between(old, patched)
    objects = Objects()
    trees = objects.tree(old), objects.tree(new)
    bold, careful = (carried(objects, *trees, series, careful=each) for each in (False, True))
    assert not any(each.review for each in careful.outcomes)
    for one, other in zip(bold.outcomes, careful.outcomes, strict=True):
        if not (one.review or any(each.certainty for each in one.files)):
            assert one.tree == other.tree


@settings(max_examples=share(100))
@given(TREES, TREES)
def test_law_onto_the_result_it_is_absorbed(old: Snapshot, patched: Snapshot) -> None:
    series = series_between(old, patched)
    objects = Objects()
    report = carried(objects, objects.tree(old), objects.tree(patched), series)
    assert {each.status for each in report.outcomes} <= {Status.ABSORBED}
    assert report.stack.tree == objects.tree(patched)


@settings(max_examples=share(100))
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


PATHS = ("a.py", "b.txt", "c/d", "c/e")
PLAIN = st.lists(LINE, min_size=1, max_size=9).map(lambda lines: "\n".join([*lines, ""]).encode())


@st.composite
def three_sides(draw: st.DrawFn, contents: st.SearchStrategy[bytes] = PLAIN) -> list[Snapshot]:
    """The old base, the new one and the patched old one: the same paths on all of them."""
    paths = draw(st.sets(st.sampled_from(PATHS), min_size=1))
    return [{path: (0o100644, draw(contents)) for path in sorted(paths)} for _ in range(3)]


def outcome_of(sides: Sequence[Snapshot]) -> tuple[dict[str, bytes | None], list[object]] | None:
    """What was carried, and what was said of each file; None if there is no patch."""
    old, new, patched = sides
    series = series_between(old, patched)
    if not series:
        return None
    objects = Objects()
    report = carried(objects, objects.tree(old), objects.tree(new), series)
    told = [(f.path, f.status, f.confidence, f.review) for f in report.outcomes[0].files]
    return carried_files(report, objects), [*told]


@settings(max_examples=share(130))
@given(three_sides())
def test_law_other_line_ends_come_to_the_same(sides: list[Snapshot]) -> None:
    def with_cr(data: bytes) -> bytes:
        return data.replace(b"\n", b"\r\n")

    crlf = [{path: (mode, with_cr(data)) for path, (mode, data) in s.items()} for s in sides]
    plainly, other = outcome_of(sides), outcome_of(crlf)
    if plainly is None or other is None:
        assert plainly is other
        return
    expected = {path: with_cr(data or b"") for path, data in plainly[0].items()}
    assert other == (expected, plainly[1])


@settings(max_examples=share(130))
@given(three_sides(), st.lists(MODE, min_size=3, max_size=3))
def test_law_modes_are_merged_apart_from_contents(sides: list[Snapshot], modes: list[int]) -> None:
    plainly = outcome_of(sides)
    old, new, patched = (
        {path: (mode, data) for path, (_, data) in side.items()}
        for side, mode in zip(sides, modes, strict=True)
    )
    series = series_between(old, patched)
    if plainly is None or not series or len(plainly[1]) < len(old):
        return
    objects = Objects()
    report = carried(objects, objects.tree(old), objects.tree(new), series)
    assert carried_files(report, objects) == plainly[0]
    if report.clean:
        mode = modes[2] if modes[1] == modes[0] else modes[1]
        tree = Tree(Overlay(objects, report.stack.objects), report.stack.tree)
        entries = [tree.entry(path) for path in old]
        assert {each.mode for each in entries if each is not None} == {mode}


BINARY = st.sampled_from([b"\0one\n", b"\0two\n", b"\0one\nmore\n"])


@settings(max_examples=share(100))
@given(three_sides(BINARY))
def test_law_binary_files_are_taken_whole_or_not(sides: list[Snapshot]) -> None:
    got = outcome_of(sides)
    if got is None:
        return
    old, new, patched = ({path: data for path, (_, data) in side.items()} for side in sides)
    for path in (path for path in old if old[path] != patched[path]):
        wanted = patched[path] if new[path] in (old[path], patched[path]) else None
        assert got[0].get(path) == wanted


@settings(max_examples=share(100))
@given(TREES, TREES, TREES, TREES)
def test_law_a_later_patch_is_no_concern_of_an_earlier_one(
    old: Snapshot, new: Snapshot, one: Snapshot, two: Snapshot
) -> None:
    series = series_between(old, one, two)
    objects = Objects()
    trees = objects.tree(old), objects.tree(new)
    whole = carried(objects, *trees, series)
    for count in range(1, len(series)):
        first = carried(objects, *trees, series[:count])
        assert first.outcomes == whole.outcomes[:count]


def test_law_a_rename_changes_the_path_and_nothing_else(upstream: Upstream) -> None:
    """Each file is carried as if upstream had not moved it; that it did is said."""
    chance = Random(11)
    words = ["alpha = 1\n", "beta(two)\n", "    gamma\n", "\n", "delta = f(x)\n"]

    def edited(lines: list[str]) -> list[str]:
        lines = list(lines)
        at = chance.randrange(len(lines))
        lines[at : at + chance.choice([0, 1, 2])] = chance.choices(words, k=chance.randint(1, 2))
        return lines

    base, there, own = dict[str, str](), dict[str, str](), dict[str, str]()
    for number in range(24):
        # lines of its own: else git takes one file for another
        lines = [f"line {number} {chance.random()}\n" for _ in range(12)]
        name = f"{chance.choice(['lib', 'src/deep'])}/f{number}.txt"
        base[name], there[name] = "".join(lines), "".join(edited(lines))
        own[name] = "".join(edited(lines))
    old = upstream.commit(base)
    stays = upstream.commit(there, branch="stays", parents=(old,))
    moved = {f"new/{name.rpartition('/')[2]}": text for name, text in there.items()}
    moves = upstream.commit(
        {**dict.fromkeys(base), **moved}, "Move", branch="moves", parents=(old,)
    )
    repository = Repository(upstream.path)
    patches = [make_patch({name: base[name]}, {name: own[name]}) for name in base]
    series = [SeriesPatch(f"{n}.patch", parse_patch(p, name="x")) for n, p in enumerate(patches)]
    reports, came = [], []
    with reading(repository) as reader:
        for new in (stays, moves):
            bases = read_base(repository, old), read_base(repository, new)
            past = Between(repository, old, new)
            report = carry_stack(reader, *bases, series, CarryOptions(past=past))
            reports.append(report)
            names = [patch.name for patch in series]
            came.append({name: carried_files(report, reader, name) for name in names})
    plain, renamed = reports
    seen = Counter[bool]()
    for name, path, one, other in zip(base, moved, plain.outcomes, renamed.outcomes, strict=True):
        seen[one.status is Status.CONFLICTED] += 1
        assert (one.status is Status.CONFLICTED) == (other.status is Status.CONFLICTED)
        if one.status is not Status.CONFLICTED:
            assert came[1][one.name][path] == came[0][one.name][name]
            assert other.files[0].carried_to == path
            assert other.files[0].confidence == one.files[0].confidence
            assert other.files[0].reasons[0].startswith(f"upstream renamed {name} to {path}")
    assert min(seen.values()) >= 3
