"""Where a Python file is cut, and what is asked of whole files, however their lines end."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from patchkit.model.syntax import definitions, pieces_of, syntax_problem, unbound_names

_PARTS = [
    "import os\n",
    "from __future__ import annotations\n",
    "from __future__ import division\n",
    "from x import *\n",
    "x = 1\n",
    "x: y = x\n",
    "global x\n",
    "if x:\n    global x\n",
    "if x:\n    x = 2\nelse:\n    z = a\n",
    "@deco\n",
    "@deco(\n    1,\n)\n# said\n",
    "def f(a: (yield) = x): return a\n",
    "def f(a, a): pass\n",
    "def g(a: q = x) -> w:\n    global z\n    z = a.b\n    return [i for i in u]\n",
    "async def h():\n    await x\n",
    "await x\n",
    "class C(B):\n    global t\n    t = 1\n    def m(self): return super().m(t, C)\n",
    "class D:\n    x: int\n    x: int\n    @property\n    def p(self): nonlocal k\n",
    's = """\ndef inner():\n',
    '    pass\n"""\n',
    "t = [\n",
    "]\n",
    "# def f():\n",
    "y = x \\\n",
    "\n",
    "    indented\n",
    "return 1\n",
    "\tx\n",
    "def ü(): é\n",
]


def _answers(data: bytes) -> tuple[object, ...]:
    is_good = not syntax_problem("a.py", data)
    return is_good, definitions(data), unbound_names(data)


@given(st.lists(st.sampled_from(_PARTS), max_size=7))
@example(["x = 1\n", "def f(a, a): pass\n", "if x:\n    global x\n"])
@example(["x = 1\n", "@deco\n", "class C(B):\n    x\n", "if x:\n    global x\n"])
@example(["from __future__ import annotations\n", "def f(a: (yield) = x): return a\n"])
@example(["from __future__ import annotations\n", "x: y = x\n", "def g(a: q): pass\n", "v: q\n"])
@example(["def g(): pass\n", "from __future__ import annotations\n"])
@example(['s = """\ndef inner():\n', '    pass\n"""\n', "def g(): pass\n"])
def test_what_is_asked_of_a_file_does_not_depend_on_its_line_ends(parts: list[str]) -> None:
    data = "".join(parts).encode()
    assert b"".join(pieces_of(data)) == data
    assert _answers(data) == _answers(b"#\r\n" + data)


@given(st.lists(st.sampled_from(_PARTS), max_size=7))
def test_pieces_that_parse_are_the_file(parts: list[str]) -> None:
    pieces = pieces_of("".join(parts).encode())
    try:
        bodies = [each for piece in pieces for each in ast.parse(piece).body]
    except SyntaxError:
        return
    whole = ast.parse(b"".join(pieces)).body
    assert list(map(ast.dump, whole)) == list(map(ast.dump, bodies))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("import a\n@b\n@c(\n1)\n# d\ndef e(): pass\nf\nclass G: pass\n", 3),
        ("@a\nasync  def b(): pass\ndefine = 1\n", 1),
        ("a = 1\r\ndef b(): pass\r\n", 1),
        ("# coding: latin-1\ndef b(): pass\ndef c(): pass\n", 1),
        ("", 1),
    ],
)
def test_where_a_file_is_cut(text: str, pieces: int) -> None:
    assert len(pieces_of(text.encode())) == pieces
