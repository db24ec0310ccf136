"""What holds for every explanation, whatever the patch and the file."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from patchkit.explain.diagnose import explain_stack
from patchkit.explain.explanation import Cause
from patchkit.model.outcome import Status
from patchkit.stack.build import build_stack
from tests.support.memory import memory_base, plain_patch

pytestmark = pytest.mark.slow

WORDS = st.sampled_from(["a = 1", "b.c.d(e)", "b.x.d(e)", "}", "", "  a = 1", "import b.c", "z"])
texts = st.lists(WORDS, min_size=1, max_size=14).map(lambda x: "".join(f"{w}\n" for w in x))


@given(before=texts, after=texts, stands=texts)
def test_every_hunk_without_a_place_is_explained(before: str, after: str, stands: str) -> None:
    assume(before != after)
    patch = plain_patch("a.py", before, after)
    source, base = memory_base({"a.py": stands, "b.py": before})
    stack = build_stack(source, base, [patch])
    _, explanations = explain_stack(source, stack, [patch])
    clashes = stack.outcomes[0].clashes
    assert bool(explanations) == (stack.outcomes[0].status is Status.CONFLICTED)
    hunks = [hunk for each in explanations for hunk in each.hunks]
    assert [(h.number, h.line) for h in hunks] == [(c.hunk, c.line) for c in clashes]
    source_lines = patch.file.data.splitlines(keepends=True)
    for hunk in hunks:
        files = {"a.py": stands, "b.py": before}
        lines = files[hunk.place_path].encode().splitlines(keepends=True)
        for each in hunk.mismatches:
            for number, line in zip(each.expected_lines, each.expected, strict=True):
                assert source_lines[number - 1][1:] == line
            for number, line in enumerate(each.found, each.found_at):
                assert lines[number - 1] == line
        assert (hunk.place is None) <= (hunk.cause in (Cause.GONE, Cause.CONTAINED))


@given(before=texts, after=texts)
def test_a_change_that_was_made_is_contained(before: str, after: str) -> None:
    assume(before != after)
    patch = plain_patch("a.py", before, after)
    source, base = memory_base({"a.py": after})
    stack = build_stack(source, base, [patch])
    for explanation in explain_stack(source, stack, [patch])[1]:
        assert explanation.contained
