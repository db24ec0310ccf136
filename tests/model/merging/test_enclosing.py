"""Which function a line is in, and whether an edit landed in another one than it was made in."""

from __future__ import annotations

from patchkit.model.diff_parse import parse_diff
from patchkit.model.line_diff import diff_lines
from patchkit.model.merging.scopes import Misplaced, misplaced, misplaced_hunks


def _said(old: str, patched: str, here: str, result: str) -> list[str]:
    texts = [each.encode() for each in (old, patched, here, result)]
    edits = diff_lines(texts[2].split(b"\n"), texts[3].split(b"\n"))
    return [str(e) for e in misplaced(*texts, path="a.py", edits=edits)]


def _function(name: str, body: str = "one") -> str:
    return f"def {name}():\n    a = 1\n    b = 2\n    {body}\n    c = 3\n    return a\n\n\n"


def test_lines_added_or_removed_in_another_function() -> None:
    old, patched = _function("first"), _function("first", "one\n    two")
    here = _function("second") + "x = 1\n"
    result = _function("second", "one\n    two") + "x = 1\n"
    assert _said(old, patched, here, result) == ["lands in second (line 5), was made in first"]
    assert _said(patched, old, result, here) == ["lands in second (line 5), was made in first"]


def test_lines_that_left_every_function() -> None:
    old, patched = _function("first"), _function("first", "one\n    two")
    here = old.replace("def first", "while x")
    result = patched.replace("def first", "while x")
    assert _said(old, patched, here, result) == ["lands in no function (line 5), was made in first"]


def test_the_same_edit_in_two_functions_is_counted() -> None:
    """Both in one is one too many; both in their places is none."""
    old = _function("first") + _function("second")
    patched = _function("first", "one\n    two") + _function("second", "one\n    two")
    here = "x = 1\n" + old
    assert _said(old, patched, here, "x = 1\n" + patched) == []
    twice = _function("second", "one\n    two").replace("a = 1\n", "a = 1\n    two\n")
    doubled = "x = 1\n" + _function("first") + twice
    assert _said(old, patched, here, doubled) == [
        "lands in second (line 15), was made in first (line 2)"
    ]


def test_a_function_that_upstream_renamed_is_another_one() -> None:
    old, patched = _function("get_device"), _function("get_device", "one\n    two")
    here, result = (each.replace("get_device", "current_device") for each in (old, patched))
    lands = "lands in current_device (line 5), was made in get_device"
    assert _said(old, patched, here, result) == [lands]
    rest = _function("get_device", "other")
    assert _said(old, patched, here + rest, result + rest) == [f"{lands} (line 10)"]


def test_other_files_have_no_scopes_that_are_known() -> None:
    old, new = b"def f():\n    x\n", b"def g():\n    x\n"
    edits = diff_lines(new.split(b"\n"), (new + b"    y\n").split(b"\n"))
    texts = (old, old + b"    y\n", new, new + b"    y\n")
    assert misplaced(*texts, path="a.c", edits=edits) == ()


def test_lines_added_below_all_others_are_in_the_scope_of_the_last() -> None:
    body = b"@@ -2,2 +2,3 @@ def other():\n     two\n def b(): pass\n+x = 1\n"
    (change,) = parse_diff(b"--- a/f.py\n+++ b/f.py\n" + body)
    found = misplaced_hunks(b"def a():\n    two\ndef b(): pass\n", change.hunks, [0])
    assert found == [(0, Misplaced("other", "b"))]
