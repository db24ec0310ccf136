"""Look through the whole patched tree for what rules name.

A recipe's rule is looked for in every file of its language, not only where it may edit: new code in
a folder that nobody thought of is what is looked for. A rule of a rule file, which never edits,
says by `files` where to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.disk.result_cache import memory_path, recall, remember
from patchkit.errors import BadInputError, Problem
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.gitcmd.tree_view import Overlay, Terrain
from patchkit.model.objects import EXECUTABLE_MODE, FILE_MODE
from patchkit.recipes.generate import recipe_of
from patchkit.recipes.recipe_file import load_recipe
from patchkit.recipes.rule import LANGUAGES, CodeRule, Rule, Scope
from patchkit.recipes.run import decode_file, may_match, needed_in
from patchkit.recipes.sites import Site, Source, find_sites
from patchkit.stack.series import LoadedPatch


class Scan(Struct, frozen=True):
    """What was found: sites in the order of paths and lines; those that a recipe allows are not.

    `rules` are the ids of all that was looked for, `files` counts the files that were read,
    `lacking` those whose contents no server has.
    """

    sites: tuple[Site, ...]
    rules: tuple[str, ...]
    files: int
    lacking: int = 0


def lint_rules(
    root: Path, paths: Sequence[str], patches: Iterable[LoadedPatch]
) -> tuple[Rule, ...]:
    """The rules of rule files and, to be looked for everywhere, of the recipes of patches.

    The second rule of one id is called after its file. BadInputError with all problems.
    """
    rules: list[Rule] = []
    for patch in patches:
        recipe = recipe_of(patch)
        if recipe is not None:
            rules += map(_everywhere, recipe.all_rules)
    for path in paths:
        recipe = load_recipe(root / path, path)
        editing = [rule for rule in recipe.all_rules if rule.edits]
        if editing:
            hint = "a rule file only looks: delete fix, remove or replace, or make it a recipe"
            raise BadInputError(
                *(Problem(f"{rule.id} would edit", str(rule.where), hint) for rule in editing)
            )
        rules += recipe.all_rules
    ids: dict[str, Rule] = {}
    for rule in rules:
        file = rule.where.file.name.partition(".")[0]
        name = rule.id if rule.id not in ids else f"{file}:{rule.id}"
        ids.setdefault(name, rule if name == rule.id else replace(rule, id=name))
    return tuple(ids.values())


def scan_tree(source: Overlay, tree: str, rules: Sequence[Rule]) -> Scan:
    """Every site of the rules in a tree; binary files are passed over."""
    return scan_files(_files(source, tree, rules), rules)


def scan_files(files: Iterable[tuple[str, bytes | None]], rules: Sequence[Rule]) -> Scan:
    """Every site of the rules in files, given as path and contents, None for what nobody has."""
    words = [needed_in(rule) for rule in rules]
    sites: list[Site] = []
    read = lacking = 0
    for path, data in files:
        if data is None:
            lacking += 1
            continue
        read += 1
        if b"\0" in data:
            continue
        text: Source | None = None
        for rule, needed in zip(rules, words, strict=True):
            if rule.scope.covers(path) and may_match(data, needed):
                text = text or Source.of(path, decode_file(data)[0])
                sites += (site for site in find_sites(rule, text) if site.allowed is None)
    sites.sort(key=lambda site: (site.path, site.start, site.rule))
    return Scan(tuple(sites), tuple(rule.id for rule in rules), read, lacking)


def _everywhere(rule: Rule) -> Rule:
    """The rule, looking in all files of its kind."""
    if isinstance(rule, CodeRule):
        kinds = tuple(f"**/*{ending}" for ending in LANGUAGES[rule.language])
        return replace(rule, scope=Scope(kinds), fix=None, whole_lines=False)
    names = {glob.rpartition("/")[2] for glob in rule.scope.files}
    if names & {"*", "**"}:
        return rule
    return replace(rule, scope=Scope(tuple(sorted(f"**/{name}" for name in names))))


def _files(source: Overlay, tree: str, rules: Sequence[Rule]) -> Iterator[tuple[str, bytes | None]]:
    """Path and contents of the ordinary files that a rule looks at, in order."""
    terrain = Terrain(source, tree)
    wanted = {
        path: entry.oid
        for path, entry in terrain.files().items()
        if entry.mode in (FILE_MODE, EXECUTABLE_MODE)
        and any(rule.scope.covers(path) for rule in rules)
    }
    try:
        blobs = dict(source.read_many(sorted(set(wanted.values())), "blob"))
    except MissingObjectError:  # some that no server has
        yield from ((path, terrain.data(path)) for path in sorted(wanted))
    else:
        yield from ((path, blobs[oid]) for path, oid in sorted(wanted.items()))


# Scan a tree once: what rules find in it follows from the tree and the rules.


#: Raise it when the same rules could find something else in the same tree.
_FORM = 1


def scan_once(cache: Path, source: Overlay, tree: str, rules: Sequence[Rule]) -> Scan:
    """Every site of the rules in a tree, as `scan_tree` finds them; kept below the cache folder."""
    path = memory_path(
        cache, "scans", [_FORM, version("ast-grep-py"), tree, [repr(rule) for rule in rules]]
    )
    kept = _scan(recall(path))
    if kept is not None:
        return kept
    scan = scan_tree(source, tree, rules)
    if not scan.lacking:  # what is not here may be here the next time
        remember(path, to_builtins(scan))
    return scan


def _scan(data: Any) -> Scan | None:
    try:
        sites = tuple(Site(**{**each, "cut": tuple(each["cut"])}) for each in data["sites"])
        return Scan(sites, tuple(data["rules"]), data["files"])
    except (KeyError, TypeError):
        return None
