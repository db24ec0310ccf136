"""`attest`: with a manifest by the bytes of its stack, without one by a receipt's word."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from patchkit.disk.files import DRAFT
from tests.extensions.installed.sites import BASE, CORE, FIRST, PATCHES, Site
from tests.support.repos import Upstream, make_patch


@pytest.fixture
def lock(site: Site) -> Path:
    """The lock of the project, which knows the stack."""
    site.project.run("apply").ok()
    return site.project.root / "manifests/demo.lock.json"


def _elsewhere(site: Site, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that has the project, and neither cache, git nor upstream."""
    shutil.rmtree(upstream.path)
    monkeypatch.setenv("PATCHKIT_CACHE", str(site.project.root / "no-cache"))
    monkeypatch.setenv("PATH", "/nowhere")


@pytest.mark.usefixtures("lock")
def test_the_lock_is_enough(
    site: Site, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.install().ok()
    _elsewhere(site, upstream, monkeypatch)
    site.attest().ok().shows(
        "✓ live  demo/demo  2 of 2 patches",
        "two.patch: python/pyproject.toml is not installed, left out",
    )
    shutil.rmtree(site / ".patchkit")
    site.attest().ok().shows("no receipt")
    (site / "demo/deep/new.py").write_text("new = 2\n")
    site.attest().ends(1).shows("? unknown  two.patch  demo/deep/new.py")
    shutil.rmtree(site.project.root / "patches")
    (site / "demo/deep/new.py").write_text("new = 1\n")
    site.attest().ok()


@pytest.mark.usefixtures("lock")
def test_patches_that_are_not_the_locks_are_built(site: Site) -> None:
    site.install().ok()
    other = {"one.patch": make_patch(BASE, {CORE: "other\n"})}
    for patches, code in ((FIRST, 1), (other, 1), (PATCHES, 0)):
        site.project.series("demo", patches)
        site.attest().ends(code)


def test_no_forged_receipt_makes_it_live(site: Site) -> None:
    site.install().ok()
    path = site.receipt()
    good = json.loads(path.read_text())
    site.reverse().ok()
    path.parent.mkdir()
    empty = {**good["layer"], "files": [], "left_out": []}
    swapped = [{**f, "states": f["states"][:1] * len(f["states"])} for f in good["layer"]["files"]]
    for layer in (empty, {**good["layer"], "files": swapped}):
        path.write_text(json.dumps({**good, "layer": layer, "before": [], "records": []}))
        for ran, verdict in (
            (site.told("--json"), "as its receipt says"),
            (site.attest("--json"), "not live"),
        ):
            (found,) = ran.ends(1).json["components"]
            assert found["verdict"] == verdict


def test_an_edited_file_is_not_vouched_for_by_a_forged_receipt(site: Site) -> None:
    site.install().ok()
    with (site / "demo/core.py").open("a") as core:
        core.write("evil = 1\n")
    receipt = json.loads(site.receipt().read_text())
    site.receipt().write_text(json.dumps({**receipt, "before": []}))
    assert "✓" not in site.attest().ends(1).out


def test_an_image_is_not_left_through_links(site: Site, tmp_path: Path) -> None:
    site.install().ok()
    packages = tmp_path / "image/usr/lib/python3/site-packages"
    shutil.copytree(site.folder, packages)
    image = Site(tmp_path / "image", site.project)
    image.attest("--image").ok()
    shutil.rmtree(packages / "demo")
    (packages / "demo").symlink_to(site / "demo")
    image.attest("--image").ends(1, "is a link out of the image")
    image.told("--image").ends(4)
    (packages / "demo").unlink()
    (packages / "demo").symlink_to("../inside")
    shutil.copytree(site / "demo", packages.parent / "inside")
    image.attest("--image").ok()


def test_what_was_installed_is_not_left_out(site: Site) -> None:
    site.install().ok()
    (site / "demo/deep/new.py").unlink()  # the receipt says that it was there
    site.attest().ends(1)


def test_a_draft_of_a_killed_one_is_said(site: Site) -> None:
    site.install().ok()
    beside = "demo/.core.py.0123456789ab.patchkit-tmp"
    (site / beside).write_text("half")
    row = {"path": "demo/core.py", "beside": beside, "old": None, "new": "0" * 64}
    (site / DRAFT).write_text(json.dumps({"version": 2, "steps": [row]}))
    site.attest().ends(1).shows("killed in")
    site.reverse().ok()
    assert not [
        name for _, _, names in os.walk(site.folder) for name in names if "patchkit" in name
    ]


def test_files_of_a_lock_are_checked(site: Site, lock: Path) -> None:
    text = lock.read_text()
    for old, new in (('"100644 ', '"100644'), ('"files": {', '"files": {"x": 1, ')):
        lock.write_text(text.replace(old, new, 1))
        site.project.run("check").ends(4, "not a lock")
    other = '"files": {"x": {"": "100644 ' + "0" * 40 + '"}, '
    lock.write_text(text.replace('"files": {', other, 1))
    site.project.run("check").ends(1).shows("are not those that")
    site.project.run("apply").ends(1)
    site.project.run("apply", "--accept").ok()
    assert lock.read_text() == text
