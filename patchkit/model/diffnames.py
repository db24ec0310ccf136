"""File names in a diff: C-quoted or bare, with time stamps behind them, some folders to strip.

The rules are those of `git apply`, which settles what a name is: a bare name ends at a tab (or at
a date in a plain diff), a `diff --git` line without further headers names the same file twice.
Names are bytes here.
"""

from __future__ import annotations

import re

_ESCAPES = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
    b"\\": b"\\",
    b'"': b'"',
}
_QUOTED = re.compile(rb'"((?:[^"\\\n\0]|\\(?:[abfnrtv"\\]|[0-3][0-7]{2}))*)"')
_QUOTED_ON = re.compile(_QUOTED.pattern.replace(rb"\n", b""))
_ESCAPE = re.compile(rb"\\([abfnrtv\"\\]|[0-3][0-7]{2})")
_NAME_TO_TAB = re.compile(rb"[^\t\r\n]*")
_NAME_TO_END = re.compile(rb"[^\r\n]*")
_SLASHES = re.compile(rb"/{2,}")

# What GNU diff writes behind a name: "2010-07-05 19:41:17.620000023 -0500", the zone may be absent
_TIME_STAMP = re.compile(
    rb"(?:\t| +)(?:[0-9]{2})?[0-9]{2}-[0-9]{2}-[0-9]{2}"
    rb" [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?: [-+][0-9]{4}| [-+][0-9]{2}:[0-9]{2})?$"
)
_EPOCH = re.compile(
    rb"\t(1969-12-31|1970-01-01) ([0-2][0-9]):([0-5][0-9]):00(?:\.0+)?"
    rb" ([-+])([0-2][0-9]):?([0-5][0-9])$"
)


def unquote(text: bytes) -> tuple[bytes, int] | None:
    """The name in a C-quoted string and where the string ends; None if it is malformed."""
    match = _QUOTED.match(text)
    if match is None:
        return None
    return _ESCAPE.sub(_unescape, match[1]), match.end()


def runs_on(text: bytes) -> bool:
    """Whether a quoted string is closed only on a later line of `text`, as git would read it."""
    return unquote(text) is None and _QUOTED_ON.match(text) is not None


def header_name(text: bytes, strip: int) -> bytes | None:
    """The name in a `---`, `+++` line of a git diff, `text` being what follows the marker."""
    return _quoted_name(text, strip) or _stripped(_bare(_NAME_TO_TAB, text), strip)


def moved_name(text: bytes, strip: int) -> bytes | None:
    """The name in a `rename from` line and its like, which has no `a/` or `b/`."""
    strip = max(strip - 1, 0)
    return _quoted_name(text, strip) or _stripped(_bare(_NAME_TO_END, text), strip)


def plain_name(text: bytes, strip: int, other: bytes | None = None) -> bytes | None:
    """The name in a `---` or `+++` line of a plain diff.

    Where `other`, the name on the opposite side, begins this one, that shorter one is taken
    ("x" of "x.orig").
    """
    name = _quoted_name(text, strip)
    if name:
        return name
    line = text.rstrip(b"\n")
    stamp = _TIME_STAMP.search(line)
    name = _stripped(line[: stamp.start()] if stamp else _bare(_NAME_TO_TAB, line), strip)
    if other and (name is None or (len(other) < len(name) and name.startswith(other))):
        return other
    return name


def has_epoch_stamp(text: bytes) -> bool:
    """Whether a plain header line carries the time 0, by which GNU diff says "no such file"."""
    match = _EPOCH.search(text.rstrip(b"\n"))
    if match is None:
        return False
    east = int(match[5]) * 60 + int(match[6])
    east = -east if match[4] == b"-" else east
    midnight = 24 * 60 if match[1] == b"1969-12-31" else 0
    return int(match[2]) * 60 + int(match[3]) - east == midnight


def is_dev_null(text: bytes) -> bool:
    """Whether a header line names no file."""
    return text.startswith(b"/dev/null") and text[9:10] in (b" ", b"\t", b"\r", b"\n")


def common_name(text: bytes, strip: int) -> bytes | None:
    """The name that a `diff --git` line gives twice; None if its two names differ.

    `text` is what follows `diff --git `, with the newline.
    """
    text = text.removesuffix(b"\n")
    if text.startswith(b'"'):
        return _common_after_quoted(text, strip)
    name = _skip_folders(text, strip)
    if name is None:
        return None
    quote = name.find(b'"')
    if quote >= 0:
        return _common_before_quoted(name, quote, strip)
    for match in re.finditer(rb"[ \t]", name):
        second = _skip_folders(name[match.end() :], strip)
        if second is None:
            return None
        if second == name[: match.start()]:
            return second
    return None


def _common_after_quoted(text: bytes, strip: int) -> bytes | None:
    quoted = unquote(text)
    if quoted is None:
        return None
    first = _skip_folders(quoted[0], strip)
    # git never takes a second name without quotes here: it counts the end of the line with it
    again = unquote(text[quoted[1] :].lstrip(b" \t\r"))
    second = _skip_folders(again[0], strip) if again else None
    return first if first == second else None


def _common_before_quoted(name: bytes, quote: int, strip: int) -> bytes | None:
    quoted = unquote(name[quote:])
    second = _skip_folders(quoted[0], strip) if quoted else None
    if second is None or len(second) >= quote:
        return None
    matches = name.startswith(second) and name[len(second) : len(second) + 1] in (b" ", b"\t")
    return second if matches else None


def _skip_folders(text: bytes, strip: int) -> bytes | None:
    # an absolute name has no prefix to strip, and is none that a `diff --git` line may give
    if text.startswith(b"/"):
        return None
    parts = text.split(b"/", strip)
    return parts[strip] if len(parts) > strip else None


def _quoted_name(text: bytes, strip: int) -> bytes | None:
    quoted = unquote(text) if text.startswith(b'"') else None
    return _stripped(quoted[0], strip) if quoted else None


def _stripped(name: bytes, strip: int) -> bytes | None:
    parts = name.split(b"/", strip)
    if len(parts) <= strip or not parts[strip]:
        return None
    return _SLASHES.sub(b"/", parts[strip])


def _bare(pattern: re.Pattern[bytes], text: bytes) -> bytes:
    """A name without quotes; none where there is a NUL."""
    found = pattern.match(text)
    return found[0] if found and b"\0" not in text else b""


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return _ESCAPES[code] if code in _ESCAPES else bytes([int(code, 8)])
