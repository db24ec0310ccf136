"""Regular expressions of text rules, by a library that ends them: Python's own may take time that
doubles with each character of a text.
"""

from __future__ import annotations

from typing import NamedTuple

import regex

from patchkit.errors import BadInputError, Problem
from patchkit.extensions.recipes.rule import TextRule

#: Seconds that a regular expression may take in one file.
PATIENCE = 20.0
_LARGEST = 1 << 26  # characters that take the place of others in one text


class RegexMatch(NamedTuple):
    """`text[start:end]`, never empty, and what takes its place."""

    start: int
    end: int
    new: str


def matches(rule: TextRule, path: str, text: str) -> list[RegexMatch]:
    """What the rule's regular expression finds in a file.

    BadInputError, at the rule, if it is none, if `replace` names a group that it has not, and if
    it takes too long or writes too much.
    """
    found, size = list[RegexMatch](), 0
    try:
        pattern = regex.compile(rule.find, regex.MULTILINE)
        pattern.sub(rule.replace, "")  # a group that is not there
        for match in pattern.finditer(text, timeout=PATIENCE):
            if match.start() != match.end():
                found.append(RegexMatch(*match.span(), match.expand(rule.replace)))
                size += len(found[-1].new)
                if size > _LARGEST:
                    raise BadInputError(_wrong(rule, "what it writes is too large"))
    except TimeoutError:
        what = f"the regular expression takes more than {PATIENCE:.0f} seconds in {path}"
        hint = "let nothing repeat that itself repeats, as in (a+)+"
        raise BadInputError(_wrong(rule, what, hint)) from None
    except (regex.error, IndexError, OverflowError, RecursionError, MemoryError) as error:
        raise BadInputError(_wrong(rule, str(error))) from error
    return found


def _wrong(rule: TextRule, what: str, hint: str = "") -> Problem:
    return Problem(f"{rule.id}: {what}", str(rule.where), hint)
