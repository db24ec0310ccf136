"""Recipes by themselves: run their examples, try one on a component."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.disk.files import unless_gone
from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem, worst
from patchkit.extensions.recipes.recipe_file import load_recipe
from patchkit.extensions.recipes.run import ExampleResult, Recipe, RecipeRun, run_examples
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.scratch import overlay
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.manifest.values import Component, Manifest
from patchkit.model.finding import Finding, Severity
from patchkit.model.names import RECIPE_ENDING, recipe_name
from patchkit.model.progress import Progress
from patchkit.stack.build import build_stack
from patchkit.stack.generated import rewrite, with_headers
from patchkit.stack.patch_files import canonical_diffs
from patchkit.stack.series import load_series
from patchkit.upstream.store import Store


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


class RuleCount(Struct, frozen=True):
    """How many sites a rule has; `expect` as the recipe says it."""

    rule: str
    sites: int
    allowed: int  # sites that its `allow` lets be
    files: int  # in how many files these sites are
    expect: str
    holds: bool  # the count is as `expect` says


class ShownSite(Struct, frozen=True):
    """A site: where, in which function or class ("" for none), and why it stays, if it does."""

    rule: str  # its id
    path: str  # of the file in the component
    line: int  # from 1
    within: str  # dotted name; "" at the top of a file
    text: str  # its first line
    allowed: str  # the reason why it stays; "": it is edited


class RecipeTrial(Struct, frozen=True):
    """What a recipe would do to a component.

    `place` is the patch that it was tried in the place of, "" for the end of the series; `diff` the
    patch's diff.
    """

    component: str
    recipe: str
    place: str
    looked_at: int  # how many files are in the recipe's scope
    rules: tuple[RuleCount, ...]  # in the order of the file
    sites: tuple[ShownSite, ...]  # by file and line
    findings: tuple[Finding, ...]
    diff: bytes

    @property
    def exit_code(self) -> ExitCode:
        """A finding where one is an error."""
        errors = any(each.severity is Severity.ERROR for each in self.findings)
        return ExitCode.FINDING if errors else ExitCode.OK


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


def try_recipe(
    manifest: Manifest, component: Component, path: Path, store: Store, progress: Progress
) -> RecipeTrial:
    """Run a recipe at the place of its patch in the series, or at the end; nothing is written."""
    recipe = load_recipe(path)
    series = load_series(manifest, component, store, progress, to_generate=True)
    patches = with_headers(series.patches)
    wanted = path.resolve()
    beside = [
        p
        for p in patches
        if p.path and p.path.with_name(recipe_name(p.path.name)).resolve() == wanted
    ]
    before = patches[: patches.index(beside[0])] if beside else patches
    base = store.base(component, progress)
    with reading(store.repository(component)) as reader:
        stack = build_stack(reader, base, [each.series_patch for each in before])
        failed = [each.name for each in stack.outcomes if not each.status.applies]
        if failed:
            problem = Problem(f"{failed[0]} does not apply", component.name, "patchkit check")
            raise BadInputError(problem)
        source = Overlay(reader, stack.objects)
        result = rewrite(source, stack.tree, recipe)
        run = recipe.run(TreeView(source, stack.tree).contents(recipe.covers))
        with overlay(store.repository(component)) as trial:
            write_objects(trial, (*stack.objects, *result.objects))
            (diff,) = canonical_diffs(trial, [(stack.tree, result.tree_id)])
    return RecipeTrial(
        component=component.name,
        recipe=str(path),
        place=beside[0].name if beside else "",
        looked_at=run.looked_at,
        rules=tuple(_counts(recipe, run)),
        sites=tuple(_shown_sites(run)),
        findings=run.findings,
        diff=diff,
    )


def _counts(recipe: Recipe, run: RecipeRun) -> Iterator[RuleCount]:
    """How many sites each rule of a recipe had."""
    for rule in recipe.all_rules:
        own = [site for site in run.sites if site.rule == rule.id]
        count = run.count(rule.id)
        yield RuleCount(
            rule=rule.id,
            sites=count,
            allowed=len(own) - count,
            files=len({site.path for site in own}),
            expect=str(rule.expect),
            holds=rule.expect.holds(count),
        )


def _shown_sites(run: RecipeRun) -> Iterator[ShownSite]:
    """The sites as a report names them."""
    for site in run.sites:
        reason = site.allowed.reason if site.allowed is not None else ""
        first = site.text.partition("\n")[0]
        yield ShownSite(site.rule, site.path, site.line, site.within, first, reason)
