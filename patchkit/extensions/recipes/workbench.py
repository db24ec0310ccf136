"""Recipes by themselves: run their examples, try one on a component, start one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from patchkit.disk.files import unless_gone
from patchkit.disk.transaction import write_set
from patchkit.errors import BadInputError, ExitCode, PatchkitError, Problem, UsageError, worst
from patchkit.extensions.recipes.recipe_file import load_recipe, parse_recipe
from patchkit.extensions.recipes.rule import LANGUAGES
from patchkit.extensions.recipes.run import ExampleResult, Recipe, RecipeRun, run_examples
from patchkit.extensions.recipes.sites import check_rule
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.scratch import overlay
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.manifest.edit import add_patch
from patchkit.manifest.values import Component, Manifest
from patchkit.manifest.write import yaml_text
from patchkit.model.finding import Finding, Severity
from patchkit.model.names import RECIPE_ENDING, broken_name_rule, is_patch_name, recipe_name, slug
from patchkit.model.objects import TreeId
from patchkit.model.progress import Progress
from patchkit.model.series_file import Series, parse_series
from patchkit.model.text import counted
from patchkit.refresh.project_files import Project, files_of
from patchkit.stack.build import Stack, build_stack
from patchkit.stack.generated import rewrite, with_headers
from patchkit.stack.patch_files import canonical_diffs
from patchkit.stack.series import LoadedPatch, load_series
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
    patches = patches_of(manifest, component, store, progress)
    wanted = path.resolve()
    beside = [
        p
        for p in patches
        if p.path and p.path.with_name(recipe_name(p.path.name)).resolve() == wanted
    ]
    before = patches[: patches.index(beside[0])] if beside else patches
    with standing(component, before, store, progress) as (stack, source):
        result, run = rewrite(source, stack.tree, recipe), _run(source, stack.tree, recipe)
        with overlay(store.repository(component)) as trial:
            write_objects(trial, (*stack.objects, *result.objects))
            (diff,) = canonical_diffs(trial, [(stack.tree, result.tree_id)])
    return RecipeTrial(
        component=component.name,
        recipe=str(path),
        place=beside[0].name if beside else "",
        looked_at=run.looked_at,
        rules=tuple(counts_of(recipe, run)),
        sites=tuple(shown_sites(run)),
        findings=run.findings,
        diff=diff,
    )


def _run(source: Overlay, tree: TreeId, recipe: Recipe) -> RecipeRun:
    return recipe.run(TreeView(source, tree).contents(recipe.covers))


def patches_of(
    manifest: Manifest, component: Component, store: Store, progress: Progress
) -> tuple[LoadedPatch, ...]:
    """The component's patches; those that are still to be made are empty ones."""
    series = load_series(manifest, component, store, progress, to_generate=True)
    return with_headers(series.patches)


@contextmanager
def standing(
    component: Component, patches: Sequence[LoadedPatch], store: Store, progress: Progress
) -> Iterator[tuple[Stack, Overlay]]:
    """The stack of some patches and all its objects; BadInputError if one does not apply."""
    base = store.base(component, progress)
    with reading(store.repository(component)) as reader:
        stack = build_stack(reader, base, [each.series_patch for each in patches])
        failed = [each.name for each in stack.outcomes if not each.status.applies]
        if failed:
            problem = Problem(f"{failed[0]} does not apply", component.name, "patchkit check")
            raise BadInputError(problem)
        yield stack, Overlay(reader, stack.objects)


def counts_of(recipe: Recipe, run: RecipeRun) -> Iterator[RuleCount]:
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


def shown_sites(run: RecipeRun) -> Iterator[ShownSite]:
    """The sites as a report names them."""
    for site in run.sites:
        reason = site.allowed.reason if site.allowed is not None else ""
        first = site.text.partition("\n")[0]
        yield ShownSite(site.rule, site.path, site.line, site.within, first, reason)


# `recipe --new`: the file with one rule, and its patch's place at the end of the series. The rule
# is run first, so that the recipe says how many sites there are; the patch itself is made by the
# next refresh, as every later one is.


class RecipeStart(Struct, frozen=True):
    """What the first rule of a recipe is to do.

    `pattern` is code to be found, or `find` text; `fix` takes its place, None removes the whole
    lines. `files` are globs, whose ending says the language; none: all Python files.
    """

    name: str  # of the recipe's file, without its ending
    message: str  # of the patch
    pattern: str | None
    find: str | None
    fix: str | None
    files: tuple[str, ...]

    @property
    def language(self) -> str:
        """What the code is written in."""
        known = (name for name in LANGUAGES if any(f.endswith(LANGUAGES[name]) for f in self.files))
        return next(known, "python")


class NewRecipe(Struct, frozen=True):
    """A recipe that was written: `written` are the files, relative to the project's root."""

    component: str  # its name
    recipe: str
    patch: str  # the new patch's file name
    rules: tuple[RuleCount, ...]  # in the order of the file
    sites: tuple[ShownSite, ...]  # by file and line
    written: tuple[str, ...]
    dry_run: bool  # nothing was written


class NothingFoundError(PatchkitError):
    """A rule that finds nothing, or whose result must not be used."""

    exit_code = ExitCode.FINDING


def new_recipe(
    manifest: Manifest,
    component: Component,
    start: RecipeStart,
    *,
    store: Store,
    progress: Progress,
    dry_run: bool = False,
) -> NewRecipe:
    """Write `NAME.recipe.yml` beside the component's series, and list its patch at the end.

    Raises UsageError for a name that is taken, BadInputError for a rule that ast-grep does not
    take, NothingFoundError if it finds nothing at the end of the stack.
    """
    project = Project(manifest, component)
    seen = files_of(project)
    name = start.name.removesuffix(".patch").removesuffix(".recipe.yml") + ".patch"
    path = project.home.folder / recipe_name(name)
    _require_free(name, path)
    shown = path.relative_to(manifest.root).as_posix()
    patches = patches_of(manifest, component, store, progress)
    first = parse_recipe(_text(start, ">= 1"), path, shown)
    for rule in first.rules:
        check_rule(rule)
    with standing(component, patches, store, progress) as (stack, source):
        open_end = _run(source, stack.tree, first)
    _require_good(open_end, start, shown)
    text = _text(start, sum(site.new is not None for site in open_end.sites))
    recipe = parse_recipe(text, path, shown)
    writes = {path: text, **_listed(project, seen, name)}
    if not dry_run:
        write_set(manifest.root, writes, {**seen, path: None})
    return NewRecipe(
        component=component.name,
        recipe=shown,
        patch=name,
        rules=tuple(counts_of(recipe, open_end)),
        sites=tuple(shown_sites(open_end)),
        written=tuple(each.relative_to(manifest.root).as_posix() for each in writes),
        dry_run=dry_run,
    )


def _require_free(name: str, path: Path) -> None:
    if not is_patch_name(name):
        raise UsageError(f"{name} is not a valid patch name", hint=broken_name_rule(name))
    taken = [each for each in (path, path.with_name(name)) if each.exists()]
    if taken:
        raise UsageError(f"{taken[0].name} is there already", hint="choose another name")


def _require_good(run: RecipeRun, start: RecipeStart, shown: str) -> None:
    sought = start.pattern if start.find is None else start.find
    if not run.sites:
        hint = "$NAME stands for one piece of code, $$$NAME for several; --file says where to look"
        files = counted(run.looked_at, "file")
        raise NothingFoundError(Problem(f"{sought} is in none of {files}", shown, hint))
    problems = [each.problem for each in run.findings]
    if not problems and not run.changed:
        problems = [Problem("the rule changes nothing", shown, "what does --fix say?")]
    if problems:
        raise NothingFoundError(*problems)


def _text(start: RecipeStart, expect: str | int) -> bytes:
    files = list(start.files) or [f"**/*{ending}" for ending in LANGUAGES[start.language]]
    scope = {"files": files, "expect": expect}
    stem = start.name.removesuffix(".patch").removesuffix(".recipe.yml")
    data: dict[str, Any] = {"version": 1, "description": _message(start, stem)}
    if start.find is not None:
        text = {"find": start.find, "replace": start.fix or "", "id": slug(stem)}
        return yaml_text({**data, "text": [{**text, **scope}]}).encode()
    deed = {"remove": "lines"} if start.fix is None else {"fix": start.fix}
    head = {
        "id": slug(stem),
        "language": start.language,
        "rule": _pattern_rule(start.language, start.pattern or ""),
    }
    return yaml_text({**data, "rules": [{**head, **deed, **scope}]}).encode()


def _pattern_rule(language: str, text: str) -> dict[str, Any]:
    """The rule that finds such code, as a person would write it."""
    if language != "python" or not text.startswith("@"):
        return {"pattern": text}
    name = text[1:].partition("#")[0].strip()
    if re.fullmatch(r"[\w.]+", name):
        # a comment behind it belongs to the decorator, so its text is not compared
        return {"kind": "decorator", "has": {"pattern": name}}
    # a decorator is code only before a definition
    return {"pattern": {"context": f"{text}\ndef f(): ...", "selector": "decorator"}}


def _message(start: RecipeStart, stem: str) -> str:
    subject = stem.replace("-", " ")
    return start.message or f"{subject[:1].upper()}{subject[1:]}"


def _listed(
    project: Project, seen: Mapping[Path, bytes | None], name: str
) -> dict[Path, bytes | None]:
    """The series with the patch at its end; the manifest, too, if it names no series yet."""
    manifest, entry = project.manifest, project.home.entry.path
    path = manifest.root / entry
    old = seen.get(path)
    series = parse_series(old, name=entry) if old is not None else Series()
    writes: dict[Path, bytes | None] = {path: series.append(name).data}
    if project.component.series is None:
        data = seen[manifest.path]
        assert data is not None
        added = {"series": entry}
        writes[manifest.path] = add_patch(data, project.component.name, added, file=manifest.path)
    return writes
