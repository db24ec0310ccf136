"""`recipe --new`: a recipe with one rule and its place in the series; refresh makes the patch."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.extensions.recipes.test_generated import BASE, FIRST
from tests.support.commands import Ran
from tests.support.projects import Project
from tests.support.repos import Upstream

RECIPE = "patches/demo/off.recipe.yml"
FUSER = ("--pattern", "@fuser", "--remove")


@dataclass(frozen=True)
class Demo:
    """A component with a patch."""

    project: Project

    def new(self, *argv: str, name: str = "off") -> Ran:
        return self.project.run("recipe", "--new", name, *argv)

    def refreshed(self) -> bytes:
        """The patch that `refresh` makes."""
        self.project.run("refresh").ok()
        return (self.project.root / "patches/demo/off.patch").read_bytes()


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Demo:
    project.component("demo", upstream, upstream.commit(BASE, "base"), {"first.patch": FIRST})
    return Demo(project)


def test_from_nothing_to_a_patch(demo: Demo) -> None:
    before = demo.project.files("")
    demo.new(*FUSER, "--dry-run").ok().shows("3 sites in 2 files")
    assert demo.project.files("") == before
    demo.new(*FUSER).ok().shows("3 sites in 2 files")
    made = demo.project.files()
    assert b"expect: 3" in made[RECIPE]
    assert made["patches/demo/series"].split()[-1] == b"off.patch"
    assert demo.refreshed().count(b"\n-@fuser\n") == 3
    demo.project.run("check").ok()


def test_a_fix_and_a_scope(demo: Demo) -> None:
    argv = ("--pattern", "return $X", "--fix", "return ($X)", "--file", "src/a.py")
    # it would match what it wrote
    demo.new(*argv).ends(1, "it would edit its own result")
    assert RECIPE not in demo.project.files()
    demo.new("--pattern", "x + 1", "--fix", "x + 2").ok()
    assert b"+    return x + 2\n" in demo.refreshed()


def test_text(demo: Demo) -> None:
    argv = ("--find", "@fuser", "--fix", "nothing", "--file", "doc.md", "--message", "Say less")
    demo.new(*argv).ok()
    patch = demo.refreshed()
    assert b"Subject: Say less\n" in patch
    assert patch.endswith(b"-@fuser\n+nothing\n")


def test_the_language_is_that_of_the_files(demo: Demo) -> None:
    argv = ("--pattern", "f($X)", "--remove", "--file", "**/*.rs")
    demo.new(*argv).ends(1, "f($X) is in none of 0 files")


def test_a_component_without_a_series_gets_one(demo: Demo) -> None:
    manifest = demo.project.root / "manifests/demo.yaml"
    text = manifest.read_text()
    manifest.write_text(text[: text.index("    patches:")])
    (demo.project.root / "patches/demo/series").unlink()
    demo.new(*FUSER).ok()
    assert "series: patches/demo/series" in manifest.read_text()
    assert demo.refreshed()


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
def test_what_is_asked_for_must_be_clear(demo: Demo, argv: tuple[str, ...], said: str) -> None:
    before = demo.project.files("")
    demo.new(*argv).ends(2, said)
    assert demo.project.files("") == before


@pytest.mark.parametrize("name", ["first", "no name", "first.patch"])
def test_a_name_must_be_free_and_a_name(demo: Demo, name: str) -> None:
    before = demo.project.files("")
    demo.new(*FUSER, name=name).ends(2)
    assert demo.project.files("") == before
