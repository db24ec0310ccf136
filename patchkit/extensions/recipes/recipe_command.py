"""`patchkit check --only recipes`, `recipe`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchkit.cli.command import command
from patchkit.cli.project import project_folder
from patchkit.cli.session import Session
from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Terminal
from patchkit.errors import ExitCode, Problem
from patchkit.model.finding import Severity
from patchkit.model.objects import lines_of
from patchkit.model.text import counted

if TYPE_CHECKING:
    from patchkit.extensions.recipes.run import ExampleResult
    from patchkit.extensions.recipes.workbench import (
        RecipeTest,
        RecipeTestReport,
        RecipeTrial,
        RuleCount,
        ShownSite,
    )


RecipeArgument = Annotated[Path, typer.Argument(metavar="FILE", help="The recipe.")]


@command(
    "json quiet",
    examples=[
        ("patchkit check --only recipes", "every recipe of patches/"),
        (
            "patchkit check --only recipes patches/megatron-lm/jit-fuser-off.recipe.yml",
            "one of them",
        ),
    ],
    exits={
        ExitCode.OK: "every example is right, or there are no recipes",
        ExitCode.FINDING: "a rule makes something else of an example",
        ExitCode.BAD_INPUT: "a recipe cannot be read, or ast-grep does not take a rule",
    },
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


@command(
    "manifest component store json quiet",
    examples=[
        ("patchkit recipe new.recipe.yml -m qwen3-vl-npu -c slime", "counts, and the diff"),
        ("patchkit recipe new.recipe.yml -m qwen3-vl-npu -c slime --sites", "each site"),
    ],
    exits={
        ExitCode.OK: "the recipe does what it says",
        ExitCode.FINDING: "a count is off, a rule is dead, or the result must not be used",
        ExitCode.BAD_INPUT: "the recipe or a patch before it cannot be read, or does not apply",
        ExitCode.ENVIRONMENT: "an upstream could not be fetched",
    },
    result="patchkit.extensions.recipes.workbench:RecipeTrial",
    group="Patches by recipe",
)
def try_(
    session: Session,
    file: RecipeArgument,
    *,
    sites: Annotated[
        bool, typer.Option("--sites", help="List the sites in place of the diff.")
    ] = False,
) -> ExitCode:
    """Show what a recipe would do to a component.

    It runs where its patch stands in the series, or at the end if the series has no such patch.
    Nothing is written.
    """
    from patchkit.extensions.recipes.workbench import try_recipe

    picked = session.component
    with session.progress() as progress:
        trial = try_recipe(session.manifest, picked, file, session.store, progress)
    return session.report("recipe", trial, render_trial(sites=sites))


# What the recipe commands print.


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
    return word("ok" if test.exit_code is ExitCode.OK else "failed"), number, test.recipe


def _wrong(terminal: Terminal, example: ExampleResult) -> None:
    terminal.problem(Problem(f"{example.rule}: {example.wrong}", example.where))
    expected, got = (lines_of(text.decode()) for text in (example.expected, example.got))
    for line in unified_diff(expected, got, "expected", "got", lineterm=""):
        terminal.product(f"  {line}")


def render_trial(*, sites: bool) -> Callable[[Terminal, RecipeTrial], None]:
    """A renderer of a trial: counts, then the diff, or each site."""

    def render(terminal: Terminal, trial: RecipeTrial) -> None:
        place = f"in the place of {trial.place}" if trial.place else "at the end of the series"
        looked = counted(trial.looked_at, "file")
        terminal.say(f"{trial.component}, {place}; {looked} looked at")
        terminal.table([_counted(each) for each in trial.rules])
        if sites:
            _sites(terminal, trial.sites)
        else:
            terminal.diff(trial.diff)
        for finding in trial.findings:
            problem = finding.problem
            if finding.severity is Severity.ERROR:
                terminal.problem(problem)
            else:
                terminal.warn(problem)

    return render


def _counted(count: RuleCount) -> tuple[Line, Line, Line]:
    sites = f"{counted(count.sites, 'site')} in {counted(count.files, 'file')}"
    allowed = f", {count.allowed} allowed" if count.allowed else ""
    expected = "" if count.holds else f", expected {count.expect}"
    status = word("ok" if count.holds else "error")
    return status, count.rule, f"{sites}{allowed}{expected}"


def _sites(terminal: Terminal, sites: Iterable[ShownSite]) -> None:
    for site in sites:
        within = f" in {site.within}" if site.within else ""
        terminal.product(["  ", Painted(f"{site.path}:{site.line}", Paint.PLACE), within])
        terminal.product(["    ", site.text])
        if site.allowed:
            terminal.product(["    ", Painted(f"allowed: {site.allowed}", Paint.FAINT)])
