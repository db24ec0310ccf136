"""A recipe on a git tree: reads the files in its scope, no checkout."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from patchkit.explain.terrain import Terrain
from patchkit.model.objects import (
    EXECUTABLE_MODE,
    FILE_MODE,
    GitObject,
    TreeEntry,
    make_object,
)
from patchkit.model.tree import ObjectSource, Tree
from patchkit.recipes.engine import RecipeRun, run_recipe
from patchkit.recipes.scope import Scope
from patchkit.recipes.values import Recipe

_REGULAR = (FILE_MODE, EXECUTABLE_MODE)


class Rewritten(Struct, frozen=True):
    """The tree that a recipe makes of another; `objects` are its new blobs and trees."""

    run: RecipeRun
    tree: Tree
    tree_id: str
    objects: tuple[GitObject, ...]


def read_scope(source: ObjectSource, tree: str, recipe: Recipe) -> dict[str, bytes]:
    """Path -> contents of every ordinary file of a tree that a rule looks at."""
    return _read(source, tree, recipe.covers)


def read_matching(source: ObjectSource, tree: str, scope: Scope) -> dict[str, bytes]:
    """Path -> contents of every ordinary file of a tree that a scope covers."""
    return _read(source, tree, scope.covers)


def read_paths(source: ObjectSource, tree: str, paths: Collection[str]) -> dict[str, bytes]:
    """Path -> contents of those of the files that are there."""
    return _read(source, tree, lambda path: path in paths)


def _read(source: ObjectSource, tree: str, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    files = Terrain(source, tree).files()
    oids = {p: entry.oid for p, entry in files.items() if entry.mode in _REGULAR and wanted(p)}
    blobs = dict(source.read_many(sorted(set(oids.values())), "blob"))
    return {path: blobs[oid] for path, oid in sorted(oids.items())}


def rewrite(source: ObjectSource, tree: str, recipe: Recipe) -> Rewritten:
    """Run a recipe on a tree; nothing is written."""
    run = run_recipe(recipe, read_scope(source, tree, recipe))
    after = Tree(source, tree)
    objects: list[GitObject] = []
    for path, data in run.changed.items():
        entry = after.entry(path)
        assert entry is not None
        blob = make_object("blob", data, entry.oid)
        objects.append(blob)
        after = after.put(path, TreeEntry(entry.mode, blob.oid))
    tree_id = after.write(objects)
    return Rewritten(run, after, tree_id, tuple(objects))
