"""`patchkit check --only recipes`."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.project import project_folder
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Terminal
from patchkit.errors import ExitCode, Problem
from patchkit.model.objects import lines_of
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.extensions.recipes.run import ExampleResult
    from patchkit.extensions.recipes.workbench import RecipeTest, RecipeTestReport


@command(
    "json quiet",
    examples={
        "patchkit check --only recipes": "every recipe of patches/",
        "patchkit check --only recipes patches/megatron-lm/jit-fuser-off.recipe.yml": "one of them",
    },
    ok="every example is right, or there are no recipes",
    finding="a rule makes something else of an example",
    bad_input="a recipe cannot be read, or ast-grep does not take a rule",
    result="patchkit.extensions.recipes.workbench:RecipeTestReport",
    group="Patches by recipe",
)
def test(
    session: Session,
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE", help="A recipe. Default: all below patches/."),
    ] = None,
) -> ExitCode:
    """Run the examples that recipes hold.

    An example is a piece of code before a rule is run and after (`examples:` of a rule). Nothing
    but the recipe is read: no manifest, no upstream.
    """
    from patchkit.extensions.recipes.workbench import check_recipes, find_recipes

    paths = tuple(files or ()) or find_recipes(project_folder() / "patches")
    report = check_recipes(paths)
    return session.report("check --only recipes", report, render_tests)


def render_tests(terminal: Terminal, report: RecipeTestReport) -> None:
    """Each recipe with what is wrong, then what rules have no example."""
    if not report.recipes:
        terminal.say("no recipe in patches/")
    terminal.table([_tested(each) for each in report.recipes])
    for each in report.recipes:
        for problem in each.problems:
            terminal.problem(problem)
        for example in each.examples:
            if example.wrong:
                _wrong(terminal, example)
        if each.untested:
            what = f"no examples of {', '.join(each.untested)}"
            terminal.warn(Problem(what, each.recipe, "write `examples:` with before and after"))


def _tested(test: RecipeTest) -> tuple[Line, Line, Line]:
    if test.problems:
        return word("error"), counted(len(test.problems), "problem"), test.recipe
    wrong = sum(bool(each.wrong) for each in test.examples)
    number = counted(len(test.examples), "example")
    if wrong:
        return word("failed"), f"{number}, {wrong} wrong", test.recipe
    return word("ok"), number, test.recipe


def _wrong(terminal: Terminal, example: ExampleResult) -> None:
    terminal.problem(Problem(f"{example.rule}: {example.wrong}", example.where))
    expected, got = (lines_of(text.decode()) for text in (example.expected, example.got))
    for line in unified_diff(expected, got, "expected", "got", lineterm=""):
        terminal.product(f"  {line}")
