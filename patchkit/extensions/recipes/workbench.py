"""The examples that recipes hold, run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.disk.files import unless_gone
from patchkit.errors import ExitCode, PatchkitError, Problem, worst
from patchkit.extensions.recipes.recipe_file import load_recipe
from patchkit.extensions.recipes.run import ExampleResult, run_examples
from patchkit.model.names import RECIPE_ENDING


class RecipeTest(Struct, frozen=True):
    """The examples of one recipe; `untested` are the rules without any."""

    recipe: str
    examples: tuple[ExampleResult, ...] = ()
    untested: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    exit_code: ExitCode = ExitCode.OK


class RecipeTestReport(Struct, frozen=True):
    """What became of the recipes' examples."""

    recipes: tuple[RecipeTest, ...]

    @property
    def exit_code(self) -> ExitCode:
        """The worst of all."""
        return worst(each.exit_code for each in self.recipes)


def find_recipes(folder: Path) -> tuple[Path, ...]:
    """Every recipe below a folder, in the order of their paths."""
    return tuple(
        sorted(
            Path(place, name)
            for place, _, names in os.walk(folder, onerror=unless_gone)
            for name in names
            if name.endswith(RECIPE_ENDING)
        )
    )


def check_recipes(paths: Sequence[Path]) -> RecipeTestReport:
    """Run the examples of recipes; what is wrong with one stops no other."""
    return RecipeTestReport(tuple(_test(path) for path in paths))


def _test(path: Path) -> RecipeTest:
    try:
        recipe = load_recipe(path)
        examples = tuple(run_examples(recipe))
    except PatchkitError as error:
        return RecipeTest(str(path), problems=error.problems, exit_code=error.exit_code)
    untested = tuple(rule.id for rule in recipe.all_rules if not rule.examples)
    wrong = any(each.wrong for each in examples)
    code = ExitCode.FINDING if wrong else ExitCode.OK
    return RecipeTest(str(path), examples, untested, exit_code=code)
