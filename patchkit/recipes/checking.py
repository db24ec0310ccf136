"""Is a generated patch what its recipe gives, and is the recipe in order?"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from patchkit.errors import PatchkitError
from patchkit.export import canonical_diffs, layout_of
from patchkit.gitcmd.objects import write_objects
from patchkit.gitcmd.overlay import overlay
from patchkit.gitcmd.repository import Repository
from patchkit.model.counting import counted
from patchkit.model.diff import parse_diff
from patchkit.model.lint import Finding, Severity
from patchkit.model.names import recipe_name
from patchkit.model.objects import GitObject
from patchkit.model.outcome import PatchOutcome, Status
from patchkit.model.revision import same_changes
from patchkit.model.tree import ObjectSource
from patchkit.recipes.generating import recipe_of
from patchkit.recipes.trees import Rewritten, rewrite
from patchkit.series import LoadedPatch, named_recipe

_AGAIN = "patchkit refresh makes it anew"


class Place(Struct, frozen=True):
    """Where a patch stands: `before` is the tree there.

    `source` reads the whole stack; `made` are those of its objects that `repository` lacks.
    """

    source: ObjectSource
    before: str
    repository: Repository
    made: tuple[GitObject, ...]


def check_generated(patch: LoadedPatch, outcome: PatchOutcome, place: Place) -> tuple[Finding, ...]:
    """What is wrong with a patch that has a recipe; nothing for one that has none."""
    try:
        recipe = recipe_of(patch)
        if recipe is None:
            return tuple(_unnamed(patch))
        if outcome.status is Status.SKIPPED:
            return ()
        result = rewrite(place.source, place.before, recipe)
    except PatchkitError as error:
        return tuple(
            Finding(Severity.ERROR, "recipe", each.what, each.where or patch.where, each.hint)
            for each in error.problems
        )
    findings = list(result.run.findings)
    if result.run.fatal:
        return tuple(findings)
    if outcome.tree != result.tree_id:
        return (_stale(patch, outcome, result), *findings)
    if not is_as_written(patch, place, result.tree_id):
        what = "line numbers, context or blob ids are not those that its recipe gives now"
        findings.append(Finding(Severity.WARNING, "recipe-offsets", what, patch.where, _AGAIN))
    return tuple(findings)


def _unnamed(patch: LoadedPatch) -> Iterator[Finding]:
    if patch.path is None or named_recipe(patch.file):
        return
    recipe = patch.path.with_name(recipe_name(patch.name))
    if recipe.is_file():
        yield Finding(
            Severity.WARNING,
            "recipe-unnamed",
            f"{recipe.name} stands beside it, but is not named as its recipe",
            patch.where,
            f"end its message with `Recipe: {recipe.name}`, or delete the recipe",
        )


def _stale(patch: LoadedPatch, outcome: PatchOutcome, result: Rewritten) -> Finding:
    count = len(result.run.changed)
    if not count:
        what, hint = "its recipe changes nothing here", "take the patch off the series"
    elif outcome.status.applies:
        what, hint = "stale: it is not what its recipe gives here", _AGAIN
    else:
        files = counted(count, "file")
        what, hint = f"stale: it does not apply, but its recipe changes {files} here", _AGAIN
    return Finding(Severity.ERROR, "recipe-stale", what, patch.where, hint)


def is_as_written(patch: LoadedPatch, place: Place, after: str) -> bool:
    """Whether the change from a place to the tree `after`, written down, is the patch's file."""
    layout = layout_of(patch.file, patch.strip, patch.subdirectory)
    with overlay(place.repository) as trial:
        write_objects(trial, place.made)
        (diff,) = canonical_diffs(trial, [(place.before, after)], layout)
    if diff == patch.file.diff:
        return True
    return same_changes(patch.file.changes, parse_diff(diff, strip=patch.file.strip))
