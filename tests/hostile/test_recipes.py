"""Recipes and files made to cost much: refused in a moment, at the rule, with a way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ast_grep_py import SgRoot

from patchkit.errors import BadInputError
from patchkit.extensions.recipes.recipe_file import parse_recipe
from patchkit.extensions.recipes.rule import nests_deeper
from patchkit.extensions.recipes.run import RecipeRun
from tests.extensions.recipes.kitchen import recipe_text

pytestmark = pytest.mark.slow

CALL = {"pattern": "f($A)"}


def ran(rule: dict[str, Any], text: str, **more: Any) -> RecipeRun:
    """One rule on one file."""
    whole = {"id": "calls", "language": "python", "files": ["src/**"], "rule": rule, **more}
    recipe = parse_recipe(recipe_text(whole).encode(), Path("x.recipe.yml"))
    return recipe.run({"src/a.py": text.encode()})


def nested(depth: int) -> str:
    return "f(" * depth + "1" + ")" * depth + "\n"


def looking(times: int) -> dict[str, Any]:
    """A rule that looks all the way out, as often, inside each other."""
    rule: dict[str, Any] = {"kind": "integer"}
    for _ in range(times):
        rule = {"kind": "call", "inside": {**rule, "stopBy": "end"}}
    return rule


def test_what_people_nest_is_taken() -> None:
    text = "class C:\n    def g(self):\n        " + nested(60)
    found = ran(CALL, text)
    assert [site.within for site in found.sites] == ["C.g"] * 60
    assert len(ran(looking(3), text).sites) == 0


def test_sites_inside_each_other_by_the_thousand() -> None:
    with pytest.raises(BadInputError, match=r"too many sites inside each other in src/a"):
        ran(CALL, nested(3000))


def test_long_sites_inside_each_other() -> None:
    with pytest.raises(BadInputError, match="too many sites inside each other"):
        ran(CALL, nested(800).replace("1", "'" + "x" * 100_000 + "'"))


@pytest.mark.parametrize(("looks", "depth"), [(1, 1501), (2, 251), (3, 76)])
def test_a_file_that_nests_deep_for_a_rule_that_looks_far(looks: int, depth: int) -> None:
    with pytest.raises(BadInputError, match=r"src/a\.py nests more than \d+ deep") as raised:
        ran(looking(looks), nested(depth))
    (problem,) = raised.value.problems
    assert "x.recipe.yml" in str(problem.where)
    assert "ignores" in problem.hint


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", nested(40) + "x = 1\n" * 99),
        ("python", "class C:\n    " + "-" * 90 + "1\n"),
        ("yaml", "- " * 60 + "a\n"),  # more levels than characters
        ("yaml", "[" * 70 + "]" * 70),
        ("cpp", "A<" * 40 + "int" + ">" * 40 + " x;\n"),
        ("json", ""),
    ],
)
def test_how_deep_a_tree_nests(language: str, text: str) -> None:
    root = SgRoot(text, language).root()
    level, levels = [root], 0
    while level:
        level, levels = [child for node in level for child in node.children()], levels + 1
    found = [most for most in range(1, 2 * levels) if nests_deeper(root, len(text), most)]
    assert found == list(range(1, levels))


def test_too_many_looks() -> None:
    with pytest.raises(BadInputError, match="4 relations with stopBy inside each other"):
        ran(looking(4), "f(1)\n")


def test_rules_that_double() -> None:
    """As entities of XML do: each refers twice to the next."""
    utils: dict[str, Any] = {
        f"u{n}": {"any": [{"matches": f"u{n + 1}"} for _ in "12"]} for n in range(40)
    }
    utils["u40"] = {"kind": "call"}
    with pytest.raises(BadInputError, match="more than 20000 parts"):
        ran({"matches": "u0"}, "f(1)\n", utils=utils)


def test_many_sites_in_one_file_are_no_matter() -> None:
    assert len(ran(CALL, "f(1)\n" * 20_000).sites) == 20_000


def text_rule(regex: str, replace: str, text: str) -> RecipeRun:
    rule = {"id": "words", "regex": regex, "replace": replace, "files": ["a.txt"]}
    whole = {"version": 1, "description": "Words", "text": [rule]}
    recipe = parse_recipe(yaml.safe_dump(whole).encode(), Path("x.recipe.yml"))
    return recipe.run({"a.txt": text.encode()})


def test_a_regular_expression_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchkit.extensions.recipes.regex.PATIENCE", 0.3)
    with pytest.raises(BadInputError, match=r"words: .* takes more than .* in a.txt") as refused:
        text_rule("^(a|aa)+$", "b", "a" * 60 + "!")
    assert refused.value.problems[0].hint
    assert text_rule("(a+)b", r"\1", "aab").changed == {"a.txt": b"aa"}


@pytest.mark.parametrize(
    ("regex", "replace"),
    [
        ("a{99999999999999}", ""),
        ("(" * 3000 + ")" * 3000, ""),
        ("a", r"\1"),
        ("a", r"\g<name>"),
        ("a", r"\q"),
    ],
)
def test_what_is_no_regular_expression(regex: str, replace: str) -> None:
    with pytest.raises(BadInputError, match=r"x\.recipe\.yml:"):
        text_rule(regex, replace, "a")


@pytest.mark.parametrize("regex", ["a", "(a)"])
def test_a_rule_that_writes_without_end(regex: str) -> None:
    with pytest.raises(BadInputError, match=r"words: what .* large"):
        text_rule(regex, "x" * 100_000, "a" * 10_000)
