"""Patches come in from recipes and specs, and go back to them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.projects import Project, write_files
from tests.support.repos import Upstream
from tests.support.stacked import NAMES, STATES, small_patches


@pytest.fixture
def empty(project: Project, upstream: Upstream) -> Project:
    """A component `demo` at the small stack's base, without any patch."""
    project.component("demo", upstream, upstream.commit(STATES[0], "The base"))
    return project


def _imported(project: Project, names: Iterable[str]) -> None:
    """The series has these patches, byte for byte, and gives the small stack's files."""
    stored = project.files()
    assert stored["patches/demo/series"].decode().split() == list(names)
    assert [stored[f"patches/demo/{name}"] for name in names] == list(small_patches().values())
    project.prepare("apply").ok()
    checkout = project.checkout("demo")
    assert "twenty\nand more" in (checkout / "a.txt").read_text()
    assert (checkout / "added.txt").read_text() == "new\nfile\n"


RECIPE = """\
SRC_URI = "https://example.com/demo.tar.gz \\
    file://0001-one.patch \\
    file://0002-two.patch \\
"
SRC_URI:append = " file://three.diff;striplevel=1"
SRC_URI:append:class-native = " file://native.patch"
"""


@pytest.mark.slow
def test_a_recipe(empty: Project, tmp_path: Path) -> None:
    names = ("0001-one.patch", "0002-two.patch", "three.diff")
    write_files(tmp_path / "demo", dict(zip(names, small_patches().values(), strict=True)))
    recipe = tmp_path / "demo_1.2.bb"
    recipe.write_text(RECIPE)
    left_out = "demo_1.2.bb:6: left out: patches that only class-native has"
    empty.run("import", str(recipe)).ok().says(left_out)
    _imported(empty, names)
    (tmp_path / "demo/three.diff").unlink()
    empty.run("import", str(recipe)).ends(4, "three.diff: No such file or directory")
    recipe.write_text('SRC_URI = "https://example.com/a.tar.gz"\n')
    empty.run("import", str(recipe)).ends(2, "demo_1.2.bb lists no patch")


@pytest.mark.slow
def test_a_spec(empty: Project, tmp_path: Path) -> None:
    tags = "".join(f"Patch{n}: {name}\n" for n, name in enumerate(NAMES, 1))
    spec = {"SPECS/demo.spec": f"Name: demo\n{tags}\n%prep\n%autosetup -p1\n"}
    write_files(tmp_path / "SOURCES", small_patches())
    write_files(tmp_path, spec)
    empty.run("import", str(tmp_path / "SPECS/demo.spec")).ok()
    _imported(empty, NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["yocto", "rpm"])
def test_what_is_exported_for_a_builder_comes_back(
    project: Project, upstream: Upstream, tmp_path: Path, form: str
) -> None:
    pin = upstream.commit(STATES[0], "The base")
    project.component("demo", upstream, pin, small_patches())
    project.component("again", upstream, pin)
    target = tmp_path / "exported"
    project.run("export", "demo", "--format", form, "-o", str(target)).ok()
    if form == "yocto":
        source = target / "demo_%.bbappend"
    else:
        source = target / "demo.spec"
        source.write_bytes((target / "patches.inc").read_bytes() + b"%prep\n%autosetup -p1\n")
    project.run("import", str(source), "-c", "again").ok()
    report = project.run("check", "--json").ok().json
    assert len({each["tree"] for each in report["components"]}) == 1
    assert project.files()["patches/again/series"].decode().split() == list(small_patches())


@pytest.mark.slow
def test_two_patches_that_would_get_one_name_are_refused(
    project: Project, upstream: Upstream, tmp_path: Path
) -> None:
    patches = zip(("sub/one.patch", "sub-one.patch"), small_patches().values(), strict=False)
    project.component("demo", upstream, upstream.commit(STATES[0]), dict(patches))
    project.run("export", "--format", "rpm", "-o", str(tmp_path / "out")).ends(
        4, "two patches would get one name without their folders"
    )
