"""Laws of a bump that stops, on generated conflicts of every kind of file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.test_resume import Bumping
from tests.support.laws import share
from tests.support.projects import Project
from tests.support.repos import Content, Symlink, Upstream, executable, make_patch

pytestmark = pytest.mark.slow

#: What a file may be, by side: small, so that sides meet often.
_CONTENTS: st.SearchStrategy[Content] = st.sampled_from(
    [
        None,
        "one\ntwo\nthree\n",
        "one\n2\nthree\n",
        "1\ntwo\n3\n",
        "one\r\ntwo\r\nthree\r\n",
        "one\r\n2\r\nthree\r\n",
        "no end",
        b"\0binary",
        b"\0another\0",
        executable("one\ntwo\nthree\n"),
        Symlink("keep"),
        Symlink("elsewhere"),
    ]
)
_SIDES = st.fixed_dictionaries(dict.fromkeys(("a", "folder/b", "c d"), _CONTENTS))


@settings(max_examples=share(5))
@given(old=_SIDES, ours=_SIDES, theirs=_SIDES, keep=st.booleans())
def test_law_every_way_back_is_exact(
    old: dict[str, Content], ours: dict[str, Content], theirs: dict[str, Content], keep: bool
) -> None:
    if old == ours:
        return  # no patch
    with tempfile.TemporaryDirectory() as folder:
        upstream = Upstream.create(Path(folder) / "upstream.git")
        base: dict[str, Content] = {"keep": "k\n", **old}
        patch = make_patch(base, {**base, **ours}, subject="Ours", body="For a law.")
        project = Project(Path(folder) / "project")
        project.component(
            "demo",
            upstream,
            {name: each for name, each in base.items() if each is not None},
            {"ours.patch": patch},
            track="main",
        )
        project.prepare("apply").ok()
        upstream.commit({**theirs, "more": "m\n"})
        stack = Bumping(project, project.checkout("demo"))
        before = stack.state
        code = stack.bump().code
        if code == 3:
            assert stack.product == before[:2]
            stack.run("abort").ok()
            assert stack.state == before
            stack.bump().ends(3)
            _decide(stack, ours=keep)
            if stack.run("continue").code != 0:  # nothing of the patch is left
                stack.run("skip").ok()
        else:
            assert code == 0
            stack.prepare("apply").ok()
        stack.settled()
        stack.run("check", "--quiet").ok()
        if code == 3:
            stack.run("undo").ok()
            assert stack.state_but_kept == before


def _decide(stack: Bumping, *, ours: bool) -> None:
    """Take one side of every conflict, as `git checkout --ours` and `--theirs` do."""
    rows = stack.git("ls-files", "--unmerged", "-z").split("\0")[:-1]
    stages: dict[str, set[str]] = {}
    for row in rows:
        head, path = row.split("\t", 1)
        stages.setdefault(path, set()).add(head.split(" ")[2])
    for path, there in stages.items():
        # the patch is git's "theirs"
        if ("3" if ours else "2") in there:
            stack.git("checkout", "-q", "--theirs" if ours else "--ours", "--", path)
            stack.git("add", "--", path)
        else:
            stack.git("rm", "-q", "--force", "--", path)
