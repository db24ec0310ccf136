"""A file is only passed over if a rule cannot match in it."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.extensions.recipes.run import NOTHING, may_match, needed_by


@pytest.mark.parametrize(
    ("regex", "some", "others"),
    [
        ("^[fF]?[\"']cuda(:.*)?[\"']$", ["f'cuda:{n}'"], ["torch.cuda.x", "'gpu'"]),
        ("^[\"'](cpu:gloo,cuda:)?nccl[\"']$", ["'nccl'", "'cpu:gloo,cuda:nccl'"], ["'nccl is'"]),
        ("^@torch[.]compile$", ["@torch.compile"], ["torch.compile", "@torch_compile", "compile"]),
        ("jit_fuser", ["jit_fuser"], ["jit"]),
        ("colou?rs", ["colors", "colours"], ["colo"]),
        ("abcd*", ["abc"], ["ab"]),
        ("abcd{0,2}", ["abc"], ["ab"]),
        ("abc+d", ["abcd", "abccd"], ["ab"]),
        ("^(abc|def)$", ["abc", "def"], ["ab"]),
        ("abc|def", ["abc", "def"], ["ab"]),
        ("abc*|def", ["ab", "def", ""], []),
        ("(?i)cuda", ["CUDA", ""], []),
        (r"\bnccl\b", ["nccl"], ["ncc"]),
        (r"x\wyz", ["xayz", ""], []),
        ("a[bcd]efgh", ["abefgh"], ["axefgh", "efgh"]),
        ("a.[^x]b", ["a\u4e16\xe9b", "axyb"], ["a\nyb", "ab"]),
        ("a.?b", ["ab", "a\u4e16b"], ["a\nb"]),
    ],
)
def test_what_a_regex_needs(regex: str, some: list[str], others: list[str]) -> None:
    needed = needed_by({"regex": regex}, {})
    assert all(may_match(each.encode(), needed) for each in some)
    assert not any(may_match(each.encode(), needed) for each in others)


def test_what_rules_need_together() -> None:
    either = {"any": [{"pattern": "torch.compile($$$)"}, {"kind": "x", "regex": "^@script$"}]}
    needed = needed_by({**either, "inside": {"matches": "import"}}, {"import": {"regex": "torch"}})
    assert may_match(b"import torch\n@script", needed)
    assert not may_match(b"import re; re.compile('@script')", needed)
    assert not may_match(b"import torch; re.compiled", needed_by({"pattern": "f(fast)"}, {}))
    assert needed_by({"any": [{"kind": "x"}, {"regex": "cuda"}]}, {}) == NOTHING


def test_a_search_takes_linear_time() -> None:
    """Whoever writes rules does not decide on that."""
    for regex in ("(a+)+b", "a.*a.*a.*b", "(a|a)*b", "a?" * 30 + "b", "(a?){30}b"):
        began = time.process_time()
        may_match(b"a" * 200_000, needed_by({"regex": regex}, {}))
        assert time.process_time() - began < 2


_PIECES = [
    "cuda",
    "x",
    "^ab$",
    "[ab]",
    "y?",
    "z*",
    "(de|fg)",
    "(hij)?",
    r"\w",
    ".",
    "k{0,2}",
    "l+",
    "[^m]",
    "(no)?",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=6), st.data())
def test_what_a_regex_matches_is_never_passed_over(pieces: list[str], data: st.DataObject) -> None:
    regex = "".join(pieces)
    text = data.draw(st.from_regex(re.compile(regex, re.ASCII), fullmatch=True))
    assert may_match(text.encode(), needed_by({"regex": regex}, {}))
