"""`check --only recipes` and `recipe` on a project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from patchkit.extensions.recipes.recipe_file import parse_recipe
from tests.extensions.recipes.kitchen import DROP, recipe_text
from tests.extensions.recipes.test_generated import BASE, FIRST, RECIPE
from tests.support.damage import nest_too_deep
from tests.support.projects import Project
from tests.support.repos import Upstream

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def demo(project: Project, upstream: Upstream) -> Project:
    project.component("demo", upstream, upstream.commit(BASE, "base"), {"first.patch": FIRST})
    project.write({RECIPE: recipe_text({**DROP, "expect": 3})})
    return project


def test_try_tells_every_site(demo: Project) -> None:
    sites = ("3 sites", "  src/a.py:8 in f\n", "  src/a.py:13 in g\n", "  src/b.py:1 in h\n")
    with demo.untouched():
        demo.run("recipe", RECIPE, "--sites").ok().shows(*sites)


def test_try_shows_the_diff_that_refresh_writes(demo: Project) -> None:
    tried = demo.run("recipe", RECIPE).ok()
    diff = tried.stdout[tried.stdout.index(b"diff --git") :]
    series = demo.root / "patches/demo/series"
    series.write_text(series.read_text() + "drop-fuser.patch\n")
    demo.run("refresh").ok()
    patch = (demo.root / "patches/demo/drop-fuser.patch").read_bytes()
    assert patch.endswith(diff)
    again = demo.run("recipe", RECIPE).ok().says("in the place of drop-fuser.patch")
    assert again.stdout == tried.stdout


def test_try_names_what_is_allowed(demo: Project) -> None:
    allow = {"path": "src/a.py", "within": "g", "reason": "it is slow enough"}
    demo.write({RECIPE: recipe_text({**DROP, "allow": [allow], "expect": 2})})
    demo.run("recipe", RECIPE, "--sites").ok().shows(
        "2 sites in 2 files, 1 allowed", "allowed: it is slow enough"
    )
    assert demo.run("recipe", RECIPE, "--json").ok().json["rules"][0]["allowed"] == 1


def test_rules_without_examples_are_named(demo: Project) -> None:
    demo.run("check", "--only", "recipes").ok().says(
        f"warning: {RECIPE}: no examples of drop-fuser"
    )


@pytest.mark.parametrize(
    "rule", [{"pattern": "@fuser"}, {"any": [{"kind": "call"}, {"pattern": "@fuser"}]}]
)
def test_what_is_no_code_is_told(demo: Project, rule: dict[str, object]) -> None:
    rule = {"id": "half", "rule": rule, "remove": "lines"}
    demo.write({RECIPE: recipe_text(rule)})
    demo.run("check", "--only", "recipes").ends(4, "the pattern is no Python: @fuser")


def test_an_example_whose_result_is_no_code_is_told(demo: Project) -> None:
    example = {"before": "x + 1\n", "after": "x\n"}
    rule = {"id": "half", "rule": {"pattern": "x + 1"}, "fix": "x +", "examples": [example]}
    demo.write({RECIPE: recipe_text(rule)})
    ran = demo.run("check", "--only", "recipes").ends(1, "half: the result is no python any more")
    assert "half: half:" not in ran.err


def test_without_recipes_there_is_nothing_to_test(project: Project) -> None:
    project.run("check", "--only", "recipes").ok().says("no recipe in patches/")


def test_a_folder_that_cannot_be_read_is_not_without_recipes(demo: Project) -> None:
    nest_too_deep(demo.root / "patches")
    demo.run("check", "--only", "recipes").ends(5, "File name too long")


def test_the_documented_recipe_is_one(demo: Project) -> None:
    page = (DOCS / "recipes.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"(?ms)^```yaml\n(.*?)^```$", page)
    parse_recipe(text.encode(), Path("x.recipe.yml"))
    demo.write({"patches/demo/documented.recipe.yml": text})
    demo.run("check", "--only", "recipes", "patches/demo/documented.recipe.yml").ok().shows(
        "1 example"
    )
