"""Small texts: what is shown of somebody else's, numbers with nouns, values in their places."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from patchkit.model.finding import Landed
from patchkit.model.merging.scopes import Enclosure, enclosing, find_enclosure
from patchkit.model.names import Reference, filled, split_references
from patchkit.model.objects import CommitId
from patchkit.model.text import clean, counted, shown, with_article


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tb", "a\tb"),
        ("\x1b[31m\r\n", "\\e[31m\\r\\n"),
        ("\x00\x9b", "\\x00\\x9b"),
        ("\udc80\udcff", "\\x80\\xff"),
        ("\udc7f\ud800\u202e", "\\udc7f\\ud800\\u202e"),
    ],
)
def test_what_acts_on_a_terminal_is_named(text: str, said: str) -> None:
    assert clean(text) == said


def test_a_line_is_shown_without_its_end() -> None:
    assert shown(b"\n x\xff\r\n") == "\n x\udcff"


def test_nouns_follow_their_number() -> None:
    assert [counted(n, "patch", "patches") for n in (0, 1)] == ["0 patches", "1 patch"]
    assert [counted(n, "file") for n in (1, 2)] == ["1 file", "2 files"]
    assert [with_article(word) for word in ("import", "bump")] == ["an import", "a bump"]


def test_a_commit_is_told_with_the_request_that_its_subject_lacks() -> None:
    commit = Landed(CommitId("1" * 40), "2026-01-02T03:04:05Z", "Ann", "Fix it (#7)")
    told = "1111111111 of 2026-01-02 by Ann: Fix it (#7)"
    assert [str(replace(commit, request=each)) for each in (None, 7, 8)] == [
        *(told, told, f"{told} (#8)")
    ]
    merged = replace(commit, via=replace(commit, commit=CommitId("2" * 40)))
    assert str(merged) == f"{told}, by way of merge 2222222222"


def test_values_go_where_they_are_named() -> None:
    assert filled("a ${b}, $${c} ${d}", {"b": "B", "d": "D"}) == "a B, ${c} D"
    assert split_references("${a}${b") == (Reference("a"), Reference("b (open)"))


SOURCE = b"""\
class A:
    def f(self):
        x = 1

        return (
            x
        )
# a comment
    def g(self):
        def f():
            pass
        return f

y = 2
""".splitlines(keepends=True)


@pytest.mark.parametrize(
    ("line", "name"),
    [(0, "A"), (1, "A.f"), (3, "A.f"), (9, "A.g.f"), (10, "A.g.f"), (11, "A.g")],
)
def test_a_line_knows_its_function(line: int, name: str) -> None:
    found = enclosing(SOURCE, line)
    assert found is not None
    assert found.name == name
    assert find_enclosure(SOURCE, name) == found


def test_lines_outside_of_functions() -> None:
    assert [enclosing(SOURCE, line) for line in (13, 14, 99)] == [None] * 3
    assert find_enclosure(SOURCE, "f") is None
    assert find_enclosure(SOURCE, "A.g.f") == Enclosure("A.g.f", tuple(SOURCE[9:11]))
