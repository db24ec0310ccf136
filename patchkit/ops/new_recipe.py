"""Start a recipe: the file with one rule, and its patch's place at the end of the series.

The rule is run first, so that the recipe says how many sites there are; the patch itself is made by
the next refresh, as every later one is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from patchkit.errors import ExitCode, PatchkitError, Problem, UsageError
from patchkit.manifest.blocks import block_yaml
from patchkit.manifest.edit import add_patch
from patchkit.manifest.values import Component, Manifest
from patchkit.model.counting import counted
from patchkit.model.names import is_patch_name, recipe_name, slug
from patchkit.model.progress import Progress
from patchkit.model.series import Series, parse_series
from patchkit.ops.recipe import RuleCount, ShownSite, counts_of, patches_of, shown_sites, standing
from patchkit.recipes.languages import LANGUAGES
from patchkit.recipes.load import parse_recipe
from patchkit.recipes.sites import check_rule
from patchkit.recipes.trees import Rewritten, rewrite
from patchkit.recipes.writing import pattern_rule
from patchkit.refresh.files import Project, files_of
from patchkit.store import Store
from patchkit.transaction import write_set


class RecipeStart(Struct, frozen=True):
    """What the first rule of a recipe is to do.

    `pattern` is code to be found in `language`, or `find` text; `fix` takes its place, None removes
    the whole lines. `files` are globs; none: all files of the language.
    """

    name: str
    message: str
    pattern: str | None
    find: str | None
    fix: str | None
    language: str
    files: tuple[str, ...]


class NewRecipe(Struct, frozen=True):
    """A recipe that was written: `written` are the files, relative to the project's root."""

    component: str
    recipe: str
    patch: str
    rules: tuple[RuleCount, ...]
    sites: tuple[ShownSite, ...]
    written: tuple[str, ...]
    dry_run: bool


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
        open_end = rewrite(source, stack.tree, first)
    _require_good(open_end, start, shown)
    text = _text(start, sum(site.new is not None for site in open_end.run.sites))
    recipe = parse_recipe(text, path, shown)
    writes = {path: text, **_listed(project, seen, name)}
    if not dry_run:
        write_set(manifest.root, writes, {**seen, path: None})
    return NewRecipe(
        component=component.name,
        recipe=shown,
        patch=name,
        rules=tuple(counts_of(recipe, open_end.run)),
        sites=tuple(shown_sites(open_end.run)),
        written=tuple(each.relative_to(manifest.root).as_posix() for each in writes),
        dry_run=dry_run,
    )


def _require_free(name: str, path: Path) -> None:
    if not is_patch_name(name):
        raise UsageError(f"{name} is no name for a patch", hint="letters, digits, - and _")
    taken = [each for each in (path, path.with_name(name)) if each.exists()]
    if taken:
        raise UsageError(f"{taken[0].name} is there already", hint="choose another name")


def _require_good(result: Rewritten, start: RecipeStart, shown: str) -> None:
    sought = start.pattern if start.find is None else start.find
    if not result.run.sites:
        hint = "$NAME stands for one piece of code, $$$NAME for several; --files says where to look"
        files = counted(result.run.looked_at, "file")
        raise NothingFoundError(Problem(f"{sought} is in none of {files}", shown, hint))
    problems = [Problem(each.what, each.where, each.hint) for each in result.run.findings]
    if not problems and not result.run.changed:
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
        return block_yaml({**data, "text": [{**text, **scope}]})
    deed = {"remove": "lines"} if start.fix is None else {"fix": start.fix}
    head = {
        "id": slug(stem),
        "language": start.language,
        "rule": pattern_rule(start.language, start.pattern or ""),
    }
    return block_yaml({**data, "rules": [{**head, **deed, **scope}]})


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
