"""Texts of a manifest as words, comments and steps of a bash script.

Nothing that a manifest or a site says can end a word: a plain text is quoted, a text with site
values becomes one double-quoted word in which only `$name` means anything. The exceptions are the
commands that are shell text by nature.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterable, Sequence

from patchkit.model.names import Piece, Reference, split_references

#: Characters that mean something between double quotes.
_ACTIVE = re.compile(r'([\\"$`])')


def quote(text: str) -> str:
    """A text as one shell word, in quotes only where it needs them.

    In double quotes if it has a `$` or a backquote: a reader (and shellcheck) would ask of single
    quotes whether it was to be expanded.
    """
    if "$" in text or "`" in text:
        return '"' + _ACTIVE.sub(r"\\\1", text) + '"'
    return shlex.quote(text)


def word(text: str) -> str:
    """A text with references as one shell word; references are shell variables of that name."""
    pieces = split_references(text)
    if not any(isinstance(each, Reference) for each in pieces):
        return quote("".join(each for each in pieces if isinstance(each, str)))
    return f'"{_between_quotes(pieces)}"'


def _between_quotes(pieces: Sequence[Piece]) -> str:
    inner = ""
    for index, piece in enumerate(pieces):
        if isinstance(piece, str):
            inner += _ACTIVE.sub(r"\\\1", piece)
        else:
            following = pieces[index + 1] if index + 1 < len(pieces) else ""
            inner += _variable(piece.name, following)
    return inner


def _variable(name: str, following: str | Reference) -> str:
    """`$name`, in braces where the next character could belong to it."""
    glued = isinstance(following, str) and re.match(r"[A-Za-z0-9_\[]", following)
    return f"${{{name}}}" if glued else f"${name}"


def comment(text: str, width: int = 88) -> str:
    """A text as comment lines: every line begins with #, whatever is in it."""
    lines: list[str] = []
    for line in text.strip().split("\n"):
        lines += textwrap.wrap(
            one_line(line), width, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def one_line(text: str) -> str:
    """A text on one line, whatever was in it."""
    return "".join(char if char.isprintable() else " " for char in text)


def short(text: str) -> str:
    """A step's name or commands as a short title."""
    line, _, more = text.strip().partition("\n")
    return one_line(line if len(line) <= 72 and not more else line[:69].rstrip() + "...")


def step_body(run: str) -> str:
    """A step's commands for a block that is indented by four columns.

    What a shift to the right could change (a here-document, a quote over several lines) stays where
    it is.
    """
    lines = run.strip("\n").split("\n")
    if len(lines) > 1 and ("<<" in run or any(_is_open(line) for line in lines)):
        return "\n".join(lines)
    return "\n".join(f"    {line}".rstrip() for line in lines)


def _is_open(line: str) -> bool:
    return line.count("'") % 2 == 1 or line.count('"') % 2 == 1


def used_in(run: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` that a shell text uses as variables."""
    return tuple(
        name for name in names if re.search(rf"\$(?:{name}(?![A-Za-z0-9_])|\{{{name}\b)", run)
    )


def argument(value: str | Sequence[str], name: str) -> str:
    """One argument of a launch: `--name value`, `--name` alone, or `name=value`."""
    if not name.startswith("-"):
        assert isinstance(value, str), "the manifest's rules refuse a list here"
        return word(f"{name}={value}")
    values = (value,) if isinstance(value, str) else value
    return " ".join((quote(name), *(word(each) for each in values if each != "")))


def in_workspace(checkout: str, directory: str) -> str:
    """A folder of a checkout as a shell word; no checkout: the workspace itself."""
    parts = "".join(f"/{part}" for part in (checkout, directory) if part)
    return '"$workspace' + _ACTIVE.sub(r"\\\1", parts) + '"'


def prepended(folders: Sequence[str], variable: str) -> str:
    """Folders before what a path-like variable has, if it has anything."""
    inner = _between_quotes(split_references(":".join(folders)))
    return f'"{inner}${{{variable}:+:${variable}}}"'
