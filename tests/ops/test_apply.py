"""`patchkit apply`, from the manifest to the checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.disk.files import UNFINISHED
from tests.support.golden import Golden
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, git_in, make_patch
from tests.workspace.killing import killed_at

BASE: Files = {"a.py": "".join(f"line {n}\n" for n in range(1, 31)), "b.py": "two\n"}
AFTER_ONE: Files = {**BASE, "a.py": str(BASE["a.py"]).replace("line 15\n", "LINE 15\n")}
AFTER_TWO: Files = {**AFTER_ONE, "c.py": "three\n"}
ONE = make_patch(BASE, AFTER_ONE, subject="Shout line 15", body="Because.")
TWO = make_patch(AFTER_ONE, AFTER_TWO, subject=None)
THREE = make_patch(AFTER_ONE, {**AFTER_ONE, "d.py": "four\n"}, subject="Add d", body="Because.")
BAD = make_patch({"b.py": "other\n"}, {"b.py": "OTHER\n"}, subject="Change the other")


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    """A component `demo` with two patches that fit, one with a header and one without."""
    pin = upstream.commit(BASE, "base")
    project.component("demo", upstream, pin, {"one.patch": ONE, "two.patch": TWO})
    return project


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Inode, time and bytes of every file."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        str(path): (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes())
        for path in files
    }


def locked(project: Project) -> list[str]:
    """The components that the lock has."""
    return list(json.loads(project.read("manifests/demo.lock.json"))["components"])


def test_applies_one_commit_per_patch(demo: Project, tmp_path: Path, golden: Golden) -> None:
    """A second run touches nothing, nor does a dry run; the same ids in another folder."""
    golden("apply-created", demo.run("apply"))
    log = demo.git("log", "--format=%an|%s|%cn", "-2").decode()
    assert log == "patchkit|two|patchkit\nAnn Author|Shout line 15|patchkit\n"
    assert (demo.checkout("demo") / "c.py").read_text() == "three\n"
    before = snapshot(demo.root)
    golden("apply-unchanged", demo.run("apply"))
    assert snapshot(demo.root) == before
    there = ("--workspace", str(tmp_path / "else where"))
    demo.run("apply", "--dry-run", *there).ok().shows("created  demo  2 patches, in ")
    assert not (tmp_path / "else where").exists()
    other = demo.run("apply", "--json", *there).ok().json
    heads = {
        git_in(folder, "rev-parse", "HEAD").decode().strip()
        for folder in (demo.checkout("demo"), tmp_path / "else where/demo")
    }
    assert heads == {other["components"][0]["tip"]}


def test_git_ignores_a_workspace_that_apply_makes(demo: Project) -> None:
    git_in(demo.root, "init", "-q")
    (demo.root / "workspace").mkdir()
    # a run was killed before its file had this name
    (demo.root / f"workspace/.gitignore.x{UNFINISHED}").write_bytes(b"")
    demo.run("apply").ok()
    assert b"workspace" not in git_in(demo.root, "status", "--porcelain", "-uall")
    (demo.root / "there").mkdir()
    (demo.root / "there/mine").touch()
    demo.run("apply", "--workspace", "there").ok()
    assert b"there/mine" in git_in(demo.root, "status", "--porcelain", "-uall")


def test_an_offset_applies_and_is_reported(
    project: Project, upstream: Upstream, golden: Golden
) -> None:
    project.component(
        "demo", upstream, {**BASE, "a.py": "first\n" * 2 + str(BASE["a.py"])}, {"one.patch": ONE}
    )
    ran = project.run("apply")
    golden("apply-shifted", ran)
    ran.ok().shows("1 hunk at offset +2; made for another base: a.py")


def test_a_component_is_all_or_nothing_and_the_others_are_done(
    demo: Project, upstream: Upstream
) -> None:
    pin = upstream.commit(BASE)
    demo.component("broken", upstream, pin, {"one.patch": ONE, "bad.patch": BAD, "two.patch": TWO})
    ran = demo.run("apply", "--jobs", "1").ends(1)
    assert not demo.checkout("broken").exists()
    assert demo.checkout("demo").exists()
    ran.shows(
        "✗ conflicted  broken  a patch does not apply; checkout unchanged\n",
        f"✗ bad.patch does not apply to broken {pin[:10]}\n  b.py: 1 of 1 hunk",
    )
    assert locked(demo) == ["demo"]
    demo.series("demo", {"one.patch": ONE, "bad.patch": BAD})
    before = snapshot(demo.checkout("demo"))
    demo.run("apply").ends(1)
    assert snapshot(demo.checkout("demo")) == before


def test_edits_are_refused_over_with_the_ways_out(demo: Project, golden: Golden) -> None:
    demo.run("apply").ok()
    (demo.checkout("demo") / "b.py").write_text("mine\n")
    with demo.untouched():
        golden("apply-edited", demo.run("apply").ends(1))
        demo.run("apply", "--quiet").ends(1, "1 edited file: b.py")
    forced = demo.run("apply", "--force", "--json").ok().component
    assert (demo.checkout("demo") / "b.py").read_text() == "two\n"
    shown = demo.git("show", f"{forced['saved_ref']}:b.py")
    assert shown == b"mine\n"
    assert forced["saved_ref"].rpartition("/")[2] in forced["restore"]


def test_a_stack_that_is_not_the_one_of_the_lock(
    demo: Project, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where CI is set, the lock is binding unasked."""
    demo.run("apply").ok()
    demo.series("demo", {"one.patch": ONE.replace(b"Because", b"Just so"), "two.patch": TWO})
    before = snapshot(demo.root)
    golden("apply-differs", demo.run("apply", "--locked").ends(1))
    demo.run("check").ok()
    monkeypatch.setenv("CI", "true")
    for command in ("apply", "check"):
        demo.run(command).ends(1)
    assert snapshot(demo.root) == before
    demo.run("apply", "--accept").ok()
    demo.run("apply").ok()
    demo.run("apply", "--locked").ok()


def test_edits_of_patches_and_series_are_taken_up_and_said(demo: Project, golden: Golden) -> None:
    demo.run("apply").ok()
    edited = ONE.replace(b"Because", b"Just so")
    demo.series("demo", {"one.patch": edited, "three.patch": THREE})
    golden("apply-taken-up", demo.run("apply").ok())
    assert demo.run("apply", "--json").ok().component["taken_up"] == []
    demo.run("apply", "--locked").ok()


def test_another_order_of_the_series_is_one_message(demo: Project) -> None:
    demo.run("apply").ok()
    demo.series("demo", {"two.patch": TWO, "one.patch": ONE})
    (said,) = demo.run("apply", "--dry-run", "--json").ok().component["taken_up"]
    assert said == "reordered: two.patch now before one.patch"
    assert demo.run("check").ok().out.count("another order") == 1


def test_another_pin_is_refused_without_being_asked(demo: Project, upstream: Upstream) -> None:
    demo.run("apply").ok()
    series = {"one.patch": ONE, "two.patch": TWO}
    demo.component("demo", upstream, {**BASE, "new": "1\n"}, series)
    demo.run("apply").ends(1, "the base is")


def test_the_lock_keeps_components_that_are_not_asked_for(
    demo: Project, upstream: Upstream
) -> None:
    """One that left the manifest leaves the lock when told."""
    pin = upstream.commit(BASE)
    demo.component("other", upstream, pin, {"one.patch": ONE})
    demo.run("apply", "-c", "other").ok()
    assert locked(demo) == ["other"]
    demo.run("apply", "-c", "demo").ok()
    assert locked(demo) == ["demo", "other"]
    only = Project(demo.root)
    only.component("demo", upstream, pin, {"one.patch": ONE, "two.patch": TWO})
    assert only.run("apply", "--accept", "-c", "demo").ok().err
    assert locked(demo) == ["demo"]


def test_an_index_lock_of_git_is_an_error_of_that_component_only(
    demo: Project, upstream: Upstream
) -> None:
    demo.component("other", upstream, BASE, {"one.patch": ONE})
    demo.run("apply").ok()
    demo.series("demo", {"one.patch": ONE})
    demo.series("other", {})
    (demo.checkout("demo") / ".git/index.lock").touch()
    demo.run("apply", "--accept").ends(5, "index.lock exists")
    assert demo.run("status", "--json").json["components"][1]["snapshot"]["state"] == "unpatched"


def test_a_patch_without_changes_and_a_component_without_patches(
    project: Project, upstream: Upstream
) -> None:
    pin = upstream.commit(BASE, "base")
    project.component("empty", upstream, pin, {"note.patch": b"Subject: only words\n\nNo diff.\n"})
    project.component("bare", upstream, pin)
    report = project.run("apply", "--json").ok().json
    assert [each["tip"] for each in report["components"]] == [pin, pin]
    assert project.run("apply").ok().out.count("unchanged") == 2


def test_the_checkout_outlives_the_cache(demo: Project) -> None:
    demo.run("apply").ok()
    shutil.rmtree(Path(os.environ["PATCHKIT_CACHE"]))
    checkout = demo.checkout("demo")
    assert git_in(checkout, "fsck", "--full", "--strict") == b""
    assert git_in(checkout, "status", "--porcelain") == b""
    demo.run("apply", "--offline").ends(5, "is not in the cache")
    assert demo.run("apply").ok().out.startswith("✓ unchanged")


@pytest.mark.slow
def test_two_processes_at_once(demo: Project) -> None:
    command = [sys.executable, "-m", "patchkit", "apply"]
    both = [
        subprocess.Popen(command, cwd=demo.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sorted(out.split()[1] for out, _ in said) == [b"created", b"unchanged"]
    assert demo.run("status", "--json").component["snapshot"]["state"] == "applied"


@pytest.mark.slow
def test_a_move_that_was_killed_is_finished_and_said(demo: Project) -> None:
    demo.run("apply").ok()
    demo.series("demo", {"one.patch": ONE})

    def apply() -> None:
        demo.run("apply", "--accept")

    point = next(
        point
        for point in range(20, 200)
        if killed_at(point, apply)
        and (demo.checkout("demo") / ".git/patchkit/move/journal.json").exists()
    )
    assert point
    demo.run("status").ok().shows("interrupted")
    demo.run("apply", "--accept").ok().shows("an apply that was killed earlier was finished first")
    assert not (demo.checkout("demo") / "c.py").exists()
    demo.run("status").ok().shows("applied")
