"""Text is harmless, coloured by meaning, and in columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.cli.terminal import Line, Paint, Painted, columns, render, width
from patchkit.model.text import clean, shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain [bold]x[/nope]", "plain [bold]x[/nope]"),
        ("\x1b[31mred\x07", "\\e[31mred\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("a\nb\rc\td", "a\\nb\\rc\td"),
        ("\udcff\udc9b", "\\xff\\x9b"),
        ("x\u202ey\u2028", "x\\u202ey\\u2028"),
        ("é漢🙂", "é漢🙂"),
    ],
)
def test_cleaning(text: str, expected: str) -> None:
    assert clean(text) == expected


@pytest.mark.slow
@given(st.text() | st.binary().map(shown))
def test_nothing_that_steers_a_terminal_gets_through(text: str) -> None:
    written = render([text, Painted(text, Paint.BAD)], colour=True)
    written = written.replace("\x1b[31m", "").replace("\x1b[0m", "")
    assert all(char == "\t" or char.isprintable() or ord(char) > 0x9F for char in written)
    written.encode()


def test_colour_only_where_wanted() -> None:
    line: Line = ["a ", Painted("b", Paint.GOOD)]
    assert render(line, colour=False) == "a b"
    assert render(line, colour=True) == "a \x1b[32mb\x1b[0m"


def test_columns_count_what_is_seen() -> None:
    rows: list[tuple[Line, ...]] = [
        ("a", Painted("漢", Paint.GOOD), "last one may be long"),
        (["bb", Painted("b", Paint.BAD)], "e\u0301", "x"),
    ]
    assert [render(line, colour=False) for line in columns(rows, indent=1)] == [
        " a    漢  last one may be long",
        " bbb  e\u0301   x",
    ]
    assert [render(line, colour=False) for line in columns([("a", "b", ""), ("", "")])] == [
        "a  b",
        "",
    ]
    assert width("漢e\u0301\x1b") == 5
