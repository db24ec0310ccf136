"""What a rule may cost: neither who writes recipes nor who writes an upstream decides on that.

A rule that looks along the tree costs its depth for each place where it looks, once more for each
look inside a look; what rules refer to by name may double at every step. Sites inside each other
hold each other's text. All of it is linear, or small, in what people write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from patchkit.errors import BadInputError, Problem
from patchkit.recipes.rule import CodeRule, Rule

if TYPE_CHECKING:
    from ast_grep_py import SgNode


#: Parts of a rule, with what it refers to written out.
MOST_PARTS = 20_000
#: How deep a file may nest for a rule with so many looks inside each other; more are refused. A
#: neighbour costs the depth, too: trees are walked from their root to find it.
DEEPEST = {1: 3000, 2: 500, 3: 150}
#: Characters of all sites of a rule in one file, and steps from them to the top of its tree.
MOST_TEXT, MOST_STEPS = 1 << 26, 2_000_000

_LOOKS = ("inside", "has", "follows", "precedes")
_HINT_FILE = "take the file out with `ignores`"


def require_bounded(rule: CodeRule) -> int:
    """How many looks a rule has inside each other; BadInputError if it is too large."""
    known: dict[str, tuple[int, int]] = {}
    whole = {"all": [rule.rule, *rule.constraints.values()]}
    parts, looks = _size(whole, rule.utils, known, frozenset())
    if parts > MOST_PARTS:
        what = f"{rule.id}: with the rules that it refers to, it has more than {MOST_PARTS} parts"
        raise BadInputError(Problem(what, str(rule.where), "refer to fewer rules in a row"))
    if looks > max(DEEPEST):
        what = f"{rule.id}: {looks} relations with stopBy inside each other, more than 3"
        raise BadInputError(Problem(what, str(rule.where), "put them side by side, with `all`"))
    return looks


def require_shallow(rule: CodeRule, looks: int, path: str, depth: int) -> None:
    """BadInputError for a file that nests too deep for a rule."""
    most = DEEPEST.get(looks)
    if most is not None and depth > most:
        what = f"{path} nests more than {most} deep, too much for {rule.id}"
        raise BadInputError(Problem(what, str(rule.where), _HINT_FILE))


def depth_of(root: SgNode, size: int) -> int:
    """How deep a tree of so many characters nests, or any number up to that; no more is counted
    than matters.
    """
    least = min(DEEPEST.values())
    if size <= least:  # every level has a character
        return size
    level, depth = [root], 0
    while level and depth <= max(DEEPEST.values()):
        level = [child for node in level for child in node.children()]
        depth += 1
    return depth


def require_apart(rule: CodeRule, path: str, *, text: int, steps: int) -> None:
    """BadInputError if the sites of a rule lie inside each other by the thousand."""
    if text > MOST_TEXT or steps > MOST_STEPS:
        what = f"{rule.id}: too many sites inside each other in {path}"
        raise BadInputError(Problem(what, str(rule.where), _HINT_FILE))


def require_small(rule: Rule, path: str, size: int) -> None:
    """BadInputError if what a rule puts into one file has more characters than any file should."""
    if size > MOST_TEXT:
        what = f"{rule.id}: what it writes into {path} is too large"
        raise BadInputError(Problem(what, str(rule.where), _HINT_FILE))


def _size(
    rule: object, utils: Mapping[str, Any], known: dict[str, tuple[int, int]], seen: frozenset[str]
) -> tuple[int, int]:
    """(parts, looks inside each other) of a rule or a part of one."""
    if isinstance(rule, list):
        sizes = [_size(each, utils, known, seen) for each in rule]
        return 1 + sum(parts for parts, _ in sizes), max((looks for _, looks in sizes), default=0)
    if not isinstance(rule, dict):
        return 1, 0
    parts, looks = 1, 0
    for key, value in rule.items():
        if key == "matches" and isinstance(value, str):
            size = _named(value, utils, known, seen)
        else:
            size = _size(value, utils, known, seen)
        far = key in _LOOKS and isinstance(value, dict) and value.get("stopBy", "") != "neighbor"
        parts += size[0]
        looks = max(looks, size[1] + (far and "stopBy" in value), key in _LOOKS)
    return parts, looks


def _named(
    name: str, utils: Mapping[str, Any], known: dict[str, tuple[int, int]], seen: frozenset[str]
) -> tuple[int, int]:
    if name in seen or name not in utils:
        return 1, 0  # ast-grep says what it makes of that
    if name not in known:
        known[name] = _size(utils[name], utils, known, seen | {name})
    return known[name]


# The languages that rules can be written for, and how their files end.


#: ast-grep's name -> endings of files. Others that ast-grep knows are left out: nobody tried them.
LANGUAGES: dict[str, tuple[str, ...]] = {
    "python": (".py", ".pyi"),
    "bash": (".sh", ".bash"),
    "c": (".c", ".h"),
    "cpp": (".cc", ".cpp", ".cxx", ".h", ".hpp", ".hh", ".cu", ".cuh"),
    "go": (".go",),
    "java": (".java",),
    "javascript": (".js", ".mjs", ".cjs"),
    "json": (".json",),
    "rust": (".rs",),
    "typescript": (".ts",),
    "yaml": (".yml", ".yaml"),
}

#: Where the rest of a line after # is a comment.
HASH_COMMENTS = frozenset({"python", "bash", "yaml"})
