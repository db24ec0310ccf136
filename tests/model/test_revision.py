"""What a reviewer must read of a patch that changed."""

from __future__ import annotations

import pytest

from patchkit.model.mail import parse_patch
from patchkit.model.patch import PatchFile
from patchkit.model.revision import Revision, compare_patches, interdiff

PATCH = b"""\
From: Ann <ann@example.com>
Subject: Change a

diff --git a/a b/a
index 1111111111111111111111111111111111111111..2222222222222222222222222222222222222222 100644
--- a/a
+++ b/a
@@ -10,3 +10,4 @@ def f():
 before
-old
+new
+more
 after
"""
INDEX = b"index " + b"1" * 40 + b".." + b"2" * 40 + b" 100644\n"


def _parse(data: bytes) -> PatchFile:
    return parse_patch(data, name="x.patch")


@pytest.mark.parametrize(
    ("old", "new", "revision"),
    [
        (b"x", b"x", Revision.UNCHANGED),
        (b"@@ -10,3 +10,4 @@", b"@@ -12,3 +15,4 @@", Revision.SHIFTED),
        (b"index 1111", b"index 3333", Revision.SHIFTED),
        (b" def f():", b" def g():", Revision.SHIFTED),
        (b" 100644\n", b"\n", Revision.SHIFTED),
        (INDEX, b"", Revision.SHIFTED),
        (b"diff --git a/a b/a\n" + INDEX, b"", Revision.SHIFTED),
        (b" before", b" instead", Revision.CONTEXT),
        (b"Change a", b"Change the a", Revision.MESSAGE),
        (b"Ann <", b"Bob <", Revision.MESSAGE),
        (b"+new", b"+newer", Revision.CONTENT),
        (b"/a", b"/b", Revision.CONTENT),
        (b"index 1", b"old mode 100644\nnew mode 100755\nindex 1", Revision.CONTENT),
    ],
)
def test_the_most_important_difference_counts(old: bytes, new: bytes, revision: Revision) -> None:
    found = compare_patches(_parse(PATCH), _parse(PATCH.replace(old, new)))
    assert found is revision
    assert found.needs_review == (revision in (Revision.MESSAGE, Revision.CONTENT))


def test_a_plain_diff_of_a_whole_file_says_what_gits_own_says() -> None:
    plain = b"--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+a\n"
    own = b"diff --git a/a b/a\nnew file mode 100644\nindex " + b"0" * 40 + b".." + b"1" * 40
    executable = own.replace(b"644", b"755") + b"\n" + plain
    new = own + b"\n" + plain
    assert compare_patches(_parse(plain), _parse(new)) is Revision.SHIFTED
    assert compare_patches(_parse(plain), _parse(executable)) is Revision.CONTENT
    gone = b"--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
    assert compare_patches(_parse(plain), _parse(gone)) is Revision.CONTENT


def test_numbers_and_ids_are_no_part_of_an_interdiff() -> None:
    moved = PATCH.replace(b"-10,3 +10,4", b"-1,3 +1,4").replace(b"2222", b"3333")
    assert interdiff(_parse(PATCH), _parse(moved), "x.patch") == b""
    edited = PATCH.replace(b"+new\n", b"+n\xffew\n")
    diff = interdiff(_parse(PATCH), _parse(edited), "x.patch")
    assert diff.startswith(b"--- old/x.patch\n+++ new/x.patch\n")
    assert b"\n-+new\n++n\xffew\n" in diff


def test_an_added_patch_is_all_new() -> None:
    assert b"\n+++ /dev/null\n" in interdiff(_parse(PATCH), None, "x.patch")
    diff = interdiff(None, _parse(PATCH), "x.patch")
    assert diff.startswith(b"--- /dev/null\n+++ new/x.patch\n")
    assert b"\n++new\n" in diff
