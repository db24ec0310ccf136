"""The format of recipes: what is wrong is told with its line, all at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from patchkit.errors import BadInputError
from patchkit.extensions.recipes.recipe_file import load_recipe, parse_recipe, recipe_schema
from tests.extensions.recipes.kitchen import DROP, recipe_of, recipe_text
from tests.support.schemas import jsonschema

HEAD = "version: 1\ndescription: A reason\nrules:\n  - id: one\n    language: python\n"
FILES = '    files: ["src/**"]\n'


def problems(text: str) -> list[str]:
    with pytest.raises(BadInputError) as caught:
        parse_recipe(text.encode(), Path("x.recipe.yml"))
    return [f"{each} | {each.hint}" for each in caught.value.problems]


def test_a_recipe_is_read_whole() -> None:
    rule = {
        **DROP,
        "expect": ">= 3",
        "ignores": ["src/old/**"],
        "allow": [{"path": "src/a.py", "within": "A.f", "text": "@fuser", "reason": "slow"}],
        "examples": [{"before": "@fuser\ndef f(): ...\n", "after": "def f(): ...\n"}],
    }
    recipe = recipe_of(rule, text=({"id": "sed", "find": "a", "replace": "b", "expect": 2},))
    code, text = recipe.all_rules
    assert (code.id, str(code.expect), text.id, str(text.expect)) == (
        "drop-fuser", ">= 3", "sed", "2",
    )  # fmt: skip
    assert code.scope.covers("src/a.py")
    assert not code.scope.covers("src/old/a.py")
    assert (code.allow[0].within, code.allow[0].reason) == ("A.f", "slow")
    assert code.examples[0].after == "def f(): ...\n"
    assert recipe.description.startswith("Run uncompiled\n\n")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("    rule: {pattren: f($A)}\n", "x.recipe.yml:7: rules[1].rule.pattren is an unknown key"),
        ("    rule: {inside: {kind: a, stopby: end}}\n", "inside.stopby is an unknown key"),
        ("    rule: {all: [{kind: a}, {knd: b}]}\n", "rules[1].rule.all[2].knd is an unknown key"),
        ("    rule: {not: {kind: a}}\n", "x.recipe.yml:7: a rule that says only what is not"),
        ("    rule: {has: {not: {kind: a}}}\n", "a rule that says only what is not"),
        ("    rule: {matches: other}\n", "other: no such rule"),
        ("    rule: {kind: call}\n    fix: f($A)\n", "no pattern of the rule has $A"),
        ("    rule: {pattern: f($A)}\n    fix: f($$$A)\n", "no pattern of the rule has $$$A"),
        ("    rule: {kind: call}\n    fix: x\n    remove: lines\n", "a rule has fix and remove"),
        ("    rule: {kind: call}\n    expect: some\n", "expect: some is no count"),
        ("    rule: {kind: call}\n    severity: error\n", "severity is an unknown key"),
        ("    rule: {kind: call}\n    examples: [{before: x}]\n", "expects nothing"),
        ("    rule: {kind: call}\n    allow: [{path: a}]\n", "allow[1].reason is missing"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(rule: str, said: str) -> None:
    assert any(said in each for each in problems(HEAD + FILES + rule))


@pytest.mark.parametrize("glob", ["/src/*.py", "./a", "src/", "a\\\\b"])
def test_globs_start_at_the_root_and_name_files(glob: str) -> None:
    text = f'{HEAD}    files: ["{glob}"]\n    rule: {{kind: call}}\n'
    assert any("x.recipe.yml:6: rules[1].files[1]" in each for each in problems(text))


def test_all_offenders_at_once() -> None:
    text = recipe_text({**DROP, "fix": "x"}, DROP, {**DROP, "id": "Third"})
    assert len(problems(text)) == 1  # the shape comes first
    found = problems(recipe_text({**DROP, "fix": "x"}, DROP))
    assert [each.split(" | ")[0].split(": ")[1] for each in found] == [
        "drop-fuser is the id of two rules, the first in line 15", "a rule has fix and remove",
    ]  # fmt: skip


def test_a_recipe_without_rules_is_refused() -> None:
    assert "no rule" in problems("version: 1\ndescription: x\n")[0]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"p/x\.recipe\.yml: is not there"):
        load_recipe(tmp_path / "x.recipe.yml", "p/x.recipe.yml")


RULES: list[dict[str, Any]] = [
    DROP,
    {"id": "a", "rule": {"pattern": {"context": "@f\ndef g(): ...", "selector": "decorator"}}},
    {"id": "b", "rule": {"kind": "call", "nthChild": {"position": "2n+1"}}, "expect": 3},
    {"id": "c", "rule": {"pattern": "f($A)", "inside": {"kind": "block", "stopBy": "end"}},
     "constraints": {"A": {"regex": "x"}}, "utils": {"u": {"kind": "call"}}, "fix": ""},
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["id"]))
def test_the_schema_takes_what_the_loader_takes(rule: dict[str, Any]) -> None:
    text = recipe_text(rule)
    parse_recipe(text.encode(), Path("x"))
    jsonschema.validate(yaml.safe_load(text), recipe_schema())


def test_the_schema_refuses_unknown_keys() -> None:
    text = recipe_text({"id": "a", "rule": {"has": {"pattren": "x"}}})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(text), recipe_schema())


def _full(lines: str, kind: str, count: int) -> bytes:
    text = "version: 1\ndescription: x\n" + lines
    return (text + "".join(kind.format(n=n) for n in range(count))).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        _full("rules:\n", "  - {{id: a{n}}}\n", 13_000),
        _full("text:\n", "  - {{id: a, find: x, replace: y, files: [a]}}\n", 5_000),
        _full(
            "rules:\n  - id: a\n    language: python\n    files: [a]\n    rule: {pattern: x}\n"
            "    utils:\n",
            "      u{n}: {{matches: v}}\n",
            10_000,
        ),
    ],
    ids=["unknown keys", "one id", "no such rule"],
)
def test_a_recipe_full_of_mistakes_is_told_in_good_time(data: bytes) -> None:
    start = time.process_time()
    with pytest.raises(BadInputError) as caught:
        parse_recipe(data, Path("x.recipe.yml"))
    assert time.process_time() - start < 1.5  # 0.5 s on an idle machine
    assert len(caught.value.problems) == 21
