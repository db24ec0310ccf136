"""The template of a fix: text in which $NAME and $$$NAME stand for what a pattern found.

ast-grep's Python binding expands no templates; this follows its command line: further lines of
the template are set in like the line that the match starts in, and code that a variable brings is
moved as a block where its lines stand further in or out than before.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_VARIABLE = re.compile(r"\$\$\$([A-Z_][A-Z0-9_]*)|\$([A-Z_][A-Z0-9_]*)|\$\$\$")


def variables_in(pattern: str) -> set[str]:
    """The variables that a pattern binds, with their $; those that begin with _ bind nothing."""
    found = {match[0] for match in _VARIABLE.finditer(pattern)}
    return {name for name in found if not name.lstrip("$").startswith("_") and name != "$$$"}


def used_variables(template: str) -> set[str]:
    """The variables that a template needs, with their $."""
    return {match[0] for match in _VARIABLE.finditer(template) if match[0] != "$$$"}


def expand(template: str, value: Callable[[str], tuple[str, int]], indent: str, eol: str) -> str:
    """The text of a fix.

    `value` gives a variable's text and how many columns the line that it starts in is set in;
    `indent` are the blanks before the line that the match starts in, `eol` the file's line ending.
    """
    lines = template.split("\n")
    expanded = [_line(line, value, indent if number else "", len(indent), eol)
                for number, line in enumerate(lines)]  # fmt: skip
    return eol.join(expanded)


def _line(
    line: str, value: Callable[[str], tuple[str, int]], lead: str, indent: int, eol: str
) -> str:
    own = len(line) - len(line.lstrip(" \t"))

    def bring(match: re.Match[str]) -> str:
        if match[0] == "$$$":
            return match[0]
        text, column = value(match[0])
        return _moved(text, indent + own - column, eol)

    text = _VARIABLE.sub(bring, line)
    return lead + text if text else ""


def _moved(text: str, columns: int, eol: str) -> str:
    """The lines after the first, set in by so many more columns."""
    if columns == 0 or "\n" not in text:
        return text
    first, *rest = text.split(eol)
    return eol.join([first, *(_shifted(line, columns) for line in rest)])


def _shifted(line: str, columns: int) -> str:
    if not line.strip():
        return line
    if columns > 0:
        return " " * columns + line
    blanks = len(line) - len(line.lstrip(" \t"))
    return line[min(-columns, blanks) :]
