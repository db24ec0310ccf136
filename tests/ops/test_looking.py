"""`patchkit log` and git: what is in a stack, and what is beside it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.golden import Golden
from tests.support.projects import Project, write_files
from tests.support.repos import Files, Upstream, git_in, make_patch

TEXT = "".join(f"value_{n} = compute({n})\n" for n in range(1, 13))
S0: Files = {"core.py": TEXT, "setup.py": "setup()\n"}
S1: Files = {**S0, "core.py": TEXT.replace("compute(2)", "compute(2, npu=True)")}
S2: Files = {**S1, "npu.py": "import torch\n"}
S3: Files = {**S2, "core.py": str(S2["core.py"]).replace("npu=True", "npu=found")}
PATCHES = {
    "one.patch": make_patch(S0, S1, subject="Compute 2 on the NPU"),
    "two.patch": make_patch(S1, S2, subject="Add an NPU module", author="Bo <bo@example.com>"),
    "three.patch": make_patch(S2, S3, subject="Look whether there is an NPU"),
}


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    """A component `demo` with three patches; the third needs the first."""
    project.component("demo", upstream, S0, PATCHES)
    return project


@pytest.fixture
def applied(demo: Project) -> Path:
    """The checkout with the stack applied."""
    demo.prepare("apply").ok()
    return demo.checkout("demo")


# --- git diff


def test_git_diff_shows_what_a_checkout_has_beyond_its_stack(demo: Project, applied: Path) -> None:
    """Edits and commits of one's own together; new files once they are in the index."""
    (applied / "setup.py").write_text("setup(npu=True)\n")
    git_in(applied, "commit", "-qam", "My own")
    write_files(
        applied, {"core.py": (applied / "core.py").read_text() + "more = 1\n", "new.py": "new\n"}
    )
    git_in(applied, "add", "new.py")
    (applied / "untracked.py").write_text("x\n")
    (hint,) = (line for line in demo.run("apply").err.split("\n") if "look at it:" in line)
    *command, ref = shlex.split(hint.partition(": ")[2])
    assert command == ["git", "-C", str(applied), "diff"]
    told = git_in(applied, "diff", "--numstat", ref).decode()
    assert told == "1\t0\tcore.py\n1\t0\tnew.py\n1\t1\tsetup.py\n"


# --- log


def test_log(demo: Project, golden: Golden) -> None:
    golden("log-absent", demo.run("log"))


def test_log_tells_what_is_in_the_checkout(demo: Project, applied: Path, golden: Golden) -> None:
    # drop the last patch, amend the one before, add a commit
    git_in(applied, "reset", "-q", "--hard", "HEAD^")
    (applied / "npu.py").write_text("import torch_npu\n")
    git_in(applied, "commit", "-qa", "--amend", "--no-edit")
    (applied / "setup.py").write_text("setup(npu=True)\n")
    git_in(applied, "commit", "-qam", "My own")
    ran = demo.run("log", "--json").ok()
    (log,) = ran.json["components"]
    assert [patch["checkout"] for patch in log["patches"]] == ["applied", "changed", "missing"]
    assert [commit["subject"] for commit in log["commits"]] == ["My own"]
    assert [patch["author"] for patch in log["patches"]][1] == "Bo"


def test_log_of_a_stack_that_does_not_apply(
    demo: Project, upstream: Upstream, golden: Golden
) -> None:
    demo.component("demo", upstream, {"core.py": "x\n"}, PATCHES)
    golden("log-conflicted", demo.run("log"))


# --- git blame


def test_git_blame_in_a_checkout_names_the_patch(demo: Project, applied: Path) -> None:
    """Each patch is a commit there, whose message ends with the patch's name."""
    named = {}
    for line in ("1", "2"):
        told = git_in(applied, "blame", "--porcelain", f"-L{line},{line}", "core.py").decode()
        commit = told.split()[0]
        shown = git_in(applied, "show", "-s", "--format=%B", commit).decode()
        named[line] = re.findall("Patchkit-Patch: .*", shown)
    assert named == {"1": [], "2": ["Patchkit-Patch: three.patch"]}


# --- show


def test_a_number_that_no_patch_has_asks_no_network(demo: Project, upstream: Upstream) -> None:
    demo.prepare("apply").ok()
    upstream.vanish()
    ran = demo.run("show", "9").ends(2, "9: no such patch in the series")
    assert "asking" not in ran.err
