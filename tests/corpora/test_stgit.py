"""StGit's import corpus, from a clone that PATCHKIT_TEST_STGIT names: its scripts' own trees."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.support.projects import Project
from tests.support.repos import Upstream, git_in

CLONE = os.environ.get("PATCHKIT_TEST_STGIT", "")

pytestmark = [
    pytest.mark.skipif(not CLONE, reason="PATCHKIT_TEST_STGIT names no clone of StGit"),
    pytest.mark.slow,
]

_AUTHOR = "Inge Ström <inge@power.com>"
_DIFF, _MAIL = (
    "e96b1fba2160890ff600b675d7140d46b022b155",
    "030be42660323ff2a1958f9ee79589a4f3fbee2f",
)

#: file -> (-p, the tree that StGit's own script expects, the author)
SINGLE = {
    "t1800/git-diff": (1, _DIFF, None),
    "t1800/git-diff-p0": (0, _DIFF, None),
    "t1800/gnu-diff": (1, _DIFF, None),
    "t1800/stg-export": (1, _DIFF, None),
    "t1801/email-8bit": (1, _MAIL, _AUTHOR),
    "t1801/email-qp": (1, _MAIL, _AUTHOR),
    "t1801/email-quoted-from": (1, _MAIL, _AUTHOR),
}
_MBOX = (
    "401bef82cd9fb403aba18f480a63844416a2e023",
    "e49dbce010ec7f441015a8c64bce0b99108af4cc",
    "166bbaf27a44aee21ba78c98822a741e6f7d78f5",
)
_SERIES = "2c33937252a21f1550c0bf21f1de534b68f69635"


def _shown(path: str) -> bytes:
    command = ["git", "-C", CLONE, "show", f"HEAD:t/{path}"]
    return subprocess.run(command, capture_output=True, check=True).stdout


def _began(project: Project, upstream: Upstream, **more: bytes) -> None:
    files = {
        "foo.txt": _shown("t1800/foo.txt").decode(),
        **{k: v.decode() for k, v in more.items()},
    }
    project.component("demo", upstream, upstream.commit(files))


def _commits(project: Project) -> list[tuple[str, str]]:
    """(tree, author) of each commit of the applied stack."""
    project.run("apply").ok()
    rows = git_in(
        project.checkout("demo"),
        "log",
        "--reverse",
        "--format=%T %an <%ae>",
        "refs/patchkit/base..",
    )
    return [(row[:40], row[41:]) for row in rows.decode().splitlines()]


@pytest.mark.parametrize("path", SINGLE)
def test_a_patch(project: Project, upstream: Upstream, path: str) -> None:
    strip, tree, author = SINGLE[path]
    _began(project, upstream)
    project.write({"incoming/one.patch": _shown(path)})
    project.run("import", "incoming", "--strip", str(strip)).ok()
    ((made, by),) = _commits(project)
    assert made == tree
    assert author in (None, by)


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_an_mbox(project: Project, upstream: Upstream, ends: bytes) -> None:
    _began(project, upstream)
    project.write({"all.mbox": _shown("t1801/email-mbox").replace(b"\n", ends)})
    project.run("import", "all.mbox").ok()
    assert _commits(project) == [(tree, _AUTHOR) for tree in _MBOX]


def test_three_mails_with_one_subject(project: Project, upstream: Upstream) -> None:
    _began(project, upstream)
    project.write({"all.mbox": _shown("t1801/email-mbox-same-subject")})
    project.run("import", "all.mbox").ok()
    names = (project.root / "patches/demo/series").read_text().split()
    assert len(names) == len({name.casefold() for name in names}) == 3


def test_a_quilt_series(project: Project, upstream: Upstream) -> None:
    _began(project, upstream, **{"jabberwocky.txt": b""})
    rows = _shown("t1800/patches/series").decode().splitlines()
    names = [row for row in rows if not row.startswith("#")]
    project.write({f"incoming/{name}": _shown(f"t1800/patches/{name}") for name in names})
    project.write({"incoming/series": _shown("t1800/patches/series")})
    project.run("import", "incoming").ok()
    made = _commits(project)
    assert (len(made), made[-1][0]) == (len(names), _SERIES)


def test_what_does_not_fit(project: Project, upstream: Upstream) -> None:
    _began(project, upstream)
    project.write({"incoming/one.patch": _shown("t1800/diff-with-rejects")})
    ran = project.run("import", "incoming")
    assert "one.patch" in ran.out + ran.err
    assert project.run("check").code != 0 or ran.code != 0
