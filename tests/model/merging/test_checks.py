from __future__ import annotations

import sys

import pytest

from patchkit.model.merging.checks import (
    doubled_hunk,
    file_doubts,
    lines_lost,
    names_gone,
    upstream_share,
)
from patchkit.model.merging.regions import Doubt, ThreeWay, compare_three

BASE = """\
import os


def go():
    if ready():
        assert pick(str(1))
    else:
        wait()
"""


@pytest.mark.parametrize(
    ("upstream", "added", "gone"),
    [
        (BASE.replace("pick(", "choose("), "    pick(2)\n", ("pick",)),
        (BASE.replace("pick(", "choose("), "    choose(2)\n", ()),
        # Python's own words are there whether upstream uses them or not
        ("import os\n\n\ndef go():\n    wait()\n", "    while str: assert wait() or os\n", ()),
        (BASE.replace("pick(", "choose("), '    say("pick")  # pick\n', ()),
        (BASE.replace("pick(", "choose("), '    """Of them\n    pick one.\n    """\n', ()),
        (BASE.replace("pick(", "choose("), '    say(\n"""a\nb""", pick)\n', ("pick",)),
    ],
)
def test_names_that_upstream_no_longer_has(
    upstream: str, added: str, gone: tuple[str, ...]
) -> None:
    base, theirs, ours = (t.encode().splitlines(True) for t in (BASE, upstream, BASE + added))
    assert names_gone("m.py", compare_three(base, theirs, ours)) == gone


def test_a_name_of_the_first_line_is_known() -> None:
    base, upstream = [b"import json\n", b"one\n"], [b"import yaml\n", b"one\n"]
    patch = [*base, b"json.loads()\n"]
    assert names_gone("m.py", compare_three(base, upstream, patch)) == ("json",)
    # but not one that the patch takes out of use itself
    patch = [b"json = load()\n", b"one\n"]
    assert names_gone("m.py", compare_three(base, upstream, patch)) == ()


@pytest.mark.parametrize(
    ("added", "gone"),
    [
        ("items.pick(1)\n", ("pick",)),
        ("from here import pick\nuse(pick)\n", ()),
        ("import here.pick\n", ()),
        ("pick = 1\nuse(pick)\n", ()),
        ("for pick in all:\n", ()),
        ("def of(one,\n       pick):\n    use(pick)\n", ()),
        ("def of(one: pick):\n    use(one)\n", ("pick",)),
        ("items.copy(pick)\n", ("pick",)),
        ("line.decode(pick)\n", ("pick",)),
        ("self.assertIs(1, pick)\n", ("pick",)),
        ("use(pick)\nif pick == 1:\n", ("pick",)),
    ],
)
def test_names_that_the_new_lines_bind(added: str, gone: tuple[str, ...]) -> None:
    base = [b"all.copy(pick(0))\n", b"text.decode()\n", b"self.assertIs(0, 0)\n", b"end()\n"]
    upstream = [b"self.choose(text(0))\n", b"end()\n"]
    three = compare_three(base, upstream, [*base, *added.encode().splitlines(True)])
    assert names_gone("m.py", three) == gone


def test_the_words_of_a_manual_are_no_names() -> None:
    base, upstream = [b"Call it.\n", b"one\n"], [b"Use it.\n", b"one\n"]
    three = compare_three(base, upstream, [*base, b"Call twice.\n"])
    assert names_gone("manual.md", three) == ()
    assert names_gone("manual.adoc", three) == ()
    assert names_gone("Makefile", three) == ("Call",)


@pytest.mark.parametrize(
    ("added", "gone"),
    [
        ("/*\n * pick() is no\n * longer there */\n", ()),
        ("use(); // as pick does\n", ()),
        ("/* one */ pick(1); /* two */\n", ("pick",)),
        ('open("refs/*"); pick(1);\n', ("pick",)),
        ('say("a\\" // pick");\npick(1);\n', ("pick",)),
    ],
)
def test_the_words_of_a_comment_in_c_are_no_names(added: str, gone: tuple[str, ...]) -> None:
    base, upstream = [b"pick(0);\n", b"end();\n"], [b"choose(0);\n", b"end();\n"]
    three = compare_three(base, upstream, [*base, *added.encode().splitlines(True)])
    assert names_gone("m.c", three) == gone


def rows(text: str) -> list[bytes]:
    """Each letter a line that says something."""
    return [f"line {letter} {letter}\n".encode() for letter in text]


def three(base: str, upstream: str, patch: str) -> ThreeWay:
    return compare_three(rows(base), rows(upstream), rows(patch))


@pytest.mark.parametrize(
    ("base", "upstream", "patch", "merged", "lost"),
    [
        ("abc", "abcu", "pabc", "pabcu", False),
        ("abc", "abcu", "pabc", "abcpu", False),  # where they stand is not looked at here
        ("abc", "abcu", "pabc", "abcu", True),
        ("abc", "abcu", "pabc", "ppabcu", True),
        ("abc", "abcu", "pabc", "pabc", True),
        ("abc", "bcu", "pabc", "pbcu", False),
        ("abc", "bcu", "pabc", "pabcu", True),
        ("abc", "abcu", "bc", "bcu", False),
        ("abc", "abcu", "bc", "abcu", True),
        ("abc", "abcu", "bc", "cu", True),
        ("aab", "aabu", "ab", "abu", False),
        ("aab", "aabu", "ab", "bu", True),
        ("p", "xpq", "y", "yxq", False),  # a line beside a common end
    ],
)
def test_a_merge_changes_upstream_s_file_as_the_patch_changes_the_old(
    base: str, upstream: str, patch: str, merged: str, lost: bool
) -> None:
    old, theirs, ours, result = (rows(text) for text in (base, upstream, patch, merged))
    assert lines_lost(old, theirs, ours, result) is lost
    indented = [b"    " + line for line in result]
    assert lines_lost(old, theirs, ours, [*indented, b"\n"]) is lost


@pytest.mark.parametrize(
    ("base", "upstream", "patch", "share"),
    [
        ("abc", "abcxyz", "abcxyzw", 0.75),
        ("abc", "abcxy", "xyabc", 1.0),
        ("abc", "abc", "xyabc", 0.0),
        ("abc", "abcx", "xabc", 0.0),  # one line may happen to be new on both sides
        ("abxy", "ab", "abxyxy", 0.0),  # not if upstream takes it away
        ("abc", "xyabc", "xyc", 1.0),
        ("abc", "xyxyabc", "xyxyxyxyabc", 0.5),
    ],
)
def test_how_much_of_the_patch_upstream_has(
    base: str, upstream: str, patch: str, share: float
) -> None:
    assert upstream_share(three(base, upstream, patch)) == share


@pytest.mark.parametrize(
    ("base", "upstream", "patch", "doubled"),
    [
        ("abcdef", "abcdexyf", "xyabcdef", True),
        ("abcdef", "abcdexf", "xyabcdef", False),  # not all of it
        ("abcdef", "abcdexf", "xbabcdef", True),  # all of what is new at all, half of it
        ("abcdef", "abcdexf", "xbcabcdef", False),  # less than half of it
        ("abcdef", "abcdebf", "babcdef", False),  # nothing of it is new at all
        ("abcdef", "xyabcdef", "xyabcdef", False),  # at the same place
        ("abcdef", "abcdef", "xyabcdef", False),
        ("abcdef", "abcdexyf", "xxyabcdef", False),  # more than upstream has
        ("abcdefg", "abcdefxyg", "pabcxydefg", True),  # a second edit
    ],
)
def test_a_hunk_that_upstream_has_elsewhere(
    base: str, upstream: str, patch: str, doubled: bool
) -> None:
    assert bool(doubled_hunk(three(base, upstream, patch))) is doubled


def test_lines_that_say_nothing_are_no_sign() -> None:
    base, upstream = [*rows("abc")], [*rows("abc"), b"}\n", b"x\n", b"\n"]
    patch = [b"}\n", b"x\n", b"\n", *rows("abc")]
    assert not doubled_hunk(compare_three(base, upstream, patch))
    assert upstream_share(compare_three(base, upstream, patch)) == 0.0


SOUND = b"class A:\n    x: int\n\n    def f(self):\n        pass\n"
TWICE = SOUND + b"\n    def f(self):\n        pass\n"
SETTER = SOUND.replace(b"    def", b"    @property\n    def") + (
    b"\n    @f.setter\n    def f(self, value):\n        pass\n"
)
BROKEN = SOUND + b"def\n"


LISTED = b"from a import (\n    f,  # (not) here\n    g\n)\n"


def _classes(first: bytes, *second: bytes) -> bytes:
    """Two classes with these methods."""
    methods = (b"    def %s(self): pass\n" % name for name in (first, *second))
    return b"class A:\n%sclass B:\n" % next(methods) + b"".join(methods)


@pytest.mark.parametrize(
    ("path", "before", "merged", "doubts"),
    [
        ("m.py", [SOUND], SOUND, ()),
        ("m.py", [SOUND], BROKEN, (Doubt.DOES_NOT_PARSE,)),
        ("m.py", [SOUND, SOUND], SOUND + b"def g(a, a): pass\n", (Doubt.DOES_NOT_PARSE,)),
        ("m.py", [SOUND, BROKEN], BROKEN, ()),  # it did not before
        ("m.py", [BROKEN, SOUND], BROKEN, ()),
        ("m.py", [SOUND, SOUND], TWICE, (Doubt.DEFINED_TWICE,)),
        ("m.py", [SOUND, TWICE], TWICE, ()),
        ("m.py", [TWICE, SOUND], TWICE, ()),
        ("m.py", [SOUND], SETTER, ()),
        ("m.py", [SOUND], SOUND + SOUND.replace(b"A", b"B"), ()),  # another scope
        ("m.py", [SOUND], SOUND + SOUND, (Doubt.DEFINED_TWICE,)),
        # upstream takes `f` from the one class to the other, where the patch adds it
        (
            "m.py",
            [_classes(b"f", b"f"), _classes(b"g", b"f")],
            _classes(b"g", b"f", b"f"),
            (Doubt.DEFINED_TWICE,),
        ),
        ("m.py", [SOUND], SOUND.replace(b"x:", b"x: int\n    x:"), (Doubt.DEFINED_TWICE,)),
        (
            "m.py",
            [SOUND],
            SOUND + b"\nasync def f(): pass\nasync def f(): pass\n",
            (Doubt.DEFINED_TWICE,),
        ),
        (
            "m.py",
            [b"from a import f\n", b"from b import f\n"],
            b"from a import f\nfrom b import f\n",
            (Doubt.DEFINED_TWICE,),
        ),
        (
            "m.py",
            [LISTED, LISTED],
            LISTED.replace(b"    g", b"    g,\n    g"),
            (Doubt.DEFINED_TWICE,),
        ),
        ("m.py", [LISTED, LISTED], LISTED + b"import h as g\n", (Doubt.DEFINED_TWICE,)),
        (
            "m.py",
            [LISTED, LISTED],
            LISTED + b"from a import \\\n    h, g\n",
            (Doubt.DEFINED_TWICE,),
        ),
        ("m.py", [LISTED, LISTED], LISTED + b"from g import g.h\n", (Doubt.DOES_NOT_PARSE,)),
        ("m.py", [LISTED, LISTED], LISTED + b"from g import h\n", ()),
        ("m.py", [SOUND], b"'\\d'\n" + SOUND, ()),  # a warning is not an error
        ("m.txt", [SOUND], BROKEN, ()),
        ("m.json", [b"{}"], b"[1]", ()),
        ("m.json", [b"{}", b"[]"], b"{", (Doubt.DOES_NOT_PARSE,)),
        ("m.json", [b"{}", b"["], b"{", ()),
        ("m.json", [b"{}"], b"[" * 100_000, (Doubt.DOES_NOT_PARSE,)),
        ("m.pyi", [SOUND], BROKEN, (Doubt.DOES_NOT_PARSE,)),
    ],
)
def test_what_is_wrong_with_a_file_as_such(
    path: str, before: list[bytes], merged: bytes, doubts: tuple[Doubt, ...]
) -> None:
    assert file_doubts(path, before, merged) == doubts


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib came with Python 3.11")
def test_toml_that_a_merge_breaks() -> None:
    assert file_doubts("a.toml", [b"a = 1\n"], b"a = 1\na = 2\n") == (Doubt.DOES_NOT_PARSE,)
    assert file_doubts("a.toml", [b"a = 1\na = 1\n"], b"a = 1\na = 2\n") == ()
