"""The fields of a mail as `git mailinfo -b` reads them: author, subject, date, lines in the body.

Everything here takes text decoded as UTF-8 with surrogateescape. Where git is not followed on
purpose, docs/why-own-engine.md has the reason.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, a2b_qp
from collections.abc import Sequence

from msgspec import Struct

from patchkit.model.dates import parse_date
from patchkit.model.patch import Identity

# RFC 2047 words in mail headers (`=?utf-8?q?...?=`): read all, write as few as possible.


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


# What C's isspace knows, which is less than str.strip takes.
BLANKS = " \t\n\v\f\r"

#: Lines at which git takes the message to be over and the patch to begin.
BREAK = re.compile(r"---[ \t\r\v\f]*$|--- [^ \t\r\v\f\n]|diff -|Index: ")

_NAMED = re.compile(r"[!-9;-~]*:")
_MBOX = ("From ", ">From ")
_CHARSET = re.compile(r"charset=(?:\"([^\"]*)|([^; \t]*))", re.IGNORECASE)
_SEPARATOR = re.compile(r">From [0-9a-f]{40} Mon Sep 17 00:00:00 2001")
_IN_BODY = re.compile(r"(From|Date|Subject):[ \t\v\f\r]*(.*)", re.IGNORECASE | re.DOTALL)
_SPACES = re.compile(r"[ \t\n\v\f\r]+")
_BRACKET = re.compile(r"<[^<>]*@[^<>]*>|<[^<>]*>$")
_QUOTED = re.compile(r'"(?P<string>(?:[^"\\]|\\.)*)"?|(?P<comment>\((?:[^()\\]|\\.)*\)?)')
_SPECIALS = re.compile(r'[()<>\[\]:;@\\,"]')


class MailField(Struct, frozen=True):
    """A header field in the lines from `start` to `end` (exclusive); `name` as it is written.

    `value` has its folded lines joined by one space each.
    """

    name: str
    value: str
    start: int
    end: int

    @property
    def key(self) -> str:
        """The name in lower case."""
        return self.name.lower()


def read_fields(lines: Sequence[str], start: int) -> tuple[list[MailField], int]:
    """The fields from `lines[start]` on, and the index of the first line that is none.

    That is the empty line in front of the body, or the body's first line. A line of blanks alone
    continues the field above it. The separator of a mailbox is passed over.
    """
    fields: list[MailField] = []
    at = start
    while at < len(lines):
        line = lines[at].rstrip(BLANKS)
        if not line or not (line.startswith(_MBOX) or _NAMED.match(line)):
            break
        end = at + 1
        while end < len(lines) and lines[end][:1] in (" ", "\t"):
            end += 1
        if not line.startswith(_MBOX):
            folded = (each.strip(BLANKS) for each in lines[at + 1 : end])
            name, _, value = line.partition(":")
            value = " ".join([value, *filter(None, folded)])
            fields.append(MailField(name, value.lstrip(BLANKS), at, end))
        at = end
    return fields, at


def read_in_body(lines: Sequence[str], start: int) -> tuple[list[MailField], int]:
    """The `From:`, `Date:`, `Subject:` lines at the top of a body, and where its text begins.

    Each name counts once; the first line that is none of them, or an empty line after one, ends
    them.
    """
    fields: list[MailField] = []
    at = start
    while at < len(lines):
        if not lines[at] or _SEPARATOR.fullmatch(lines[at]):
            at += 1
            # an empty line ends them, but for one below a "[PATCH]"
            if fields and not lines[at - 1] and not lines[fields[-1].start].startswith("["):
                break
            continue
        end = at + 1
        while (
            not lines[at].startswith("[")
            and lines[end : end + 1]
            and lines[end][:1] in tuple(" \t")
        ):
            end += 1
        found = _in_body_field("".join(lines[at:end]), fields)
        if found is None:
            break
        fields = [each for each in fields if each.key != found[0].lower()]
        fields.append(MailField(*found, at, end))
        at = end
    return fields, at


def _in_body_field(text: str, known: Sequence[MailField]) -> tuple[str, str] | None:
    if text.startswith("[PATCH]") and text[7:8] in tuple(BLANKS):
        return "Subject", text
    match = _IN_BODY.fullmatch(text)
    if match is None or any(each.key == match[1].lower() for each in known):
        return None
    # prose, or what names a person without an address: git drops it, we leave it in the message
    if match[1].lower() == "from" and "@" not in match[2]:
        return None
    return match[1], match[2]


def decode_lines(lines: Sequence[str], content_type: str) -> list[str]:
    """The body in the charset that the mail declares.

    A line that is UTF-8 already stays, whatever the mail says: a wrong label is the likelier.
    Undeclared bytes stay as they are.
    """
    match = _CHARSET.search(content_type)
    charset = (match[1] or match[2] or "") if match else ""
    if charset.lower() in ("", "utf-8", "utf8", "us-ascii"):
        return list(lines)
    return [_decode_line(line, charset) for line in lines]


def _decode_line(line: str, charset: str) -> str:
    if line.isascii() and charset.lower().startswith(("iso-8859", "windows-", "latin", "cp")):
        return line
    raw = line.encode("utf-8", "surrogateescape")
    if not line.isascii() and not re.search("[\udc80-\udcff]", line):
        return line
    try:
        return raw.decode(charset)
    except (LookupError, ValueError):
        return line


def clean_subject(subject: str) -> str:
    """A subject without `Re:` and its `[PATCH n/m]` tags; other tags in brackets belong to it."""
    kept = ""
    rest = subject.strip(BLANKS)
    while rest:
        if rest[:3].lower() == "re:" and len(rest) > 3:
            rest = rest[3:].lstrip(" \t:")
            continue
        end = rest.find("]")
        if not rest.startswith("[") or end < 0:
            break
        tag, rest = rest[: end + 1], rest[end + 1 :]
        if "PATCH" in tag:
            rest = rest.lstrip(" \t:")
            kept = kept and kept.rstrip(" \t") + " "
        else:
            gap = len(rest) - len(rest.lstrip(" \t"))
            kept += tag + rest[:gap]
            rest = rest[gap:]
    return (kept + rest).strip(BLANKS)


def read_author(text: str, date: str) -> Identity | None:
    """The author in the value of a `From:` line; None where it names nobody.

    A name without an address, which git refuses, is taken, too.
    """
    found = decode_words(_SPACES.sub(" ", text).strip(BLANKS))
    name, email = _mailbox(found)
    name, email = _clean(name), _clean(email).replace(" ", "")
    if not name and not email:
        return None
    return Identity(name or email, email, parse_date(date))


def format_author(author: Identity) -> str:
    """The value of a `From:` line that `read_author` reads the same."""
    name = author.name
    quoted = name
    if _SPECIALS.search(name):
        quoted = '"' + re.sub(r'([\\"])', r"\\\1", name) + '"'
    if needs_words(name) or "  " in name:
        quoted = encode_words(quoted)
    text = f"{quoted} <{author.email}>"
    return encode_words(text) if "=?" in author.email else text


def _mailbox(text: str) -> tuple[str, str]:
    """(name, address) as git's handle_from takes a `From:` line apart.

    An address in angle brackets goes before a name with an @, which git takes for the address.
    """
    # without the quotes of quoted strings, and backslashes in them; those in comments are their own
    plain = _QUOTED.sub(lambda m: re.sub(r"\\(.)", r"\1", m["string"] or m["comment"] or ""), text)
    bracket = _BRACKET.search(plain)
    at = plain.find("@", bracket.start() if bracket else 0)
    if at < 0 or (bracket and "@" not in bracket[0]):
        match = bracket or re.search(r"<([^>]*)>", plain)
        return (plain[: match.start()], match[0][1:-1]) if match else (plain, "")
    start = at
    while start and plain[start - 1] not in BLANKS + "<":
        start -= 1
    end = start
    while end < len(plain) and plain[end] not in BLANKS + ">":
        end += 1
    opened = start and plain[start - 1] == "<"
    before = plain[: start - 1] if opened else plain[:start]
    name = f"{before.strip(BLANKS)} {plain[end + 1 :].strip(BLANKS)}".strip(BLANKS)
    if text.lstrip("<").startswith("(") or not before.strip(BLANKS):
        name = name[1:-1] if name.startswith("(") and name.endswith(")") else name
    return name, plain[start:end]


def _clean(text: str) -> str:
    """As git cleans an identity: no line ends or angle brackets, no punctuation at its ends."""
    return re.sub(r"[\n<>\x00]", "", text).strip(" \t\r\n.,:;<>\"\\'")
