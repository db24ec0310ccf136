"""What is mended in a damaged patch, and what is refused because it can be read in two ways."""

from __future__ import annotations

import pytest

from patchkit.errors import BadInputError
from patchkit.model.mail import parse_patch
from patchkit.model.repair import repaired

WHOLE = b"""\
diff --git a/a b/a
--- a/a
+++ b/a
@@ -1,3 +1,4 @@ def f():
 one
-two
+zwei
+drei
 three
@@ -20,2 +21,2 @@
-twenty
+zwanzig
 end
diff --git a/b b/b
--- a/b
+++ b/b
@@ -1,2 +1,2 @@
-x
+y
 z
"""
SHORT = WHOLE.replace(b"@@ -1,2 +1,2 @@", b"@@ -1,3 +1,3 @@")
MISCOUNTED = WHOLE.replace(b"diff --git a/b b/b\n", b"").replace(b"-20,2 +21,2", b"-20,3 +21,2")


def mended(data: bytes, *mends: str) -> bytes:
    return repaired(data, mends, "demo.yaml:7")


@pytest.mark.parametrize("wrong", [b"@@ -1,9 +1,4 @@", b"@@ -1,3 +1 @@", b"@@ -1 +1 @@"])
def test_counts_are_those_of_the_lines(wrong: bytes) -> None:
    damaged = WHOLE.replace(b"@@ -1,3 +1,4 @@", wrong)
    assert mended(damaged, "counts of line 4") == WHOLE
    assert len(parse_patch(WHOLE, name="x", strip=1).changes) == 2


def test_the_last_newline_and_the_last_counts() -> None:
    damaged = WHOLE.replace(b"@@ -1,2 +1,2 @@", b"@@ -1,3 +1,3 @@").removesuffix(b"\n")
    assert mended(damaged, "last newline", "counts of line 17") == WHOLE


def test_what_git_signs_with_is_no_line_of_the_hunk() -> None:
    signed = WHOLE + b"-- \n2.39.5\n"
    damaged = signed.replace(b"@@ -1,2 +1,2 @@", b"@@ -1,3 +1,3 @@")
    assert mended(damaged, "counts of line 17") == signed


def test_a_line_without_a_newline_in_its_file_counts_once() -> None:
    text = WHOLE + b"\\ No newline at end of file\n"
    damaged = text.replace(b"@@ -1,2 +1,2 @@", b"@@ -1,3 +1,3 @@")
    assert mended(damaged, "counts of line 17") == text


@pytest.mark.parametrize(
    ("data", "mend", "why"),
    [
        (WHOLE, "last newline", "nothing there is damaged so"),
        (WHOLE, "counts of line 4", "nothing there is damaged so"),
        (WHOLE, "counts of line 5", "it is no @@ line"),
        (WHOLE, "counts of line 900", "it is no @@ line"),
        (WHOLE + b"\n", "counts of line 17", "whether line 21 is the last of its hunk"),
        (MISCOUNTED, "counts of line 10", "whether line 13 is the last of its hunk"),
        (SHORT + b"-- \n", "counts of line 17", "whether line 20 is the last of its hunk"),
    ],
)
def test_what_has_not_one_reading_is_refused(data: bytes, mend: str, why: str) -> None:
    with pytest.raises(BadInputError) as caught:
        mended(data, mend)
    (problem,) = caught.value.problems
    assert str(problem).startswith(f"demo.yaml:7: `{mend}` cannot be mended: {why}")
