"""git's own test data, from a clone of git's repository: verdict for verdict with git.

PATCHKIT_TEST_GIT names the clone (bare or not); nothing of it is copied in here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from bench.corpora.judging import BOTH, NEITHER
from bench.corpora.suites import git_scripts
from patchkit.errors import BadInputError
from patchkit.model.mail import parse_patch
from patchkit.model.patch import FileChange

CLONE = os.environ.get("PATCHKIT_TEST_GIT", "")

pytestmark = [
    pytest.mark.skipif(not CLONE, reason="PATCHKIT_TEST_GIT names no clone of git"),
    pytest.mark.slow,
]

#: Where what we read from a mail is not what git mailinfo does, and why.
KNOWN = {
    ("sample.mbox", "0001"): "a comment after the address goes",
    (
        "sample.mbox",
        "0012",
    ): "of the tags before a subject only [PATCH] goes",
    ("sample.mbox", "0015"): "a From: in the body without an address is text",
    ("rfc2047-samples.mbox", "0003"): "Re: stays where there is no [PATCH]",
    ("rfc2047-samples.mbox", "0004"): "a comment after the address goes",
}


def _shown(path: str) -> bytes:
    return subprocess.run(
        ["git", "-C", CLONE, "show", f"HEAD:{path}"], capture_output=True, check=True
    ).stdout


def _patches() -> list[str]:
    """Every patch that git's tests keep as a file."""
    command = ["git", "-C", CLONE, "ls-tree", "-r", "--name-only", "HEAD", "t/"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if name.endswith((".patch", ".diff"))]


def _as_git_counts(data: bytes, folder: Path, strip: int = 1) -> set[tuple[str, str, str]] | None:
    """(added, deleted, path) of every file; None if git refuses the patch."""
    # with -p, git does not guess how many folders to take off
    command = ["git", "apply", "--numstat", "-z", f"-p{strip}", "-"]
    done = subprocess.run(command, cwd=folder, input=data, capture_output=True, check=False)
    rows = [tuple(row.split("\t", 2)) for row in os.fsdecode(done.stdout).split("\0")[:-1]]
    return None if done.returncode else {(a, d, path) for a, d, path in rows}


def _as_we_count(data: bytes, strip: int = 1) -> set[tuple[str, str, str]] | None:
    try:
        changes = parse_patch(data, name="x.patch", strip=strip).changes
    except BadInputError:
        return None
    return {_row(change) for change in changes} or None


def _row(change: FileChange) -> tuple[str, str, str]:
    lines = [line for hunk in change.hunks for line in hunk.lines]
    added, deleted = (sum(line.startswith(sign) for line in lines) for sign in (b"+", b"-"))
    return str(added), str(deleted), change.path


def test_every_patch_of_gits_tests(tmp_path: Path) -> None:
    names = _patches()
    assert len(names) >= 30
    differ = []
    for name, strip in product(names, (0, 1, 2)):
        data = _shown(name)
        ours, theirs = _as_we_count(data, strip), _as_git_counts(data, tmp_path, strip)
        if ours != theirs:
            differ.append((name, strip, ours, theirs))
    assert differ == []


@pytest.mark.parametrize("script", ["t4133", "t4135", "t4139", "t4122"])
def test_names_and_traversal(tmp_path: Path, script: str) -> None:
    """What git's own scripts give to `git apply`: its verdict and its tree."""
    found = git_scripts(CLONE, tmp_path, match=f"{script}-*.sh", tell=str)
    assert found.differ == []
    assert found.total() == found.sum(BOTH) + found.sum(NEITHER) >= 4


def _mails(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    for box in ("sample.mbox", "rfc2047-samples.mbox", "quoted-cr.mbox"):
        (folder / box).write_bytes(_shown(f"t/t5100/{box}"))
        out = folder / f"{box}.mails"
        out.mkdir()
        subprocess.run(
            ["git", "mailsplit", f"-o{out}", str(folder / box)], capture_output=True, check=True
        )
        for path in sorted(out.iterdir()):
            yield box, path.name, path.read_bytes()


def test_mails_of_t5100(tmp_path: Path) -> None:
    compared = 0
    for box, number, data in _mails(tmp_path):
        counted = _as_we_count(data)
        assert counted == _as_git_counts(data, tmp_path), (box, number)
        told = _mailinfo(data, tmp_path)
        # of a mail without a patch git reads the fields in the body differently
        if counted is None and box == "sample.mbox":
            continue
        try:
            file = parse_patch(data, name="x.patch")
        except BadInputError as error:
            assert "base64" in str(error), (box, number)
            continue
        author = (file.author.name, file.author.email) if file.author else ("", "")
        same = told == (*author, file.subject)
        assert same != ((box, number) in KNOWN), (box, number, told, author, file.subject)
        compared += 1
    assert compared >= 20


def _mailinfo(data: bytes, folder: Path) -> tuple[str, str, str]:
    done = subprocess.run(
        ["git", "mailinfo", "msg", "patch"], cwd=folder, input=data, capture_output=True, check=True
    )
    rows = (row.partition(": ") for row in done.stdout.decode("utf-8", "replace").splitlines())
    fields = {name: value for name, _, value in rows}
    return fields.get("Author", ""), fields.get("Email", ""), fields.get("Subject", "")
