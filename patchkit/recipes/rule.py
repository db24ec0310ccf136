"""What a recipe says, as values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.globs import Scope
from patchkit.manifest.values import Location

if TYPE_CHECKING:
    from ast_grep_py import SgNode


class Expect(Struct, frozen=True):
    """How many sites a rule must find: `minimum`, or at least so many."""

    minimum: int
    exact: bool  # no more than `minimum`

    def holds(self, count: int) -> bool:
        """Whether `count` sites are as expected."""
        return count == self.minimum if self.exact else count >= self.minimum

    def __str__(self) -> str:
        return f"{self.minimum}" if self.exact else f">= {self.minimum}"


class Allowance(Struct, frozen=True):
    """Sites that a rule leaves alone, with the reason.

    `files` are the paths; `within` the qualified name of what the site stands in and `text` a part
    of its text, where they must be met, too.
    """

    files: Scope
    within: str
    text: str
    reason: str
    where: Location


class Example(Struct, frozen=True):
    """A piece of code and what the rule makes of it; `sites`: how many it finds, None: any number.

    `after` is None where only `sites` is said.
    """

    before: str  # the code
    after: str | None
    sites: int | None
    where: Location


class CodeRule(Struct, frozen=True):
    """A rule on syntax; `rule`, `constraints` and `utils` are ast-grep's own, as plain data.

    `fix` is the template that takes the place of a match; None: only looked for, never changed.
    With `whole_lines` the match and the lines that it leaves blank are removed.
    """

    id: str  # unique in the recipe
    language: str  # as ast-grep calls it
    rule: Mapping[str, Any]
    constraints: Mapping[str, Any]
    utils: Mapping[str, Any]
    scope: Scope
    fix: str | None
    whole_lines: bool
    expect: Expect
    allow: tuple[Allowance, ...]  # sites that may stay as they are
    examples: tuple[Example, ...]
    where: Location  # the entry in the recipe's file
    optional: str = ""  # why none of its files need be there; "": one must

    @property
    def edits(self) -> bool:
        """Whether it changes what it finds."""
        return self.fix is not None or self.whole_lines


class TextRule(Struct, frozen=True):
    """A rule on text: `find` as it is, or a regular expression if `is_regex`.

    In a regular expression `^` and `$` match at every line, and `replace` may name groups.
    """

    id: str  # unique in the recipe
    find: str
    is_regex: bool
    replace: str
    scope: Scope
    expect: Expect
    allow: tuple[Allowance, ...]  # sites that may stay as they are
    examples: tuple[Example, ...]
    where: Location  # the entry in the recipe's file
    optional: str = ""  # why none of its files need be there; "": one must

    @property
    def edits(self) -> bool:
        """Whether it changes what it finds."""
        return True


Rule = CodeRule | TextRule


class Recipe(Struct, frozen=True):
    """A recipe's file, understood; `description` is the message of the patch that it makes."""

    path: Path
    description: str
    rules: tuple[CodeRule, ...]  # on syntax, in the order of the file
    texts: tuple[TextRule, ...]  # on text, in the order of the file

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """Every rule, in the order of the file."""
        return tuple(sorted((*self.rules, *self.texts), key=lambda rule: rule.where.line))

    def covers(self, path: str) -> bool:
        """Whether any rule looks at a file of that path."""
        return any(rule.scope.covers(path) for rule in self.all_rules)


# What a rule may cost: neither who writes recipes nor who writes an upstream decides on that.
#
# A rule that looks along the tree costs its depth for each place where it looks, once more for
# each look inside a look; what rules refer to by name may double at every step. Sites inside each
# other hold each other's text. All of it is linear, or small, in what people write.


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


def require_shallow(
    rule: CodeRule, looks: int, path: str, is_deeper: Callable[[int], bool]
) -> None:
    """BadInputError for a file that nests too deep for a rule; `is_deeper` than so many levels."""
    most = DEEPEST.get(looks)
    if most is not None and is_deeper(most):
        what = f"{path} nests more than {most} deep, too much for {rule.id}"
        raise BadInputError(Problem(what, str(rule.where), _HINT_FILE))


#: So many levels, at most, each character of a file adds to its tree.
_LEVELS = 4


def nests_deeper(root: SgNode, size: int, most: int) -> bool:
    """Whether a tree of so many characters has more than `most` levels."""
    # Invariant: `level` has all nodes at `depth` under which there may be a level beyond `most`:
    # those with too few characters for that are left out, which are nearly all.
    level, depth = [root] if size * _LEVELS > most else [], 1
    while level and depth <= most:
        children = [child for node in level for child in node.children()]
        level = [each for each in children if len(each.text()) * _LEVELS >= most - depth]
        depth += 1
    return bool(level)


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


# Which rules can be asked of a Python file's definitions one by one.
#
# A place that such a rule names is in one definition at the left edge, or between two, and the rule
# looks at nothing beyond it: not at the file as a whole, nor at what stands beside a statement.


#: Nodes that are not in one definition for certain: a comment may count for the one above it.
_NOT_INSIDE = frozenset({"module", "block", "comment", "ERROR"})
_STATEMENT = re.compile(r"statement|definition|decorator")
_PLAIN_KEYS = frozenset({"regex", "field", "matches"})


def is_local(rule: CodeRule) -> bool:
    """Whether a rule finds the same in a definition at the left edge, by itself or in its file."""
    whole, seen = (rule.rule, *rule.constraints.values(), *rule.utils.values()), frozenset[str]()
    is_named = _is_named(rule.rule, rule.utils, seen)
    return rule.language == "python" and is_named and all(_is_near(e, rule.utils) for e in whole)


def _is_near(rule: Any, utils: Mapping[str, Any]) -> bool:
    """Whether a rule, or a part of one, looks at nothing outside of such a definition."""
    return isinstance(rule, dict) and all(_is_near_key(*each, utils) for each in rule.items())


def _is_near_key(key: str, value: Any, utils: Mapping[str, Any]) -> bool:
    near = key in _PLAIN_KEYS
    match key:
        case "kind":
            near = value not in _NOT_INSIDE
        case "pattern" | "stopBy":
            near = isinstance(value, str) or key == "pattern" or _is_near(value, utils)
        case "any" | "all":
            near = all(_is_near(each, utils) for each in value)
        case "not" | "has":
            near = _is_near(value, utils)
        case "inside":  # which may be the file itself
            near = _is_near(value, utils) and _is_named(value, utils, frozenset())
        case "follows" | "precedes":
            kind = str(value.get("kind", "statement"))
            near = _is_near(value, utils) and not _STATEMENT.search(kind)
    return near


def _is_named(rule: Mapping[str, Any], utils: Mapping[str, Any], seen: frozenset[str]) -> bool:
    """Whether a rule says by a kind or a pattern what it matches: that is never a whole file."""
    pattern, name = rule.get("pattern"), str(rule.get("matches", ""))
    if "kind" in rule or isinstance(pattern, dict):
        return True
    if isinstance(pattern, str) and re.search(r"(?<![$\w])\w", pattern):
        return True
    if name in utils and name not in seen and _is_named(utils[name], utils, seen | {name}):
        return True
    several = [_is_named(each, utils, seen) for each in rule.get("any", ())]
    return (bool(several) and all(several)) or any(
        _is_named(each, utils, seen) for each in rule.get("all", ())
    )


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
