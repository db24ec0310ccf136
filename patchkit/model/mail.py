"""Patch files as people write them: a header, the diff, perhaps a mail signature.

`preamble + diff + signature` is the file to the byte. The header is read as a mail (`From:`,
`Date:`, `Subject:`, message up to the `---` line) where it has a `From:` or a `Subject:`, otherwise
all text above the diff is the message, as quilt and DEP-3 write it. Of the subject only the
`[PATCH n/m]` tag is dropped; other tags in brackets belong to it.

`format_header` writes our own form, from which `parse_patch` reads the same header again: raw
UTF-8, which `git am` takes as it is. RFC 2047 words are written only where a line could not be
read back otherwise, and body lines that would end the message are set in by one space, which a
header line announces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchkit.errors import BadInputError, Problem
from patchkit.model.dates import format_date, parse_date
from patchkit.model.diff import read_diff, split_lines
from patchkit.model.encoded_words import decode_words, encode_words, needs_words
from patchkit.model.patch import Header, Identity, PatchFile

_FIELD = re.compile(r"([!-9;-~]+):[ \t]*(.*)", re.DOTALL)
_MBOX_LINE = re.compile(r">?From ")
_LEADING_TAGS = re.compile(r"(?:re:\s*)*((?:\[[^\]]*\]\s*)+)", re.IGNORECASE)
_TAG = re.compile(r"\[([^\]]*)\]\s*")
_CHARSET = re.compile(r"charset=\"?([A-Za-z0-9_.:-]+)", re.IGNORECASE)
_IN_BODY = re.compile(r"(From|Date|Subject):[ \t]*(.*)", re.IGNORECASE | re.DOTALL)
_IN_BODY_PATCH = re.compile(r"\[PATCH\]\s.*", re.DOTALL)

# Lines at which git's mail reader takes the message to be over and the patch to begin
_BREAK = re.compile(r"---[ \t\r]*$|--- \S|diff -|Index: ")
# Lines that our writer must not leave at the start of a line: git apply would see a patch
_UNQUOTABLE = re.compile(r"---[ \t\r]*$|--- |diff -|Index: |@@ -|>?From | ")
_QUOTED_FIELD = "X-Patchkit-Message"

_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")
_NAME_SPECIALS = re.compile(r'[()<>\[\]:;@\\,"]')
_MAILBOX = re.compile(r"(?P<name>.*?)[ \t]*<(?P<email>[^<>]*)>[^<>]*", re.DOTALL)
_ADDRESS_FIRST = re.compile(r"<?(?P<email>[^\s()<>]+@[^\s()<>]+)>?\s+\((?P<name>[^()]*)\)")
_CRUD = " \t\r\n.,:;<>\"\\'"


def parse_patch(data: bytes, *, name: str, strip: int = 1) -> PatchFile:
    """The patch file `name` with the contents `data`; `strip` is what `git apply -p` means by it.

    Raises BadInputError with `name:line` for every corrupt place.
    """
    lines = split_lines(data)
    found = read_diff(lines, strip=strip, name=name)
    end = _signature_start(lines, found.end if found.changes else 0)
    start = min(found.start, end)
    return PatchFile(
        preamble=b"".join(lines[:start]),
        diff=b"".join(lines[start:end]),
        signature=b"".join(lines[end:]),
        header=_parse_header(lines[:start], name),
        changes=found.changes,
        strip=strip,
        stray=found.stray,
    )


def format_header(header: Header) -> bytes:
    """Our canonical text above the diff: mail fields, message, an empty line."""
    subject, _, body = header.message.partition("\n\n")
    fields = []
    if header.author is not None:
        fields.append(f"From: {_format_mailbox(header.author)}")
        date = format_date(header.author.date)
        if date:
            fields.append(f"Date: {date}")
    fields.append(f"Subject: {encode_words(subject) if needs_words(subject) else subject}")
    lines = body.split("\n") if body else []
    stands_in = [bool(_UNQUOTABLE.match(line)) for line in lines]
    if lines and _in_body_field(_unfolded(lines, 0)[0]) is not None:
        stands_in[0] = True
    # a line that begins with a blank needs no quoting by itself, only where others are quoted
    if _clean_subject(subject) != subject or any(
        quoted and line[:1] != " " for quoted, line in zip(stands_in, lines, strict=True)
    ):
        fields.append(f"{_QUOTED_FIELD}: quoted")
        pairs = zip(stands_in, lines, strict=True)
        lines = [f" {line}" if quoted else line for quoted, line in pairs]
    text = "\n".join([*fields, "", *lines, ""]) + ("\n" if lines else "")
    return text.encode("utf-8", "surrogateescape")


def clean_message(text: str) -> str:
    """A message in the form that a Header has: subject, one empty line, body; no blank ends."""
    subject, _, body = _trim(text).partition("\n\n")
    body = _trim(body)
    return f"{subject}\n\n{body}" if body else subject


# -- reading ---------------------------------------------------------------------------------


def _signature_start(lines: Sequence[bytes], end: int) -> int:
    """The index of the last `-- ` line at or after `end`; len(lines) if there is none."""
    for index in range(len(lines) - 1, end - 1, -1):
        if lines[index] in (b"-- \n", b"--\n", b"-- \r\n"):
            return index
    return len(lines)


def _parse_header(raw: Sequence[bytes], name: str) -> Header | None:
    lines = [line.decode("utf-8", "surrogateescape").rstrip("\r\n") for line in raw]
    first = next((index for index, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return None
    fields, body_at = _read_fields(lines, first)
    if "subject" not in fields and "from" not in fields:
        return _free_text(lines[first:])
    _refuse_encoded(fields, name)
    body = _recode(lines[body_at:], fields)
    return _from_mail(fields, body)


def _read_fields(lines: Sequence[str], start: int) -> tuple[dict[str, str], int]:
    """The mail fields from `start` on, by lower-case name, and where the body begins."""
    fields: dict[str, str] = {}
    last = ""
    for index in range(start, len(lines)):
        line = lines[index]
        match = _FIELD.fullmatch(line)
        if not line.strip():
            return fields, index + 1
        if last and line[0] in " \t":
            fields[last] += " " + line.strip()
        elif match is not None and not _MBOX_LINE.match(line):
            last = match[1].lower()
            fields[last] = match[2]
        elif index > start or not _MBOX_LINE.match(line):
            return fields, index
    return fields, len(lines)


def _refuse_encoded(fields: dict[str, str], name: str) -> None:
    encoding = fields.get("content-transfer-encoding", "").strip().lower()
    if encoding in ("base64", "quoted-printable"):
        raise BadInputError(
            Problem(
                f"mail in {encoding}",
                where=name,
                hint="import it as a mailbox, or decode it with git mailinfo",
            )
        )


def _recode(lines: list[str], fields: dict[str, str]) -> list[str]:
    """The body in the charset that the mail declares; undeclared bytes stay as they are."""
    match = _CHARSET.search(fields.get("content-type", ""))
    if match is None or match[1].lower() in ("utf-8", "utf8", "us-ascii"):
        return lines
    try:
        return [line.encode("utf-8", "surrogateescape").decode(match[1]) for line in lines]
    except (LookupError, UnicodeDecodeError):
        return lines


def _free_text(lines: list[str]) -> Header | None:
    message = clean_message("\n".join(_until_break(lines)))
    return Header(message) if message.strip() else None


def _from_mail(fields: dict[str, str], body: list[str]) -> Header | None:
    quoted = fields.get(_QUOTED_FIELD.lower()) == "quoted"
    if not quoted:
        body = _take_in_body_fields(fields, body)
    body = _until_break(body)
    if quoted:
        body = [line[1:] if line.startswith(" ") else line for line in body]
    subject = decode_words(fields.get("subject", "").strip())
    if not quoted:
        subject = _clean_subject(subject)
    message = clean_message("\n".join([subject, "", *body]))
    author = _parse_author(fields)
    return Header(message, author) if message or author else None


def _take_in_body_fields(fields: dict[str, str], body: list[str]) -> list[str]:
    """Let `From:`, `Date:`, `Subject:` at the top of the body replace those of the mail."""
    at = next((index for index, line in enumerate(body) if line.strip(" \t")), len(body))
    while at < len(body):
        text, end = _unfolded(body, at)
        found = _in_body_field(text)
        if found is None:
            break
        fields[found[0]] = found[1]
        at = end
    return body[at:]


def _unfolded(lines: Sequence[str], at: int) -> tuple[str, int]:
    """A line with those that continue it, and the index of the next."""
    end = at + 1
    while end < len(lines) and lines[end][:1] in (" ", "\t"):
        end += 1
    return " ".join([lines[at], *map(str.strip, lines[at + 1 : end])]), end


def _in_body_field(line: str) -> tuple[str, str] | None:
    """The field, by lower-case name, that a line at the top of a body stands for."""
    if _IN_BODY_PATCH.fullmatch(line):
        return "subject", line
    match = _IN_BODY.fullmatch(line)
    if match is None or (match[1].lower() == "from" and "@" not in match[2]):
        return None
    return match[1].lower(), match[2]


def _clean_subject(subject: str) -> str:
    """A mail's subject without its `[PATCH n/m]` tag and the `Re:` before it."""
    match = _LEADING_TAGS.match(subject)
    tags = list(_TAG.finditer(match[1])) if match else []
    if match is None or not any(_says_patch(tag) for tag in tags):
        return subject
    kept = "".join(tag[0] for tag in tags if not _says_patch(tag))
    return kept + subject[match.end() :]


def _says_patch(tag: re.Match[str]) -> bool:
    return re.search(r"\bPATCH\b", tag[1]) is not None


def _until_break(lines: list[str]) -> list[str]:
    for index, line in enumerate(lines):
        if _BREAK.match(line):
            return lines[:index]
    return lines


def _parse_author(fields: dict[str, str]) -> Identity | None:
    text = fields.get("from", "").strip()
    if not text:
        return None
    match = _ADDRESS_FIRST.fullmatch(text) or _MAILBOX.fullmatch(text)
    parts = match.groupdict() if match else {}
    name, email = parts.get("name") or "", parts.get("email") or text
    if len(name) > 1 and name.startswith('"') and name.endswith('"'):
        name = re.sub(r"\\(.)", r"\1", name[1:-1])
    name = _clean_name(decode_words(name))
    email = _clean_name(email).replace(" ", "")
    if not name and not email:
        return None
    return Identity(name or email, email, parse_date(fields.get("date", "")))


def _clean_name(text: str) -> str:
    """As git cleans a name: no line ends or angle brackets in it, no punctuation at its ends."""
    return re.sub(r"[\n<>\x00]", "", text).strip(_CRUD)


def _trim(text: str) -> str:
    """Without the blank lines at its beginning and what is blank at its end."""
    # git has no place for NUL in a commit
    return _BLANK_LINES.sub("", text.replace("\x00", "")).rstrip(" \t\n")


# -- writing ---------------------------------------------------------------------------------


def _format_mailbox(author: Identity) -> str:
    name = author.name
    if needs_words(name):
        name = encode_words(name)
    elif _NAME_SPECIALS.search(name):
        name = '"' + re.sub(r'([\\"])', r"\\\1", name) + '"'
    return f"{name} <{author.email}>"
