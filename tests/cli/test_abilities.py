"""No ability is lost: what could be typed and written before patchkit was made smaller has a place
now, and a test that uses it.

`tests/data/before.txt` is what `python -m tools.abilities` printed then. `tests/data/abilities.tsv`
has a row for each of its lines: what it was, what it is now, and the test. What git does as well,
in a checkout, is "git" and its own command; what nothing does any more is "-", and the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tools.abilities import abilities

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
BEFORE = (DATA / "before.txt").read_text("utf-8").split("\n")[:-1]
ROWS = [row.split("\t") for row in (DATA / "abilities.tsv").read_text("utf-8").split("\n")[1:-1]]


def test_each_ability_has_a_row() -> None:
    assert [row[0] for row in ROWS] == BEFORE


def test_each_ability_has_a_place_now() -> None:
    today = {*abilities(), "-"}
    lost = [(before, now) for before, now, _ in ROWS if now not in today]
    assert [row for row in lost if not row[1].startswith("git ")] == []


def test_each_ability_has_a_test() -> None:
    """One that is there, and has the word of the command, the option or the key."""
    without = []
    for before, now, test in ROWS:
        if now == "-" and len(test.split()) > 2:
            continue  # a reason
        path, _, name = test.partition("::")
        word = now.removeprefix("key: ").split()[-1].rpartition(".")[2]
        if not (ROOT / path).is_file() or not any(word in text for text in _texts(path, name)):
            without.append(f"{before}: {test}")
    assert without == []


def _texts(path: str, name: str) -> Iterator[str]:
    """A test, and what its module and those of tests/ that it imports have beside tests; nothing
    if there is no such test.
    """
    tests, rest, imports = _parts(ROOT / path)
    if name in tests:
        yield tests[name]
        yield rest
        for module in imports:
            yield _parts(module)[1]


@cache
def _parts(path: Path) -> tuple[dict[str, str], str, list[Path]]:
    """The tests of a module by name, the rest of it, and the modules of tests/ that it imports."""
    lines = path.read_text("utf-8").split("\n")
    tests, rest, imports = {}, [], []
    for node in ast.parse("\n".join(lines)).body:
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        text = "\n".join(lines[first - 1 : node.end_lineno])
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            tests[node.name] = text
        else:
            rest.append(text)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests."):
            imports.append(ROOT / f"{(node.module or '').replace('.', '/')}.py")
    return tests, "\n".join(rest), [module for module in imports if module.is_file()]
