"""What a recipe says, as values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from patchkit.manifest.types import Complaint
from patchkit.manifest.values import Location

# Which paths a rule looks at: globs as in .gitignore, anchored at the root of the upstream.
#
# `*` and `?` stay within one folder, `**` is any number of folders, `{a,b}` one of several,
# `[ab]` one character.


_TOKENS = re.compile(r"\*\*/|/\*\*$|\*|\?|\[[^\]/]+\]|\{[^{}]*\}|.", re.DOTALL)


class Scope(Struct, frozen=True):
    """The paths that one of `files` matches and none of `ignores`.

    With `endings`, only those that end so, and what `files` names in full: a glob may well reach
    a README that quotes the code.
    """

    files: tuple[str, ...]
    ignores: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()

    def covers(self, path: str) -> bool:
        """Whether `path` (with slashes, from the root) belongs to it."""
        if not _pattern(self.files).fullmatch(path):
            return False
        if self.endings and not path.endswith(self.endings) and path not in self.files:
            return False
        return not (self.ignores and _pattern(self.ignores).fullmatch(path))


def check_glob(text: str) -> Complaint | None:
    """What is wrong with a glob."""
    if text.startswith(("/", "./", "../")):
        return Complaint("does not start at the root", "write the path without / or ./ before it")
    if "\\" in text:
        return Complaint("has a backslash", "folders are divided by /")
    if text.endswith("/"):
        return Complaint("is a folder", f"write {text}** for all files below it")
    try:
        re.compile(_regex(text))
    except re.error:
        return Complaint("is not a glob", "* ? ** [ab] {a,b}")
    return None


@lru_cache(maxsize=256)
def _pattern(globs: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_regex(glob)})" for glob in globs), re.DOTALL)


def _regex(glob: str) -> str:
    return "".join(_token(each) for each in _TOKENS.findall(glob))


def _token(token: str) -> str:
    fixed = {"**/": "(?:[^/]+/)*", "/**": "/.+", "*": "[^/]*", "?": "[^/]"}
    if token in fixed:
        return fixed[token]
    if len(token) > 1 and token[0] == "[":
        negated = token[1] in "!^"
        return f"[{'^' * negated}{re.escape(token[2 if negated else 1 : -1])}]"
    if len(token) > 1 and token[0] == "{":
        return f"(?:{'|'.join(_regex(each) for each in token[1:-1].split(','))})"
    return re.escape(token)


class Expect(Struct, frozen=True):
    """How many sites a rule must find: `minimum`, or at least so many."""

    minimum: int
    exact: bool

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

    `after` is None where only `sites` is told.
    """

    before: str
    after: str | None
    sites: int | None
    where: Location


class CodeRule(Struct, frozen=True):
    """A rule on syntax; `rule`, `constraints` and `utils` are ast-grep's own, as plain data.

    `fix` is the template that takes the place of a match; None: only looked for, never changed.
    With `whole_lines` the match and the lines that it leaves blank are removed.
    """

    id: str
    language: str
    rule: Mapping[str, Any]
    constraints: Mapping[str, Any]
    utils: Mapping[str, Any]
    scope: Scope
    fix: str | None
    whole_lines: bool
    expect: Expect
    allow: tuple[Allowance, ...]
    examples: tuple[Example, ...]
    where: Location

    @property
    def edits(self) -> bool:
        """Whether it changes what it finds."""
        return self.fix is not None or self.whole_lines


class TextRule(Struct, frozen=True):
    """A rule on text: `find` as it is, or a regular expression if `is_regex`.

    In a regular expression `^` and `$` match at every line, and `replace` may name groups.
    """

    id: str
    find: str
    is_regex: bool
    replace: str
    scope: Scope
    expect: Expect
    allow: tuple[Allowance, ...]
    examples: tuple[Example, ...]
    where: Location

    @property
    def edits(self) -> bool:
        """Whether it changes what it finds."""
        return True


Rule = CodeRule | TextRule


class Recipe(Struct, frozen=True):
    """A recipe's file, understood; `description` is the message of the patch that it makes."""

    path: Path
    description: str
    rules: tuple[CodeRule, ...]
    texts: tuple[TextRule, ...]

    @property
    def all_rules(self) -> tuple[Rule, ...]:
        """Every rule, in the order of the file."""
        return tuple(sorted((*self.rules, *self.texts), key=lambda rule: rule.where.line))

    def covers(self, path: str) -> bool:
        """Whether any rule looks at a file of that path."""
        return any(rule.scope.covers(path) for rule in self.all_rules)
