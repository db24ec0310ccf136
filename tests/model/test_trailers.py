"""Trailers below the messages of commits and patch files."""

from __future__ import annotations

import pytest

from patchkit.model.mail import (
    add_patch_trailer,
    parse_patch,
    split_patch_trailer,
    subject_from,
    with_trailer,
)

DIFF = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"
HEAD = b"From: A <a@example.com>\nSubject: One\n\n"
TRAILER = "Origin: there"


@pytest.mark.parametrize(
    ("message", "with_ours"),
    [
        ("One", "One\n\nPatchkit-Patch: a.patch"),
        ("One\n\nWhy.", "One\n\nWhy.\n\nPatchkit-Patch: a.patch"),
        ("One\n\nWhy: so", "One\n\nWhy: so\nPatchkit-Patch: a.patch"),
        ("One\n\nA: 1\nB: 2\n", "One\n\nA: 1\nB: 2\nPatchkit-Patch: a.patch"),
        ("One\n\nA: 1\nand more", "One\n\nA: 1\nand more\n\nPatchkit-Patch: a.patch"),
        ("One: two", "One: two\n\nPatchkit-Patch: a.patch"),
        ("One\n \t\nA: 1", "One\n \t\nA: 1\nPatchkit-Patch: a.patch"),
        ("One\n\nPatchkit-Patch: old.patch", "One\n\nPatchkit-Patch: a.patch"),
    ],
)
def test_ours_names_the_patch(message: str, with_ours: str) -> None:
    assert add_patch_trailer(message, "a.patch") == with_ours
    assert split_patch_trailer(with_ours)[1] == "a.patch"


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("One\n", ("One", None)),
        ("One\n\nPatchkit-Patch: a.patch\n", ("One", "a.patch")),
        ("One\n\nPatchkit-Patch: a\nB: 2\nPatchkit-Patch:b  \n", ("One\n\nB: 2", "a")),
        ("One\n\n Patchkit-Patch: a", ("One\n\n Patchkit-Patch: a", None)),
        ("One\n\nPatchkit-Patch: a b", ("One\n\nPatchkit-Patch: a b", None)),
    ],
)
def test_ours_comes_off_again(message: str, parts: tuple[str, str | None]) -> None:
    assert split_patch_trailer(message) == parts


@pytest.mark.parametrize(
    ("head", "result"),
    [
        (HEAD, HEAD.rstrip() + b"\n\nOrigin: there\n\n"),
        (HEAD + b"Why.\n\n", HEAD + b"Why.\n\nOrigin: there\n\n"),
        (HEAD + b"Why: so\n\n", HEAD + b"Why: so\nOrigin: there\n\n"),
        (HEAD + b"Why.\n---\n 1 file\n\n", HEAD + b"Why.\n\nOrigin: there\n---\n 1 file\n\n"),
        (HEAD + b"A: 1\n--- \n\n", HEAD + b"A: 1\nOrigin: there\n--- \n\n"),
        (HEAD + b"--- as git\nhas it\n\n", HEAD[:-1] + b"\nOrigin: there\n--- as git\nhas it\n\n"),
        (HEAD + b"--also\n\n", HEAD + b"--also\n\nOrigin: there\n\n"),
        (HEAD + b"For macOS X\n\n", HEAD + b"For macOS X\n\nOrigin: there\n\n"),
    ],
)
@pytest.mark.parametrize("eol", [b"\n", b"\r\n"])
def test_a_patch_file_gets_another_and_stays_as_it_is(
    head: bytes, result: bytes, eol: bytes
) -> None:
    patch, wanted = (each.replace(b"\n", eol) + DIFF + b"-- \n2.39\n" for each in (head, result))
    file = parse_patch(patch, name="x.patch")
    assert with_trailer(file, TRAILER, "unused") == wanted
    again = parse_patch(wanted, name="x.patch")
    assert again.header is not None
    assert again.header.message.endswith(TRAILER)


@pytest.mark.parametrize("head", [b"", b"From: \nSubject: [PATCH]\n\n"])
def test_a_patch_that_says_nothing_gets_a_message(head: bytes) -> None:
    file = parse_patch(head + DIFF, name="x.patch")
    assert file.header is None
    made = with_trailer(file, TRAILER, "Make it")
    assert made.endswith(DIFF)
    header = parse_patch(made, name="x.patch").header
    assert header is not None
    assert header.message.startswith(f"Make it\n\n{TRAILER}")


def test_a_file_name_in_words() -> None:
    assert subject_from("fix-the-rope.patch") == "Fix the rope"
    assert subject_from("X") == "X"
