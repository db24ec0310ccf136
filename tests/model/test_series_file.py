"""A series file keeps every byte that an edit is not about."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.errors import BadInputError
from patchkit.model.series_file import Series, SeriesEntry, parse_series

TEXT = b"""\
# Patches of ours on demo.
# The order matters.
first.patch

# second needs first
second.patch -p0   # until upstream takes it
third.patch -p 2
  # indented comment

fourth.patch
# fifth.patch is upstream now
"""


def parse(data: bytes) -> Series:
    return parse_series(data, name="series")


def test_entries_have_their_options_and_lines() -> None:
    assert parse(TEXT).entries == (
        SeriesEntry("first.patch", None, 3),
        SeriesEntry("second.patch", 0, 6),
        SeriesEntry("third.patch", 2, 7),
        SeriesEntry("fourth.patch", None, 10),
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        TEXT,
        TEXT.rstrip(b"\n"),
        TEXT.replace(b"\n", b"\r\n"),
        b"# caf\xe9, not UTF-8\na.patch\n",
        b"\ta.patch \t-p1\t\n   b.patch\t#comment\n",
        b"a.patch\n- b.patch\n-\tsub/c.patch -p1\nd.patch\n",
    ],
)
def test_what_is_read_is_written_again(data: bytes) -> None:
    assert parse(data).data == data


GUARDED = b"""\
# all take this
\tcommon.patch
+a\ta.patch -p0
 +b -slow b.patch  # not where it is slow
-a\tnot-a.patch
+!a\tno-a.patch
+a\t- off.patch
- off.patch
+b\ta.patch
"""


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("a", ("common.patch", "a.patch")),
        ("b", ("common.patch", "b.patch", "not-a.patch", "no-a.patch", "a.patch")),
        ("b slow", ("common.patch", "not-a.patch", "no-a.patch", "a.patch")),
        ("c", ("common.patch", "not-a.patch", "no-a.patch")),
    ],
)
def test_guards_choose_as_guards_does(target: str, names: tuple[str, ...]) -> None:
    series = parse_series(GUARDED, name="series.conf", target=target)
    assert (series.names, series.data) == (names, GUARDED)
    more = series.insert_after("common.patch", "new.patch").remove("common.patch")
    assert more.data == GUARDED.replace(b"\tcommon.patch", b"\tnew.patch")
    added = series.append("more.patch").data
    begin = {"a": b"+a\t", "c": b"+!a\t"}.get(target, b"+b\t")
    assert added == GUARDED + begin + b"more.patch\n"
    again = parse_series(added, name="series.conf", target=target)
    assert again.names == (*names, "more.patch")


def test_guards_without_a_target_are_refused() -> None:
    with pytest.raises(BadInputError) as raised:
        parse(GUARDED)
    problems = raised.value.problems
    assert [each.where for each in problems] == [f"series:{n}" for n in (3, 4, 5, 6, 7, 9)]
    assert (problems[0].what, problems[0].hint) == (
        "'a.patch' is for +a only",
        "beside series: target: a",
    )


def test_a_patch_that_is_off_keeps_its_place() -> None:
    series = parse(b"a.patch\n- off.patch -p1 # not yet\nb.patch\n")
    assert series.names == ("a.patch", "b.patch")
    assert series.remove("a.patch").append("c.patch").data == (
        b"- off.patch -p1 # not yet\nb.patch\nc.patch\n"
    )


def test_a_hash_inside_a_word_is_part_of_it() -> None:
    with pytest.raises(BadInputError, match="is not a valid patch name"):
        parse(b"a#b.patch\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"sub\\a.patch", "leaves the folder of the series"),
        (b"/etc/a.patch", "/etc/a.patch leaves the folder of the series"),
        (b"../a.patch", "../a.patch leaves the folder of the series"),
        (b"a/../../b.patch", "a/../../b.patch leaves the folder of the series"),
        (b"a//b.patch", "a//b.patch is not a valid patch name"),
        (b"a/.git/b.patch", "a/.git/b.patch is not a valid patch name"),
        (b"-p1", "-p1 is not a valid patch name"),
        (b"-a.patch", "-a.patch is not a valid patch name"),
        (b".hidden.patch", ".hidden.patch is not a valid patch name"),
        (b"con.patch", "con.patch is not a valid patch name"),
        (b"caf\xc3\xa9.patch", "is not a valid patch name"),
        (b"\x1b[31m.patch", "is not a valid patch name"),
        (b"a.patch -R", "a.patch is to be applied in reverse"),
        (b"a.patch --reverse -p1 -x", "a.patch is to be applied in reverse"),
        (b"a.patch -p1 -R", "a.patch has an option that is not understood: -p1 -R"),
        (b"a.patch -p ab", "a.patch has an option that is not understood: -p ab"),
        (b"a.patch b.patch", "a.patch has an option that is not understood: b.patch"),
        (b"\xef\xbb\xbfa.patch", "a byte order mark"),
    ],
)
def test_a_line_that_cannot_be_taken(line: bytes, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse(b"# comment\n" + line + b"\n")
    (problem,) = caught.value.problems
    assert problem.where == "series:2"
    assert message in problem.what
    assert problem.what.isprintable()
    assert problem.hint


def test_names_of_other_peoples_series_are_taken() -> None:
    """Debian, Yocto and kernel trees list files of any ending, in folders."""
    names = ["upstream/5-fix.diff", "seven", "04_nothing.dpatch", "CVE-2024-1~2.patch", "a=b,c@d"]
    assert list(parse("".join(f"{name}\n" for name in names).encode()).names) == names


def test_every_line_is_told_in_order() -> None:
    with pytest.raises(BadInputError) as caught:
        parse(b"a.patch\n../c.patch\nA.patch\n.d\n")
    assert [problem.where for problem in caught.value.problems] == [
        "series:2",
        "series:3",
        "series:4",
    ]
    assert "A.patch is in line 1 already" in str(caught.value)


def test_append_goes_below_everything() -> None:
    assert parse(TEXT).append("new.patch").data == TEXT + b"new.patch\n"
    assert parse(b"a.patch\nb.patch").append("c.patch").data == b"a.patch\nb.patch\nc.patch\n"
    assert parse(b"a.patch\r\n").append("b.patch").data == b"a.patch\r\nb.patch\r\n"
    assert Series().append("a.patch").data == b"a.patch\n"


def test_insert_after() -> None:
    series = parse(TEXT).insert_after("second.patch", "new.patch")
    assert series.names == (
        "first.patch",
        "second.patch",
        "new.patch",
        "third.patch",
        "fourth.patch",
    )
    assert series.data.replace(b"new.patch\n", b"") == TEXT


def test_insert_before_the_first() -> None:
    series = parse(TEXT).insert_after(None, "new.patch")
    assert series.data == TEXT.replace(b"first.patch", b"new.patch\nfirst.patch", 1)
    assert parse(b"# none yet\n").insert_after(None, "a.patch").data == b"# none yet\na.patch\n"


@pytest.mark.parametrize("name", ["first.patch", "FIRST.patch", "no name", "../x.diff"])
def test_a_name_that_cannot_be_added(name: str) -> None:
    with pytest.raises(BadInputError):
        parse(TEXT).append(name)


def test_remove_keeps_comments() -> None:
    series = parse(TEXT).remove("second.patch")
    assert series.data == TEXT.replace(b"second.patch -p0   # until upstream takes it\n", b"")


def test_rename_keeps_options_and_comment() -> None:
    series = parse(TEXT).rename("second.patch", "other.patch")
    assert series.data == TEXT.replace(b"second.patch", b"other.patch")
    assert series.entries[1].strip == 0


def test_rename_may_change_case_only() -> None:
    assert parse(b"a.patch\n").rename("a.patch", "A.patch").data == b"A.patch\n"
    with pytest.raises(BadInputError):
        parse(b"a.patch\nb.patch\n").rename("a.patch", "B.patch")


def test_arrange_moves_comments_with_their_patches() -> None:
    names = ["fourth.patch", "second.patch", "first.patch", "third.patch"]
    assert (
        parse(TEXT).arrange(names).data
        == b"""\
# Patches of ours on demo.
# The order matters.
fourth.patch

# second needs first
second.patch -p0   # until upstream takes it
first.patch
  # indented comment

third.patch -p 2
# fifth.patch is upstream now
"""
    )


def test_an_indented_comment_goes_along() -> None:
    arranged = parse(b"a.patch\n  # of b\nb.patch\n").arrange(["b.patch", "a.patch"])
    assert arranged.data == b"  # of b\nb.patch\na.patch\n"


NAMES = [f"{letter}.patch" for letter in "abcdefgh"]


@st.composite
def series_texts(draw: st.DrawFn) -> bytes:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    lines: list[str] = []
    for name in names:
        lines += draw(st.lists(st.sampled_from(["# comment", "", "  # more"]), max_size=2))
        lines.append(name + draw(st.sampled_from(["", " -p0", "\t-p 2  # why", "   "])))
    lines += draw(st.lists(st.sampled_from(["# last", ""]), max_size=2))
    return "".join(f"{line}\n" for line in lines).encode()


@given(series_texts(), st.lists(st.sampled_from(NAMES), unique=True))
def test_arranged_series_has_the_names_and_loses_nothing(data: bytes, names: list[str]) -> None:
    series = parse(data)
    arranged = series.arrange(names)
    assert arranged.names == tuple(names)
    assert parse(arranged.data) == arranged
    strips = {entry.name: entry.strip for entry in series.entries}
    assert all(entry.strip == strips.get(entry.name) for entry in arranged.entries)
    comments = sorted(line.text for line in series.lines if line.name is None)
    assert sorted(line.text for line in arranged.lines if line.name is None) == comments


@pytest.mark.slow
@given(series_texts())
def test_arranging_as_it_is_changes_nothing(data: bytes) -> None:
    series = parse(data)
    assert series.arrange(series.names).data == data


@given(series_texts(), st.randoms(use_true_random=False))
def test_a_round_of_arrangements_keeps_each_line(data: bytes, chance: random.Random) -> None:
    series = parse(data)
    shuffled = list(series.names)
    chance.shuffle(shuffled)
    lines = series.arrange(shuffled).data.splitlines()
    assert sorted(lines) == sorted(data.splitlines())


def test_a_new_last_patch_goes_below_the_comments_at_the_end() -> None:
    """What is commented out there stays where it is."""
    series = parse(b"a.patch\n# off.patch\n\n# of the vendor\n").arrange(["a.patch", "b.patch"])
    assert series.data == b"a.patch\n# off.patch\n\n# of the vendor\nb.patch\n"


def test_a_name_twice_is_a_bug_of_the_caller() -> None:
    with pytest.raises(ValueError, match="twice"):
        parse(TEXT).arrange(["a.patch", "A.patch"])
