"""What a variable of rules stands for, for other extensions: see patchkit/extension.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from patchkit.errors import BadInputError, Problem
from patchkit.extension import Captured, Captures
from patchkit.extensions.recipes.recipe_file import load_recipe
from patchkit.extensions.recipes.rule import CodeRule
from patchkit.extensions.recipes.run import Recipe, expectations, may_match, read_source
from patchkit.extensions.recipes.sites import Site, find_captures
from patchkit.gitcmd.trees import TreeView

#: The ends of lines as Python's parser counts them.
_LINE_END = re.compile(r"\r\n|\r|\n")


def captures(root: Path, file: str, variable: str, tree: TreeView) -> Captures:
    """What the variable stands for, file by file; BadInputError with what is wrong with rules."""
    recipe = load_recipe(root / file, file, root=root)
    return captures_in(recipe, variable, tree.contents(recipe.covers))


def captures_in(recipe: Recipe, variable: str, files: Mapping[str, bytes]) -> Captures:
    """What the variable of a recipe stands for, in files by path."""
    if problems := [*_problems(recipe, variable)]:
        raise BadInputError(*problems)
    found: dict[str, list[Captured]] = {}
    sites: list[Site] = []
    for path, data in sorted(files.items()):
        source = read_source(path, data)
        for rule in recipe.rules:
            if not rule.scope.covers(path) or not may_match(rule, data):
                continue
            for site, (start, end) in find_captures(rule, source, variable):
                sites.append(site)
                span = _position(source.text, start), _position(source.text, end)
                about = (path, site.line, site.within, source.text[start:end], span)
                captured = Captured(*about, allowed=site.allowed is not None)
                found.setdefault(path, []).append(captured)
    findings = [each for rule in recipe.rules for each in expectations(rule, sites, files)]
    return Captures(found, tuple(findings))


def _position(text: str, at: int) -> tuple[int, int]:
    *above, line = _LINE_END.split(text[:at])
    return len(above) + 1, len(line.encode())


def _problems(recipe: Recipe, variable: str) -> Iterator[Problem]:
    for rule in recipe.all_rules:
        where = str(rule.where)
        if rule.edits:
            hint = "it is only to find the calls: delete fix, remove or replace"
            yield Problem(f"{rule.id} would edit", where, hint)
        elif not isinstance(rule, CodeRule) or rule.language != "python":
            yield Problem(f"{rule.id} is a rule on text, or on another language", where)
        elif f"${variable}" not in repr(rule.rule):
            what = f"{rule.id} does not say which argument names what is replaced"
            hint = f"write ${variable} for it: pattern: $_.register_patch(${variable}, $$$)"
            yield Problem(what, where, hint)
