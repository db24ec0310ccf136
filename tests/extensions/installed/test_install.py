"""`patchkit install` and `attest`: wheels patched where they are installed, and back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.disk.files import JOURNAL
from tests.extensions.installed.sites import (
    BASE,
    BOTH,
    CORE,
    FIRST,
    ONE,
    PATCHES,
    WHEEL,
    Site,
    lines,
)
from tests.extensions.installed.wheels import contents, digest, install, require_true
from tests.support.damage import nest_too_deep
from tests.support.golden import Golden
from tests.support.projects import write_files
from tests.support.repos import Files, Upstream, executable, make_patch

RECORD = "demo-1.0.dist-info/RECORD"


def test_a_wheel_is_patched_attested_and_taken_back_byte_for_byte(
    site: Site, golden: Golden, tmp_path: Path
) -> None:
    before = site.files()
    os.link(site / "demo/core.py", tmp_path / "in-the-cache.py")  # as some installers do
    golden("install", site.install())
    after = site.files()
    assert after["demo/core.py"].decode() == BOTH
    assert (after["demo/deep/new.py"], "demo/gone.py" in after) == (b"new = 1\n", False)
    assert (tmp_path / "in-the-cache.py").read_text() == lines()
    assert not list(site.folder.glob("demo/__pycache__/core.*"))
    assert list(site.folder.glob("demo/__pycache__/other.*"))
    require_true(site / RECORD)
    golden("attest-live", site.attest())
    golden("attest-receipt", site.told())
    golden("install-reverse", site.reverse())
    site.install("--dry-run").ok().shows("✓ applied  demo/demo  7 files changed, demo 1.0")
    assert site.files() == before
    assert not (site / ".patchkit").exists()
    golden("attest-nothing", site.told())


def test_twice_touches_nothing_though_the_files_were_compiled_since(site: Site) -> None:
    site.install().ok()
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(site.folder)], check=True)
    before = site.files()
    site.install().ok().shows("✓ unchanged  demo/demo  every patch is live already")
    assert site.files() == before


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_record_keeps_its_form(site: Site, end: str) -> None:
    shutil.rmtree(site.folder)
    record = install(site.folder, WHEEL, end=end)
    record.write_bytes(record.read_bytes().removesuffix(end.encode()))
    before = site.files()
    site.install().ok()
    require_true(record)
    assert record.read_bytes().count(end.encode()) == len(before) - 1
    site.reverse().ok()
    assert site.files() == before


def test_files_in_the_way_are_refused(site: Site) -> None:
    install(site.folder, {**WHEEL, "demo/core.py": "another\n", "demo/deep/new.py": "mine\n"})
    before = site.files()
    site.install().ends(
        1,
        "demo/core.py of demo 1.0 is not the file of the pin",
        "demo/deep/new.py is there already",
    )
    assert site.files() == before
    (site / "demo/core.py").unlink()
    site.install().ends(1, "demo/core.py is not there")


def test_an_edit_of_the_wheel_is_refused(site: Site, golden: Golden) -> None:
    (site / "demo/core.py").write_text("edited\n")
    before = site.files()
    golden("install-edited", site.install())
    assert site.files() == before


def test_a_wheel_that_has_a_patch_already(site: Site) -> None:
    install(site.folder, {**WHEEL, "demo/core.py": ONE})
    before = site.files()
    two = "✗ not live  two.patch  demo/core.py, demo/deep/new.py, demo/gone.py"
    site.attest().ends(1).shows("1 of 2 patches", "no receipt", two)
    site.install().ok()
    site.attest().ok()
    site.reverse().ok()
    assert site.files() == before


def test_all_of_several_components_or_nothing(site: Site, upstream: Upstream) -> None:
    base, change = ({"src/second/a.py": each} for each in (lines(), ONE))
    pin = upstream.commit({**base}, branch="second", parents=())
    site.project.component("second", upstream, pin, {"s.patch": make_patch({**base}, {**change})})
    before = site.files()
    site.install().ends(1).shows(
        "· held  demo/demo  could be done; another component cannot",
        "· absent  demo/second  not installed there",
    )
    assert site.files() == before
    install(site.folder, {"second/a.py": lines()}, name="second")
    site.install().ok()
    assert (site / "second/a.py").read_text() == ONE


def test_a_changed_series_is_put_in_the_place_of_the_old_one(site: Site) -> None:
    before = site.files()
    site.install().ok()
    site.project.series("demo", FIRST)
    site.install().ok()
    found = site.files()
    assert (found["demo/core.py"].decode(), "demo/gone.py" in found) == (ONE, True)
    require_true(site / RECORD)
    site.reverse().ok()
    assert site.files() == before


def test_a_reinstalled_package_is_patched_again(site: Site) -> None:
    site.install().ok()
    shutil.rmtree(site / "demo")
    install(site.folder, WHEEL)
    site.told().ends(1).shows("not live  demo/demo  0 of 2 patches")
    site.install().ok()
    site.attest().ok()
    require_true(site / RECORD)


def test_an_edit_since_is_not_overwritten(site: Site, golden: Golden) -> None:
    site.install().ok()
    (site / "demo/core.py").write_text("edited since\n")
    before = site.files()
    golden("attest-edited", site.told())
    for ran in (site.reverse(), site.install()):
        ran.ends(1, "demo/core.py is not as patchkit left it")
    assert site.files() == before


def _second_layer(site: Site, upstream: Upstream, change: dict[int, str]) -> None:
    """Another manifest's patch of core.py, made for the pin."""
    site.project.series("upper", {"upper.patch": make_patch(BASE, {CORE: lines(change)})})
    pin = str(upstream.resolve("refs/heads/main"))
    entry = [{"series": "patches/upper/series"}]
    site.project.component("demo", upstream, pin, entry, manifest="upper")


def test_two_layers_of_one_package(site: Site, upstream: Upstream) -> None:
    _second_layer(site, upstream, {25: "twenty-five\n"})
    before = site.files()
    site.install("-m", "demo").ok()
    site.install("-m", "upper").ok().shows("together with demo/demo")
    both = lines({5: "five\n", 15: "fifteen\n", 25: "twenty-five\n"})
    assert (site / "demo/core.py").read_text() == both
    assert site.told().out.count("? as its receipt says") == 2
    for name in ("demo", "upper"):
        site.told("-m", name).ends(1).shows("as its receipt says")
    site.install("-m", "demo", "--reverse").ends(1, "demo/core.py was changed by upper/demo")
    site.install("-m", "upper", "--reverse").ok()
    site.install("-m", "upper").ok()
    site.reverse().ok()
    assert site.files() == before


def test_a_layer_that_does_not_fit_on_another(site: Site, upstream: Upstream) -> None:
    _second_layer(site, upstream, {5: "FIVE\n"})
    site.install("-m", "demo").ok()
    before = site.files()
    site.install("-m", "upper").ends(1, "upper.patch does not apply on top of demo/demo")
    assert site.files() == before


def test_an_editable_install_is_patched_where_it_runs(site: Site, tmp_path: Path) -> None:
    source, shown = tmp_path / "source", Site(tmp_path / "site", site.project)
    write_files(source, BASE)
    install(shown.folder, {"demo.pth": f"{source}/python\n"}, editable=source / "python")
    shown.install().ends(1, f"patch it there: `patchkit install {source}/python`")
    before = contents(source)
    for folder in (source / "python", source):
        there = Site(folder, site.project)
        there.install().ok()
        assert b"demo-npu" in (source / "python/pyproject.toml").read_bytes()
        assert (source / CORE).read_text() == BOTH
        there.reverse().ok()
        assert contents(source) == before


SOURCES = {
    f"demo/{name}.sh": f"echo {name}\n" for name in ("become", "changed", "gone", "stays", "tamed")
}
_SCRIPTS = ("demo/gone.sh", "demo/stays.sh", "demo/tamed.sh")
SCRIPTS: Files = {p: executable(t) if p in _SCRIPTS else t for p, t in SOURCES.items()}
RUNNING: Files = {
    "demo/become.sh": executable("echo become\n"),
    "demo/changed.sh": executable("echo 2\n"),
    "demo/gone.sh": None,
    "demo/stays.sh": executable("echo 4\n"),
    "demo/tamed.sh": "echo tamed\n",
    "demo/added.sh": executable("echo six\n"),
}


def _running(site: Site) -> set[str]:
    return {each.name for each in site.folder.glob("demo/*.sh") if os.access(each, os.X_OK)}


@pytest.mark.parametrize("installer_keeps", [True, False])
def test_modes_are_given_and_taken_back(
    bare: Site, upstream: Upstream, *, installer_keeps: bool
) -> None:
    bare.component(upstream, SCRIPTS, RUNNING)
    install(bare.folder, SOURCES)
    for name in ("gone", "stays", "tamed") * installer_keeps:
        (bare / f"demo/{name}.sh").chmod(0o755)
    before, modes = bare.files(), _running(bare)
    bare.install().ok()
    running = {"become.sh", "changed.sh", "added.sh", *(["stays.sh"] * installer_keeps)}
    assert _running(bare) == running
    bare.install().ok().shows("unchanged")
    for name in ("become", "changed"):  # of one the patch changes nothing else
        (bare / f"demo/{name}.sh").chmod(0o644)
    bare.told().ends(1).shows("partly live  one.patch  demo/become.sh, demo/changed.sh")
    bare.install().ok()
    assert _running(bare) == running
    bare.attest().ok()
    bare.reverse().ok()
    assert (bare.files(), _running(bare)) == (before, modes)


def _let_differ(site: Site, upstream: Upstream, *globs: str) -> None:
    pin = str(upstream.resolve("refs/heads/main"))
    differing = [{"files": globs, "reason": "made when the wheel is built"}]
    site.project.component("demo", upstream, pin, PATCHES, differing=differing)


def test_files_that_the_manifest_lets_differ(
    site: Site, upstream: Upstream, golden: Golden
) -> None:
    """With the reason, in the receipt and in what is said; none that was edited since."""
    own, reason = "demo/core.py", "made when the wheel is built"
    made = {29: "made = when the wheel was built\n"}
    record = install(site.folder, {**WHEEL, own: lines(made)})
    before = site.files()
    for globs, code in (
        (["demo/other.py"], 1),
        (["demo/c*.py", "elsewhere"], 1),
        (["**/core.py"], 0),
    ):
        _let_differ(site, upstream, *globs)
        site.install("--dry-run").ends(code)
    site.project.run("apply").ok()
    (found,) = site.attest("--json").json["components"]
    assert (found["receipt"], found["neither"], found["reasons"]) == (False, [], {own: reason})
    assert {each["presence"] for each in found["patches"]} <= {"not live", "left out"}
    golden("install-accepted", site.install())
    assert (site / own).read_text() == lines({5: "five\n", 15: "fifteen\n", **made})
    require_true(record)
    site.attest().ok().shows(f"accepted: {reason}")
    site.install().ok().shows("every patch is live")
    site.project.series("demo", FIRST)
    site.project.run("apply").ok()
    site.install().ok().shows(f"accepted: {reason}")
    site.reverse().ok()
    assert site.files() == before
    (site / own).write_text(lines(made) + "edited = 1\n")
    site.install().ends(1, "was edited since demo 1.0 was installed")


def test_a_reason_is_only_for_files_that_differ_and_take_the_patch(
    site: Site, upstream: Upstream
) -> None:
    _let_differ(site, upstream, "**/core.py")
    assert "accepted" not in site.install().ok().out
    site.reverse().ok()
    install(site.folder, {**WHEEL, "demo/core.py": lines({5: "5 = 5\n"})})
    before = site.files()
    site.install().ends(1, "one.patch does not apply")
    assert site.files() == before


def test_layout_of_the_manifest(bare: Site, upstream: Upstream) -> None:
    base: Files = {"code/inner/a.py": lines(), "docs/a.md": "a\n"}
    change: Files = {"code/inner/a.py": ONE, "docs/a.md": "b\n"}
    bare.component(upstream, base, change, layout={"code/inner": "vendor/outer"})
    write_files(bare.folder, {"vendor/outer/a.py": lines()})
    bare.install().ok().shows("one.patch: docs/a.md is not installed, left out")
    assert (bare / "vendor/outer/a.py").read_text() == ONE
    shown = bare.project.run("status", "--resolved", "--json").ok().json
    assert json.dumps(shown).count('"layout": {"code/inner": "vendor/outer"}') == 1


def test_links_are_refused(site: Site, tmp_path: Path) -> None:
    (site / "demo/core.py").rename(tmp_path / "core.py")
    (site / "demo/core.py").symlink_to(tmp_path / "core.py")
    site.install().ends(1, "demo/core.py is a link")
    assert (tmp_path / "core.py").read_text() == lines()
    (site / "demo").rename(tmp_path / "moved")
    (site / "demo").symlink_to(tmp_path / "moved")
    site.install().ends(1)


def test_what_is_no_folder_of_packages(site: Site, tmp_path: Path) -> None:
    write_files(tmp_path, {"demo.zip": "PK", "checkout/.git/HEAD": "", "empty/a": ""})
    for name, said, code in (
        ("demo.zip", "is a file, not a folder", 2),
        ("nowhere", "is not a folder", 2),
        ("checkout", "is a git checkout", 2),
        ("empty", "no file of demo is in", 1),
        ("", f"is it in {site.folder}?", 1),
    ):
        Site(tmp_path / name, site.project).install().ends(code, said)
    site.project.run("install", "--reverse").ends(2)
    site.reverse().ends(2)


def test_a_lock_that_says_otherwise(site: Site) -> None:
    site.project.run("apply").ok()
    site.project.series("demo", FIRST)
    site.install().ends(1).shows("✗ differs  demo/demo  not the stack in the lock")
    site.project.run("apply", "--accept").ok()
    site.install().ok()
    site.attest().ok()
    site.project.series("demo", PATCHES)
    site.project.run("apply", "--accept").ok()
    site.attest().ends(1).shows("✗ not live  two.patch")


@pytest.mark.slow
def test_attest_finds_a_python_and_an_image(site: Site, tmp_path: Path) -> None:
    site.install().ok()
    python, root = Site(tmp_path / "python", site.project), Site(tmp_path / "image", site.project)
    write_files(
        tmp_path, {"python": f'#!/bin/sh\nPYTHONPATH={site.folder} exec {sys.executable} "$@"\n'}
    )
    python.folder.chmod(0o755)
    python.attest().ok().shows("✓ live")
    python.told("--image").ends(2)
    image = root / "usr/lib/python3/dist-packages"
    shutil.copytree(site.folder, image)
    (found,) = root.told("--image", "--json").json["components"]
    assert found["folder"] == str(image)
    nest_too_deep(root.folder)
    root.told("--image").ends(5, "File name too long")
    python.folder.write_text("#!/bin/sh\nexit 3\n")
    python.told().ends(5)
    site.project.run("check", "--only", "installed").ends(2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"version": 1', '"version": 9'),
        ('"path": "demo/core.py"', '"path": "../../core.py"'),
        ('"path": "demo/core.py"', '"path": "/etc/passwd"'),
        ('"data": "', '"data": "AAAA'),
        ("{", "["),
    ],
)
def test_a_damaged_receipt_is_not_believed(site: Site, old: str, new: str) -> None:
    site.install().ok()
    receipt = site.receipt()
    receipt.write_text(receipt.read_text().replace(old, new))
    before = site.files()
    for ran in (site.reverse(), site.install(), site.told()):
        ran.ends(4, str(receipt))
    assert site.files() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_read_only_tree(site: Site) -> None:
    (site / "demo").chmod(0o555)
    site.install().ends(5)


def test_a_killed_one_is_told_and_finished(site: Site) -> None:
    site.install().ok()
    (site / JOURNAL).write_text('{"version": 2, "steps": []}')
    site.told().shows("killed in")
    site.install().ok()
    site.attest().ok()


def test_digest_is_what_pip_writes() -> None:
    assert digest(b"") == "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
