"""What `check` says to type next works as it is typed."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, git_in, make_patch

BODY = "Because it has to be."
TEXT = "".join(f"value_{n} = compute({n})\n" for n in range(1, 41))
FAST = TEXT.replace("compute(20)", "compute(20, fast=True)")
ONE = make_patch({"pkg/core.py": TEXT}, {"pkg/core.py": FAST}, subject="Go fast", body=BODY)


def commands(ran: Ran) -> list[str]:
    """The command lines among the next steps of the first patch that has any."""
    patches = [patch for each in ran.json["components"] for patch in each["patches"]]
    steps = next(patch["next_steps"] for patch in patches if patch["next_steps"])
    lines = [line for step in steps for line in step.splitlines()]
    return [x.strip() for x in lines if x.startswith(("  sed ", "  git ", "  patchkit "))]


def typed(project: Project, line: str) -> None:
    """Run a line as somebody types it in the project's folder."""
    if line.startswith("patchkit "):
        project.run(*line.split()[1:]).ok()
    else:
        accepted = (0, 1) if "--reject" in line else (0,)
        done = subprocess.run(
            ["sh", "-c", line], cwd=project.root, check=False, capture_output=True
        )
        assert done.returncode in accepted, done.stderr.decode()


@pytest.fixture
def gnu_sed() -> None:
    told = subprocess.run(["sed", "--version"], capture_output=True, check=False)
    if b"GNU" not in told.stdout:
        pytest.skip("the advice is for GNU sed")


def test_no_command_puts_another_name_into_a_patch(project: Project, upstream: Upstream) -> None:
    """Two options that both exist look like a renaming; only a person can say that it is one."""
    before = "if rebase.mergeCommits:\n    start()\n\n\n\n\nif rebase.mergeCommits:\n    stop()\n"
    after = before.replace("start()", "start(True)").replace("stop()", "stop(True)")
    there = before.replace("rebase.mergeCommits", "rebase.updateRefs")
    pin = upstream.commit({"a.py": there, "b.py": before})
    patch = make_patch({"a.py": before}, {"a.py": after}, body=BODY)
    project.component("app", upstream, pin, {"a.patch": patch})
    ran = project.run("check")
    assert ran.code == 1
    assert "it was renamed after" not in ran.out
    assert not any(each.startswith("sed ") for each in commands(project.run("check", "--json")))


@pytest.mark.usefixtures("gnu_sed")
@pytest.mark.parametrize("patch_has", ["CRLF", "LF"])
def test_line_ends(project: Project, upstream: Upstream, patch_has: str) -> None:
    """Nothing but the ends differs: they are what to change, in all files of the patch."""
    other = "".join(f"other_{n}\n" for n in range(9))
    before = {"pkg/core.py": TEXT, "pkg/other.py": other}
    after = {"pkg/core.py": FAST, "pkg/other.py": other.replace("other_4", "fourth")}
    files = before
    if patch_has == "CRLF":
        before, after = (
            {n: t.replace("\n", "\r\n") for n, t in x.items()} for x in (before, after)
        )
    else:
        files = {n: t.replace("\n", "\r\n") for n, t in files.items()}
    patch = make_patch(before, after, body=BODY) + b"-- \n2.39\n"
    project.component("app", upstream, upstream.commit(files), {"a.patch": patch})
    sed, check = commands(project.run("check", "--json"))
    assert sed.startswith("sed ")
    typed(project, sed)
    typed(project, check)


@pytest.mark.usefixtures("gnu_sed")
def test_moved_file(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"src/lib/core.py": TEXT})
    project.component("demo", upstream, pin, {"one.patch": ONE})
    sed, *_, check = commands(project.run("check", "--json"))
    assert "src/lib/core.py" in sed
    typed(project, sed)
    typed(project, check)


def test_carrying_over_by_hand(project: Project, upstream: Upstream) -> None:
    """A patch whose file is rewritten, between two that have nothing to do with it."""
    upstream.commit({"pkg/core.py": TEXT, "a": "a\n"})
    two = make_patch({"a": "a\n"}, {"a": "b\n"}, body=BODY)
    patches = {"one.patch": ONE, "two.patch": two}
    rewritten: Files = {"pkg/core.py": TEXT.replace("compute(2", "run(2")}
    project.component("demo", upstream, upstream.commit(rewritten), patches)
    *_, apply, reject, new, check = commands(project.run("check", "--json"))
    series = project.root / "patches/demo/series"
    series.write_text("#one.patch\ntwo.patch\n")
    typed(project, apply)
    typed(project, reject)
    core = project.checkout("demo") / "pkg/core.py"
    assert core.with_name("core.py.rej").is_file()
    core.write_text(core.read_text().replace("run(20)", "run(20, fast=True)"))
    typed(project, new.replace("NAME", "go-fast.patch"))
    typed(project, check)
    assert series.read_text() == "#one.patch\ntwo.patch\ngo-fast.patch\n"
    assert git_in(project.checkout("demo"), "status", "--porcelain", "-uno") == b""


@pytest.mark.slow
def test_a_pin_that_was_moved(project: Project, upstream: Upstream) -> None:
    """What the carry engine can do comes before all that takes work by hand."""
    patches = {"one.patch": ONE}
    project.component("demo", upstream, upstream.commit({"pkg/core.py": TEXT}), patches)
    project.prepare("apply").ok()
    moved = TEXT.replace("compute(21)", "compute(21, slow=True)")
    project.component("demo", upstream, upstream.commit({"pkg/core.py": moved}), patches)
    ran = project.run("check")
    assert "next  carry the patches to the new pin:" in ran.out
    assert "by hand" not in ran.out
    assert "hint: why, and what to do: patchkit check -m demo -c demo" in project.run("apply").err
    refresh, *_, check = commands(project.run("check", "--json"))
    typed(project, refresh)
    typed(project, check)


def test_whole_change_upstream(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"pkg/core.py": FAST})
    project.component("demo", upstream, pin, {"one.patch": ONE})
    ran = project.run("check")
    assert "delete its line in patches/demo/series" in ran.out
    project.write({"patches/demo/series": ""})
    (project.root / "patches/demo/one.patch").unlink()
    project.run("check").ok()


def test_a_patch_made_for_the_base_alone_is_told_so(project: Project, upstream: Upstream) -> None:
    """Behind one that changes the same lines, its blob is the base's: no other pin would help."""
    base: Files = {"a.py": "one\ntwo\nthree\n"}
    first = make_patch(base, {"a.py": "one\nTWO\nthree\n"}, subject="First")
    second = make_patch(base, {"a.py": "one\n2\nthree\n"}, subject="Second")
    pin = upstream.commit(base)
    project.component("demo", upstream, pin, {"first.patch": first, "second.patch": second})
    ran = project.run("check")
    assert ran.code == 1
    assert "made for this base without the patches before it, which change a.py" in ran.out
    assert "it was made for demo's pin without the patches before it" in ran.out
    assert pin not in ran.out
    assert "another base" not in ran.out
