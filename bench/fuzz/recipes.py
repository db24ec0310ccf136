"""Rules made by dice on code made by dice: refused or done, in bounded time, with sound edits."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import yaml

from bench.fuzz.damage import damaged
from patchkit.errors import BadInputError
from patchkit.extensions.recipes import regex
from patchkit.extensions.recipes.recipe_file import parse_recipe
from patchkit.extensions.recipes.run import splice

_KINDS = ("call", "integer", "identifier", "function_definition", "decorator", "binary_operator")
_PATTERNS = ("f($A)", "$X + $Y", "def $N($$$): $$$B", "$_", "@$D")
_PIECES = (
    "f(",
    ")",
    "1",
    "x",
    " + ",
    "\n",
    "[",
    "]",
    "def f(x):\n    ",
    "@d\n",
    "'",
    "#",
    "lambda: ",
)
_REGEX = (
    *("a", "b", "(", "(?:", ")", "*", "+", "?", "{2,}", "{999}", "{9999999999}", "|", "^", "$"),
    *(".", "\\1", "[ab]", "[[a]", "(?P<n>", "\\b", "(?=", "(?i)", "(a+)+", "(a|a)*", "(.*)*", "\n"),
)
_NEW = ("x", "", "\\1", "\\g<n>", "\\", "\n", "\\q", "$A")


def recipe(random: Random) -> None:
    """Whatever the rule and the file: edits do not overlap, and make what they say."""
    rule = {"id": "one", "language": "python", "files": ["**"], "rule": _rule(random, 5)}
    if random.random() < 0.5:
        rule["utils"] = {f"u{n}": _rule(random, 3) for n in range(4)}
    if random.random() < 0.5:
        rule["fix"] = random.choice(["g($A)", "", "$A", "1"])
    text = yaml.dump({"version": 1, "description": "Dice", "rules": [rule]}, Dumper=_Plain).encode()
    if random.random() < 0.3:
        text = damaged(random, text, (b"stopBy: end", b"matches: u1", b"- "), (text,))
    data = _code(random)
    with suppress(BadInputError):
        ran = parse_recipe(text, Path("x.recipe.yml")).run({"a.py": data})
        if not any(each.code == "recipe-overlap" for each in ran.findings):
            assert splice(data, ran.sites) == ran.changed.get("a.py", data)


def text_rule(random: Random) -> None:
    """Regular expressions by dice, also such that would take years, or name what is not there."""
    regex.PATIENCE = 0.5
    find = "".join(random.choices(_REGEX, k=random.choice([1, 3, 6, 12])))
    new = "".join(random.choices(_NEW, k=2))
    rule = {"id": "one", "regex": find, "replace": new, "files": ["**"]}
    text = yaml.dump({"version": 1, "description": "Dice", "text": [rule]}, Dumper=_Plain).encode()
    data = "".join(random.choices("aab\n\u00e4", k=random.choice([0, 3, 40, 3000]))).encode()
    with suppress(BadInputError):
        ran = parse_recipe(text, Path("x.recipe.yml")).run({"a.txt": data})
        assert all(each.text for each in ran.sites)
        assert splice(data, ran.sites) == ran.changed.get("a.txt", data)


def _rule(random: Random, deep: int) -> dict[str, Any]:
    """A rule of at most so many levels."""
    kind = random.choice(["kind", "pattern", "matches"] if deep == 0 else _ALL)
    if kind == "kind":
        return {"kind": random.choice(_KINDS)}
    if kind == "pattern":
        return {"pattern": random.choice(_PATTERNS)}
    if kind == "matches":
        return {"matches": f"u{random.randrange(5)}"}
    if kind in ("any", "all"):
        return {kind: [_rule(random, deep - 1) for _ in range(random.choice([1, 2, 3]))]}
    inner = _rule(random, deep - 1)
    if kind != "not" and random.random() < 0.7:
        inner["stopBy"] = random.choice(["end", "neighbor", {"kind": "call"}])
    return {"kind": random.choice(_KINDS), kind: inner}


_ALL = ("kind", "pattern", "matches", "any", "all", "not", "inside", "has", "follows", "precedes")


def _code(random: Random) -> bytes:
    """Code, or what looks like it; at times nested deep."""
    depth = random.choice([0, 1, 5, 40, 400, 4000])
    middle = "".join(random.choices(_PIECES, k=random.choice([1, 5, 60])))
    opening = random.choice(["f(", "[", "-", "(lambda: ", "f(x)("])
    closing = {"f(": ")", "[": "]", "(lambda: ": ")", "f(x)(": ")"}.get(opening, "")
    return (opening * depth + middle + closing * depth + "\n").encode()


class _Plain(yaml.SafeDumper):
    """Without anchors, which recipes may not have."""

    def ignore_aliases(self, data: object) -> bool:
        return True
