"""Whatever a file is like, a recipe changes its sites and not one byte else.

Files are put together from pieces of which it is known what becomes of each: line ends, tabs, a
byte order mark, characters of two and four bytes, and a last line that does not end are all drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extensions.recipes.kitchen import DROP, recipe_of

pytestmark = pytest.mark.slow

RECIPE = recipe_of(
    {**DROP, "expect": ">= 0"},
    {
        "id": "rename",
        "rule": {"pattern": "old($FIRST, $$$REST)"},
        "fix": "new($FIRST, $$$REST)",
        "expect": ">= 0",
    },
    text=({"id": "word", "find": "VERALTET", "replace": "überholt", "expect": ">= 0"},),
)
PATH = "src/a.py"

#: Lines, and what becomes of those that change.
_KEPT = [
    "x = 1",
    "# größer 🚀",
    "s = '''a\n\tb  \n@fuser\n'''",
    "",
    "y = 'é'  # old(1, 2)",
    "z=[1,\n 2]",
]
_CHANGED = {
    "a = old(1, 'ü')": "a = new(1, 'ü')",
    "b = [old(x, y, k='𝄞'), 2]  # tail": "b = [new(x, y, k='𝄞'), 2]  # tail",
    "# VERALTET": "# überholt",
    "t = '🚀'; u = old(t, t)": "t = '🚀'; u = new(t, t)",
}
_DECORATORS = ["@fuser", "@fuser  # größer", "@other", "@other(fuser)", "@a.fuser"]


@dataclass(frozen=True)
class Made:
    """A file and what the recipe must make of it."""

    before: bytes
    after: bytes


@st.composite
def _function(draw: st.DrawFn) -> tuple[str, str]:
    indent = draw(st.sampled_from(["    ", "\t", "  "]))
    names = draw(st.lists(st.sampled_from(_DECORATORS), max_size=3))
    body = draw(st.sampled_from([(line, line) for line in ("pass", "x = 'é'")] + [*_SIMPLE]))
    in_class = draw(st.booleans())
    head = f"class A:\n{indent}" if in_class else ""
    pad = indent if in_class else ""

    def text(decorators: list[str], line: str) -> str:
        lines = [*decorators, "def f(self):", f"{indent}{line}"]
        return head + f"\n{pad}".join(lines)

    kept = [name for name in names if not name.startswith("@fuser")]
    return text(names, body[0]), text(kept, body[1])


_SIMPLE = [(old, new) for old, new in _CHANGED.items() if not old.startswith("#")]
_PIECES = st.one_of(
    st.sampled_from([(line, line) for line in _KEPT]), st.sampled_from(list(_CHANGED.items())),
    _function(),
)  # fmt: skip


@st.composite
def files(draw: st.DrawFn) -> Made:
    """A Python file of drawn pieces."""
    pieces = draw(st.lists(_PIECES, max_size=8))
    eol = draw(st.sampled_from(["\n", "\r\n"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    end = draw(st.sampled_from(["", "\n", "\n\n"]))

    def data(side: int) -> bytes:
        text = "\n".join(piece[side] for piece in pieces) + end
        return (mark + text.replace("\n", eol)).encode()

    return Made(data(0), data(1))


@given(files())
def test_nothing_but_the_sites_changes(made: Made) -> None:
    run = RECIPE.run({PATH: made.before})
    assert run.fatal == ()
    assert run.changed.get(PATH, made.before) == made.after


@given(files())
def test_sites_are_where_they_say(made: Made) -> None:
    text = made.before.decode()
    lines = text.split("\n")
    for site in RECIPE.run({PATH: made.before}).sites:
        assert text[site.start : site.end] == site.text
        assert lines[site.line - 1][site.column - 1 :].startswith(site.text.partition("\n")[0])


@given(st.binary(max_size=80))
def test_any_bytes_stay(data: bytes) -> None:
    """No file, whatever it holds, is damaged where there is nothing to do."""
    safe = data.replace(b"@fuser", b"").replace(b"old(", b"").replace(b"VERALTET", b"")
    assert dict(RECIPE.run({PATH: safe}).changed) == {}


@given(st.lists(st.sampled_from(["old(1, 2)", "old(old(1, 2), 3)", "f(old(x, y))"]), max_size=4))
def test_sites_within_sites_are_refused_or_right(calls: list[str]) -> None:
    data = "".join(f"{call}\n" for call in calls).encode()
    run = RECIPE.run({PATH: data})
    nested = any(call.count("old") > 1 for call in calls)
    assert {finding.code for finding in run.fatal} == ({"recipe-overlap"} if nested else set())
    if not nested:
        assert run.changed.get(PATH, data) == data.replace(b"old(", b"new(")
    else:
        assert dict(run.changed) == {}
