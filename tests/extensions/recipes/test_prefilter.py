"""A file is only passed over if a rule cannot match in it."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.extensions.recipes.rule import CodeRule
from patchkit.extensions.recipes.run import may_match, read_source
from patchkit.extensions.recipes.sites import find_sites
from tests.extensions.recipes.kitchen import recipe_of


def _rule(rule: dict[str, Any], **utils: dict[str, Any]) -> CodeRule:
    return recipe_of({"id": "x", "rule": rule, "utils": utils, "expect": ">= 0"}).rules[0]


@pytest.mark.parametrize(
    ("regex", "some", "others"),
    [
        ("^[fF]?[\"']cuda(:.*)?[\"']$", ["f'cuda:{n}'"], ["torch.cuda.x", "'gpu'"]),
        ("^[\"'](cpu:gloo,cuda:)?nccl[\"']$", ["'nccl'", "'cpu:gloo,cuda:nccl'"], ["'ncc'"]),
        ("^@torch[.]compile$", ["@torch.compile"], ["torch.compile", "@torch_compile", "compile"]),
        ("jit_fuser", ["jit_fuser"], ["jit"]),
        ("colou?rs", ["colors", "colours"], ["col"]),
        ("abcd*", ["abc"], ["ab"]),
        ("abcd{0,2}", ["abc"], ["ab"]),
        ("abc+d", ["abcd", "abccd"], ["ab"]),
        ("^(abc|def)$", ["abc", "def", ""], []),
        ("abc|def", ["abc", "def", ""], []),
        ("(?i)cuda", ["CUDA", ""], []),
        (r"\bnccl\b", ["nccl"], ["ncc"]),
        (r"x\wyz", ["xayz", ""], []),
        ("a[bcd]efgh", ["abefgh"], ["axefgh", "efgh"]),
        (".", ["a"], []),  # a text to YAML, and no number
    ],
)
def test_what_a_regex_needs(regex: str, some: list[str], others: list[str]) -> None:
    rule = _rule({"regex": regex})
    assert all(may_match(rule, each.encode()) for each in some)
    assert not any(may_match(rule, each.encode()) for each in others)


def test_what_rules_need_together() -> None:
    either = {"any": [{"pattern": "torch.compile($$$)"}, {"kind": "x", "regex": "^@script$"}]}
    rule = _rule({**either, "inside": {"matches": "import"}}, **{"import": {"regex": "torch"}})
    assert may_match(rule, b"import torch\n@script")
    assert not may_match(rule, b"import re; re.compile('@script')")
    assert not may_match(_rule({"pattern": "f(fast)"}), b"import torch; re.compiled")
    assert may_match(_rule({"any": [{"kind": "x"}, {"regex": "cuda"}]}), b"")


def test_of_a_context_the_selected_part_is_needed() -> None:
    def needed(context: str, **more: str) -> CodeRule:
        return _rule({"pattern": {"context": context, **more}})

    argument = needed("call(name=get($NAME))", selector="keyword_argument")
    assert may_match(argument, b"name = get")
    assert not may_match(argument, b"call(name)")
    loose = needed("call(name=get(1))", selector="keyword_argument", strictness="signature")
    assert may_match(loose, b"")
    assert may_match(needed("call(name)"), b"")


@pytest.mark.parametrize(
    "code",
    [
        "torch.compile(f)",
        "g(torch  # .compile\n  # here\n  .compile(f))",
        "torch \\\n  . compile(f)",
        "g(torch.compile(f=torch))",
    ],
)
def test_names_with_a_dot_between_them_stand_so_in_what_matches(code: str) -> None:
    rule = _rule({"pattern": "torch.compile($$$)"})
    assert find_sites(rule, read_source("a.py", code.encode()))
    assert may_match(rule, code.encode())


def test_names_that_stand_apart_are_no_dotted_name() -> None:
    assert not may_match(_rule({"pattern": "torch.compile($$$)"}), b"torch; re.compile(torch)")
    assert not may_match(_rule({"pattern": "f($A, name=get())"}), b"f(1, name=x or get())")
    assert may_match(_rule({"pattern": "name == get.it"}), b"name == get.it")


def test_a_search_takes_linear_time() -> None:
    """Whoever writes rules does not decide on that."""
    for regex in ("(a+)+b", "a.*a.*a.*b", "(a|a)*b", "a?" * 30 + "b", "(a?){30}b"):
        began = time.process_time()
        may_match(_rule({"regex": regex}), b"a" * 200_000)
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


@given(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=6), st.data())
def test_what_a_regex_matches_is_never_passed_over(pieces: list[str], data: st.DataObject) -> None:
    regex = "".join(pieces)
    text = data.draw(st.from_regex(re.compile(regex, re.ASCII), fullmatch=True))
    assert may_match(_rule({"regex": regex}), text.encode())
