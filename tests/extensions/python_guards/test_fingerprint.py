"""What counts as a change of code, and what does not."""

from __future__ import annotations

import ast

import pytest

from patchkit.extensions.python_guards.bodies import Bodies, parse_folded
from patchkit.extensions.python_guards.replacements import body_hash
from patchkit.model.syntax import FunctionNode, signature_of

PLAIN = '''
@wraps(f"x{a!r:>{w}}")
def scale(value, /, by=2, *, exact: bool = False, **more) -> int:
    """Scale."""
    if exact:
        return value * by  # as it is
    return [n for n in range(0x10)][-1] if more else (value, 1.5, b"x", ...)
'''


def function(text: str) -> FunctionNode:
    node = ast.parse(text).body[0]
    assert isinstance(node, FunctionNode)
    return node


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('    """Scale."""\n', ""),
        ("  # as it is", ""),
        ("    if exact", "\n\n    # really\n    if exact"),
        ('b"x"', "b'x'"),
        ("return value * by", "return (value\n            * by)"),
        ("0x10", "16"),
    ],
)
def test_form_does_not_count(old: str, new: str) -> None:
    assert old in PLAIN
    changed = function(PLAIN.replace(old, new))
    assert body_hash(changed) == body_hash(function(PLAIN))
    assert signature_of(changed) == signature_of(function(PLAIN))


def test_a_function_left_in_the_text_is_the_same() -> None:
    (folded,) = parse_folded(PLAIN.encode(), Bodies())[0].body
    assert isinstance(folded, FunctionNode)
    assert "body" not in vars(folded)
    assert body_hash(folded) == body_hash(function(PLAIN))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value * by", "by * value"),
        ("1.5", "1.25"),
        ('b"x"', '"x"'),
        ("@wraps", "@traps"),
        ("if exact", "if not exact"),
        ("else (value", "else (by"),
    ],
)
def test_what_is_done_counts(old: str, new: str) -> None:
    changed = function(PLAIN.replace(old, new))
    assert body_hash(changed) != body_hash(function(PLAIN))
    assert signature_of(changed) == signature_of(function(PLAIN))


@pytest.mark.parametrize(
    ("code", "signature"),
    [
        (PLAIN, "(value, /, by=2, *, exact=False, **more)"),
        ("def f(a: int, *rest: str): ...", "(a, *rest)"),
        ("async def f(a='x', b=None): ...", "async (a='x', b=None)"),
        ("@staticmethod\ndef f(): ...", "@staticmethod ()"),
        ("@functools.cached_property\ndef f(self): ...", "@cached_property (self)"),
        ("@torch.no_grad()\ndef f(a, b={1: (2, 3)}): ...", "(a, b={1: (2, 3)})"),
    ],
)
def test_signature(code: str, signature: str) -> None:
    assert signature_of(function(code)) == signature


def test_hashes_are_the_same_on_every_python() -> None:
    assert body_hash(function(PLAIN)) == "b21cb7f2df947221"
