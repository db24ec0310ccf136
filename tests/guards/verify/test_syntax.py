"""Which files can be parsed, and that a stack that breaks one is told."""

from __future__ import annotations

import sys

import pytest

from patchkit.guards.verify import parse_problem


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("a.py", b"x = 1\n"),
        ("a.py", "# -*- coding: latin-1 -*-\nx = 'ä'\n".encode("latin-1")),
        ("a.pyi", b"def f(x: int) -> int: ...\n"),
        ("a.json", b'{"a": [1, 2]}'),
        ("a.toml", b"[a]\nb = 1\n"),
        ("a.yaml", b"a: &x [1]\nb: *x\n---\n!custom c\n"),
        ("a.yml", b"{{- a }}: 1\n"[3:]),
        ("a.sh", b"if then fi ("),
        ("Dockerfile", b"what (ever"),
        ("a.py", b""),
    ],
)
def test_what_can_be_parsed(path: str, data: bytes) -> None:
    assert parse_problem(path, data) == ""


@pytest.mark.parametrize(
    ("path", "data", "problem"),
    [
        ("a.py", b"x = (\n", "cannot be parsed in line 1"),
        ("a.py", b"x = 1\n y = 2\n", "cannot be parsed in line 2"),
        ("a.py", b"def f(x, x):\n    pass\n", "cannot be parsed in line 1"),
        ("a.json", b'{"a": ?}', "Expecting value"),
        ("a.yaml", b"a: 1\nb: [\n", "line 3: "),
        ("dir.x/a.yml", b"a: b: c\n", "line 1: "),
    ],
)
def test_what_cannot(path: str, data: bytes, problem: str) -> None:
    assert problem.partition(":")[0] in parse_problem(path, data)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib came with Python 3.11")
def test_toml() -> None:
    assert "line 1" in parse_problem("a.toml", b"[a\n")
