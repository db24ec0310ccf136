"""Read a recipe and tell everything that is wrong with it at once, at file and line.

Text -> nodes -> read by the declared format -> rules between values ->
values (rule.py). Whether ast-grep takes a rule is found out when it runs (sites.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from pathlib import Path

from patchkit.disk.files import read_plain
from patchkit.errors import BadInputError, Problem, first_problems
from patchkit.extensions.recipes.regex import matches
from patchkit.extensions.recipes.rule import RELATION, RULE, require_bounded
from patchkit.extensions.recipes.run import Recipe
from patchkit.extensions.recipes.sites import used_variables, variables_in
from patchkit.manifest.json_schema import record_schema
from patchkit.manifest.keys import record_of
from patchkit.manifest.validate import Whole, read_file
from patchkit.manifest.yaml_nodes import Items, Node, Scalar, Table


def recipe_schema() -> dict[str, object]:
    """The format as JSON Schema (draft 7)."""
    return record_schema(record_of(Recipe), "recipe", {"rule": RULE, "relation": RELATION})


_POSITIVE = (
    *("pattern", "kind", "regex", "nthChild", "matches", "all", "any"),
    *("has", "inside", "follows", "precedes"),
)


def load_recipe(path: Path, name: str = "", root: Path | None = None) -> Recipe:
    """The recipe in a file; `name` is what messages call it, `root` the project that it is part of.

    Raises BadInputError with every problem.
    """
    try:
        data = read_plain(path, inside=root)
    except OSError as error:
        what = "is not there" if isinstance(error, FileNotFoundError) else str(error.strerror)
        raise BadInputError(Problem(what, name or str(path))) from error
    return parse_recipe(data, path, name)


def parse_recipe(data: bytes, path: Path, name: str = "") -> Recipe:
    """The recipe that the file's contents say."""
    shown = Path(name) if name else path
    whole = Whole("the recipe", given={"path": path})
    table, recipe = read_file(data, shown, record_of(Recipe), whole)
    if problems := list(_problems(table)):
        raise BadInputError(*first_problems(problems))
    assert isinstance(recipe, Recipe)
    for rule in recipe.rules:
        require_bounded(rule)
    for text in recipe.texts:
        if text.is_regex:
            matches(text, "", "")  # is there every group that `replace` names?
    return recipe


# -- rules between values --------------------------------------------------------------------


def _problems(table: Table) -> Iterator[Problem]:
    rules = [*table.tables("rules.*"), *table.tables("text.*")]
    if not rules:
        yield Problem("no rule", str(table.where), "write `rules:` or `text:`")
    seen: dict[str, int] = {}
    for rule in rules:
        for name in rule.scalars("id"):
            first = seen.setdefault(name.text, name.where.line)
            if first != name.where.line:
                what = f"{name.text} is the id of two rules, the first in line {first}"
                yield Problem(what, str(name.where), "give one of them another id")
        files = rule.get("files")
        if isinstance(files, Items) and not files.items:
            yield Problem("files is empty", str(files.where), "name at least one glob")
        for example in rule.tables("examples.*"):
            if example.get("after") is None and example.get("sites") is None:
                hint = "write `after:`, or how many `sites:` there are"
                yield Problem("an example that expects nothing", str(example.where), hint)
    for rule in table.tables("rules.*"):
        yield from _code_problems(rule)


def _code_problems(rule: Table) -> Iterator[Problem]:
    fix, remove = rule.get("fix"), rule.key("remove")
    if fix is not None and remove is not None:
        yield Problem("a rule has fix and remove", str(remove.where), "delete one of them")
    names = {name.text: None for name, _ in rule.pairs("utils")}
    matcher = rule.get("rule")
    assert matcher is not None
    values = [value for _, value in rule.pairs("utils")]
    for each in (matcher, *values):
        yield from _matcher_problems(each, names)
    if isinstance(fix, Scalar):
        known = set(_variables((matcher, *values)))
        for variable in sorted(used_variables(fix.text) - known):
            hint = f"it has {', '.join(sorted(known))}" if known else "it has no variables"
            yield Problem(f"no pattern of the rule has {variable}", str(fix.where), hint)


def _matcher_problems(node: Node, utils: Collection[str]) -> Iterator[Problem]:
    """What is wrong with a rule, and with those in it."""
    if not isinstance(node, Table):
        return
    if not any(node.get(key) for key in _POSITIVE):
        what = "a rule that says only what is not" if node.entries else "an empty rule"
        yield Problem(what, str(node.where), "it needs a pattern, a kind or the like")
    for key, value in node.entries:
        if key.text == "matches" and isinstance(value, Scalar) and value.text not in utils:
            hint = (
                f"`utils` has {', '.join(islice(utils, 50))}" if utils else "write it under `utils`"
            )
            yield Problem(f"{value.text}: no such rule", str(value.where), hint)
        for inner in _inner_rules(key.text, value):
            # within `not` and relations, what is not may stand alone no more than elsewhere
            yield from _matcher_problems(inner, utils)


def _inner_rules(key: str, value: Node) -> Iterator[Node]:
    if key in ("all", "any") and isinstance(value, Items):
        yield from value.items
    elif key in ("inside", "has", "follows", "precedes", "not", "stopBy"):
        yield value
    elif key == "nthChild" and isinstance(value, Table):
        of_rule = value.get("ofRule")
        yield from () if of_rule is None else (of_rule,)


def _variables(nodes: Iterable[Node]) -> Iterator[str]:
    """The variables of all patterns in rules."""
    for node in nodes:
        if not isinstance(node, Table):
            continue
        for key, value in node.entries:
            if key.text in ("pattern", "context"):
                inner = value.get("context") if isinstance(value, Table) else value
                yield from variables_in(inner.text) if isinstance(inner, Scalar) else ()
            yield from _variables(_inner_rules(key.text, value))
