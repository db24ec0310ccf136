"""Recipes for tests: short to write, read by the real loader."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from patchkit.extensions.recipes.recipe_file import parse_recipe
from patchkit.extensions.recipes.run import Recipe
from tests.support.projects import Project

SUBJECT = "Run uncompiled\n\nBecause it has to be.\n\nUpstream-Status: Pending\n"


def recipe_text(*rules: dict[str, Any], text: tuple[dict[str, Any], ...] = ()) -> str:
    """A recipe's file; a rule without `language` and `files` is Python's, in all of src/."""
    data: dict[str, Any] = {"version": 1, "description": SUBJECT}
    if rules:
        common = {"language": "python", "files": ["src/**"]}
        data["rules"] = [deepcopy(common | rule) for rule in rules]  # shared ones make anchors
    if text:
        data["text"] = [{"files": ["src/**"], **rule} for rule in text]
    return str(yaml.safe_dump(data, sort_keys=False))


def recipe_of(*rules: dict[str, Any], text: tuple[dict[str, Any], ...] = ()) -> Recipe:
    """The same, loaded."""
    return parse_recipe(recipe_text(*rules, text=text).encode(), Path("x.recipe.yml"))


def made_patch(project: Project, recipe: str) -> bytes:
    """What `refresh` makes of a recipe that stands in the place of demo's drop-fuser.patch."""
    patch = project.root / "patches/demo/drop-fuser.patch"
    patch.unlink()
    project.write({"patches/demo/drop-fuser.recipe.yml": recipe})
    project.run("refresh").ok()
    return patch.read_bytes()


DROP: dict[str, Any] = {
    "id": "drop-fuser",
    "rule": {"kind": "decorator", "has": {"pattern": "fuser"}},
    "remove": "lines",
}
