"""Overrides of one component in another, on their git trees: no checkout, nothing is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.explain.terrain import Terrain
from patchkit.lock import Reviewed
from patchkit.manifest.values import AbsentTarget, Overrides
from patchkit.model.tree import ObjectSource
from patchkit.overrides.calls import CallSite, Replacements, find_replacements
from patchkit.overrides.review import Target, as_reviewed, review_targets, unused_reasons
from patchkit.overrides.standing import Standing, standing_of
from patchkit.python.resolving import Resolver
from patchkit.python.sources import Modules
from patchkit.recipes.load import load_recipe
from patchkit.recipes.trees import read_scope


class TreeAt(Struct, frozen=True):
    """A tree and where its objects are read; `commit` is the base commit it belongs to."""

    source: ObjectSource
    tree: str
    commit: str


class Survey(Struct, frozen=True):
    """Every target of one declaration, judged.

    `uncertain` are calls whose argument is not plain to see, `elsewhere` how many names are in no
    package of the target, `unused` declarations of absent targets that nothing needs.
    """

    targets: tuple[Target, ...]
    uncertain: tuple[CallSite, ...]
    elsewhere: int
    unused: tuple[AbsentTarget, ...]


def read_replacements(declared: Overrides, root: Path, own: TreeAt) -> Replacements:
    """What the calls in the replacing component's tree name; `root` is the project's folder."""
    recipe = load_recipe(root / declared.rule, declared.rule)
    editing = [rule for rule in recipe.all_rules if rule.edits]
    if editing:
        hint = "it is only to find the calls: delete fix, remove or replace"
        raise BadInputError(
            *(Problem(f"{rule.id} would edit", str(rule.where), hint) for rule in editing)
        )
    files = read_scope(own.source, own.tree, recipe)
    terrain = Terrain(own.source, own.tree)
    return find_replacements(recipe, Modules(terrain.files(), terrain.data), files)


def resolver_of(declared: Overrides, target: TreeAt) -> Resolver:
    """What resolves names in the target's tree."""
    terrain = Terrain(target.source, target.tree)
    return Resolver(Modules(terrain.files(), terrain.data, declared.root))


def survey(
    declared: Overrides,
    calls: Replacements,
    resolver: Resolver,
    reviewed: Reviewed,
    *,
    comparing: bool = False,
) -> Survey:
    """Judge what the calls name in the target against what was reviewed; see review_targets."""
    named = calls.below(declared.packages)
    found = standings(resolver, named)
    targets = review_targets(named, found, reviewed, declared.absent, comparing=comparing)
    unused = tuple(unused_reasons(targets, declared.absent))
    return Survey(targets, calls.uncertain, len(calls.targets) - len(named), unused)


def as_it_was(resolver: Resolver, names: Sequence[str], commit: str) -> Reviewed:
    """What a review of another tree of the target would have recorded."""
    found = standings(resolver, dict.fromkeys(names))
    return {n: as_reviewed(each, commit) for n, each in found.items() if each.kind.is_there}


def standings(resolver: Resolver, names: Mapping[str, object]) -> dict[str, Standing]:
    """What each name stands for."""
    return {name: standing_of(resolver, name) for name in names}
