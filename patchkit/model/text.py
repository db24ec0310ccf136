"""Text for reports: numbers with their nouns, and texts of others made harmless.

Short, and by itself: what says numbers and names loads this and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence


def counted(number: int, one: str, many: str = "") -> str:
    """`3 patches`: the number, and the noun for one or, by default with an `s`, for many."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def with_article(word: str) -> str:
    """`an import`, `a bump`."""
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def listed(items: Sequence[str], most: int, *, noun: str = "", between: str = ", ") -> str:
    """`a, b and 3 more`: the first ones, and how many others there are (`3 more places`)."""
    first, more = between.join(items[:most]), len(items) - most
    if more <= 0:
        return first
    return f"{first} and {counted(more, f'more {noun}') if noun else f'{more} more'}"


# Characters that act on a terminal or reorder what is shown are written out as escapes. Subjects,
# paths and lines of files come from upstreams. `\x1b` in one of them may recolour a terminal,
# U+202E may show `exe.txt` for `txt.exe`, in a browser as well.


# C0 and C1 controls but tab, lone surrogates (bytes that were no UTF-8), line separators and the
# marks that reorder what is displayed.
_HARMFUL = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\x1b": "\\e"}


def clean(text: str) -> str:
    """One line of `text`, with such characters named."""
    # whatever is harmful is not printable, and to compile the expression takes half a millisecond
    return text if text.isprintable() else _HARMFUL.sub(_name, text)


def shown(data: bytes) -> str:
    """Bytes of a file's line as text to display, without the line end."""
    return data.decode("utf-8", "surrogateescape").rstrip("\r\n")


def _name(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    if char in _NAMED:
        return _NAMED[char]
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


# What acts in Markdown as GitHub and GitLab have it, and no more: `v1.2` and `a_file` are text. An
# underscore or a tilde acts at the edge of a word, # before a number or a name is a reference, and
# a list, a quotation or a heading begins a line.
_MARKUP = re.compile(
    r"[\\`*\[\]<>|$]|(?<![^\W_])_|_(?![^\W_])|~(?=~)|(?<=~)~|&(?=#?\w+;)|#(?=\w)"
    r"|(?<=www)\.|:(?=//)|^[-+=#](?=[-+=#\s]|$)"
)
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")


def printable(text: str) -> str:
    """One line of text that shows as it is where nothing acts, as in an indented block."""
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))


def escaped(text: str) -> str:
    """One line of text that Markdown shows as it is: no link, table, heading, mention or HTML."""
    text = _NUMBERED.sub(r"\1\\\2", _MARKUP.sub(_escape, printable(text)))
    # an @ would notify somebody
    return text.replace("@", "&#64;")


def _escape(match: re.Match[str]) -> str:
    found = match[0]
    if found == "<":
        return "&lt;"
    return "&amp;" if found == "&" else f"\\{found}"


def short_ids(text: str) -> str:
    """The text with whole commit ids cut to the length that reports have."""
    return re.sub(r"\b[0-9a-f]{40}\b", lambda found: found[0][:10], text)
