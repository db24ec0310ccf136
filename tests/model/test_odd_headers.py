"""Odd headers are read as `git mailinfo` reads them, but for what docs/why-own-engine.md lists.

With `-b`, as `git am --keep-non-patch` runs it: a subject keeps its `[tag]`.
"""

from __future__ import annotations

import re
from random import Random

import pytest

from patchkit.errors import BadInputError
from patchkit.model.mail import parse_patch
from tests.model.oracle import mailinfo
from tests.support.laws import share

NAMES = ("Ann Author", "Jörg Ä", "O. N. E", "a", "Doe, J.", 'Ann "The" Author', "x@y")
SENDERS = (
    "{} <a@example.com>",
    '"{}" <a@example.com>',
    "<a@example.com> ({})",
    "a@example.com ({})",
    "a@example.com",
    "Jane Doe",
    "{}\n <a@example.com>",
    "=?utf-8?q?J=C3=B6rg?= <a@example.com>",
    "=?iso-8859-1?q?J=F6rg?= <a@example.com>",
    "{} <a@example.com>, b <b@c>",
    "  {}   <a@example.com>  ",
    "",
)
TAGS: tuple[str, ...] = (
    "[PATCH] ",
    "[PATCH v2 3/9] ",
    "[RFC PATCH] ",
    "Re: ",
    "[RFC] ",
    "[tool]",
    "[a [b] c] ",
)
TAGS += ("RE: ", "[PATCH]", "[PATCH net-next] ", "Fwd: ")
WORDS = ("Fix", "größe", "the", "(#12)", "a:b", "[x]", "", "  ", "=?utf-8?q?caf=C3=A9?=")
DATES = ("Fri, 2 Jan 2026 03:04:05 +0000", "2026-01-02 03:04:05 +0100", "never")
FIELDS = (
    "Content-Type: text/plain; charset=utf-8",
    'Content-Type: text/plain; charset="us-ascii"',
    "Content-Transfer-Encoding: 8bit",
    "Content-Transfer-Encoding: quoted-printable",
    "MIME-Version: 1.0",
    "To: list@example.com",
    "X-Empty:",
    "Cc: a@b,\n c@d",
)
BODY: tuple[str, ...] = (
    "Why.",
    "",
    "From: B Bee <b@c.d>",
    "From: Jane",
    "Subject: other",
    f"Date: {DATES[0]}",
)
BODY += ("-- >8 --", "[PATCH] again", "> quoted", "Signed-off-by: A <a@b>", " indented", "größe")
CHANGE = "---\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"


def odd(random: Random) -> bytes:
    """A mail with a From: or a Subject:, and whatever else people and programs write."""
    sender = random.choice(SENDERS).format(random.choice(NAMES))
    tags = "".join(random.choices(TAGS, k=random.randrange(3)))
    subject = tags + " ".join(random.choices(WORDS, k=random.randrange(5)))
    if random.random() < 0.2:
        subject = subject.replace(" ", random.choice(("\n ", "\n\t", " \n  ")), 1)
    name = random.choice(("Subject", "subject", "SUBJECT"))
    head = [f"From: {sender}", f"{name}:{random.choice((' ', '', '  '))}{subject}"]
    if random.random() < 0.2:
        head.pop(random.randrange(2))
    head += [f"Date: {random.choice(DATES)}"] * (random.random() < 0.6)
    head += random.choices(FIELDS, k=random.randrange(3))
    random.shuffle(head)
    if random.random() < 0.3:
        head.insert(0, f"From {'0123456789' * 4} Mon Sep 17 00:00:00 2001")
    return "\n".join([*head, "", *random.choices(BODY, k=random.randrange(6)), CHANGE]).encode()


def flat(message: str) -> list[str]:
    """Words: how blanks part them may differ (two of a subject stay), and `[RFC][PATCH] x`."""
    return re.sub(r"\]:?\s*", "] ", message).split()


def cleaned(name: str) -> str:
    """As git cleans a name when it commits."""
    return re.sub(r"[\n<>]", "", name).strip(" \t\r\n.,:;<>\"\\'")


def difference(data: bytes) -> str:
    """Where a mail is read otherwise than by git, "" for nowhere; what is on purpose is no such."""
    told = mailinfo(data)
    try:
        file = parse_patch(data, name="x.patch")
    except BadInputError as error:
        # the diff of such a mail is not what stands there
        return "" if "mail in quoted-printable" in str(error) else str(error)
    if told is None:
        return ""
    name, address = told["Author"], told["Email"]
    message = f"{told['Subject']}\n\n{told['message']}"
    text = data.decode()
    # a name without an address is an author, and no field at the top of a body
    nameless = "From: Jane" in text
    ours = (file.author.name, file.author.email) if file.author else ("", "")
    # git has the address in the place of a name with an @, and of several senders
    strange = name == address
    if not nameless and not strange and ours != (cleaned(name), address):
        return f"author {ours} {(name, address)}"
    kept = file.message.replace("From: Jane\n", "") if nameless else file.message
    same = flat(kept) == flat(message) or (nameless and "From: Jane" in file.message)
    return "" if same else f"message {file.message!r} {message!r}"


@pytest.mark.slow
@pytest.mark.hypothesis
def test_odd_headers() -> None:
    """3,000 of them in `make faults`, a share here."""
    found = {seed: difference(odd(Random(seed))) for seed in range(share(3000))}
    assert {seed: what for seed, what in found.items() if what} == {}


@pytest.mark.parametrize(
    ("head", "author", "subject"),
    [
        ("From: A <a@b>, C <c@d>\nSubject: x", "A", "x"),
        ("From: A <a@b>\nSubject: [RFC] x", "A", "[RFC] x"),
        ("From: A <a@b>\nSubject: [RFC][PATCH] x", "A", "[RFC] x"),
        ("From: A <a@b>\nSubject: two  blanks", "A", "two  blanks"),
        ("From: Jane Doe\nSubject: x", "Jane Doe", "x"),
        ("From: x@y <a@b>\nSubject: x", "x@y", "x"),
    ],
)
def test_what_differs_on_purpose(head: str, author: str, subject: str) -> None:
    file = parse_patch(f"{head}\n\n{CHANGE}".encode(), name="x.patch")
    assert file.author is not None
    assert (file.author.name, file.subject) == (author, subject)
