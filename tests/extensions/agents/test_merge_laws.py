"""What a proposed merge of a file must hold, law by law."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.carry.carried import MergeRequest
from patchkit.extensions.agents.merge_laws import _against_a_side, merged_text
from patchkit.extensions.agents.proposed_merge import _unfit
from patchkit.model.merging.merge import compare_texts
from patchkit.model.merging.regions import Labels, Region, conflict_text
from patchkit.model.outcome import FileResult, PatchResult, Status
from tests.support.laws import share

BASE = "import os\n\n\ndef one(a):\n    return a\n\n\ndef two(b):\n    b.cuda()\n    return b\n"
UPSTREAM = BASE.replace("    b.cuda()\n", "    b.cuda(0)\n")
PATCHED = BASE.replace("    b.cuda()\n", "    b.npu()\n")
SIDES = (BASE, UPSTREAM, PATCHED)
NAMED = ("b.cuda(0)", "b.npu()")


def merged(
    *texts: str,
    named: tuple[str, ...] = NAMED,
    sides: tuple[str, str, str] = SIDES,
    path: str = "a.py",
) -> tuple[str, list[str]]:
    """The file that texts for its conflicts make, and what does not hold."""
    base, upstream, patched = (each.encode() for each in sides)
    three = compare_texts(base, upstream, patched)
    marked = conflict_text(three, Labels("old", "new", "patch"))
    request = MergeRequest(path, base, upstream, patched, marked, (), ())
    data, _, problems = merged_text(request, texts, named)
    return data.decode(), [f"{each.where}: {each.what}" for each in problems]


def test_what_keeps_both_sides_holds() -> None:
    assert merged("    b.npu(0)\n") == (BASE.replace("cuda()", "npu(0)"), [])
    assert merged("    b.npu(0)") == merged("    b.npu(0)\n")
    both = "    b.cuda(0)\n    b.npu()\n"
    assert merged(both, named=()) == (BASE.replace("    b.cuda()\n", both), [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a.py:9: nothing is left"),
        ("    b.npu(0\n", "a.py:9: does not parse"),
        ("    b.npu(0)\n" + "# more\n" * 200_000, "a.py: is far larger"),
        ("    b.npu(0)\n    return b\n", "a.py: doubled a line: return b"),
        ("    c = 1\n\n\ndef three(b):\n    b.npu(c)\n", "a.py: uses a name that nothing"),
        ("    b.npu(c)\n    c = 1\n", ""),
    ],
)
def test_what_does_not_has_a_place(text: str, said: str) -> None:
    problems = merged(text)[1]
    assert [each for each in problems if not each.startswith(said)] == []
    assert bool(problems) == bool(said)


def test_each_conflict_has_a_text() -> None:
    assert merged()[1] == ["a.py: has 1 conflict, and 0 are merged"]
    assert merged("    b.npu(0)\n", "")[1] == ["a.py: has 1 conflict, and 2 are merged"]


def test_a_line_is_kept_or_named() -> None:
    assert merged("    b.npu(0)\n", named=("b.npu()",))[1] == [
        "a.py:9: the line `b.cuda(0)` is gone"
    ]
    assert merged("    b.npu(0)\n    b.cuda()\n")[1] == [
        "a.py:9: the line `b.cuda()` is there still"
    ]
    old, text = "    b.cuda()\n", "    b.cuda()\n    b.sync(3)\n"
    sides = (
        BASE.replace(old, f"{old}    b.sync()\n"),
        BASE.replace(old, f"{old}    b.sync(1)\n"),
        BASE.replace(old, "    b.sync(2)\n"),
    )
    named = ("b.sync(1)", "b.sync(2)")
    still = merged(text, named=named, sides=sides)[1]
    assert still == ["a.py:9: the line `b.cuda()` is there still"]
    assert merged(text, named=(*named, "b.cuda()"), sides=sides)[1] == []


def test_of_a_line_that_is_there_twice_one_may_go() -> None:
    sides = (
        (b"sync\n", b"old\n", b"sync\n"),
        (b"sync\n", b"up\n", b"sync\n"),
        (b"own\n", b"sync\n"),
    )
    region = Region(0, 3, *sides, 0, (), ())
    assert _against_a_side(region, (b"up\n", b"own\n", b"sync\n"), "a:1") == {}
    assert [*_against_a_side(region, (b"sync\n", b"up\n", b"own\n", b"sync\n"), "a:1")] == ["sync"]


def test_lines_with_which_both_sides_end_stand_outside_of_the_text() -> None:
    """As they stand outside of the markers."""
    sides = (
        BASE.replace("    b.cuda()\n", ""),
        BASE.replace("    b.cuda()\n", "    b.to(0)\n    b.cuda()\n"),
        BASE.replace("    b.cuda()\n", "    b.npu()\n    b.cuda()\n"),
    )
    text, problems = merged("    b.to(0)\n    b.npu()\n", named=(), sides=sides)
    assert problems == []
    assert text.count("b.cuda()") == 1


def test_a_definition_stays_where_both_sides_have_it() -> None:
    """Also where its line is in the conflict, and named."""
    head = "def two(b"
    sides = (BASE, UPSTREAM.replace(head, f"{head}, c"), PATCHED.replace(head, f"{head}, d"))
    text = "def two(b, c, d):\n    b.npu(0)\n"
    named = (*NAMED, "def two(b, c):", "def two(b, d):")
    renamed = merged(text.replace("two", "three"), named=named, sides=sides)[1]
    assert any("does not define two" in each for each in renamed)
    assert merged(text, named=named, sides=sides)[1] == []


def test_of_other_files_lines_are_asked_alone() -> None:
    assert merged("    b.npu(0\n", path="a.cu")[1] == []
    assert merged("    b.npu(0)\n", named=(), path="a.cu")[1] != []
    assert merged("    b.npu(0)\n<<<<<<< a\n=======\n", path="a.cu")[1] != []


def test_a_conflict_that_is_open_still_and_a_patch_that_fitted_hold_it_up() -> None:
    """Not one that did not fit before."""
    open_still = FileResult("a.py", Status.CONFLICTED, reasons=("both sides change",))
    failing = PatchResult("", Status.CONFLICTED, (open_still,))
    names = ("one.patch", "two.patch", "three.patch", "four.patch")
    before: Any = SimpleNamespace(
        outcomes=[PatchResult(names[2], Status.MERGED), PatchResult(names[3], Status.WAITING)]
    )
    after: Any = SimpleNamespace(
        outcomes=[
            PatchResult(names[0], Status.MERGED),
            *(PatchResult(name, failing.status, failing.files) for name in names[1:]),
        ]
    )
    found = [each.where for each in _unfit(before, after, "two.patch")]
    assert found == ["two.patch", "three.patch"]


_LINE = st.sampled_from([f"{letter}\n" for letter in "abcdefgh"])
_TEXT = st.lists(_LINE, max_size=8).map("".join)
_BETWEEN = re.compile(r"(?s)<<<<<<< new\n.*?>>>>>>> patch\n")


@settings(max_examples=share(400))
@given(sides=st.tuples(_TEXT, _TEXT, _TEXT), texts=st.lists(_TEXT, min_size=4, max_size=4))
def test_nothing_but_what_is_between_markers_is_another_text(
    sides: tuple[str, str, str], texts: list[str]
) -> None:
    base, upstream, patched = (each.encode() for each in sides)
    three = compare_texts(base, upstream, patched)
    marked = conflict_text(three, Labels("new", "old", "patch")).decode()
    todo = iter(texts)
    wanted = _BETWEEN.sub(lambda _: next(todo), marked)
    assert merged(*texts[: len(three.conflicts)], sides=sides, path="a.txt")[0] == wanted
