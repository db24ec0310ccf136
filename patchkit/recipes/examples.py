"""The examples in a recipe, run: what each rule makes of a piece of code."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from patchkit.recipes.bounds import LANGUAGES
from patchkit.recipes.rule import CodeRule, Example, Expect, Recipe, Rule, Scope
from patchkit.recipes.run import run_recipe
from patchkit.recipes.sites import check_rule

_ANY = Expect(0, exact=False)


class ExampleResult(Struct, frozen=True):
    """An example of the rule `rule`: `wrong` says what is not as it should be, "" if all is.

    `expected` and `got` are the texts after, where they differ.
    """

    rule: str
    where: str
    wrong: str = ""
    expected: bytes = b""
    got: bytes = b""


def run_examples(recipe: Recipe) -> Iterator[ExampleResult]:
    """Run every example; BadInputError for a rule that ast-grep does not take."""
    for rule in recipe.all_rules:
        if isinstance(rule, CodeRule):
            check_rule(rule)
        for example in rule.examples:
            yield _run_example(recipe, rule, example)


def _run_example(recipe: Recipe, rule: Rule, example: Example) -> ExampleResult:
    result = ExampleResult(rule.id, str(example.where))
    path = "example" + (LANGUAGES[rule.language][0] if isinstance(rule, CodeRule) else "")
    alone = replace(rule, scope=Scope((path,)), expect=_ANY, allow=())
    rules = (alone,) if isinstance(alone, CodeRule) else ()
    texts = () if isinstance(alone, CodeRule) else (alone,)
    before = example.before.encode()
    run = run_recipe(replace(recipe, rules=rules, texts=texts), {path: before})
    if run.fatal:
        return replace(result, wrong=run.fatal[0].what.removeprefix(f"{rule.id}: "))
    if example.sites is not None and example.sites != run.count(rule.id):
        return replace(result, wrong=f"finds {run.count(rule.id)} sites, not {example.sites}")
    got = run.changed.get(path, before)
    if example.after is not None and got != example.after.encode():
        wrong = "gives another text"
        return replace(result, wrong=wrong, expected=example.after.encode(), got=got)
    return result
