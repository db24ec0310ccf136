"""Read a recipe and tell everything that is wrong with it at once, at file and line.

Text -> nodes -> checked against the declared format (recipe_format.py) -> rules between values ->
frozen values. Whether ast-grep takes a rule is found out when it runs (sites.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from patchkit.disk.files import read_plain
from patchkit.errors import BadInputError, Problem
from patchkit.manifest.validate import check_shape
from patchkit.manifest.values import Location
from patchkit.manifest.yaml_nodes import Items, Node, Scalar, Table, decode, parse
from patchkit.recipes.bounds import LANGUAGES, require_bounded
from patchkit.recipes.recipe_format import RECIPE
from patchkit.recipes.regex import matches, regular_expressions
from patchkit.recipes.rule import Allowance, CodeRule, Example, Expect, Recipe, Scope, TextRule
from patchkit.recipes.sites import used_variables, variables_in

_POSITIVE = (
    *("pattern", "kind", "regex", "nthChild", "matches", "all", "any"),
    *("has", "inside", "follows", "precedes"),
)


def load_recipe(path: Path, name: str = "") -> Recipe:
    """The recipe in a file; `name` is what messages call it.

    Raises BadInputError with every problem.
    """
    try:
        data = read_plain(path)
    except OSError as error:
        what = "is not there" if isinstance(error, FileNotFoundError) else str(error.strerror)
        raise BadInputError(Problem(what, name or str(path))) from error
    return parse_recipe(data, path, name)


def parse_recipe(data: bytes, path: Path, name: str = "") -> Recipe:
    """The recipe that the file's contents say."""
    shown = Path(name) if name else path
    table = parse(decode(data, shown), shown)
    problems = check_shape(table, RECIPE, root="the recipe")
    if not problems:
        assert isinstance(table, Table)
        problems = list(_problems(table))
    if problems:
        raise BadInputError(*problems)
    assert isinstance(table, Table)
    return Recipe(
        path=path,
        description=table.text("description").strip("\n"),
        rules=tuple(_code_rule(each) for each in _tables(table, "rules")),
        texts=tuple(_text_rule(each) for each in _tables(table, "text")),
    )


# -- rules between values --------------------------------------------------------------------


def _problems(table: Table) -> Iterator[Problem]:
    rules = [*_tables(table, "rules"), *_tables(table, "text")]
    if not rules:
        yield Problem("no rule", str(table.where), "write `rules:` or `text:`")
    seen: dict[str, int] = {}
    for rule in rules:
        where = rule.get("id") or rule
        first = seen.setdefault(rule.text("id"), where.where.line)
        if first != where.where.line:
            what = f"{rule.text('id')} is the id of two rules, the first in line {first}"
            yield Problem(what, str(where.where), "give one of them another id")
        files = rule.get("files")
        if isinstance(files, Items) and not files.items:
            yield Problem("files is empty", str(files.where), "name at least one glob")
        for example in _tables(rule, "examples"):
            if example.get("after") is None and example.get("sites") is None:
                hint = "write `after:`, or how many `sites:` there are"
                yield Problem("an example that expects nothing", str(example.where), hint)
    for rule in _tables(table, "rules"):
        yield from _code_problems(rule)


def _code_problems(rule: Table) -> Iterator[Problem]:
    fix, remove = rule.get("fix"), rule.key("remove")
    if fix is not None and remove is not None:
        yield Problem("a rule has fix and remove", str(remove.where), "delete one of them")
    utils = rule.get("utils")
    names = {key.text for key, _ in utils.entries} if isinstance(utils, Table) else set[str]()
    matcher = rule.get("rule")
    assert matcher is not None
    values = [value for _, value in utils.entries] if isinstance(utils, Table) else []
    for each in (matcher, *values):
        yield from _matcher_problems(each, names)
    if isinstance(fix, Scalar):
        known = set(_variables((matcher, *values)))
        for variable in sorted(used_variables(fix.text) - known):
            hint = f"it has {', '.join(sorted(known))}" if known else "it has no variables"
            yield Problem(f"no pattern of the rule has {variable}", str(fix.where), hint)


def _matcher_problems(node: Node, utils: Iterable[str]) -> Iterator[Problem]:
    """What is wrong with a rule, and with those in it."""
    if not isinstance(node, Table):
        return
    if not any(node.get(key) for key in _POSITIVE):
        what = "a rule that says only what is not" if node.entries else "an empty rule"
        yield Problem(what, str(node.where), "it needs a pattern, a kind or the like")
    for key, value in node.entries:
        if key.text == "matches" and isinstance(value, Scalar) and value.text not in utils:
            hint = f"`utils` has {', '.join(utils)}" if utils else "write it under `utils`"
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


# -- values ----------------------------------------------------------------------------------


def _code_rule(table: Table) -> CodeRule:
    fix = table.get("fix")
    rule = CodeRule(
        id=table.text("id"),
        language=table.text("language"),
        rule=_mapping(table.get("rule")),
        constraints=_mapping(table.get("constraints")),
        utils=_mapping(table.get("utils")),
        scope=_scope(table, LANGUAGES[table.text("language")]),
        fix=_code(fix) if isinstance(fix, Scalar) else None,
        whole_lines=table.get("remove") is not None,
        expect=_expect(table),
        allow=tuple(_allowance(each) for each in _tables(table, "allow")),
        examples=tuple(_example(each) for each in _tables(table, "examples")),
        where=_where(table),
    )
    require_bounded(rule)
    return rule


def _text_rule(table: Table) -> TextRule:
    is_regex = table.get("regex") is not None
    rule = TextRule(
        id=table.text("id"),
        find=table.text("regex" if is_regex else "find"),
        is_regex=is_regex,
        replace=table.text("replace"),
        scope=_scope(table),
        expect=_expect(table),
        allow=tuple(_allowance(each) for each in _tables(table, "allow")),
        examples=tuple(_example(each) for each in _tables(table, "examples")),
        where=_where(table),
    )
    if is_regex:
        with regular_expressions():
            matches(rule, "", "")  # is there every group that `replace` names?
    return rule


def _scope(table: Table, endings: tuple[str, ...] = ()) -> Scope:
    return Scope(_texts(table.get("files")), _texts(table.get("ignores")), endings)


def _expect(table: Table) -> Expect:
    text = table.text("expect") or ">= 1"
    return Expect(int(text.removeprefix(">=")), not text.startswith(">"))


def _allowance(table: Table) -> Allowance:
    return Allowance(
        files=Scope((table.text("path"),)),
        within=table.text("within"),
        text=table.text("text").strip("\n"),
        reason=table.text("reason").strip(),
        where=table.where,
    )


def _example(table: Table) -> Example:
    sites, after = table.get("sites"), table.get("after")
    return Example(
        before=table.text("before"),
        after=after.text if isinstance(after, Scalar) else None,
        sites=int(sites.text) if isinstance(sites, Scalar) else None,
        where=table.where,
    )


def _mapping(node: Node | None) -> dict[str, object]:
    """A rule as ast-grep takes it."""
    data = _plain(node) if node is not None else {}
    assert isinstance(data, dict)
    return data


def _plain(node: Node, key: str = "") -> object:
    if isinstance(node, Table):
        return {name.text: _plain(value, name.text) for name, value in node.entries}
    if isinstance(node, Items):
        return [_plain(each) for each in node.items]
    if key in ("nthChild", "position") and re.fullmatch(r"[0-9]{1,9}", node.text):
        return int(node.text)
    return _code(node) if key in ("pattern", "context") else node.text


def _code(node: Scalar) -> str:
    """A scalar's text without the newline that a block ends with."""
    return node.text.removesuffix("\n") if node.style in ("|", ">") else node.text


def _where(table: Table) -> Location:
    key = table.get("id")
    return key.where if key is not None else table.where


def _texts(node: Node | None) -> tuple[str, ...]:
    items = node.items if isinstance(node, Items) else ()
    return tuple(item.text for item in items if isinstance(item, Scalar))


def _tables(table: Table, key: str) -> tuple[Table, ...]:
    node = table.get(key)
    items = node.items if isinstance(node, Items) else ()
    return tuple(item for item in items if isinstance(item, Table))
