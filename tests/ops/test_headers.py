"""What stands above a diff is the user's, in every command that writes patch files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.stacked import NAMES, STATES, Stacked, small_patches

HEADS = {
    "one.patch": (
        b"Description: Patch one\n Because.\n .\n Truly.\nAuthor: Ann Author <ann@example.com>\n"
        b"Origin: upstream,\n  https://example.com/1\nBug-Debian: https://bugs.example.com/8\n"
        b"Forwarded: not-needed\nReviewed-by: Bob <bob@example.com>\nLast-Update: 2024-01-02\n"
        b"---\nThis patch header follows DEP-3\n"
    ),
    "two.patch": b"## two.dpatch by nobody\n##\n## DP: no author, no date\n\nWhy it is.\n\n",
    "three.patch": (
        b"From: Ann Author <ann@example.com>\nSubject: [PATCH 3/3] Patch three\n"
        b"Message-Id: <1@example.com>\nForwarded: https://example.com/3\n\nFor a test.\n---\n"
        b" b.txt | 2 +-\n\n"
    ),
}


@pytest.fixture
def stack(project: Project, upstream: Upstream) -> Stacked:
    """The small stack with a header in DEP-3, one in free words, and a mail without a date."""
    diffs = {name: data[data.index(b"diff --git") :] for name, data in small_patches().items()}
    return Stacked.of(project, upstream, {name: HEADS[name] + diffs[name] for name in NAMES})


def above(data: bytes) -> bytes:
    return data[: data.index(b"diff --git")]


def test_a_mailbox_holds_it_below_what_makes_it_a_mail(stack: Stacked) -> None:
    target = stack.project.root / "all.mbox"
    with stack.untouched():
        ran = stack.run("export", "--output", str(target)).ends(4, "two.patch names no author")
    assert "one.patch" not in ran.err
    stack.run("export", "--output", str(target), "--author", "Me <me@example.com>").ok()
    one, two, three = target.read_bytes().split(b" Mon Sep 17 00:00:00 2001\n")[1:]
    head = b"From: Ann Author <ann@example.com>\nSubject: Patch one\n\n"
    assert above(one) == head + HEADS["one.patch"]
    assert above(two) == (
        b"From: Me <me@example.com>\nSubject: ## two.dpatch by nobody\n\n" + HEADS["two.patch"]
    )
    assert above(three) == HEADS["three.patch"]
    assert b"Date:" not in target.read_bytes()
    assert b"localhost" not in target.read_bytes()


@pytest.mark.parametrize(
    "argv",
    [
        ("--author", "Me"),
        ("--author", "<>"),
        ("--format", "quilt", "--output", "q", "--author", "Me <me@example.com>"),
    ],
)
def test_an_author_for_a_mailbox_has_an_address(stack: Stacked, argv: tuple[str, ...]) -> None:
    form = () if "quilt" in argv else ("--output", "x.mbox")
    stack.run("export", *form, *argv).ends(2, "--author needs")


@pytest.mark.parametrize(
    "field", [b"From: Ann Author\n", b"From: A <a@b>\nDate: Fri, 2 Jan 2026\n"]
)
def test_a_mailbox_says_which_mails_git_am_does_not_take(
    project: Project, upstream: Upstream, field: bytes
) -> None:
    data = small_patches()["one.patch"]
    head = field + b"Subject: x\n\n"
    stack = Stacked.of(project, upstream, {"one.patch": head + data[data.index(b"diff --git") :]})
    stack.run("export", "--output", str(project.root / "all.mbox")).ok().says(
        "one.patch: git am does not take its From:"
    )
    assert head in (project.root / "all.mbox").read_bytes()


def test_commits_and_log_say_what_the_fields_say(stack: Stacked) -> None:
    assert stack.git("log", "-1", "--format=%an <%ae>%n%B", "HEAD~2") == (
        "Ann Author <ann@example.com>\nPatch one\n\nBecause.\n\nTruly.\n\n"
        "Origin: upstream, https://example.com/1\nBug-Debian: https://bugs.example.com/8\n"
        "Forwarded: not-needed\nReviewed-by: Bob <bob@example.com>\nLast-Update: 2024-01-02\n"
        "Patchkit-Patch: one.patch"
    )
    first, *_ = stack.run("log", "--json").ok().component["patches"]
    assert (first["subject"], first["author"]) == ("Patch one", "Ann Author")


def test_check_finds_author_reason_and_status_there(stack: Stacked) -> None:
    rows = stack.run("check", "--json").ok().component["patches"]
    found = [each for row in rows for each in row["findings"]]
    words = ("header-author", "header-reason", "upstream-status")
    assert [(each["where"], each["code"]) for each in found if each["code"] in words] == [
        ("patches/demo/two.patch:1", "header-author"),
        ("patches/demo/two.patch:1", "upstream-status"),
    ]


def reworded(stack: Stacked, message: str) -> None:
    """The first commit gets another message, as `git rebase --interactive` gives it."""
    stack.git("checkout", "--quiet", "--detach", "HEAD~2")
    stack.git("commit", "--quiet", "--amend", "--message", message)
    stack.git("rebase", "--quiet", "--onto", "HEAD", "patchkit~2", "patchkit")


def test_a_reworded_subject_changes_the_description_and_no_other_field(stack: Stacked) -> None:
    before = stack.project.files()
    message = stack.git("log", "-1", "--format=%B", "HEAD~2")
    reworded(stack, message.replace("Patch one", "Patch number one"))
    stack.run("refresh").ok()
    assert stack.changed(before) == ["one.patch"]
    old = before["patches/demo/one.patch"]
    assert stack.patch("one.patch") == old.replace(b"Patch one\n", b"Patch number one\n")
    assert stack.run("refresh").ok().out.count("unchanged") == 1


def test_a_message_typed_without_the_fields_leaves_them(stack: Stacked) -> None:
    reworded(stack, "Another\n\nReason.\n\nPatchkit-Patch: one.patch")
    stack.run("refresh").ok()
    head = above(stack.patch("one.patch"))
    fields = HEADS["one.patch"][HEADS["one.patch"].index(b"Author:") :]
    assert head == b"Description: Another\n Reason.\n" + fields
    assert "Forwarded: not-needed" in stack.git("log", "-1", "--format=%B", "HEAD~2")


def test_an_edit_a_bump_and_quilt_leave_every_header_alone(
    stack: Stacked, upstream: Upstream, tmp_path: Path
) -> None:
    """To the byte."""
    stack.edit("a.txt", "five\n", "5\n5 and a half\n")
    stack.run("refresh").ok()
    assert {name: above(stack.patch(name)) for name in NAMES} == HEADS
    later = upstream.commit({"a.txt": "new first line\n" + str(STATES[0]["a.txt"])})
    stack.run("bump", "demo", "--to", later).ok()
    assert {name: above(stack.patch(name)) for name in NAMES} == HEADS
    out = tmp_path / "out"
    stack.run("export", "--format", "quilt", "--output", str(out)).ok()
    assert {name: above((out / name).read_bytes()) for name in NAMES} == HEADS


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({}, b""),
        ({"SOURCE_DATE_EPOCH": "86400"}, b"Date: Fri, 2 Jan 1970 00:00:00 +0000\n"),
        (
            {"SOURCE_DATE_EPOCH": "86400", "GIT_AUTHOR_DATE": "2024-01-02"},
            b"Date: Tue, 2 Jan 2024 00:00:00 +0000\n",
        ),
        (
            {"GIT_AUTHOR_DATE": "2024-01-02 01:00 +0100"},
            b"Date: Tue, 2 Jan 2024 00:00:00 +0000\n",
        ),
        ({"GIT_AUTHOR_DATE": "0 -0500"}, b"Date: Thu, 1 Jan 1970 00:00:00 +0000\n"),
    ],
)
def test_new_writes_the_same_bytes_wherever_the_clock_is(
    stack: Stacked,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    line: bytes,
) -> None:
    for name in ("GIT_AUTHOR_DATE", "SOURCE_DATE_EPOCH"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**variables, "TZ": "Asia/Kathmandu"}.items():
        monkeypatch.setenv(name, value)
    stack.edit("c.txt", "line 1\n", "first line\n")
    stack.run("refresh", "--new", "four", "--message", "Fourth").ok()
    head = above(stack.patch("four.patch"))
    assert head.startswith(b"From: ")
    assert head.split(b">\n", 1)[1] == line + b"Subject: Fourth\n\n"


def test_a_date_that_is_none_is_refused(stack: Stacked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_DATE", "yesterday")
    stack.edit("c.txt", "line 1\n", "first line\n")
    stack.run("refresh", "--new", "four").ends(2, "'yesterday' is no date")
