"""`recipe --new`: a recipe with one rule and its place in the series; refresh makes the patch."""

from __future__ import annotations

import pytest

from tests.extensions.recipes.test_generated import BASE, FIRST
from tests.support.projects import Project
from tests.support.repos import Upstream

RECIPE = "patches/demo/off.recipe.yml"


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    project.component("demo", upstream, upstream.commit(BASE, "base"), {"first.patch": FIRST})
    return project


def test_from_nothing_to_a_patch(demo: Project) -> None:
    demo.run("recipe", "--new", "off", "--pattern", "@fuser", "--remove").ok().shows(
        "3 sites in 2 files"
    )
    text = (demo.root / RECIPE).read_text()
    assert "expect: 3" in text
    series = (demo.root / "patches/demo/series").read_text().splitlines()
    assert series[-1] == "off.patch"
    demo.run("refresh").ok()
    assert (demo.root / "patches/demo/off.patch").read_bytes().count(b"\n-@fuser\n") == 3
    demo.run("check").ok()


def test_a_fix_and_a_scope(demo: Project) -> None:
    argv = ("--pattern", "return $X", "--fix", "return ($X)", "--file", "src/a.py")
    ran = demo.run("recipe", "--new", "off", *argv)
    assert ran.code == 1  # it would match what it wrote
    assert "it would edit its own result" in ran.err
    assert not (demo.root / RECIPE).exists()
    demo.run("recipe", "--new", "off", "--pattern", "x + 1", "--fix", "x + 2").ok()
    demo.run("refresh").ok()
    assert b"+    return x + 2\n" in (demo.root / "patches/demo/off.patch").read_bytes()


def test_text(demo: Project) -> None:
    argv = ("--find", "@fuser", "--fix", "nothing", "--file", "doc.md", "--message", "Say less")
    demo.run("recipe", "--new", "off", *argv).ok()
    demo.run("refresh").ok()
    patch = (demo.root / "patches/demo/off.patch").read_bytes()
    assert b"Subject: Say less\n" in patch
    assert patch.endswith(b"-@fuser\n+nothing\n")


def test_the_language_is_that_of_the_files(demo: Project) -> None:
    argv = ("--pattern", "f($X)", "--remove", "--file", "**/*.rs")
    demo.run("recipe", "--new", "off", *argv).ends(1, "f($X) is in none of 0 files")


def test_a_component_without_a_series_gets_one(demo: Project) -> None:
    manifest = demo.root / "manifests/demo.yaml"
    text = manifest.read_text()
    manifest.write_text(text[: text.index("    patches:")])
    (demo.root / "patches/demo/series").unlink()
    demo.run("recipe", "--new", "off", "--pattern", "@fuser", "--remove").ok()
    assert "series: patches/demo/series" in manifest.read_text()
    demo.run("refresh").ok()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--remove",), "say once what to find"),
        (("--pattern", "x", "--find", "x", "--remove"), "say once what to find"),
        (("--pattern", "x"), "say once what to do"),
        (("--pattern", "x", "--fix", "y", "--remove"), "say once what to do"),
        (("--find", "x", "--remove"), "--remove is for code"),
        (("--find", "x", "--fix", "y"), "text is looked for in files that are named"),
    ],
)
def test_what_is_asked_for_must_be_clear(demo: Project, argv: tuple[str, ...], said: str) -> None:
    before = demo.files("")
    demo.run("recipe", "--new", "off", *argv).ends(2, said)
    assert demo.files("") == before


@pytest.mark.parametrize("name", ["first", "no name", "first.patch"])
def test_a_name_must_be_free_and_a_name(demo: Project, name: str) -> None:
    before = demo.files("")
    assert demo.run("recipe", "--new", name, "--pattern", "@fuser", "--remove").code == 2
    assert demo.files("") == before


def test_a_dry_run_writes_nothing(demo: Project) -> None:
    before = demo.files("")
    demo.run("recipe", "--new", "off", "--pattern", "@fuser", "--remove", "--dry-run").ok().shows(
        "3 sites in 2 files"
    )
    assert demo.files("") == before
