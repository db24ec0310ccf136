"""Text for reports: numbers with their nouns, and texts of others made harmless."""

from __future__ import annotations

import re


def counted(number: int, one: str, many: str = "") -> str:
    """`3 patches`: the number, and the noun for one or, by default with an `s`, for many."""
    return f"{number} {one if number == 1 else many or one + 's'}"


# Characters that act on a terminal or reorder what is shown are written out as escapes. Subjects,
# paths and lines of files come from upstreams. `\x1b` in one of them may recolour a terminal,
# U+202E may show `exe.txt` for `txt.exe`, in a browser as well.


# C0 and C1 controls but tab, lone surrogates (bytes that were no UTF-8), line separators and the
# marks that reorder what is displayed.
_HARMFUL = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\x1b": "\\e"}


def clean(text: str) -> str:
    """One line of `text`, with such characters named."""
    return _HARMFUL.sub(_name, text)


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


_MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>&:$^=\"'])")


def escaped(text: str) -> str:
    """One line of text that Markdown shows as it is: no link, table, heading, mention or HTML."""
    flat = " ".join(text.split())
    shown = "".join(char if char.isprintable() else "\ufffd" for char in flat)
    # an @ would notify somebody
    return _MARKUP.sub(r"\\\1", shown).replace("\\<", "&lt;").replace("@", "&#64;")
