"""`patchkit import --vendor`: patches by reference become the component's own, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from patchkit.stack.lockfile import load_lock
from tests.ops.test_resume import Bumping
from tests.support.projects import Project, reference
from tests.support.repos import Upstream
from tests.support.stacked import NAMES, STATES, lines, small_patches


@pytest.fixture
def published(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """The entries of the small stack's patches in a trainer's repository; two.patch is raw."""
    files = small_patches()
    files["two.patch"] = files["two.patch"][files["two.patch"].index(b"diff --git ") :]
    trainer = Upstream.create(tmp_path / "trainer.git")
    return {name: reference(trainer, name, data) for name, data in files.items()}


Published = dict[str, dict[str, Any]]


def locked(project: Project) -> tuple[object, ...]:
    lock = load_lock(project.root / "manifests/demo.lock.json")
    assert lock is not None
    component = lock.components["demo"]
    return component.result, [(each.name, each.tree) for each in component.patches]


def test_they_become_files_of_a_series(
    project: Project, upstream: Upstream, published: Published
) -> None:
    """The stack is what it was, and each message says where the patch came from."""
    entries = list(published.values())
    path = project.component("demo", upstream, STATES[0], entries)
    project.prepare("apply").ok()
    before = locked(project)
    with project.untouched():
        foreseen = project.run("import", "--vendor", "--dry-run").ok()
    foreseen.shows("would refresh  demo  one.patch, two.patch, three.patch are in the series")
    project.run("import", "--vendor").ok()
    assert project.files()["patches/demo/series"].decode().split() == list(NAMES)
    assert "- {series: patches/demo/series}" in path.read_text()
    assert "sha256" not in path.read_text()
    for name, was in small_patches().items():
        data = project.files()[f"patches/demo/{name}"]
        origin = f"\nOrigin: {published[name]['git']} {published[name]['commit']}\n"
        assert f"{origin}Origin-File: {name}\n".encode() in data
        assert data.endswith(was[was.index(b"diff --git ") :])
    assert b"Subject: Two\n" in project.files()["patches/demo/two.patch"]
    assert b"For a test." in project.files()["patches/demo/one.patch"]
    assert locked(project) == before
    project.run("check").ok()
    project.run("apply").ok().shows("unchanged")
    project.run("import", "--vendor").ok().shows("unchanged  demo")


@pytest.mark.slow
def test_a_conflict_in_one_can_be_resolved_then(
    project: Project, upstream: Upstream, published: Published
) -> None:
    entries = [published["one.patch"]]
    project.component("demo", upstream, STATES[0], entries)
    stack = Bumping.applied(project)
    upstream.commit({"a.txt": lines({5: "upstream five\n"})})
    ran = stack.bump()
    hint = "patchkit import --vendor one.patch -m demo -c demo"
    ran.ends(3, hint)
    stack.run("import", "--vendor", "one.patch", "-m", "demo", "-c", "demo").ok()
    stack.bump().ends(3)
    stack.resolve("a.txt", "upstream FIVE\nsix\n")
    stack.run("continue").ok()
    assert b"Origin: " in stack.patch("one.patch")
    assert b"+upstream FIVE\n" in stack.patch("one.patch")
    stack.settled()


def test_the_order_of_the_stack_stays(
    project: Project, upstream: Upstream, published: Published
) -> None:
    """Beside a series, in front of it and behind; not over one that stays where it is."""
    project.series("demo", {"two.patch": small_patches()["two.patch"]})
    series = {"series": "patches/demo/series"}
    entries = [published["one.patch"], series, published["three.patch"]]
    path = project.component("demo", upstream, STATES[0], entries)
    project.prepare("apply").ok()
    before = locked(project)
    project.run("import", "--vendor", "one.patch").ok()
    assert path.read_text().count("sha256") == 1
    project.run("import", "--vendor", "three.patch").ok()
    assert project.files()["patches/demo/series"].decode().split() == list(NAMES)
    assert locked(project) == before
    project.run("check").ok()


def test_what_cannot_be_taken(project: Project, upstream: Upstream, published: Published) -> None:
    project.component("demo", upstream, STATES[0], list(published.values()))
    with project.untouched():
        project.run("import", "--vendor", "one.patch", "three.patch").ends(
            4, "three.patch is on the wrong side of two.patch"
        )
        project.run("import", "--vendor", "other.patch").ends(2, "no such patch in the series")
    project.write({"manifests/heir.yaml": "version: 1\nextends: [demo.yaml]\n"})
    project.run("import", "--vendor", "-m", "heir").ends(4, "component demo is not in this file")
    project.write({"patches/demo/one.patch": "mine\n"})
    with project.untouched():
        project.run("import", "--vendor", "-m", "demo").ends(
            4, "patches/demo/one.patch: is there already"
        )


def test_other_folders_to_strip_are_told_to_the_series(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    files = {f"src/{name}": text for name, text in STATES[0].items()}
    data = small_patches()["one.patch"].replace(b"a/a.txt", b"x/y/src/a.txt")
    data = data.replace(b"b/a.txt", b"z/y/src/a.txt")
    entry = reference(Upstream.create(tmp_path / "other.git"), "p.patch", data) | {"strip": 2}
    project.component("demo", upstream, files, [entry])
    project.run("check").ok()
    project.run("import", "--vendor").ok()
    assert project.files()["patches/demo/series"] == b"p.patch -p2\n"
    project.run("check").ok()
