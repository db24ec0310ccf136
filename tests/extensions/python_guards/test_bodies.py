"""Functions left in the text: whoever looks finds what was parsed, at the same place."""

from __future__ import annotations

import argparse
import ast
import asyncio.tasks
import inspect
import typing
from pathlib import Path

import pytest

from patchkit.extensions.python_guards.bodies import (
    Bodies,
    blocks_of,
    may_have,
    parse_folded,
    walk,
)
from patchkit.model.syntax import parse_python

ODD = {
    "decorated": "class C:\n  @a\n  # b\n  @c(\n1)\n  def f(\ns, *, a=(\n1)\n):\n   # d\n\n   x\n",
    "at the edge": "@a\ndef f(x: 'y' = 1, /, *z) -> w:\n  'a'\n@b\nasync def g(**k):\n\tk\n",
    "a line of its own, or none": "def f(): return 1\ndef g(a,\n  b): return 2; pass\n",
    "after a backslash": "def f(): \\\n    return 1\n",
    "decorated in the body": "def f():\n    # why\n    @ g\n    def h(): pass\n    return h\n",
    "a text that leaves the block": 'def f():\n    """a\nb\n"""\n    return """\nc"""\nx = 1\n',
    "brackets and comments that leave it": "def f():\n    x = [\n1,\n]\n# no\n    return x\n",
    "tabs": "class C:\n\tdef f(self):\n\t\tif self:\n\t\t\treturn 1\n\t\treturn 2\n",
    "no end of line": "async def f():\n    await g()\n    async with h() as i: yield i",
    "beyond ASCII": "é = 1\ndef ü(ö='ß'):\n    return é, 'ß', ö\n",
    "in a block": "try:\n    def f():\n        return 1\nexcept E:\n    def f():\n        pass\n",
    "scopes": "def f():\n    x = 1\n    def g():\n        nonlocal x\n        global y\n",
    "another encoding": "# -*- coding: latin-1 -*-\ndef f():\n    return '\xe9'\n",
    "said to be UTF-8": "#!/bin/python\n# coding: utf8\ndef f():\n    return '\xe9'\n",
    "a text that ends the block": 'def f():\n    x = """\nimport a\n"""\n' * 2,
    "quotes in quotes": "def f():\n    x = '\"\"\"'\n    y = \"\"\"\nimport a\n\"\"\"\n",
    "a definition in a text": 'x = """\ndef f():\n    return 1\n"""\ndef g():\n    pass\n',
    "a block after a line of its own": "def f(): return 1\nif x:\n    import y\n    z = 1\n",
    "a hash in the head": "def f(a='#'):\n if a:\n  b\ndef g(a={'b':\n1}):\n    return a\n",
    "a line that goes on": "def f():\n    return a + \\\nb\nimport c\n",
    "comments at its end": "class C:\n    def f():\n        a\n        # b\n\n    # c\n    d = 1\n",
    "other ends of lines": "def f():\r\n    return 1\r\ndef g():\r    return 2\r",
}  # fmt: skip


def shown(tree: ast.AST) -> str:
    """All of a tree but the columns where definitions and what they stand in end."""
    for node in walk(tree):
        if isinstance(node, ast.stmt | ast.ExceptHandler) and hasattr(node, "body"):
            node.end_col_offset = 0
    return ast.dump(tree, include_attributes=True)


def read(text: str) -> bytes:
    return text.encode("latin-1" if "latin-1" in text else "utf-8")


@pytest.mark.parametrize("case", ODD)
def test_a_body_that_is_looked_into_again_is_what_it_was(case: str) -> None:
    data, bodies = read(ODD[case]), Bodies()
    tree, problem = parse_folded(data, bodies)
    assert not problem
    for _ in range(2):
        assert shown(tree) == shown(parse_python(data)[0])
        bodies.close()
        assert (bodies.opened, bodies.size) == ([], 0)


@pytest.mark.parametrize("module", [argparse, asyncio.tasks, inspect, typing])
def test_law_of_whole_modules(module: object) -> None:
    data, bodies = Path(inspect.getfile(module)).read_bytes(), Bodies()  # type: ignore[arg-type]
    tree, whole = parse_folded(data, bodies)[0], parse_python(data)[0]
    functions = [e for e in walk(tree) if isinstance(e, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert shown(tree) == shown(whole)
    assert len(data) / 3 < bodies.size < len(data)
    opened = {id(each) for each in bodies.opened}
    assert 0 < len(opened) < len(functions)  # a function in a function is a part of it


def test_what_needs_no_body_opens_none() -> None:
    data, bodies = b"class C:\n    @d\n    def f(self, a=1) -> int:\n        return a\n", Bodies()
    tree, _ = parse_folded(data, bodies)
    (owner,) = tree.body
    ((function,),) = blocks_of(owner)
    assert isinstance(function, ast.FunctionDef)
    assert function.returns is not None
    assert (function.name, bodies.size) == ("f", 0)
    assert [ast.unparse(each) for each in function.decorator_list] == ["d"]
    assert ast.unparse(function.args) == "self, a=1"
    head = len("    def f(self, a=1) -> int:\n     pass")
    assert (bodies.opened, bodies.size) == ([function], head)
    assert [type(each).__name__ for each in function.body] == ["Return"]
    assert bodies.opened == [function, function]


def test_walk_meets_what_ast_walk_meets() -> None:
    left_out = ast.expr_context | ast.operator | ast.unaryop | ast.cmpop | ast.boolop
    text = Path(inspect.getfile(typing)).read_bytes()
    text += b"match a:\n    case [*b, {**c}] | d(e=1): lambda f, /, *, g=1: not a + b < -c\n"
    tree, _ = parse_python(text)
    assert list(walk(tree)) == [each for each in ast.walk(tree) if not isinstance(each, left_out)]


def test_words_that_a_function_may_have_without_a_look_into_it() -> None:
    text = "def f():\n    x = 1\n    from b import c\ndef g():\n    y = 1\ndef h(): pass\n"
    text += "def i():\n    \u017fetattr(a, b, c)\n"
    bodies = Bodies()
    found, _ = parse_folded(text.encode(), bodies)
    functions = [node for node in found.body if isinstance(node, ast.FunctionDef)]
    assert [may_have(node, b"import") for node in functions] == [True, False, True, True]
    assert [may_have(node, b"y", b"x") for node in functions] == [True, True, True, True]
    assert may_have(functions[3], b"setattr")  # Python reads the long s as one
    assert not bodies.opened
