"""Which wheel a file of a patch belongs to; what has no place, or several; what is gone since."""

from __future__ import annotations

import base64
import json
import shutil
import time
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.installed.test_install import BASE, PATCHES, WHEEL
from tests.extensions.installed.wheels import contents, install, require_true
from tests.support.projects import Project
from tests.support.repos import Files, Upstream, make_patch

TWO_PARTS: Files = {
    "src/demo/a.py": "a = 1\n",
    "tests/__init__.py": "",
    "kern/inner/k.py": "k = 1\n",
}
CHANGED: Files = {
    "src/demo/a.py": "a = 2\n",
    "tests/__init__.py": "import a\n",
    "kern/inner/k.py": "k = 2\n",
}


def _parts(project: Project, upstream: Upstream, paths: list[str], **extra: Any) -> None:
    before, after = ({p: each[p] for p in paths} for each in (TWO_PARTS, CHANGED))
    patches = {"one.patch": make_patch(before, after)}
    project.component("demo", upstream, upstream.commit(before), patches, **extra)


def test_several_places_are_a_refusal_that_names_them(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    install(site, {"demo/a.py": "a = 1\n"})
    install(site, {"tests/__init__.py": ""}, name="other")
    _parts(project, upstream, ["src/demo/a.py", "tests/__init__.py"])
    before = contents(site)
    ran = project.run("install", str(site)).ends(1)
    for place in ("demo/a.py demo 1.0", "tests/__init__.py other 1.0", "layout"):
        assert place in ran.err
    assert contents(site) == before
    _parts(project, upstream, [*TWO_PARTS][:2], layout={"src/demo": "demo"})
    project.run("install", str(site)).ok().shows("tests/__init__.py is not installed, left out")
    assert contents(site)["demo/a.py"] == b"a = 2\n"


def test_two_folders_without_wheels_are_a_tie(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    for name in ("site/demo/a.py", "site/tests/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("a = 1\n" * name.endswith("a.py"))
    _parts(project, upstream, ["src/demo/a.py", "tests/__init__.py"])
    project.run("install", str(tmp_path / "site")).ends(1, "in several places: ")


def test_an_installed_file_without_a_place_is_a_refusal(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    install(site, {"demo/a.py": "a = 1\n"})
    install(site, {"inner/k.py": "k = 1\n"}, name="kernels")
    _parts(project, upstream, ["src/demo/a.py", "kern/inner/k.py"])
    project.run("install", str(site)).ends(1, "inner/k.py is kern/inner/k.py")
    layout = {"src/demo": "demo", "kern/inner": "inner"}
    _parts(project, upstream, ["src/demo/a.py", "kern/inner/k.py"], layout=layout)
    assert "demo 1.0, kernels 1.0" in project.run("install", str(site)).ok().out
    for record in site.glob("*/RECORD"):
        require_true(record)


def test_a_file_of_no_wheel_gets_no_row(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    install(site, {"demo/a.py": "a = 1\n"})
    (site / "demo/k.py").write_text("k = 1\n")
    before = {"demo/a.py": "a = 1\n", "demo/k.py": "k = 1\n"}
    patch = make_patch({**before}, {"demo/a.py": "a = 2\n", "demo/k.py": "k = 2\n"})
    project.component("demo", upstream, upstream.commit({**before}), {"one.patch": patch})
    project.run("install", str(site)).ok()
    assert (site / "demo/k.py").read_text() == "k = 2\n"
    assert "demo/k.py" not in (site / "demo-1.0.dist-info/RECORD").read_text()


@pytest.mark.slow
def test_reverse_says_that_the_package_was_installed_again(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    project.component("demo", upstream, upstream.commit(BASE), PATCHES)
    for version, text in (("1.0", WHEEL["demo/core.py"]), ("2.0", "another\n"), ("", "")):
        install(site, WHEEL)
        project.run("install", str(site)).ok()
        for each in ("demo", "demo-1.0.dist-info"):
            shutil.rmtree(site / each)
        if version:
            install(site, {**WHEEL, "demo/core.py": text}, version=version)
        before = contents(site)
        (
            project.run("install", str(site), "--reverse")
            .ok()
            .shows("reinstalled  demo/demo  installed again or removed since")
        )
        assert contents(site) == {p: d for p, d in before.items() if ".patchkit" not in p}
        shutil.rmtree(site, ignore_errors=True)


def test_an_edit_of_the_only_file_is_no_new_installation(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    install(site, {"demo/a.py": "a = 1\n"})
    _parts(project, upstream, ["src/demo/a.py"])
    project.run("install", str(site)).ok()
    (site / "demo/a.py").write_text("mine\n")
    project.run("install", str(site), "--reverse").ends(1, "is not as patchkit left it")
    assert list(site.glob(".patchkit/*"))


@pytest.mark.slow
def test_a_damaged_receipt_takes_no_time(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    """Twenty mistakes are named; what unpacks to gigabytes is not unpacked."""
    site = tmp_path / "site"
    install(site, {"demo/a.py": "a = 1\n"})
    _parts(project, upstream, ["src/demo/a.py"])
    project.run("install", str(site)).ok()
    (receipt,) = site.glob(".patchkit/*")
    good = json.loads(receipt.read_text())
    bomb = base64.b64encode(zlib.compress(bytes(90 << 20), 9)).decode()
    row = {"data": bomb, "digest": "0" * 64, "after": None}
    for rows, said in (
        ([{**row, "path": f"z{n}"} for n in range(60)], "more than 128 MiB"),
        ([{**row, "data": "", "path": f"../{n}"} for n in range(30_000)], "59980 more mistakes"),
    ):
        receipt.write_text(json.dumps({**good, "before": rows}))
        begin = time.process_time()
        ran = project.run("check", "--only", "installed", str(site))
        assert time.process_time() - begin < 2
        ran.ends(4, said)
        assert ran.err.count("error: ") <= 21
