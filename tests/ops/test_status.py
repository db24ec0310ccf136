"""`patchkit status`: every state by what a user does to get there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.commands import run_process
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, make_patch

BASE: Files = {"a.py": "one\n", "b.py": "two\n", ".gitignore": "*.log\n"}
ONE = make_patch(BASE, {**BASE, "a.py": "ONE\n"}, subject="Shout")


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    """A component `demo` with one patch."""
    project.component("demo", upstream, BASE, {"one.patch": ONE})
    return project


def found(project: Project) -> tuple[str, str]:
    snapshot = project.run("status", "--json").ok().component["snapshot"]
    return snapshot["state"], snapshot["detail"]


def test_absent_then_applied(demo: Project, golden: Golden) -> None:
    golden("status-absent", demo.run("status"))
    demo.prepare("apply").ok()
    golden("status-applied", demo.run("status"))
    assert found(demo) == ("applied", "")


@pytest.mark.parametrize("file", ["patches/demo/one.patch", "patches/demo/series"])
def test_what_is_missing_in_the_project_is_no_fault_of_the_checkout(
    demo: Project, file: str
) -> None:
    demo.prepare("apply").ok()
    (demo.checkout("demo") / "b.py").write_text("mine\n")
    (demo.root / file).unlink()
    ran = demo.run("status").ok().says(f"demo: {file} is not there").shows("edited")
    assert "--force" not in ran.err


def test_a_series_that_cannot_be_read_is_told_with_the_state(demo: Project) -> None:
    demo.prepare("apply").ok()
    (demo.root / "patches/demo/series").write_bytes(b"../x.patch\n")
    ran = demo.run("status").ends(4, "patches/demo/series:1").shows("applied")
    assert "--force" not in ran.err


def test_looking_writes_nothing(demo: Project) -> None:
    demo.prepare("apply").ok()
    # git would like to note the new time in its index
    (demo.checkout("demo") / "b.py").touch()
    index = demo.checkout("demo") / ".git/index"
    before = (index.stat(), index.read_bytes(), sorted(demo.root.rglob("*")))
    with demo.untouched():
        assert found(demo) == ("applied", "")
    assert (index.stat(), index.read_bytes(), sorted(demo.root.rglob("*"))) == before


@pytest.mark.parametrize(
    ("steps", "state", "detail"),
    [
        (["git reset -q --hard HEAD~1"], "unpatched", ""),
        (["sh -c 'echo x > b.py'"], "edited", ""),
        (["sh -c 'echo x > b.py'", "git add b.py"], "edited", ""),
        (["rm b.py"], "edited", ""),
        (["chmod +x b.py"], "edited", ""),
        (["sh -c 'echo x > new.py'"], "applied", ""),
        (["sh -c 'echo x > new.log'"], "applied", ""),
        (["sh -c 'echo x > new.py'", "git add new.py"], "edited", ""),
        (["git commit -q --allow-empty -m x"], "extra commits", "1 own commit on top"),
        (
            ["git commit -q --amend -m x"],
            "extra commits",
            "1 own commit in place of 1 commit of the stack",
        ),
        (["git switch -q -c mine"], "other branch", "on branch mine"),
        (["git switch -q --detach"], "other branch", "HEAD is detached at "),
        (["git update-ref -d refs/patchkit/base"], "other branch", "not made by patchkit"),
        (["rm .git/HEAD"], "other branch", "not a git repository of its own"),
        (["rm -r .git"], "other branch", "not a git repository of its own"),
        (["git bisect start"], "conflicted", "in the middle of a bisect"),
        (
            ["git checkout -q -b x HEAD~1", "sh -c 'echo x > a.py'", "git commit -qam x",
             "git switch -q patchkit", "sh -c 'git merge -q x; true'"],
            "conflicted",
            "in the middle of a merge",
        ),
        (
            ["sh -c 'echo x > a.py'", "git commit -qam x", "sh -c 'git revert -n HEAD~1; true'"],
            "conflicted",
            "in the middle of a revert",
        ),
    ],
)  # fmt: skip
def test_states(demo: Project, steps: list[str], state: str, detail: str) -> None:
    demo.prepare("apply").ok()
    for step in steps:
        demo.git("-c", f"alias.do=!{step}", "do")
    actual, said = found(demo)
    assert (actual, said[: len(detail)] if detail else said) == (state, detail)


def test_edits_are_counted(demo: Project, golden: Golden) -> None:
    demo.prepare("apply").ok()
    for name in ("a.py", "b.py", "new file.py"):
        (demo.checkout("demo") / name).write_text("mine\n")
    golden("status-edited", demo.run("status"))


def test_a_moved_pin_and_a_changed_patch_show(
    demo: Project, upstream: Upstream, golden: Golden
) -> None:
    demo.prepare("apply").ok()
    demo.component("demo", upstream, {"b.py": "2\n"}, {"one.patch": ONE.replace(b"Shout", b"Cry")})
    ran = demo.run("status", "--json").ok()
    assert len(ran.component["differences"]) == 2
    golden("status-differs", demo.run("status"))


@pytest.mark.parametrize("kind", ["file", "link", "empty"])
def test_what_is_no_folder(demo: Project, kind: str) -> None:
    place: Path = demo.checkout("demo")
    place.parent.mkdir()
    if kind == "file":
        place.write_text("")
    elif kind == "link":
        place.symlink_to("nowhere")
    else:
        place.mkdir()
    assert found(demo) == (
        ("absent", "an empty folder") if kind == "empty" else ("other branch", "not a folder")
    )


def test_a_gate_passes_what_manifest_and_lock_say_only(demo: Project) -> None:
    gate = ("status", "--strict", "--quiet")
    assert demo.run(*gate).code == 1  # nothing is there yet
    demo.prepare("apply").ok()
    demo.run(*gate).ok()
    file = next(path for path in demo.checkout("demo").iterdir() if path.is_file())
    data = file.read_bytes()
    file.write_bytes(data + b"more\n")
    demo.run(*gate).ends(1)
    demo.run("status").ok()
    file.write_bytes(data)
    demo.run(*gate).ok()
    series = demo.root / "patches/demo/series"
    series.write_text(series.read_text() + "# a word\n")
    demo.run(*gate).ok()
    patch = next((demo.root / "patches/demo").glob("*.patch"))
    patch.write_bytes(patch.read_bytes().replace(b"Subject: ", b"Subject: Do ", 1))
    demo.run(*gate).ends(1)


@pytest.mark.slow
def test_what_keeps_all_checkouts_from_being_read_is_said_once(
    demo: Project, upstream: Upstream
) -> None:
    pin = upstream.resolve("main")
    assert pin is not None
    demo.component("more", upstream, pin, {"one.patch": ONE})
    demo.prepare("apply").ok()
    ran = run_process("status", cwd=demo.root, environment={**os.environ, "PATH": "/nowhere"})
    assert (ran.code, ran.err.count("error: git is not installed")) == (5, 1)
    assert "warning" not in ran.err
    assert "differs" not in ran.out
