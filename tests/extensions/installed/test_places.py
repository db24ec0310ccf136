"""Which wheel a file of a patch belongs to; what has no place, or several; what is gone since."""

from __future__ import annotations

import base64
import json
import shutil
import time
import zlib

import pytest

from tests.extensions.installed.sites import WHEEL, Site
from tests.extensions.installed.wheels import install, require_true
from tests.support.projects import write_files
from tests.support.repos import Upstream

A, TESTS, KERNEL = "src/demo/a.py", "tests/__init__.py", "kern/inner/k.py"
BEFORE = {A: "a = 1\n", TESTS: "", KERNEL: "k = 1\n"}
AFTER = {A: "a = 2\n", TESTS: "import a\n", KERNEL: "k = 2\n"}


@pytest.fixture
def demo(bare: Site) -> Site:
    """A folder with a wheel of one file."""
    install(bare.folder, {"demo/a.py": "a = 1\n"})
    return bare


def _parts(site: Site, upstream: Upstream, *paths: str, **keys: object) -> None:
    before, after = ({p: each[p] for p in paths} for each in (BEFORE, AFTER))
    site.component(upstream, before, after, **keys)


def test_several_places_are_a_refusal_that_names_them(demo: Site, upstream: Upstream) -> None:
    install(demo.folder, {TESTS: ""}, name="other")
    _parts(demo, upstream, A, TESTS)
    before = demo.files()
    demo.install().ends(1, "demo/a.py demo 1.0", "tests/__init__.py other 1.0", "layout")
    assert demo.files() == before
    _parts(demo, upstream, A, TESTS, layout={"src/demo": "demo"})
    demo.install().ok().shows("tests/__init__.py is not installed, left out")
    assert demo.files()["demo/a.py"] == b"a = 2\n"


def test_two_folders_without_wheels_are_a_tie(bare: Site, upstream: Upstream) -> None:
    write_files(bare.folder, {"demo/a.py": "a = 1\n", TESTS: ""})
    _parts(bare, upstream, A, TESTS)
    bare.install().ends(1, "in several places: ")


def test_an_installed_file_without_a_place_is_a_refusal(demo: Site, upstream: Upstream) -> None:
    install(demo.folder, {"inner/k.py": "k = 1\n"}, name="kernels")
    _parts(demo, upstream, A, KERNEL)
    demo.install().ends(1, "inner/k.py is kern/inner/k.py")
    _parts(demo, upstream, A, KERNEL, layout={"src/demo": "demo", "kern/inner": "inner"})
    demo.install().ok().shows("demo 1.0, kernels 1.0")
    for record in demo.folder.glob("*/RECORD"):
        require_true(record)


def test_a_file_of_no_wheel_gets_no_row(demo: Site, upstream: Upstream) -> None:
    write_files(demo.folder, {"demo/k.py": "k = 1\n"})
    before = {"demo/a.py": "a = 1\n", "demo/k.py": "k = 1\n"}
    demo.component(upstream, before, {"demo/a.py": "a = 2\n", "demo/k.py": "k = 2\n"})
    demo.install().ok()
    assert (demo / "demo/k.py").read_text() == "k = 2\n"
    assert "demo/k.py" not in (demo / "demo-1.0.dist-info/RECORD").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "core"), [("1.0", WHEEL["demo/core.py"]), ("2.0", "x\n"), ("", "")]
)
def test_reverse_says_that_the_package_was_installed_again(
    site: Site, version: str, core: str
) -> None:
    site.install().ok()
    for each in ("demo", "demo-1.0.dist-info"):
        shutil.rmtree(site / each)
    if version:
        install(site.folder, {**WHEEL, "demo/core.py": core}, version=version)
    before = site.files()
    site.reverse().ok().shows("reinstalled  demo/demo  installed again or removed since")
    assert site.files() == {p: d for p, d in before.items() if ".patchkit" not in p}


def test_an_edit_of_the_only_file_is_no_new_installation(demo: Site, upstream: Upstream) -> None:
    _parts(demo, upstream, A)
    demo.install().ok()
    (demo / "demo/a.py").write_text("mine\n")
    demo.reverse().ends(1, "is not as patchkit left it")
    assert demo.receipt().is_file()


@pytest.mark.slow
def test_a_damaged_receipt_takes_no_time(demo: Site, upstream: Upstream) -> None:
    """Twenty mistakes are named; what unpacks to gigabytes is not unpacked."""
    _parts(demo, upstream, A)
    demo.install().ok()
    good = json.loads(demo.receipt().read_text())
    bomb = base64.b64encode(zlib.compress(bytes(90 << 20), 9)).decode()
    row = {"data": bomb, "digest": "0" * 64, "after": None}
    for rows, said in (
        ([{**row, "path": f"z{n}"} for n in range(60)], "more than 128 MiB"),
        ([{**row, "data": "", "path": f"../{n}"} for n in range(30_000)], "59980 more mistakes"),
    ):
        demo.receipt().write_text(json.dumps({**good, "before": rows}))
        begin = time.process_time()
        ran = demo.told()
        assert time.process_time() - begin < 2
        assert ran.ends(4, said).err.count("error: ") <= 21
