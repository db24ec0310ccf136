"""Whole files: which rule settles what, how sure it is, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.carry.carried import certainty_of
from patchkit.model.merging.merge import FileMerge, merge_file
from patchkit.model.merging.regions import Doubt, Labels, Rule, conflict_text
from patchkit.model.outcome import Certainty
from tests.support.laws import share

BASE = """import os
import sys

from tests.support.laws import share

MODES = {
    "one": 1,
    "two": 2,
}


def first(value):
    check(value)
    return value


def second(value):
    return prepare(value, strict=True)
"""


def merge(upstream: str, patch: str, base: str = BASE, path: str = "m.py") -> FileMerge:
    merged = merge_file(path, base.encode(), upstream.encode(), patch.encode())
    assert merged is not None
    return merged


def swapped(old: str, new: str, text: str = BASE) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def rules(merged: FileMerge) -> list[Rule]:
    return [resolution.rule for _, resolution in merged.steps if resolution is not None]


def settled(merged: FileMerge) -> str:
    assert merged.data is not None
    return merged.data.decode()


def test_changes_apart_are_git_s_and_certain() -> None:
    merged = merge(swapped("import sys", "import re"), swapped("strict=True", "strict=False"))
    assert merged.clean
    assert settled(merged) == BASE.replace("sys", "re").replace("True", "False")
    assert certainty_of(merged) is None


def test_a_line_beside_one_that_upstream_edits() -> None:
    upstream = swapped("    check(value)\n", "    check(value, deep=True)\n")
    merged = merge(upstream, swapped("    return value\n", "    return copy(value)\n"))
    assert rules(merged) == [Rule.BESIDE]
    assert settled(merged) == upstream.replace("    return value\n", "    return copy(value)\n")
    assert certainty_of(merged) is Certainty.SURE


@pytest.mark.parametrize(("count", "settles"), [(4, False), (5, False), (6, True)])
def test_where_upstream_made_some_of_it_in_its_own_way_nobody_can_say(
    count: int, settles: bool
) -> None:
    """Two of so many lines; from two in five on it counts as upstream's own."""
    lines = [f"    step_{number}(value)\n" for number in range(count)]
    at = "    check(value)\n"
    merged = merge(
        swapped(at, f"{at}    upstream(value)\n{lines[0]}{lines[1]}"),
        swapped(at, at + "".join(lines)),
        path="m.txt",
    )
    assert (merged.data is not None) is settles


def test_a_line_that_upstream_adds_and_the_patch_puts_in_place_of_another_is_not_contained() -> (
    None
):
    line, own = "    check(value)\n", "    verify(value)\n"
    merged = merge(swapped(line, line + own), swapped(line, own), path="m.txt")
    assert Rule.CONTAINED not in rules(merged)


def test_lines_that_upstream_adds_without_the_patch_s_removal_are_not_contained() -> None:
    line, own = "    check(value)\n", "    verify(value)\n    check_all(value)\n"
    merged = merge(swapped(line, line + own), swapped(line, own), path="m.txt")
    assert Rule.CONTAINED not in rules(merged)


def test_what_upstream_has_is_counted_among_the_lines_that_are_new() -> None:
    """One of two; with the line that goes it would be one of three."""
    line, own = "    check(value)\n", "    one_thing(value)\n"
    upstream = swapped(line, own + "    third(value)\n" + line)
    merged = merge(upstream, swapped(line, own + "    another(value)\n"), path="m.txt")
    assert merged.data is None


def test_functions_that_both_sides_remove_one_below_the_other() -> None:
    last = "\n\ndef last(value):\n    return value\n"
    second = "def second(value):\n    return prepare(value, strict=True)\n"
    patch = swapped(f"{second}\n\n", "", BASE + last)
    merged = merge(BASE, patch, BASE + last)
    assert settled(merged) == swapped(f"\n\n\n{second}", "\n")
    assert rules(merged) == [Rule.BESIDE]


def test_lines_added_above_a_class_that_upstream_removes() -> None:
    spare = "\n\nclass Spare:\n    kept = 1\n"
    upstream, patch = BASE, BASE + "\n    note(value)\n" + spare
    merged = merge(upstream, patch, BASE + spare)
    assert settled(merged) == BASE + "\n    note(value)\n"
    assert rules(merged) == [Rule.BESIDE]
    assert not merged.clean


def test_both_insert_upstream_first() -> None:
    entry = '    "two": 2,\n'
    merged = merge(
        swapped(entry, entry + '    "upp": 7,\n'),
        swapped(entry, entry + '    "app": 7,\n'),
    )
    assert rules(merged) == [Rule.BOTH_INSERT]
    assert settled(merged) == swapped(entry, entry + '    "upp": 7,\n    "app": 7,\n')


def test_a_deeper_insertion_stays_in_its_scope() -> None:
    line = "    return value\n"
    upstream = swapped(line, line + "\n\ndef more():\n    pass\n")
    merged = merge(
        upstream.replace(line, "    log(value)\n" + line, 1),
        swapped(line, "    log_all()\n" + line + "    # never reached\n"),
    )
    assert "    return value\n    # never reached\n\n\ndef more():" in settled(merged)


def test_an_insertion_is_put_into_no_other_scope_behind_lines_that_upstream_replaced() -> None:
    base = "def close(value):\n    flush(value)\n    log(value)\n"
    upstream = swapped("log(value)\n", "log(value, deep=True)\nCOUNT = 3\n", base)
    assert merge(upstream, base + "    value.end()\n", base).data is None


def test_an_insertion_does_not_tear_a_comment_of_upstream_s() -> None:
    base = "int nongit;\n\nset_up_the_directory(&nongit);\n\nfor (;;)\n"
    comment = "/*\n * We wish to read the\n * configuration:\n * set_up_the_directory()\n */\n"
    upstream = swapped("set_up", comment + "if (set_up", swapped("nongit)", "nongit))", base))
    patch = swapped("set_up", "first();\n\nset_up", base)
    merged = merge(upstream, patch, base, path="m.c")
    assert settled(merged) == swapped("/*", "first();\n\n/*", upstream)


def test_a_sorted_list_stays_sorted() -> None:
    base = "".join(f"from package import {name}\n" for name in ("a", "c", "e", "g"))
    upstream = swapped("import c\n", "import c\nfrom package import d2\n", base)
    patch = swapped("import c\n", "import c\nfrom package import d1\n", base)
    merged = merge(upstream, patch, base)
    assert [line[-2:] for line in settled(merged).splitlines()] == [
        " a",
        " c",
        "d1",
        "d2",
        " e",
        " g",
    ]


def test_the_side_whose_branch_it_is_comes_first() -> None:
    base = b"class Outcome:\n    value: list\n\n    def run(self):\n        return 1\n"
    line = b"    value: list\n"
    sides = [base.replace(line, line + own) for own in (b"    rust: bool\n", b"    index: list\n")]
    for patch_first, order in ((False, [b"rust", b"index"]), (True, [b"index", b"rust"])):
        merged = merge_file("m.py", base, *sides, patch_first=patch_first)
        assert merged is not None
        assert merged.data is not None
        assert [line.split(b":")[0].strip() for line in merged.data.split(b"\n")[2:4]] == order


def test_upstream_has_it_here_already() -> None:
    line = "    check(value)\n"
    upstream = swapped(line, line + "    guard(value)\n    trace(value)\n")
    merged = merge(upstream, swapped(line, line + "    guard(value)\n"))
    assert rules(merged) == [Rule.CONTAINED]
    assert settled(merged) == upstream


def test_upstream_made_a_part_of_the_change() -> None:
    line = "    check(value)\n"
    patch = swapped(line, line + "    guard(value)\n    trace(value)\n")
    assert merge(swapped(line, line + "    guard(value)\n"), patch).data is None


def test_a_line_that_upstream_removes_and_the_patch_edits_is_a_conflict() -> None:
    merged = merge(swapped("    check(value)\n", ""), swapped("check(value)", "ensure(entry)"))
    assert merged.data is None


def test_a_short_line_that_upstream_has_elsewhere_is_not_the_patch_s() -> None:
    line = "    return value\n"
    upstream = swapped("strict=True)\n", "strict=True)\n    done = guard(1)\n")
    upstream = swapped("    check(value)\n", "    check(value)\n    trace(value)\n", upstream)
    merged = merge(upstream, swapped(line, "    done = guard(1)\n" + line))
    assert settled(merged).count("done = guard(1)") == 2


def test_most_of_it_is_upstream_in_another_form() -> None:
    line = "    check(value)\n"
    upstream = swapped(line, line + "    guard(value)\n    trace(value, 1)\n    count(value)\n")
    patch = swapped(line, line + "    guard(value)\n    trace(value, 2)\n    count(value)\n")
    merged = merge(upstream, patch)
    assert merged.data is None
    assert None in [resolution for _, resolution in merged.steps]


def test_lines_that_the_file_repeats_anyway_are_nobody_s() -> None:
    def job(name: str) -> str:
        steps = "  needs: [build]\n  runs-on: linux\n  steps: {checkout: yes}\n"
        return f"{name}-job:\n{steps}  run: test {name}\n  name: test {name}\n  id: x-{name}\n"

    base = job("one")
    merged = merge(base + job("upstream"), base + job("patch"), base, "ci.yml")
    assert settled(merged) == base + job("upstream") + job("patch")


def test_imports_are_sorted_where_few_show_it() -> None:
    base = "import logging\nfrom re import sub\n"
    upstream = swapped("logging\n", "logging\nimport warnings\n", base)
    merged = merge(upstream, swapped("logging\n", "logging\nimport math\n", base), base)
    assert settled(merged) == "import logging\nimport math\nimport warnings\nfrom re import sub\n"


def test_moved_surroundings_are_followed() -> None:
    function = "def second(value):\n    return prepare(value, strict=True)\n"
    inside = "    ready = lock(value)\n"
    upstream = function + "\n\n" + BASE.replace("\n\n" + function, "")
    patch = BASE.replace("def second(value):\n", "def second(value):\n" + inside)
    merged = merge(upstream, patch)
    assert rules(merged) == [Rule.MOVED]
    assert settled(merged) == upstream.replace(
        "def second(value):\n", "def second(value):\n" + inside
    )
    (detail,) = [each.detail for _, each in merged.steps if each and each.rule is Rule.MOVED]
    assert detail == "upstream moved its context to line 2"
    two = patch.replace(", strict=True)\n", ", strict=True)\n    # the end\n")
    (detail,) = [
        each.detail for _, each in merge(upstream, two).steps if each and each.rule is Rule.MOVED
    ]
    assert detail == "upstream moved its context to lines 2, 3"


def test_a_line_that_moved_is_edited_where_it_is() -> None:
    function = "def second(value):\n    return prepare(value, strict=True)\n"
    upstream = (
        "def more():\n    lock()\n\n\n" + function + "\n\n" + BASE.replace("\n\n" + function, "")
    )
    merged = merge(upstream, swapped("strict=True", "strict=False"))
    assert rules(merged) == [Rule.MOVED]
    assert settled(merged) == upstream.replace("strict=True", "strict=False")


def test_lines_that_upstream_replaced_alike_and_added_to_are_contained() -> None:
    base = "a(1)\none(1)\nb(1)\n"
    new = base.replace("one(1)\n", "new(0)\n")
    merged = merge(new.replace("new(0)\n", "new(0)\nmore(1)\n"), new, base, "m.txt")
    assert (rules(merged), merged.absorbed) == ([Rule.CONTAINED], True)


def test_an_edit_slides_past_no_other_of_its_side() -> None:
    base, upstream = "a\nx(1)\nx(1)\nx(1)\n", "a\nx(1)\na\nx(1)\nx(1)\n"
    assert merge(upstream, "a\nx(1)\nnew(0)\na\n", base, "m.txt").data is None


def test_other_words_of_the_same_line() -> None:
    line = "prepare(value, strict=True)"
    merged = merge(
        swapped(line, "prepare(item, strict=True)"), swapped(line, "prepare(value, strict=False)")
    )
    assert rules(merged) == [Rule.WORDS]
    assert "prepare(item, strict=False)" in settled(merged)
    assert certainty_of(merged) is Certainty.DOUBTFUL


def test_the_same_words_changed_differently() -> None:
    line = "strict=True"
    merged = merge(swapped(line, "strict=None"), swapped(line, "strict=False"))
    assert merged.data is None
    text = conflict_text(merged.three, Labels("theirs", "old", "ours")).decode()
    assert text.count("<<<<<<< theirs\n") == text.count("||||||| old\n") == 1
    assert "strict=None)\n||||||| old" in text
    assert ">>>>>>> ours\n" in text


def test_what_would_not_parse_is_refused() -> None:
    base = "call(\n    one,\n    two,\n)\n"
    upstream = swapped("    two,\n", "    two,\n    three=3,\n", base)
    merged = merge(upstream, swapped("    two,\n", "    two,\n    three=4,\n", base), base)
    assert merged.data is None  # an argument given twice
    assert Doubt.DOES_NOT_PARSE in merged.doubts


def test_what_git_merges_and_would_not_parse_is_doubted() -> None:
    base = "def f(\n    one,\n    two,\n    three,\n): ...\n"
    upstream = swapped("    one,\n", "    new: int,\n    one,\n", base)
    merged = merge(upstream, swapped("    three,\n", "    three,\n    new,\n", base), base)
    assert (merged.clean, merged.doubts) == (True, (Doubt.DOES_NOT_PARSE,))
    assert certainty_of(merged) is Certainty.DOUBTFUL


def test_the_only_order_that_parses() -> None:
    base = "call(\n    one,\n)\n"
    upstream = swapped("    one,\n", "    one,\n    **options,\n", base)
    merged = merge(upstream, swapped("    one,\n", "    one,\n    *more_of_them,\n", base), base)
    assert settled(merged) == "call(\n    one,\n    *more_of_them,\n    **options,\n)\n"


def test_the_only_order_that_parses_has_to_be_free_of_doubt() -> None:
    base = "call(\n    one,\n)\n\n\nALL = 1\n"
    upstream = swapped("    one,\n", "    one,\n    **options,\n", base)
    upstream = swapped("ALL", "EVERY", upstream)
    merged = merge(upstream, swapped("    one,\n", "    one,\n    *ALL,\n", base), base)
    assert merged.data is None


def test_a_name_defined_by_both_is_refused() -> None:
    end = "    return prepare(value, strict=True)\n"
    up, own = (end + f"\n\ndef third():\n    return {number}\n" for number in (1, 2))
    merged = merge(swapped(end, up), swapped(end, own))
    assert merged.data is None
    assert not merged.clean


def test_a_name_that_upstream_took_away_is_pointed_out() -> None:
    upstream = BASE.replace("MODES", "KINDS")
    merged = merge(upstream, swapped("    return value\n", "    return MODES[value]\n"))
    assert merged.clean
    assert merged.names == ("MODES",)
    assert certainty_of(merged) is Certainty.DOUBTFUL


def test_a_clean_merge_that_unbinds_a_name_is_pointed_out() -> None:
    """Upstream renames a variable of one function; the name is still there in another."""
    base = BASE + "\n\ndef third(rows):\n    total = len(rows)\n    check(rows)\n    return 1\n"
    base += "\n\ndef fourth(total):\n    return total\n"
    upstream = swapped("    total = len(rows)\n", "    count = len(rows)\n", base)
    merged = merge(upstream, swapped("    return 1\n", "    return total\n", base), base)
    assert merged.clean
    assert (merged.names, merged.unbound) == ((), ("total",))
    assert certainty_of(merged) is Certainty.DOUBTFUL
    kept = swapped("    total = len(rows)\n", "    total = len(rows) + 1\n", base)
    merged = merge(kept, swapped("    return 1\n", "    return total\n", base), base)
    assert certainty_of(merged) is None


def test_a_change_that_upstream_has_whole_leaves_nothing_to_doubt() -> None:
    own = swapped('    "two": 2,\n', '    "two": 2,\n    "three": 3,\n    "four": 4,\n')
    merged = merge(swapped("import sys", "import re", own), own)
    assert merged.clean
    assert merged.absorbed
    assert not merged.doubts
    assert certainty_of(merged) is None
    beside = swapped('    "four": 4,\n', '    "four": 4,\n    "five": 5,\n', own)
    merged = merge(beside, own)
    assert rules(merged) == [Rule.CONTAINED]
    assert merged.absorbed
    assert certainty_of(merged) is Certainty.LOOK


def test_a_clean_merge_that_doubles_a_change_is_pointed_out() -> None:
    added = "def third(value):\n    return prepare(value, loose=True)\n"
    merged = merge(f"{added}\n\n{BASE}", f"{BASE}\n\n{added}")
    assert merged.clean
    assert Doubt.UPSTREAM_HAS_MOST in merged.doubts
    assert certainty_of(merged) is Certainty.DOUBTFUL


def test_a_hunk_that_a_clean_merge_doubles_is_pointed_out() -> None:
    guard = "    guard(value, 'both sides')\n"
    upstream = swapped("    return prepare", guard + "    return prepare")
    patch = swapped("    check(value)\n", "    check(value)\n" + guard)
    apart = swapped('    "two": 2,\n', '    "two": 2,\n    "three": 3,\n    "four": 4,\n', patch)
    merged = merge(upstream, apart)
    assert merged.clean
    assert settled(merged).count(guard) == 2
    assert merged.doubts == (Doubt.UPSTREAM_HAS_A_HUNK,)
    assert certainty_of(merged) is Certainty.LOOK


def test_a_hunk_that_both_sides_make_alike_is_not_doubled() -> None:
    guard = "    check(value)\n    guard(value, 'both sides')\n"
    both = swapped("    check(value)\n", guard)
    own = swapped('    "two": 2,\n', '    "two": 2,\n    "three": 3,\n    "four": 4,\n', both)
    merged = merge(both, own)
    assert settled(merged) == own
    assert not merged.doubts


@pytest.mark.parametrize("newline", ["", "\n"])
def test_the_last_line_s_end_is_a_question_of_its_own(newline: str) -> None:
    base = "a = 1\nb = 2"
    merged = merge("a = 1\nb = 2\nc = 3" + newline, "a = 1\nb = 2\nd = 4", base)
    assert settled(merged) == "a = 1\nb = 2\nc = 3\nd = 4" + newline
    merged = merge(base + "\nc = 3", base + "\n", base)
    assert settled(merged) == "a = 1\nb = 2\nc = 3\n"


def test_markers_stand_on_lines_of_their_own() -> None:
    merged = merge("a\nu\nu", "a\np\np", "a\nb\nb", "x.txt")
    assert conflict_text(merged.three, Labels()).decode() == (
        "a\n<<<<<<< upstream\nu\nu\n||||||| base\nb\nb\n=======\np\np\n>>>>>>> patch\n"
    )


def test_line_ends_are_kept() -> None:
    base = "".join(f"line {number}\r\n" for number in range(9))
    merged = merge(
        swapped("line 3", "LINE 3", base), swapped("line 4", "LINE 4", base), base, "a.txt"
    )
    assert settled(merged) == base.replace("line 3", "LINE 3").replace("line 4", "LINE 4")


def test_binary_files_are_never_merged() -> None:
    assert merge_file("x", b"\0a\nb\n", b"\0A\nb\n", b"\0a\nB\n") is None


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "    d\n", "\n"]), max_size=9).map("".join)


@pytest.mark.slow
@settings(max_examples=share(1000))
@given(LINES, LINES, LINES)
def test_law_no_line_of_either_side_is_lost(base: str, upstream: str, patch: str) -> None:
    merged = merge(upstream, patch, base, "x.txt")
    if merged.data is None or merged.clean:
        return
    if {Rule.CONTAINED, Rule.WORDS} & set(rules(merged)):
        return
    gained = _counted(merged.data.decode(), upstream)
    assert gained == _counted(patch, base)


def _counted(after: str, before: str) -> dict[str, int]:
    lines = {line.strip() for line in (*after.split("\n"), *before.split("\n"))} - {""}
    counts = [[line.strip() for line in text.split("\n")] for text in (after, before)]
    grown = {line: counts[0].count(line) - counts[1].count(line) for line in lines}
    return {line: number for line, number in grown.items() if number}


@pytest.mark.slow
@settings(max_examples=share(670))
@given(LINES, LINES)
def test_law_onto_itself_and_onto_its_result(old: str, new: str) -> None:
    assert settled(merge(old, new, old, "x.txt")) == new
    assert settled(merge(new, new, old, "x.txt")) == new
    assert settled(merge(new, old, old, "x.txt")) == new
