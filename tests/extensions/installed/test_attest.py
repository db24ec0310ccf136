"""`attest`: with a manifest by the bytes of its stack, without one by a receipt's word."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from patchkit.disk.files import DRAFT
from tests.extensions.installed.test_install import BASE, PATCHES, WHEEL, _after
from tests.extensions.installed.wheels import install
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    """A component with two patches, in the lock."""
    project.component("demo", upstream, upstream.commit(BASE), PATCHES)
    project.run("apply").ok()
    return project


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of installed packages with the wheel of the pin."""
    install(tmp_path / "site", WHEEL)
    return tmp_path / "site"


def _lock(project: Project) -> Path:
    return project.root / "manifests/demo.lock.json"


def _without_files(project: Project) -> None:
    """The lock as an older patchkit wrote it."""
    document = json.loads(_lock(project).read_text())
    del document["components"]["demo"]["files"]
    _lock(project).write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")


def _elsewhere(project: Project, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that has the project, and neither cache, git nor upstream."""
    shutil.rmtree(upstream.path)
    monkeypatch.setenv("PATCHKIT_CACHE", str(project.root / "no-cache"))
    monkeypatch.setenv("PATH", "/nowhere")


def test_the_lock_is_enough(
    demo: Project, site: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo.run("install", str(site)).ok()
    _elsewhere(demo, upstream, monkeypatch)
    asked = ("check", "--only", "installed", "-m", "demo", str(site))
    assert "✓ live  demo/demo  2 of 2 patches" in demo.run(*asked).ok().out
    shutil.rmtree(site / ".patchkit")
    assert "no receipt" in demo.run(*asked).ok().out
    (site / "demo/deep/new.py").write_text("new = 2\n")
    demo.run(*asked).ends(1).shows("? unknown  two.patch  demo/deep/new.py")
    shutil.rmtree(demo.root / "patches")
    (site / "demo/deep/new.py").write_text("new = 1\n")
    demo.run(*asked).ok()


def test_an_older_lock_is_built_or_nothing_can_be_said(
    demo: Project, site: Path, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    _without_files(demo)
    demo.run("check").ok()
    old = _lock(demo).read_bytes()
    monkeypatch.setenv("CI", "1")
    demo.run("apply").ok()
    demo.run("install", str(site)).ok()
    assert _lock(demo).read_bytes() == old  # nothing differs, so that CI changes no file
    demo.run("check", "--only", "installed", "-m", "demo", str(site)).ok()
    _elsewhere(demo, upstream, monkeypatch)
    demo.run("check", "--only", "installed", "-m", "demo", str(site)).ends(
        1, "error: demo: "
    ).shows("? unknown  demo/demo  it cannot be said")


@pytest.mark.parametrize("word", ["apply", "install"])
def test_apply_adds_what_an_older_lock_lacks(demo: Project, site: Path, word: str) -> None:
    new = _lock(demo).read_bytes()
    _without_files(demo)
    demo.run(word, *([str(site)] if word == "install" else [])).ok()
    assert _lock(demo).read_bytes() == new


def test_patches_that_are_not_the_locks_are_built(demo: Project, site: Path) -> None:
    demo.run("install", str(site)).ok()
    asked = ("check", "--only", "installed", "-m", "demo", str(site))
    demo.series("demo", {"one.patch": PATCHES["one.patch"]})
    assert demo.run(*asked).code == 1
    changed = {"python/demo/core.py": "other\n"}
    demo.series("demo", {"one.patch": make_patch(BASE, _after(changed))})
    assert demo.run(*asked).code == 1
    demo.series("demo", PATCHES)
    demo.run(*asked).ok()


def test_no_forged_receipt_makes_it_live(demo: Project, site: Path) -> None:
    demo.run("install", str(site)).ok()
    (path,) = (site / ".patchkit").iterdir()
    good = json.loads(path.read_text())
    demo.run("install", str(site), "--reverse").ok()
    path.parent.mkdir()
    empty = {**good["layer"], "files": [], "left_out": []}
    swapped = [{**f, "states": f["states"][:1] * len(f["states"])} for f in good["layer"]["files"]]
    for layer in (empty, {**good["layer"], "files": swapped}):
        path.write_text(json.dumps({**good, "layer": layer, "before": [], "records": []}))
        for manifest in ((), ("-m", "demo")):
            seen = demo.run("check", "--only", "installed", str(site), *manifest, "--json")
            (found,) = seen.json["components"]
            verdict = "not live" if manifest else "as its receipt says"
            assert (seen.code, found["verdict"]) == (1, verdict)


def test_an_edited_file_is_not_vouched_for_by_a_forged_receipt(demo: Project, site: Path) -> None:
    demo.run("install", str(site)).ok()
    core = site / "demo/core.py"
    core.write_text(core.read_text() + "evil = 1\n")
    (path,) = (site / ".patchkit").iterdir()
    receipt = json.loads(path.read_text())
    receipt["before"] = []
    (path).write_text(json.dumps(receipt))
    seen = demo.run("check", "--only", "installed", "-m", "demo", str(site))
    assert (seen.code, "✓" in seen.out) == (1, False)


def test_an_image_is_not_left_through_links(demo: Project, site: Path, tmp_path: Path) -> None:
    demo.run("install", str(site)).ok()
    image = tmp_path / "image/usr/lib/python3/site-packages"
    shutil.copytree(site, image)
    asked = ("check", "--only", "installed", "-m", "demo", str(tmp_path / "image"), "--image")
    demo.run(*asked).ok()
    shutil.rmtree(image / "demo")
    (image / "demo").symlink_to(site / "demo")
    demo.run(*asked).ends(1, "is a link out of the image")
    assert demo.run("check", "--only", "installed", str(tmp_path / "image"), "--image").code == 4
    (image / "demo").unlink()
    (image / "demo").symlink_to("../inside")
    shutil.copytree(site / "demo", image.parent / "inside")
    demo.run(*asked).ok()


def test_what_is_left_out_is_named(demo: Project, site: Path) -> None:
    demo.run("install", str(site)).ok()
    demo.run("check", "--only", "installed", "-m", "demo", str(site)).ok().shows(
        "two.patch: python/pyproject.toml is not installed, left out"
    )
    (site / "demo/deep/new.py").unlink()  # the receipt says that it was installed
    assert demo.run("check", "--only", "installed", "-m", "demo", str(site)).code == 1


def test_a_draft_of_a_killed_one_is_said(demo: Project, site: Path) -> None:
    demo.run("install", str(site)).ok()
    beside = "demo/.core.py.0123456789ab.patchkit-tmp"
    (site / beside).write_text("half")
    row = {"path": "demo/core.py", "beside": beside, "old": None, "new": "0" * 64}
    (site / DRAFT).write_text(json.dumps({"version": 2, "steps": [row]}))
    demo.run("check", "--only", "installed", "-m", "demo", str(site)).ends(1).shows("killed in")
    demo.run("install", str(site), "--reverse").ok()
    assert not [name for _, _, names in os.walk(site) for name in names if "patchkit" in name]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"100644 ', '"100644', "not a lock"),
        ('"files": {', '"files": {"x": 1, ', "not a lock"),
        ('"files": {', '"files": {"x": {"": "100644 ' + "0" * 40 + '"}, ', "are not those that"),
    ],
)
def test_files_of_a_lock_are_checked(demo: Project, old: str, new: str, said: str) -> None:
    text = _lock(demo).read_text()
    _lock(demo).write_text(text.replace(old, new, 1))
    seen = demo.run("check")
    assert (seen.code in (1, 4), said in seen.out + seen.err) == (True, True)
    if seen.code == 1:
        assert demo.run("apply").code == 1
        demo.run("apply", "--accept").ok()
        assert _lock(demo).read_text() == text
