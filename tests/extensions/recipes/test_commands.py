"""`check --only recipes` and recipes on a project."""

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


def test_a_dry_run_shows_what_refresh_writes_and_which_sites_there_are(demo: Project) -> None:
    series = demo.root / "patches/demo/series"
    series.write_text(series.read_text() + "drop-fuser.patch\n")
    with demo.untouched():
        demo.write({RECIPE: recipe_text({**DROP, "expect": 2})})
        ran = demo.run("refresh", "--dry-run", "--diff").ends(1)
        demo.write({RECIPE: recipe_text({**DROP, "expect": 3})})
    assert "matches 3 sites, not 2: src/a.py:8, src/a.py:13, src/b.py:1" in ran.err
    demo.run("refresh").ok()
    patch = (demo.root / "patches/demo/drop-fuser.patch").read_text()
    assert ran.out.count("-@fuser") == patch.count("\n-@fuser") == 3


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
