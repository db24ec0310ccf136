"""What a recipe says, as values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from patchkit.manifest.values import Location
from patchkit.recipes.scope import Scope


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
