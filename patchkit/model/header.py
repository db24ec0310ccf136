"""What stands above the diff of a patch file: read as words, and edited without touching the rest.

Three forms. A *mail* has a `From:` or a `Subject:`; its message ends at the `---` line. *DEP-3*
(`Description:`, `Author:`, `Origin:`, `Forwarded:`, `Bug:`, ...) has its subject in the first line
of the description, the reason in the folded lines below it (" ." is an empty one) and in the text
under the fields. All else is free *text*. The file is the record: the commit made from it shows
subject, reason and, as trailers, the fields that say what became of the patch; when the commit's
words change, `reword` changes those lines of the file that say them, and no others.

`format_header` writes our own form for a patch that has no file yet: raw UTF-8, which `git am`
takes as it is. RFC 2047 words are written only where a line could not be read back otherwise, and
body lines that would end the message are set in by one space, which a header line announces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, Problem
from patchkit.model.dates import format_date
from patchkit.model.mailinfo import (
    BLANKS,
    BREAK,
    MailField,
    clean_subject,
    decode_lines,
    decode_words,
    encode_words,
    format_author,
    needs_words,
    read_author,
    read_fields,
    read_in_body,
)
from patchkit.model.patch import Header, HeaderForm, Identity

# Lines that our writer must not leave at the start of a line: git apply would see a patch
_UNQUOTABLE = re.compile(r"---[ \t\r]*$|--- |diff -|Index: |@@ -|>?From | ")
QUOTED_FIELD = "X-Patchkit-Message"
_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")
_SPACES = re.compile(r"[ \t\n\v\f\r]+")
_PARAGRAPHS = re.compile(r"\n(?:[ \t]*\n)+")
TRAILER_LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*): ?\S")
_AUTHOR_IN_TEXT = re.compile(r"^(?:Author|From):[ \t]*(.*\S.*@.*)$", re.IGNORECASE | re.MULTILINE)

#: What DEP-3 defines; `bug-*` and what is not listed, like `upstream-status`, may stand beside it.
_DEP3 = frozenset(
    [
        "description",
        "author",
        "origin",
        "forwarded",
        "bug",
        "reviewed-by",
        "acked-by",
        "applied-upstream",
        "last-update",
    ]
)
_STATUS = _DEP3 - {"description", "author"} | {"upstream-status"}
#: Fields of DEP-3 that the message says otherwise than as trailers.
SPOKEN = frozenset(("description", "subject", "author", "from", "date"))


class Entry(Struct, frozen=True):
    """A trailer of a message, with its folded lines; `field` is the field of the file it shows."""

    name: str  # before the colon
    text: str  # behind it
    field: MailField | None = None

    @property
    def key(self) -> str:
        """The name in lower case."""
        return self.name.lower()


class Words(Struct, frozen=True):
    """A message taken apart: `entries` are trailers that stand in the file as fields."""

    subject: str  # the first line
    body: str  # without subject and trailers
    entries: tuple[Entry, ...] = ()

    @property
    def text(self) -> str:
        """Subject and body."""
        return f"{self.subject}\n\n{self.body}" if self.body else self.subject

    @property
    def message(self) -> str:
        """The whole: the entries join a paragraph of trailers at the end of the body."""
        block = "\n".join(each.text for each in self.entries)
        return add_trailers(self.text, block) if block else self.text


class HeaderLayout(Struct, frozen=True):
    """Where things stand in the lines above a diff, by index.

    `fields` come before `after_fields`, `in_body` are fields at the top of a mail's body, the text
    is from `text` to `end`.
    """

    form: HeaderForm  # what they are written as
    raw: Sequence[bytes]  # the lines
    lines: Sequence[str]  # as text without their ends
    eol: bytes  # how they end
    fields: tuple[MailField, ...]
    after_fields: int
    in_body: tuple[MailField, ...]
    text: int
    end: int

    @property
    def quoted(self) -> bool:
        """Whether our own writer quoted the message."""
        return self.value(QUOTED_FIELD.lower()) == "quoted"

    @property
    def description(self) -> MailField | None:
        """The field that has DEP-3's description."""
        found = (each for each in self.fields if each.key in ("description", "subject"))
        return next(found, None) if self.form is HeaderForm.DEP3 else None

    def field(self, *keys: str) -> MailField | None:
        """The field that counts: in the body before the head; of several in a mail the last."""
        head = self.fields[::-1] if self.form is HeaderForm.MAIL else self.fields
        for fields in (self.in_body, head):
            for key in keys:
                for each in fields:
                    if each.key == key:
                        return each
        return None

    def value(self, *keys: str) -> str:
        """The value of that field, "" without one."""
        found = self.field(*keys)
        return found.value if found is not None else ""


# -- reading ---------------------------------------------------------------------------------


def read_header(raw: Sequence[bytes], name: str) -> tuple[HeaderForm, Header | None]:
    """The form of the lines above the diff of the patch file `name`, and what they say.

    BadInputError for a mail in a transfer encoding.
    """
    layout = layout_of_header(raw)
    if layout.form is HeaderForm.NONE:
        return HeaderForm.NONE, None
    encoding = layout.value("content-transfer-encoding").strip().lower()
    if layout.form is HeaderForm.MAIL and encoding in ("base64", "quoted-printable"):
        hint = "import it as a mailbox, or decode it with git mailinfo"
        raise BadInputError(Problem(f"mail in {encoding}", name, hint))
    words = words_of(layout)
    message = clean_message(words.message)
    if words.entries and not words.subject and layout.form is HeaderForm.DEP3:
        message = f"\n\n{message}"  # no field is the subject
    author = author_of(layout)
    if not message.strip() and author is None:
        return HeaderForm.NONE, None
    return layout.form, Header(message, author)


def clean_message(text: str) -> str:
    """A message in the form that a Header has: subject, one empty line, body; no blank ends."""
    return Words(*_parted(text)).text


def _parted(text: str) -> tuple[str, str]:
    """Subject and body."""
    subject, _, body = trimmed(text).partition("\n\n")
    return subject, trimmed(body)


def add_trailers(message: str, trailers: str) -> str:
    """A message with trailers at its end; they join a paragraph of trailers that is there."""
    _, *body = _PARAGRAPHS.split(message)  # a subject may look like a trailer
    return f"{message}{chr(10) if body and is_trailers(body[-1]) else chr(10) * 2}{trailers}"


def is_trailers(paragraph: str) -> bool:
    """Whether a paragraph has nothing but trailers, perhaps folded."""
    lines = paragraph.strip("\n").split("\n")
    return bool(TRAILER_LINE.match(lines[0])) and all(
        TRAILER_LINE.match(line) or line[:1] in (" ", "\t") for line in lines
    )


def layout_of_header(raw: Sequence[bytes]) -> HeaderLayout:
    """Where things stand in the lines above a diff; bytes that are no UTF-8 are surrogates."""
    lines = [line.decode("utf-8", "surrogateescape").rstrip("\r\n") for line in raw]
    eol = b"\r\n" if any(line.endswith(b"\r\n") for line in raw) else b"\n"
    first = next((index for index, line in enumerate(lines) if line.strip(BLANKS)), None)
    if first is None:
        return HeaderLayout(HeaderForm.NONE, raw, lines, eol, (), 0, (), 0, 0)
    read = [*lines[:first], lines[first].lstrip(BLANKS), *lines[first + 1 :]]
    fields, at = read_fields(read, first)
    form = _form({each.key for each in fields})
    if form is HeaderForm.TEXT:
        fields, at = [], first
    in_body, text = list[MailField](), at
    layout = HeaderLayout(form, raw, lines, eol, tuple(fields), at, (), text, len(lines))
    if form is HeaderForm.MAIL and not layout.quoted:
        in_body, text = read_in_body(lines, at)
    end = next((n for n in range(text, len(read)) if BREAK.match(read[n])), len(read))
    return replace(layout, in_body=tuple(in_body), text=text, end=end)


def _form(keys: set[str]) -> HeaderForm:
    if "description" in keys:
        return HeaderForm.DEP3
    if keys & {"from", "subject"}:
        return HeaderForm.MAIL
    known = any(key in _DEP3 or key.startswith("bug-") for key in keys)
    return HeaderForm.DEP3 if known else HeaderForm.TEXT


def words_of(layout: HeaderLayout) -> Words:
    """What the lines above a diff say."""
    text = text_of(layout)
    if layout.form is HeaderForm.TEXT:
        return Words(*_parted("\n".join(text)))
    entries = tuple(map(entry_of, _shown(layout)))
    if layout.form is HeaderForm.MAIL:
        subject = decode_words(layout.value("subject").strip())
        subject = subject if layout.quoted else clean_subject(subject)
        return Words(subject, trimmed("\n".join(text)), entries)
    if layout.description is None:
        return Words(*_parted("\n".join(text)), entries)
    described = [said for said, _ in description_of(layout)]
    subject, *long = [*described, ""]
    parts = (trimmed("\n".join(long)), trimmed("\n".join(text)))
    return Words(subject, "\n\n".join(filter(None, parts)), entries)


def text_of(layout: HeaderLayout) -> list[str]:
    """The lines of the text as they are meant."""
    text = list(layout.lines[layout.text : layout.end])
    if layout.form is not HeaderForm.MAIL:
        return text
    if layout.quoted:
        text = [line[1:] if line.startswith(" ") else line for line in text]
    return decode_lines(text, layout.value("content-type"))


def description_of(layout: HeaderLayout) -> list[tuple[str, int]]:
    """What a description says line by line, with the index of the line; its first is the subject.

    The subject may stand on the line under the field's name. Nothing without a description.
    """
    field, lines = layout.description, layout.lines
    if field is None:
        return []
    first = lines[field.start].lstrip(BLANKS).partition(":")[2].strip()
    rows = [(first, field.start)] if first else []
    for index in range(field.start + 1, field.end):
        said = lines[index][1:].rstrip()
        rows.append(("" if said.strip() == "." else said if rows else said.strip(), index))
    return rows


def _shown(layout: HeaderLayout) -> Iterator[MailField]:
    """The fields that the message shows as trailers."""
    for field in layout.fields:
        shown = field.key not in SPOKEN
        if layout.form is HeaderForm.MAIL:
            shown = field.key in _STATUS or field.key.startswith("bug-")
        if shown and field.value.strip() and TRAILER_LINE.match(f"{field.name}: x"):
            yield field


def entry_of(field: MailField) -> Entry:
    """A field as the trailer that shows it."""
    return Entry(field.name, joined(f"{field.name}: {field.value}"), field)


def joined(text: str) -> str:
    """A folded trailer in one line."""
    return _SPACES.sub(" ", text).strip()


def author_of(layout: HeaderLayout) -> Identity | None:
    """Whom the lines above a diff name as the author; of several the first."""
    if layout.form is HeaderForm.TEXT:
        found = _AUTHOR_IN_TEXT.search("\n".join(layout.lines[layout.text : layout.end]))
        return read_author(_first_mailbox(found[1]), "") if found else None
    keys = ("author", "from") if layout.form is HeaderForm.DEP3 else ("from", "author")
    return read_author(_first_mailbox(layout.value(*keys)), layout.value("date"))


def _first_mailbox(text: str) -> str:
    """The first of several authors, as DEP-3 allows them in one field."""
    match = re.match(r"[^<>]*<[^<>]*>(?=\s*(?:,|;|and\b|&))", text)
    return match[0] if match else text


def trimmed(text: str) -> str:
    """Without the blank lines at its beginning and what is blank at its end."""
    # git has no place for NUL in a commit
    return _BLANK_LINES.sub("", text.replace("\x00", "")).rstrip(" \t\r\n")


# -- writing ---------------------------------------------------------------------------------


def format_header(header: Header) -> bytes:
    """Our canonical text above the diff: mail fields, message, an empty line."""
    subject, _, body = header.message.partition("\n\n")
    fields = [*_author_lines(header.author), f"Subject: {raw_subject(subject)}"]
    lines = body.split("\n") if body else []
    if _needs_quoting(subject, lines):
        fields.append(f"{QUOTED_FIELD}: quoted")
        lines = quoted(lines)
    text = "\n".join([*fields, "", *lines, ""]) + ("\n" if lines else "")
    return text.encode("utf-8", "surrogateescape")


def _author_lines(author: Identity | None) -> list[str]:
    if author is None:
        return []
    date = format_date(author.date)
    return [f"From: {format_author(author)}", *([f"Date: {date}"] if date else [])]


def raw_subject(subject: str) -> str:
    """A subject as the value of its field."""
    return encode_words(subject) if needs_words(subject) else subject


def _needs_quoting(subject: str, lines: Sequence[str]) -> bool:
    # a line that begins with a blank needs no quoting by itself, only where others are quoted
    return clean_subject(subject) != subject or any(
        quoted != line and line[:1] != " "
        for quoted, line in zip(quoted(lines), lines, strict=True)
    )


def quoted(lines: Sequence[str]) -> list[str]:
    """The lines of a body, set in by one space where they would end it or be read as a field."""
    fields = bool(lines and lines[0]) and read_in_body(lines, 0)[1] > 0
    return [
        f" {line}" if _UNQUOTABLE.match(line) or (fields and not at) else line
        for at, line in enumerate(lines)
    ]
