"""A file is only passed over if a rule cannot match in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.recipes.run import may_match, needed_words


@pytest.mark.parametrize(
    ("regex", "words"),
    [
        ("^[fF]?[\"']cuda(:.*)?[\"']$", (b"cuda",)),
        ("^@torch[.]compile$", (b"compile",)),
        ("jit_fuser", (b"jit_fuser",)),
        ("colou?rs", (b"colo",)),
        ("abcd*", (b"abc",)),
        ("abcd{0,2}", (b"abc",)),
        ("^(abc|def)$", ()),
        ("abc|def", ()),
        ("(?i)cuda", ()),
        (r"\bnccl\b", (b"nccl",)),
        (r"x\wyz", ()),
        ("a[bcd]efgh", (b"efgh",)),
    ],
)
def test_words_that_a_regex_needs(regex: str, words: tuple[bytes, ...]) -> None:
    assert needed_words({"regex": regex}, {}) == words


_PIECES = ["cuda", "x", "ab", "[ab]", "y?", "z*", "(de|fg)", "(hij)?", r"\w", ".", "k{0,2}", "l+"]


@given(st.lists(st.sampled_from(_PIECES), max_size=6), st.data())
def test_what_a_regex_matches_is_never_passed_over(pieces: list[str], data: st.DataObject) -> None:
    regex = "".join(pieces)
    text = data.draw(st.from_regex(re.compile(regex, re.ASCII), fullmatch=True))
    assert may_match(text.encode(), needed_words({"regex": regex}, {}))
