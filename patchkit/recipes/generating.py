"""Patches that are made from recipes: which those are, and their places in a stack.

A patch names its recipe by the trailer `Recipe: NAME.recipe.yml` in its message; the file stands
beside it. To everybody else it is an ordinary patch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.errors import BadInputError, PatchkitError, Problem
from patchkit.explain.terrain import Overlay
from patchkit.model.apply import apply_changes
from patchkit.model.header import format_header, is_trailers
from patchkit.model.lint import Finding
from patchkit.model.mail import parse_patch
from patchkit.model.names import recipe_name
from patchkit.model.outcome import PatchOutcome, Status
from patchkit.model.patch import Header, Identity
from patchkit.model.trailers import subject_from, with_trailer
from patchkit.recipes.engine import RecipeRun
from patchkit.recipes.load import load_recipe
from patchkit.recipes.trees import rewrite
from patchkit.recipes.values import Recipe
from patchkit.series import LoadedPatch, named_recipe
from patchkit.stack import SeriesPatch, StackBuilder, patch_changes


def recipe_of(patch: LoadedPatch) -> Recipe | None:
    """The recipe that a patch is made from; None for an ordinary one.

    BadInputError if it names one that cannot be read, or that is not called like the patch.
    """
    if patch.path is None:
        return None  # another repository's: not ours to make
    named, wanted = named_recipe(patch.file), recipe_name(patch.name)
    path = patch.path.with_name(wanted)
    shown = str(Path(patch.where).with_name(wanted))
    if not named and (patch.data or not path.is_file()):
        return None  # an empty file without one is a patch that does nothing
    if named not in ("", wanted):
        what = f"names {named} as its recipe, not {wanted}"
        raise BadInputError(Problem(what, patch.where, "a recipe is called like its patch"))
    return load_recipe(path, shown)


def naming_recipe(patch: LoadedPatch) -> bytes:
    """The patch's file with the trailer that names the recipe beside it; all else is kept.

    A raw diff gets a header with its name as the subject, which says no more than the name.
    """
    trailer = f"Recipe: {recipe_name(patch.name)}"
    return with_trailer(patch.file, trailer, subject_from(patch.name))


def with_headers(
    patches: Sequence[LoadedPatch], author: Callable[[], Identity | None] = lambda: None
) -> tuple[LoadedPatch, ...]:
    """The patches; one that is still to be made gets the header that its recipe describes.

    `author` is asked only then; what it raises goes through.
    """
    return tuple(
        patch if patch.data or not patch.has_recipe else _first_header(patch, author())
        for patch in patches
    )


class Generator(Struct):
    """Puts generated patches onto a stack that is being built: see carry.Generate.

    `recipes` are by the patch's name. `runs` and `problems` are what came of it: a patch with a
    problem is a conflict.
    """

    recipes: Mapping[str, Recipe]
    runs: dict[str, RecipeRun] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def __call__(self, builder: StackBuilder, patch: SeriesPatch) -> PatchOutcome | None:
        """The outcome of a generated patch, None for an ordinary one."""
        recipe = self.recipes.get(patch.name)
        if recipe is None:
            return None
        result = rewrite(Overlay(builder.source, builder.objects), builder.tree_id, recipe)
        self.runs[patch.name] = result.run
        problems = _problems_of(patch.name, result.run)
        if problems:
            self.problems += problems
            return PatchOutcome(patch.name, Status.CONFLICTED)
        if _makes(builder, patch) == result.tree_id:
            return builder.push(patch)
        return builder.place(patch, result.tree, result.objects)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a person should look at, though the patches could be made."""
        return tuple(each for run in self.runs.values() for each in run.findings)

    def again(self) -> Generator:
        """One for another run of the same recipes."""
        return Generator(self.recipes)


def load_generator(patches: Iterable[LoadedPatch]) -> Generator:
    """The generator of all patches of a series that have recipes.

    Raises BadInputError with all problems of all recipes.
    """
    recipes: dict[str, Recipe] = {}
    problems: list[Problem] = []
    for patch in patches:
        try:
            recipe = recipe_of(patch)
        except PatchkitError as error:
            problems += error.problems
        else:
            if recipe is not None:
                recipes[patch.name] = recipe
    if problems:
        raise BadInputError(*problems)
    return Generator(recipes)


def _first_header(patch: LoadedPatch, author: Identity | None) -> LoadedPatch:
    recipe = recipe_of(patch)
    assert recipe is not None
    subject, _, body = recipe.description.partition("\n")
    body = body.strip("\n")
    last = re.split(r"\n[ \t]*\n", body)[-1]
    trailer = f"Recipe: {recipe_name(patch.name)}"
    joined = f"{body}{chr(10) if is_trailers(last) else chr(10) * 2}{trailer}"
    message = f"{subject}\n\n{joined if body else trailer}"
    data = format_header(Header(message, author))
    return replace(patch, data=data, file=parse_patch(data, name=patch.where, strip=patch.strip))


def _problems_of(name: str, run: RecipeRun) -> list[Problem]:
    """Why nothing may be made of a run."""
    fatal = [Problem(each.what, each.where, each.hint) for each in run.fatal]
    if fatal or run.changed:
        return fatal
    dead = [Problem(each.what, each.where, each.hint) for each in run.findings]
    hint = "take the patch off the series, or change its recipe"
    return [Problem("its recipe changes nothing here", name, hint), *dead]


def _makes(builder: StackBuilder, patch: SeriesPatch) -> str | None:
    """The tree that the patch as it is would make there; None if it does not apply."""
    changes = patch_changes(patch)
    if not changes:
        return None
    applied = apply_changes(builder.tree, builder.blobs, changes)
    return applied.tree.write([]) if applied.tree is not None else None
