"""Answers to the shell's question how a command line may go on.

The shells' scripts (`patchkit completion`) call `patchkit __complete WORD...` with the words after
`patchkit`, the last one being typed. One candidate a line comes back, with a tab and a description
where there is one; `:files` or `:folders` asks the shell for its own. This runs at every press of
the tab key, so it imports nothing: manifests are not parsed but scanned for the names in them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from patchkit.cli.catalog import COMMANDS, split_command
from patchkit.cli.complete_names import names_of_kind
from patchkit.cli.table import PARAMETERS, SUMMARIES


def complete(words: list[str]) -> int:
    """Print the candidates for the last of `words`."""
    # bash hands `--option=value` over as three words
    words = [word for word in words[:-1] if word != "="] + [
        word if word != "=" else "" for word in words[-1:]
    ]
    for candidate in candidates(words or [""]):
        sys.stdout.write(candidate + "\n")
    return 0


def candidates(words: list[str]) -> Iterator[str]:
    """The candidates for the last of `words`, each with its description."""
    *before, typed = words
    found = split_command(before)
    if found is None:
        yield from _commands(before, typed)
    else:
        yield from _in_command(found[0], found[1], typed)


def _commands(before: list[str], typed: str) -> Iterator[str]:
    if not before and typed.startswith("-"):
        yield from (each for each in ("--help", "--version") if each.startswith(typed))
        return
    seen: dict[str, str] = {}
    for name in COMMANDS:
        words = name.split()
        if words[: len(before)] == before and len(words) > len(before):
            whole = len(words) == len(before) + 1
            seen.setdefault(words[len(before)], SUMMARIES.get(name, "") if whole else "")
    yield from (f"{word}\t{text}" for word, text in seen.items() if word.startswith(typed))


def _in_command(name: str, before: list[str], typed: str) -> Iterator[str]:
    rows = PARAMETERS.get(name, ())
    kinds = {each: row[1] for row in rows for each in row[0]}
    if typed.startswith("--") and "=" in typed:
        option, _, value = typed.partition("=")
        for candidate in _values(kinds.get(option, ""), before, value):
            yield candidate if candidate.startswith(":") else f"{option}={candidate}"
    elif before and kinds.get(before[-1]):
        yield from _values(kinds[before[-1]], before, typed)
    elif typed.startswith("-"):
        yield from _options(name, before, typed)
    else:
        given = _arguments_given(before, kinds)
        arguments = [row[1] for row in rows if not row[0]]
        if arguments:
            yield from _values(arguments[min(given, len(arguments) - 1)], before, typed)


def _options(name: str, before: list[str], typed: str) -> Iterator[str]:
    for names, _, repeatable, text in PARAMETERS.get(name, ()):
        used = any(each in before for each in names) and not repeatable
        if names and names[-1].startswith(typed) and not used:
            yield f"{names[-1]}\t{text}"
    if "--help".startswith(typed):
        yield "--help\tHow the command works, with examples"


def _arguments_given(before: list[str], kinds: dict[str, str]) -> int:
    count, position = 0, 0
    while position < len(before):
        if kinds.get(before[position]):
            position += 1
        elif not before[position].startswith("-"):
            count += 1
        position += 1
    return count


def _values(kind: str, before: list[str], typed: str) -> Iterator[str]:
    if kind == "FILE":
        yield ":files"
    elif kind == "DIR":
        yield ":folders"
    elif kind == "MANIFEST" and "/" in typed:
        yield ":files"
    else:
        yield from (name for name in names_of_kind(kind, before) if name.startswith(typed))
