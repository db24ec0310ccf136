"""Which words a file must contain for a rule to match anywhere in it: most files are never parsed.

Only what is certain is used: identifiers that stand in a pattern must stand in the code that it
matches, letter by letter. Where nothing is certain every file is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

#: Shorter words are in every file.
_SHORTEST = 3

_WORD = re.compile(r"(?<![\w$])[A-Za-z_]\w{2,}")
#: Of a regular expression: an escape, a class, what makes the thing before it optional, the rest.
_PIECES = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[?*]|\{[^}]*\}|.", re.DOTALL)


def needed_words(rule: Mapping[str, Any], utils: Mapping[str, Any]) -> tuple[bytes, ...]:
    """One of these words stands in every file that the rule matches in; (): nothing is known."""
    found = _needed(rule, utils, frozenset())
    return tuple(word.encode() for word in found or ())


def may_match(data: bytes, words: tuple[bytes, ...]) -> bool:
    """Whether a file with these contents has to be parsed."""
    return not words or any(word in data for word in words)


def _needed(
    rule: Mapping[str, Any], utils: Mapping[str, Any], seen: frozenset[str]
) -> tuple[str, ...] | None:
    """The best of what each key asks for: all of them must hold."""
    known = [_of_key(key, value, utils, seen) for key, value in rule.items()]
    certain = [each for each in known if each]
    return min(certain, key=lambda each: (len(each), -min(map(len, each))), default=None)


def _of_key(
    key: str, value: Any, utils: Mapping[str, Any], seen: frozenset[str]
) -> tuple[str, ...] | None:
    found: tuple[str, ...] | None = None
    match key:
        case "pattern":
            found = _of_pattern(value)
        case "regex":
            found = _of_regex(value)
        case "inside" | "has" | "follows" | "precedes":
            found = _needed(value, utils, seen)
        case "all":
            each_one = (_needed(one, utils, seen) for one in value)
            found = min((words for words in each_one if words), key=len, default=None)
        case "any":
            found = _either([_needed(one, utils, seen) for one in value])
        case "matches" if value not in seen:
            found = _needed(utils[value], utils, seen | {value})
    return found


def _either(known: Sequence[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    certain = [words for words in known if words]
    return tuple(word for words in certain for word in words) if certain == known else None


def _of_pattern(pattern: Any) -> tuple[str, ...] | None:
    if not isinstance(pattern, str):
        # what a selector takes of its context is not known here
        return None
    words = [word for word in _WORD.findall(pattern) if word.isascii()]
    return (max(words, key=len),) if words else None


def _of_regex(regex: str) -> tuple[str, ...] | None:
    """The longest word that stands in it outside of groups, and may not be left out."""
    words, depth = [""], 0
    for piece in _PIECES.findall(regex):
        if piece == "(":
            depth += 1
        elif piece == ")":
            depth -= 1
        elif depth == 0 and piece == "|":
            return None
        if depth == 0 and re.fullmatch(r"\w", piece, re.ASCII):
            words[-1] += piece
            continue
        if piece in "?*" or piece[0] == "{":
            words[-1] = words[-1][:-1]
        words.append("")
    longest = max(words, key=len)
    plain = "(?" not in regex  # flags such as (?i) change what letters mean
    return (longest,) if plain and len(longest) >= _SHORTEST else None
