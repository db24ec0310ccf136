"""What the recipe commands print."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import unified_diff

from patchkit.cli.status_words import word
from patchkit.cli.terminal import Line, Paint, Painted, Terminal
from patchkit.errors import ExitCode, Problem
from patchkit.model.lint import Severity
from patchkit.model.objects import lines_of
from patchkit.model.text import counted
from patchkit.ops.recipe import (
    NewRecipe,
    RecipeTest,
    RecipeTestReport,
    RecipeTrial,
    RuleCount,
    ShownSite,
)
from patchkit.recipes.run import ExampleResult


def render_tests(terminal: Terminal, report: RecipeTestReport) -> None:
    """Each recipe with what is wrong, then what rules have no example."""
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
            problem = Problem(finding.what, finding.where, finding.hint)
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


def render_new(manifest: str) -> Callable[[Terminal, NewRecipe], None]:
    """A renderer of a new recipe: its sites, what was written, what comes next."""

    def render(terminal: Terminal, report: NewRecipe) -> None:
        terminal.table([_counted(each) for each in report.rules])
        _sites(terminal, report.sites)
        if report.dry_run:
            terminal.say("a dry run: nothing was written")
            return
        for path in report.written:
            terminal.say(f"wrote {path}")
        target = f"-m {manifest} -c {report.component}"
        terminal.hint(f"patchkit refresh {target}  makes {report.patch}")

    return render
