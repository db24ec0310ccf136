"""What stands above a diff: DEP-3 read, and words changed without touching any other line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.model.diff_parse import split_lines
from patchkit.model.header import read_header
from patchkit.model.lint import lint_patch
from patchkit.model.mail import parse_patch, reword, says
from patchkit.model.mailinfo import read_fields
from patchkit.model.patch import Header, HeaderForm, Identity

DIFF = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"

DEP3 = (
    b"Description: Build on NPU\n"
    b" The device has no stream.\n"
    b" .\n"
    b"   indented, and so kept\n"
    b"Author: Ann Author <ann@example.com>, Bob <bob@example.com>\n"
    b"Origin: upstream,\n"
    b"  https://example.com/commit/1\n"
    b"Bug: https://example.com/bugs/7\n"
    b"Bug-Debian: https://bugs.example.com/8\n"
    b"Forwarded: not-needed\n"
    b"Applied-Upstream: 2.0\n"
    b"Reviewed-by: Cyd <cyd@example.com>\n"
    b"Last-Update: 2024-02-30\n"
    b"X-Own: anything\n"
    b"\n"
    b"More about it.\n"
    b"---\n"
    b" f | 2 +-\n"
    b"\n"
)
ANN = Identity("Ann Author", "ann@example.com")
MESSAGE = (
    "Build on NPU\n\nThe device has no stream.\n\n  indented, and so kept\n\nMore about it.\n\n"
    "Origin: upstream, https://example.com/commit/1\nBug: https://example.com/bugs/7\n"
    "Bug-Debian: https://bugs.example.com/8\nForwarded: not-needed\nApplied-Upstream: 2.0\n"
    "Reviewed-by: Cyd <cyd@example.com>\nLast-Update: 2024-02-30\nX-Own: anything"
)


def read(preamble: bytes) -> Header:
    header = read_header(split_lines(preamble), "x.patch")[1]
    assert header is not None
    return header


def test_dep3_gives_subject_author_reason_and_status() -> None:
    form, header = read_header(split_lines(DEP3), "x.patch")
    assert (form, header) == (HeaderForm.DEP3, Header(MESSAGE, ANN))


@pytest.mark.parametrize(
    ("text", "message", "author"),
    [
        ("Description:\n Under the name\n more\n", "Under the name\n\nmore", None),
        ("Author: A <a@b>\n\nFree text.\n\nMore.\n", "Free text.\n\nMore.", Identity("A", "a@b")),
        ("Author: Joe Doe\nDescription: x\n", "x", Identity("Joe Doe", "")),
        ("description: x\nFORWARDED: no\n", "x\n\nFORWARDED: no", None),
        ("From: A <a@b>\nDescription: x\n", "x", Identity("A", "a@b")),
        (
            "From: A <a@b>\nSubject: x\nBug: 7\n\nWhy.\n",
            "x\n\nWhy.\n\nBug: 7",
            Identity("A", "a@b"),
        ),
        ("Subject: x\nAuthor: A <a@b>\nTo: b\n", "x", Identity("A", "a@b")),
        ("Note: no DEP-3\n", "Note: no DEP-3", None),
        ("Words.\n\nAuthor: A <a@b>\n", "Words.\n\nAuthor: A <a@b>", Identity("A", "a@b")),
        ("Description: x\nOrigin:\nBug: \n", "x", None),
    ],
)
def test_forms_in_the_wild(text: str, message: str, author: Identity | None) -> None:
    assert read(text.encode()) == Header(message, author)


@pytest.mark.parametrize(
    ("head", "codes"),
    [
        (DEP3, set()),
        (b"Description: x\nOrigin: backport, https://example.com\n\n", set()),
        (b"Description: x\n\n", {"header-author", "upstream-status"}),
        (b"Author: A <a@b>\nForwarded: no\n\n", {"header-subject"}),
        (b"Subject: x\n\nWords.\n\nForwarded: no\n\n", {"header-author"}),
    ],
)
def test_lint_finds_in_dep3_what_it_asks_for(head: bytes, codes: set[str]) -> None:
    found = lint_patch(parse_patch(head + DIFF, name="x.patch"), name="x.patch", ours=True)
    assert {each.code for each in found} - {"not-canonical"} == codes


def changed(preamble: bytes, message: str, author: Identity | None = None) -> list[str]:
    """The lines that a new message takes away (-) and brings (+)."""
    old = read(preamble)
    new = Header(message, author or old.author)
    text = reword(split_lines(preamble), old, new)
    assert says(split_lines(text), message)
    before, after = preamble.decode().split("\n"), text.decode().split("\n")
    start = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
    if start is None and len(before) == len(after):
        return []
    start = min(len(before), len(after)) if start is None else start
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    gone, come = before[start : len(before) - end], after[start : len(after) - end]
    return [f"-{each}" for each in gone] + [f"+{each}" for each in come]


def test_a_reworded_dep3_subject_changes_one_line() -> None:
    message = MESSAGE.replace("Build on NPU", "Build on Ascend")
    assert changed(DEP3, message) == [
        "-Description: Build on NPU",
        "+Description: Build on Ascend",
    ]


def test_a_message_without_the_fields_leaves_them_in_the_file() -> None:
    """`git commit --amend -m` knows nothing of them."""
    text = reword(split_lines(DEP3), read(DEP3), Header("Short", ANN))
    fields = DEP3[DEP3.index(b"Author:") : DEP3.index(b"\nMore")]
    assert text == b"Description: Short\n" + fields + b"\n" + DEP3[DEP3.index(b"---") :]


@pytest.mark.parametrize(
    ("old", "new", "diff"),
    [
        (
            "no stream.",
            "no streams.",
            ["- The device has no stream.", "+ The device has no streams."],
        ),
        ("More about it.", "Less.", ["-More about it.", "+Less."]),
        ("not-needed", "yes", ["-Forwarded: not-needed", "+Forwarded: yes"]),
        ("anything", "anything\nSigned-off-by: B <b@c>", ["+Signed-off-by: B <b@c>"]),
    ],
)
def test_only_what_was_reworded_changes(old: str, new: str, diff: list[str]) -> None:
    assert changed(DEP3, MESSAGE.replace(old, new)) == diff


def test_another_author_takes_the_line_of_the_old_one() -> None:
    line = "Author: Ann Author <ann@example.com>, Bob <bob@example.com>"
    assert changed(DEP3, MESSAGE, Identity("Dee", "dee@example.com", "1 +0000")) == [
        f"-{line}",
        "+Author: Dee <dee@example.com>",
    ]


MAIL = (
    b"From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\n"
    b"From: Ann Author <ann@example.com>\n"
    b"Date: Fri, 21 Nov 2025 11:00:00 +0100\n"
    b"Subject: [PATCH v2 3/7] Run without\n"
    b" a GPU\n"
    b"Message-Id: <1@example.com>\n"
    b"Bug-Debian: https://bugs.example.com/8\n"
    b"\n"
    b"Why.  \n"
    b"\n"
    b"Signed-off-by: A <a@example.com>\n"
    b"---\n"
    b" f | 2 +-\n"
    b"\n"
)


@pytest.mark.parametrize(
    ("message", "diff"),
    [
        (
            "Run\n\nWhy.  \n\nSigned-off-by: A <a@example.com>",
            ["-Subject: [PATCH v2 3/7] Run without", "- a GPU", "+Subject: [PATCH v2 3/7] Run"],
        ),
        ("Run without a GPU\n\nWhy.\n\nSigned-off-by: A <a@example.com>", []),
        (
            "Run without a GPU\n\nWhy.\nSo.\n\nSigned-off-by: A <a@example.com>\nBug-Debian: 9",
            [
                *("-Bug-Debian: https://bugs.example.com/8", "-", "-Why.  "),
                *("+Bug-Debian: 9", "+", "+Why.  ", "+So."),
            ],
        ),
        ("Run without a GPU", ["-Why.  ", "-", "-Signed-off-by: A <a@example.com>"]),
    ],
)
def test_a_reworded_mail_keeps_its_other_lines(message: str, diff: list[str]) -> None:
    assert changed(MAIL, message) == diff


def test_only_a_mail_has_fields_in_its_text() -> None:
    text = b"Description: Run\nAuthor: Ann Author <ann@example.com>\n\nFrom: Bob <bob@c>\n\nWhy.\n"
    header = read(text)
    assert header.author is not None
    assert header.author.name == "Ann Author"
    assert "From: Bob <bob@c>" in header.message


def test_another_date_takes_the_line_of_the_old_one() -> None:
    author = Identity("Ann Author", "ann@example.com", "1763722800 +0100")
    assert changed(MAIL, read(MAIL).message, author) == [
        "-Date: Fri, 21 Nov 2025 11:00:00 +0100",
        "+Date: Fri, 21 Nov 2025 12:00:00 +0100",
    ]


def test_a_message_that_would_end_early_is_quoted_and_other_fields_stay() -> None:
    text = reword(split_lines(MAIL), read(MAIL), Header("Run\n\ndiff -u a b", read(MAIL).author))
    assert read(text).message == "Run\n\ndiff -u a b\n\nBug-Debian: https://bugs.example.com/8"
    assert b"Message-Id: <1@example.com>\nBug-Debian: https://bugs.example.com/8\n" in text
    assert text.endswith(b"---\n f | 2 +-\n\n")


def test_comments_in_a_text_stay_though_git_takes_them_off_a_message() -> None:
    text = b"## 01_x.dpatch by A <a@b>\n##\n## DP: Build it.\n\nFix it\n\n\n# note\nfor good \n\n"
    assert changed(text, "Fix it\n\nfor good") == []
    assert changed(text, "Mend it\n\nfor good") == ["-Fix it", "+Mend it"]


def test_a_text_that_reads_as_a_mail_becomes_one() -> None:
    text = reword([b"Fix it\n", b"\n"], Header("Fix it"), Header("Subject: x\n\ny"))
    assert read(text) == Header("Subject: x\n\ny")


LINE = st.sampled_from(
    (
        *(
            "Fix it",
            "  indented",
            "# comment",
            "",
            "",
            "Why: so",
            "Forwarded: no",
            "---",
            "diff -u a",
        ),
        *("Index: x", "Subject: y", "From: B <b@c>", "Author: C <c@d>", "Bug: 7", ".", "ü\udcff"),
        *("trailing  ", "Description: z", "[PATCH] q", " .", "Origin: there", "Re: x", "\ttab"),
    )
)
WORDS = st.lists(LINE, min_size=1, max_size=7).map("\n".join)
PREAMBLES = st.lists(
    LINE
    | st.sampled_from(
        (
            *("From: A <a@b>", "Subject: [PATCH 1/2] s", "Date: Fri, 2 Jan 2026 03:04:05 +0000"),
            *("Description: d", "Last-Update: 2024-01-01", "Message-Id: <1>", "To: x", " folded"),
        )
    ),
    max_size=12,
)


@given(PREAMBLES, WORDS, st.sampled_from(["\n", "\r\n"]))
def test_law_reworded_text_says_the_new_words_and_keeps_the_fields(
    lines: list[str], message: str, eol: str
) -> None:
    raw = "".join(f"{line}{eol}" for line in lines).encode("utf-8", "surrogateescape")
    form, old = read_header(split_lines(raw), "x")
    new = Header(message.strip() or "x", old.author if old else None)
    again = split_lines(reword(split_lines(raw), old, new))
    assert says(again, new.message) or "---" in message
    if form in (HeaderForm.MAIL, HeaderForm.DEP3):
        kept = {"message-id", "last-update", "to"}
        assert _fields(again, kept) == _fields(split_lines(raw), kept)


def _fields(raw: list[bytes], keys: set[str]) -> list[str]:
    lines = [line.decode("utf-8", "surrogateescape").strip() for line in raw]
    first = next((at for at, line in enumerate(lines) if line), 0)
    return [lines[each.start] for each in read_fields(lines, first)[0] if each.key in keys]
