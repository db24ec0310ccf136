"""RFC 2047 words in mail headers (`=?utf-8?q?...?=`): read all, write as few as possible."""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, a2b_qp

_WORD = re.compile(r"=\?([A-Za-z0-9_.:*-]+)\?([bBqQ])\?([^?\s]*)\?=")
_BETWEEN_WORDS = re.compile(r"(\?=)[ \t\r\n]+(?==\?[A-Za-z0-9_.:*-]+\?[bBqQ]\?)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def decode_words(text: str) -> str:
    """`text` with its encoded words decoded; a word that cannot be decoded stays as it is."""
    if "=?" not in text:
        return text
    return _WORD.sub(_decode, _BETWEEN_WORDS.sub(r"\1", text))


def needs_words(text: str) -> bool:
    """Whether a header line cannot carry `text` raw: control characters, blank ends, `=?`."""
    return bool(_CONTROL.search(text)) or text != text.strip() or "=?" in text


def encode_words(text: str) -> str:
    """`text` as one encoded word: long, which readers take, though the RFC asks for 75 columns."""
    data = text.encode("utf-8", "surrogateescape")
    body = "".join(chr(b) if chr(b).isalnum() and b < 128 else f"={b:02X}" for b in data)
    return f"=?UTF-8?q?{body}?="


def _decode(match: re.Match[str]) -> str:
    charset, method, text = match[1].partition("*")[0], match[2].lower(), match[3]
    try:
        raw = text.encode("ascii", "surrogateescape")
        data = a2b_qp(raw, header=True) if method == "q" else a2b_base64(raw)
        if charset.lower() in ("utf-8", "utf8"):
            return data.decode("utf-8", "surrogateescape")
        return data.decode(charset)
    except (Error, LookupError, UnicodeError):
        return match[0]
