"""The template of a fix: text in which $NAME and $$$NAME stand for what a pattern found.

ast-grep's Python binding expands no templates; this follows its command line: further lines of
the template are set in like the line that the match starts in, and code that a variable brings is
moved as a block where its lines stand further in or out than before. In contrast to it, lines
within a string stay as they are: moved, they would be another string.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

_VARIABLE = re.compile(r"\$\$\$([A-Z_][A-Z0-9_]*)|\$([A-Z_][A-Z0-9_]*)|\$\$\$")


class Brought(Struct, frozen=True):
    """What a variable stands for.

    `column` is how many columns the line that it starts in is set in; `literal` are the lines,
    counted from 0, that begin within a string.
    """

    text: str = ""
    column: int = 0
    literal: frozenset[int] = frozenset()


def variables_in(pattern: str) -> set[str]:
    """The variables that a pattern binds, with their $; those that begin with _ bind nothing."""
    found = {match[0] for match in _VARIABLE.finditer(pattern)}
    return {name for name in found if not name.lstrip("$").startswith("_") and name != "$$$"}


def used_variables(template: str) -> set[str]:
    """The variables that a template needs, with their $."""
    return {match[0] for match in _VARIABLE.finditer(template) if match[0] != "$$$"}


def expand(template: str, value: Callable[[str], Brought], indent: str, eol: str) -> str:
    """The text of a fix.

    `value` gives what a variable (with its $) stands for, `indent` are the blanks before the line
    that the match starts in, `eol` is the file's line ending.
    """
    lines = template.split("\n")
    expanded = [_line(line, value, indent if number else "", len(indent))
                for number, line in enumerate(lines)]  # fmt: skip
    return eol.join(expanded)


def _line(line: str, value: Callable[[str], Brought], lead: str, indent: int) -> str:
    own = len(line) - len(line.lstrip(" \t"))

    def bring(match: re.Match[str]) -> str:
        if match[0] == "$$$":
            return match[0]
        brought = value(match[0])
        return _moved(brought, indent + own - brought.column)

    text = _VARIABLE.sub(bring, line)
    return lead + text if text else ""


def _moved(brought: Brought, columns: int) -> str:
    """The lines after the first, set in by so many more columns."""
    if columns == 0 or "\n" not in brought.text:
        return brought.text
    first, *rest = brought.text.split("\n")
    moved = [
        line if number in brought.literal else _shifted(line, columns)
        for number, line in enumerate(rest, 1)
    ]
    return "\n".join([first, *moved])


def _shifted(line: str, columns: int) -> str:
    if not line.strip():
        return line
    if columns > 0:
        return " " * columns + line
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[min(-columns, blanks) :]
