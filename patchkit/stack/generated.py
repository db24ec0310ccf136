"""Patches that are made from recipes: which those are, and their places in a stack.

A patch names its recipe by the trailer `Recipe: NAME.recipe.yml` in its message; the file stands
beside it. To everybody else it is an ordinary patch. What reads such a file is an extension, found
by the entry point `recipe.yml` in `patchkit.recipes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from patchkit import entry_points
from patchkit.errors import BadInputError, PatchkitError, Problem
from patchkit.gitcmd.trees import Overlay, TreeView
from patchkit.model.apply_changes import apply_changes
from patchkit.model.finding import Finding, Severity
from patchkit.model.header import format_header, is_trailers
from patchkit.model.mail import parse_patch
from patchkit.model.names import RECIPE_ENDING, recipe_name
from patchkit.model.objects import GitObject, TreeEntry, TreeId, make_object
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.patch import Header, Identity
from patchkit.model.text import counted
from patchkit.model.tree import ObjectSource, Tree
from patchkit.stack.build import SeriesPatch, StackBuilder, patch_changes
from patchkit.stack.series import LoadedPatch, named_recipe


class Made(Protocol):
    """What a recipe makes of files."""

    @property
    def changed(self) -> Mapping[str, bytes]:
        """Path -> new contents of each file that it changes."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a person should look at."""

    @property
    def fatal(self) -> tuple[Finding, ...]:
        """Those for which the result must not be used."""


class PatchRecipe(Protocol):
    """What a patch is made from. It does the same with the same files, one by one or together."""

    @property
    def description(self) -> str:
        """The message of a patch that is made for the first time."""

    @property
    def globs(self) -> Iterable[str]:
        """The files that it looks at, and perhaps more."""

    @property
    def facts(self) -> str:
        """All that its result follows from beside the files: what it says, and its code."""

    def covers(self, path: str) -> bool:
        """Whether it looks at a file of that path."""

    def run(self, files: Mapping[str, bytes]) -> Made:
        """What it makes of files by path; BadInputError if it cannot be run."""


#: Reads a recipe, which messages call by the second text; of the project in the last folder.
#: BadInputError with every problem.
LoadRecipe: TypeAlias = Callable[[Path, str, Path | None], PatchRecipe]


# A recipe on a git tree: reads the files that it covers, no checkout.


class Rewritten(Struct, frozen=True):
    """The tree that a recipe makes of another; `objects` are its new blobs and trees."""

    run: Made
    tree: Tree
    tree_id: TreeId
    objects: tuple[GitObject, ...]


def rewrite(source: ObjectSource, tree: TreeId, recipe: PatchRecipe) -> Rewritten:
    """Run a recipe on a tree; nothing is written."""
    run = recipe.run(TreeView(source, tree).contents(recipe.covers))
    after = Tree(source, tree)
    objects: list[GitObject] = []
    for path, data in run.changed.items():
        entry = after.entry(path)
        assert entry is not None
        blob = make_object("blob", data)
        objects.append(blob)
        after = after.put(path, TreeEntry(entry.mode, blob.oid))
    tree_id = after.write(objects)
    return Rewritten(run, after, tree_id, tuple(objects))


def recipe_of(patch: LoadedPatch) -> PatchRecipe | None:
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
    place = entry_points.named("patchkit.recipes").get(RECIPE_ENDING[1:])
    if place is None:
        what = f"is made from {wanted}, and no extension that reads it is installed"
        raise BadInputError(Problem(what, patch.where))
    load: LoadRecipe = entry_points.load(place)
    return load(path, shown, patch.root)


def with_headers(
    patches: Sequence[LoadedPatch], author: Callable[[], Identity | None]
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

    recipes: Mapping[str, PatchRecipe]
    runs: dict[str, Made] = {}
    problems: list[Problem] = []

    def __call__(self, builder: StackBuilder, patch: SeriesPatch) -> PatchResult | None:
        """The outcome of a generated patch, None for an ordinary one."""
        recipe = self.recipes.get(patch.name)
        if recipe is None:
            return None
        result = rewrite(Overlay(builder.source, builder.objects), builder.tree_id, recipe)
        self.runs[patch.name] = result.run
        problems = _problems_of(patch.name, result.run)
        if problems:
            self.problems += problems
            return PatchResult(patch.name, Status.CONFLICTED)
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
    recipes: dict[str, PatchRecipe] = {}
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


def _problems_of(name: str, run: Made) -> list[Problem]:
    """Why nothing may be made of a run."""
    fatal = [each.problem for each in run.fatal]
    if fatal or run.changed:
        return fatal
    dead = [each.problem for each in run.findings]
    hint = "take the patch off the series, or change its recipe"
    return [Problem("its recipe changes nothing here", name, hint), *dead]


def _makes(builder: StackBuilder, patch: SeriesPatch) -> str | None:
    """The tree that the patch as it is would make there; None if it does not apply."""
    changes = patch_changes(patch)
    if not changes:
        return None
    applied = apply_changes(builder.tree, builder.blobs, changes)
    return applied.tree.write([]) if applied.tree is not None else None


# Is a generated patch what its recipe gives, and is the recipe in order?


_AGAIN = "`patchkit refresh` regenerates it"


def check_generated(
    patch: LoadedPatch, outcome: PatchResult, source: ObjectSource, before: TreeId
) -> tuple[Finding, ...]:
    """What is wrong with a patch that has a recipe; nothing for one that has none.

    `outcome` is what came of it on the tree `before`; `source` reads that.
    """
    try:
        recipe = recipe_of(patch)
        if recipe is None:
            return tuple(_unnamed(patch))
        if outcome.status is Status.WAITING:
            return ()
        result = rewrite(source, before, recipe)
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
    if outcome.status is not Status.UNCHANGED or outcome.made_for_another_base:
        what = "line numbers or blob ids differ from what its recipe generates"
        findings.append(Finding(Severity.WARNING, "recipe-offsets", what, patch.where, _AGAIN))
    return tuple(findings)


def _unnamed(patch: LoadedPatch) -> Iterator[Finding]:
    if patch.path is None or named_recipe(patch.file):
        return
    recipe = patch.path.with_name(recipe_name(patch.path.name))
    if recipe.is_file():
        yield Finding(
            Severity.WARNING,
            "recipe-unnamed",
            f"{recipe.name} is beside it, but is not named as its recipe",
            patch.where,
            f"end its message with `Recipe: {recipe.name}`, or delete the recipe",
        )


def _stale(patch: LoadedPatch, outcome: PatchResult, result: Rewritten) -> Finding:
    count = len(result.run.changed)
    if not count:
        what, hint = "its recipe changes nothing here", "take the patch off the series"
    elif outcome.status.applies:
        what, hint = "stale: differs from what its recipe generates", _AGAIN
    else:
        files = counted(count, "file")
        what, hint = f"stale: it does not apply, but its recipe changes {files} here", _AGAIN
    return Finding(Severity.ERROR, "recipe-stale", what, patch.where, hint)
