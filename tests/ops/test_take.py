"""`patchkit import --vendor`: patches by reference become the component's own, and no more."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from patchkit.stack.lockfile import load_lock
from tests.ops.test_resume import Bumping
from tests.support.projects import Project
from tests.support.repos import Upstream
from tests.support.stacked import NAMES, STATES, lines, small_patches


@pytest.fixture
def trainer(tmp_path: Path) -> tuple[str, str, dict[str, bytes]]:
    """A repository that publishes the small stack's patches; two.patch is a raw diff."""
    files = small_patches()
    files["two.patch"] = files["two.patch"][files["two.patch"].index(b"diff --git ") :]
    upstream = Upstream.create(tmp_path / "trainer.git")
    return upstream.url, upstream.commit(dict(files)), files


Published = tuple[str, str, dict[str, bytes]]


def reference(trainer: Published, name: str) -> dict[str, str]:
    url, commit, files = trainer
    return {"git": url, "commit": commit, "path": name, "sha256": sha256(files[name]).hexdigest()}


def locked(project: Project) -> tuple[object, ...]:
    lock = load_lock(project.root / "manifests/demo.lock.json")
    assert lock is not None
    component = lock.components["demo"]
    return component.result, [(each.name, each.tree) for each in component.patches]


def test_they_become_files_of_a_series(
    project: Project, upstream: Upstream, trainer: Published
) -> None:
    """The stack is what it was, and each message says where the patch came from."""
    entries = [reference(trainer, name) for name in NAMES]
    path = project.component("demo", upstream, upstream.commit(STATES[0]), entries)
    project.prepare("apply").ok()
    before, text = locked(project), path.read_text()
    assert (
        project.run("import", "--vendor", "--dry-run")
        .ok()
        .out.count("would refresh  demo  one.patch, two.patch, three.patch are in the series")
        == 1
    )
    assert path.read_text() == text
    project.run("import", "--vendor").ok()
    assert (project.root / "patches/demo/series").read_text().split() == list(NAMES)
    assert "- {series: patches/demo/series}" in path.read_text()
    assert "sha256" not in path.read_text()
    for name in NAMES:
        data = (project.root / "patches/demo" / name).read_bytes()
        assert f"\nOrigin: {trainer[0]} {trainer[1]}\nOrigin-File: {name}\n".encode() in data
        assert data.endswith(trainer[2][name][trainer[2][name].index(b"diff --git ") :])
    assert b"Subject: Two\n" in (project.root / "patches/demo/two.patch").read_bytes()
    assert b"For a test." in (project.root / "patches/demo/one.patch").read_bytes()
    assert locked(project) == before
    project.run("check").ok()
    project.run("apply").ok().shows("unchanged")
    project.run("import", "--vendor").ok().shows("unchanged  demo")


@pytest.mark.slow
def test_a_conflict_in_one_can_be_resolved_then(
    project: Project, upstream: Upstream, trainer: Published
) -> None:
    entries = [reference(trainer, "one.patch")]
    project.component("demo", upstream, upstream.commit(STATES[0]), entries)
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
    project: Project, upstream: Upstream, trainer: Published
) -> None:
    """Beside a series, in front of it and behind; not over one that stays where it is."""
    project.series("demo", {"two.patch": small_patches()["two.patch"]})
    series = {"series": "patches/demo/series"}
    entries = [reference(trainer, "one.patch"), series, reference(trainer, "three.patch")]
    path = project.component("demo", upstream, upstream.commit(STATES[0]), entries)
    project.prepare("apply").ok()
    before = locked(project)
    project.run("import", "--vendor", "one.patch").ok()
    assert path.read_text().count("sha256") == 1
    project.run("import", "--vendor", "three.patch").ok()
    assert (project.root / "patches/demo/series").read_text().split() == list(NAMES)
    assert locked(project) == before
    project.run("check").ok()


def test_one_that_would_change_places_is_refused(
    project: Project, upstream: Upstream, trainer: Published
) -> None:
    entries = [reference(trainer, name) for name in NAMES]
    path = project.component("demo", upstream, upstream.commit(STATES[0]), entries)
    before = path.read_bytes()
    project.run("import", "--vendor", "one.patch", "three.patch").ends(
        4, "three.patch is on the wrong side of two.patch"
    )
    assert path.read_bytes() == before
    assert not (project.root / "patches").exists()


def test_what_cannot_be_taken(project: Project, upstream: Upstream, trainer: Published) -> None:
    pin = upstream.commit(STATES[0])
    project.component("demo", upstream, pin, [reference(trainer, "one.patch")])
    project.run("import", "--vendor", "other.patch").ends(2, "the series has 1 one.patch")
    project.write({"manifests/heir.yaml": "version: 1\nextends: [demo.yaml]\n"})
    project.run("import", "--vendor", "-m", "heir").ends(4, "component demo is not in this file")
    project.write({"patches/demo/one.patch": "mine\n"})
    project.run("import", "--vendor", "-m", "demo").ends(
        4, "patches/demo/one.patch: is there already"
    )
    assert (project.root / "patches/demo/one.patch").read_text() == "mine\n"


def test_other_folders_to_strip_are_told_to_the_series(
    project: Project, upstream: Upstream, trainer: Published
) -> None:
    files = {f"src/{name}": text for name, text in STATES[0].items()}
    data = small_patches()["one.patch"].replace(b"a/a.txt", b"x/y/src/a.txt")
    data = data.replace(b"b/a.txt", b"z/y/src/a.txt")
    other = Upstream.create(project.root.parent / "other.git")
    entry = {"git": other.url, "commit": other.commit({"p.patch": data}), "path": "p.patch"}
    entry |= {"sha256": sha256(data).hexdigest()}
    entry |= {"strip": "2"}
    path = project.component("demo", upstream, upstream.commit(files), [entry])
    path.write_text(
        path.read_text().replace("strip: '2'", "strip: 2").replace('strip: "2"', "strip: 2")
    )
    project.run("check").ok()
    project.run("import", "--vendor").ok()
    assert (project.root / "patches/demo/series").read_text() == "p.patch -p2\n"
    project.run("check").ok()
