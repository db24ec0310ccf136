"""Which patch a line comes from, and which patches need which; git is the oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.gitcmd.object_reader import ObjectReader, write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.model.line_history import Attribution, PatchDependency
from patchkit.model.mail import parse_patch
from patchkit.model.objects import Base, CommitId, TreeId
from patchkit.stack.build import SeriesPatch, Stack, build_stack, patch_changes
from tests.support.memory import memory_base, plain_patch
from tests.support.repos import Files, Upstream, make_patch

LINES = [f"line {n}\n" for n in range(1, 31)]
TEXT = "".join(LINES)


def series(*states: Files) -> list[SeriesPatch]:
    """One patch for each step from a state to the next."""
    patches = [make_patch(a, b) for a, b in pairwise(states)]
    return [
        SeriesPatch(f"{number}.patch", parse_patch(data, name="x"))
        for number, data in enumerate(patches, 1)
    ]


def build(upstream: Upstream, files: Files, patches: Sequence[SeriesPatch]) -> Stack:
    repository = Repository(upstream.path)
    commit = upstream.commit(files, parents=())
    base = Base(commit, TreeId(str(repository.tree(commit))), "1700000000 +0000")
    with ObjectReader(repository) as reader:
        return build_stack(reader, base, patches)


def attribute(
    upstream: Upstream, files: Files, patches: Sequence[SeriesPatch]
) -> tuple[Attribution, list[PatchDependency]]:
    stack = build(upstream, files, patches)
    assert stack.clean
    needs: list[PatchDependency] = []
    with ObjectReader(Repository(upstream.path)) as reader:
        view = TreeView(Overlay(reader, stack.objects), stack.base.tree)
        attribution = Attribution(view.data)
        for number, (patch, outcome) in enumerate(zip(patches, stack.outcomes, strict=True), 1):
            needs += attribution.add(number, patch_changes(patch), outcome.files)
        for path in files:
            attribution.owners(path)
    return attribution, needs


def edges(needs: Sequence[PatchDependency]) -> set[tuple[int, int]]:
    return {(need.number, need.on) for need in needs}


def edited(text: str, change: Callable[[list[str]], object]) -> str:
    lines = text.splitlines(keepends=True)
    change(lines)
    return "".join(lines)


def test_lines_belong_to_the_patch_that_wrote_them_last(upstream: Upstream) -> None:
    one = TEXT.replace("line 10\n", "one 10\n").replace("line 20\n", "one 20\nnew\n")
    two = one.replace("one 10\n", "two 10\n").replace("line 2\n", "")
    attribution, _ = attribute(upstream, {"a": TEXT}, series({"a": TEXT}, {"a": one}, {"a": two}))
    owners = attribution.owners("a")
    assert owners is not None
    told = {line: owner for line, owner in zip(two.splitlines(), owners, strict=True) if owner}
    assert told == {"two 10": 2, "one 20": 1, "new": 1}


def test_like_git_blame(upstream: Upstream) -> None:
    states = [TEXT]
    states.append(states[-1].replace("line 5\n", "a\nb\n").replace("line 29\n", "c\n"))
    states.append(states[-1].replace("a\n", "d\n").replace("line 15\n", ""))
    states.append("start\n" + states[-1].replace("line 14\nline 16\n", "e\nf\n") + "end\n")
    patches = series(*({"a": state} for state in states))
    attribution, _ = attribute(upstream, {"a": TEXT}, patches)
    stack = build(upstream, {"a": TEXT}, patches)
    write_objects(Repository(upstream.path), stack.objects)
    commits = [stack.base.commit, *(outcome.commit for outcome in stack.outcomes)]
    blamed = upstream.git("blame", "--porcelain", stack.commit, "--", "a").decode().splitlines()
    ids = [CommitId(line.split()[0]) for line in blamed if len(line.split(" ")[0]) == 40]
    assert attribution.owners("a") == tuple(commits.index(each) for each in ids)


@pytest.mark.parametrize(
    ("one", "two", "needed"),
    [
        (lambda x: x.__setitem__(9, "one\n"), lambda x: x.__setitem__(9, "two\n"), True),
        (
            lambda x: x.__setitem__(9, "one\n"),
            lambda x: x.__setitem__(11, "two\n"),
            True,
        ),  # context
        (lambda x: x.__setitem__(9, "one\n"), lambda x: x.__setitem__(20, "two\n"), False),
        (lambda x: x.insert(2, "one\n"), lambda x: x.__setitem__(20, "two\n"), False),  # moved only
        (lambda x: x.pop(9), lambda x: x.__setitem__(9, "two\n"), True),  # removed between
        (lambda x: x.pop(), lambda x: x.append("two\n"), True),  # removed at the end
        (lambda x: x.pop(0), lambda x: x.insert(0, "two\n"), True),  # removed at the start
    ],
)
def test_needs(
    upstream: Upstream,
    one: Callable[[list[str]], object],
    two: Callable[[list[str]], object],
    needed: bool,
) -> None:
    first = edited(TEXT, one)
    patches = series({"a": TEXT}, {"a": first}, {"a": edited(first, two)})
    _, needs = attribute(upstream, {"a": TEXT}, patches)
    assert edges(needs) == ({(2, 1)} if needed else set())
    # the claim itself: the second alone applies just if it needs nothing
    assert build(upstream, {"a": TEXT}, patches[1:]).clean is not needed


@pytest.mark.parametrize(
    "states",
    [
        [{}, {"new": "x\n"}, {"new": "x\ny\n"}],  # changes a file that was made
        [{"a": TEXT}, {"a": None, "b": TEXT}, {"b": TEXT.replace("line 9", "nine")}],  # renamed
        [{"a": "x\n"}, {"a": None}, {"a": "y\n"}],  # made anew where one was removed
        [{"a": b"\0"}, {"a": b"\0\1"}, {"a": b"\0\2"}],  # binary
    ],
)
def test_needs_for_a_file(upstream: Upstream, states: list[Files]) -> None:
    full = [states[0]]
    for state in states[1:]:
        full.append({**full[-1], **state})
    patches = [
        SeriesPatch(f"{n}.patch", parse_patch(make_patch(_live(a), b), name="x"))
        for n, (a, b) in enumerate(pairwise(full), 1)
    ]
    _, needs = attribute(upstream, {"other": "x\n", **states[0]}, patches)
    assert edges(needs) == {(2, 1)}


def _live(files: Files) -> Files:
    return {path: content for path, content in files.items() if content is not None}


edits = st.tuples(
    st.integers(0, 29), st.integers(0, 3), st.lists(st.sampled_from("pqrs"), max_size=2)
)


@given(st.lists(st.lists(edits, min_size=1, max_size=2), min_size=2, max_size=3))
def test_what_is_not_needed_can_be_left_out(
    steps: list[list[tuple[int, int, list[str]]]],
) -> None:
    texts = [TEXT]
    for number, step in enumerate(steps):
        lines = texts[-1].splitlines(keepends=True)
        for at, removed, added in step:
            lines[at : at + removed] = [f"{number} {at} {i} {t}\n" for i, t in enumerate(added)]
        texts.append("".join(lines))
    source, base = memory_base({"a": TEXT})
    changed = [(a, b) for a, b in pairwise(texts) if a != b]
    patches = [plain_patch("a", a, b, name=f"{n}.patch") for n, (a, b) in enumerate(changed, 1)]
    stack = build_stack(source, base, patches)
    attribution = Attribution(TreeView(source, base.tree).data)
    needs = [
        need
        for number, (patch, outcome) in enumerate(zip(patches, stack.outcomes, strict=True), 1)
        for need in attribution.add(number, patch_changes(patch), outcome.files)
    ]
    for left_out in range(1, len(patches) + 1):
        needing = {left_out}
        for number in range(left_out + 1, len(patches) + 1):
            if any((number, on) in edges(needs) for on in needing):
                needing.add(number)
        rest = [patch for number, patch in enumerate(patches, 1) if number not in needing]
        assert build_stack(source, base, rest).clean
