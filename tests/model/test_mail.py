from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.errors import BadInputError
from patchkit.model.header import clean_message, format_header
from patchkit.model.mail import parse_patch
from patchkit.model.patch import Header, Identity
from tests.support.repos import git_in, make_patch

DIFF = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"

FORMAT_PATCH = (
    b"From 0123456789abcdef0123456789abcdef01234567 Mon Sep 17 00:00:00 2001\n"
    b"From: =?UTF-8?q?J=C3=BCrgen=20M=C3=BCller?= <j@example.com>\n"
    b"Date: Fri, 21 Nov 2025 11:00:00 +0100\n"
    b"Subject: [PATCH v2 3/7] [NPU] Run without\n"
    b" a GPU\n"
    b"\n"
    b"Why it is needed.\n"
    b"\n"
    b"Signed-off-by: A <a@example.com>\n"
    b"---\n"
    b" f | 2 +-\n"
    b" 1 file changed, 1 insertion(+), 1 deletion(-)\n"
    b"\n"
)


def header(text: bytes) -> Header | None:
    return parse_patch(text + DIFF, name="x.patch").header


def test_reads_what_format_patch_writes() -> None:
    file = parse_patch(FORMAT_PATCH + DIFF + b"-- \n2.39.5\n\n", name="x.patch")
    assert (file.preamble, file.diff, file.signature) == (FORMAT_PATCH, DIFF, b"-- \n2.39.5\n\n")
    assert file.header == Header(
        "[NPU] Run without a GPU\n\nWhy it is needed.\n\nSigned-off-by: A <a@example.com>",
        Identity("Jürgen Müller", "j@example.com", "1763719200 +0100"),
    )


def test_a_raw_diff_has_no_header() -> None:
    assert header(b"") is None
    assert header(b"\n\n") is None


def test_free_text_is_the_message_up_to_the_separator() -> None:
    assert header(b"Make it work.\n\nOn NPU.\n---\n f | 2 +-\n\n") == Header(
        "Make it work.\n\nOn NPU."
    )


def test_only_the_patch_tag_is_dropped_from_the_subject() -> None:
    subjects = {
        b"[PATCH] x": "x",
        b"[PATCH 1/2][tool] x": "[tool] x",
        b"[RFC PATCH v3] x": "x",
        b"Re: [PATCH] x": "x",
        b"[tool] x": "[tool] x",
        b"[tool] [PATCH] x": "[tool] x",
        b"Re: x [PATCH]": "x [PATCH]",
        b"[RFC][PATCH] x": "[RFC] x",
        b"[RFC]": "[RFC]",
    }
    for raw, subject in subjects.items():
        assert header(b"Subject: " + raw + b"\n\n") == Header(subject), raw


def test_fields_in_the_body_replace_those_of_the_mail() -> None:
    text = (
        b"From: list <l@example.com>\nSubject: [PATCH] a\n\nFrom: Real <r@example.com>\n\nwhy\n\n"
    )
    assert header(text) == Header("a\n\nwhy", Identity("Real", "r@example.com"))


def test_fields_in_the_body_may_be_folded() -> None:
    text = b"Subject: a\n\nFrom: Real\n <r@example.com>\n[PATCH] b\n\tc\n\nwhy\n\n"
    assert header(text) == Header("b\n\n\tc\n\nwhy", Identity("Real", "r@example.com"))
    assert header(b"Subject: a\n\nFrom: nobody\n\n") == Header("a\n\nFrom: nobody")


def test_a_declared_charset_is_decoded() -> None:
    text = (
        b"From: =?iso-8859-1?Q?J=FCrgen?= <j@example.com>\nSubject: x\n"
        b"Content-Type: text/plain; charset=iso-8859-1\n\ngr\xfc\xdfe\n\n"
    )
    assert header(text) == Header("x\n\ngrüße", Identity("Jürgen", "j@example.com"))


def test_text_that_is_utf8_is_no_other_charset_whatever_the_mail_says() -> None:
    text = "From: J <j@b>\nSubject: x\nContent-Type: text/plain; charset=iso-8859-1\n\ngrüße\n\n"
    assert header(text.encode()) == Header("x\n\ngrüße", Identity("J", "j@b"))


def test_a_line_of_blanks_continues_a_field() -> None:
    text = b"From: J <j@b>\n \nSubject: x\n\t\n y\n\nwhy\n\n"
    assert header(text) == Header("x y\n\nwhy", Identity("J", "j@b"))


def test_bytes_of_an_unknown_charset_survive() -> None:
    found = header(b"Subject: gr\xfc\xdfe\n\n")
    assert found is not None
    assert found.message.encode("utf-8", "surrogateescape") == b"gr\xfc\xdfe"


def test_an_encoded_mail_is_refused() -> None:
    text = b"From: a <a@example.com>\nSubject: x\nContent-Transfer-Encoding: base64\n\nAAAA\n"
    with pytest.raises(BadInputError, match=r"x\.patch: mail in base64"):
        parse_patch(text, name="x.patch")


@pytest.mark.parametrize(
    ("text", "name", "email"),
    [
        (b"a@example.com", "a@example.com", "a@example.com"),
        (b'"Doe, J." <j@example.com>', "Doe, J", "j@example.com"),
        (b"J <j@example.com> (at work)", "J (at work)", "j@example.com"),
        (b"<j@example.com>", "j@example.com", "j@example.com"),
        (b"<j@example.com> (J Doe)", "J Doe", "j@example.com"),
        (b"j@example.com (J Doe)", "J Doe", "j@example.com"),
    ],
)
def test_authors(text: bytes, name: str, email: str) -> None:
    assert header(b"From: " + text + b"\nSubject: x\n\n") == Header("x", Identity(name, email))


@pytest.mark.parametrize(
    "text",
    [
        b"a\xff\n\nb\x00c\n",
        b"Subject: x\r\n\r\nbody\r\n",
        b"no newline at the end",
        FORMAT_PATCH + DIFF + b"-- \n2.39\n",
        b"Index: f\n" + b"=" * 67 + b"\n--- f.orig\t2020-01-01\n+++ f\n@@ -1 +1 @@\n-a\n+b\n\n\n",
        FORMAT_PATCH + DIFF + b"text between\n" + DIFF + b"-- \nA\n-- \nB",
    ],
)
def test_the_three_parts_are_the_file(text: bytes) -> None:
    file = parse_patch(text, name="x.patch", strip=0 if text.startswith(b"Index") else 1)
    assert file.preamble + file.diff + file.signature == file.data == text


def test_what_announces_a_plain_diff_belongs_to_it() -> None:
    text = b"Why.\n\nIndex: f\n" + b"=" * 67 + b"\n--- f.orig\n+++ f\n@@ -1 +1 @@\n-a\n+b\n"
    assert parse_patch(text, name="x", strip=0).preamble == b"Why.\n\n"


def test_our_header_is_readable() -> None:
    text = format_header(
        Header(
            "Möglich: x\n\nWhy.\n\nFixes: 1", Identity("Ä Ö", "a@example.com", "1700000000 +0100")
        )
    )
    assert text.decode() == (
        "From: Ä Ö <a@example.com>\n"
        "Date: Tue, 14 Nov 2023 23:13:20 +0100\n"
        "Subject: Möglich: x\n"
        "\n"
        "Why.\n"
        "\n"
        "Fixes: 1\n"
        "\n"
    )
    assert format_header(Header("x")) == b"Subject: x\n\n"


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\x00"), max_size=12)
AWKWARD = st.sampled_from(
    (
        *("---", "--- a/x", "diff --git a/x b/x", "diff -u", "Index: x", "@@ -1 +1 @@", "+++ b"),
        *(
            "From: a",
            "From: a@b",
            "Date: now",
            "Subject: y",
            "From x",
            ">From x",
            "X-Patchkit-Message: quoted",
        ),
        *(
            "[PATCH] x",
            "Re: [PATCH] y",
            "[a][b PATCH] x",
            "=?utf-8?q?x?=",
            "x: y",
            "-- ",
            "# c",
            "\udcff",
        ),
        *("", " ", " ---", "  x", "\ttab"),
    )
)
LINES = st.lists(TEXT | AWKWARD, max_size=5).map("\n".join)
NAMES = TEXT.map(lambda text: text.strip(" \t\r\n.,:;<>\"\\'").replace("<", "").replace(">", ""))
DATES = st.builds(
    "{} {}".format,
    st.integers(-(2**40), 2**40),
    st.sampled_from(["+0000", "-0000", "+0545", "-1200", "+1400"]),
)
AUTHORS = st.builds(Identity, NAMES.filter(bool), st.just("a@example.com"), DATES | st.just(""))
HEADERS = st.builds(
    Header,
    st.builds("{}\n\n{}".format, LINES, LINES).map(clean_message).filter(str.strip),
    st.none() | AUTHORS,
)


@given(HEADERS)
def test_law_a_header_that_was_written_reads_the_same(header: Header) -> None:
    text = format_header(header)
    assert parse_patch(text + DIFF, name="x").header == header
    assert parse_patch(text + DIFF, name="x").diff == DIFF


@pytest.mark.parametrize(
    "message",
    [
        "Short",
        "[tool] Ünïcode\n\nWith body\n\n--- not the end\ndiff -u in text\n@@ -1 +1 @@\n\nA: b",
        "From x\n\nFrom: y <y@example.com>\n\n---\n diff --git a/f b/f\n",
        "two\nlines\n\nIndex: f",
    ],
)
def test_git_takes_what_we_write(tmp_path: Path, message: str) -> None:
    diff = make_patch({"f": "a\n"}, {"f": "b\n"}, subject=None)
    header = Header(clean_message(message), Identity("Ä, B", "a@example.com", "1700000000 +0100"))
    (tmp_path / "x.patch").write_bytes(format_header(header) + diff)
    git_in(tmp_path, "init", "-q")
    (tmp_path / "f").write_text("a\n")
    git_in(tmp_path, "add", "f")
    git_in(tmp_path, "commit", "-q", "-m", "base")
    git_in(tmp_path, "apply", "--cached", "x.patch")
    applied = git_in(tmp_path, "write-tree")
    git_in(tmp_path, "reset", "-q", "--hard")
    git_in(tmp_path, "am", "-q", "x.patch")
    assert git_in(tmp_path, "rev-parse", "HEAD^{tree}") == applied
    who = git_in(tmp_path, "log", "-1", "--format=%an <%ae> %ad", "--date=raw").decode()
    assert who == "Ä, B <a@example.com> 1700000000 +0100\n"
    assert subprocess.run(["git", "diff", "--quiet"], cwd=tmp_path, check=False).returncode == 0
