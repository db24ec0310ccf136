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
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.model.dates import format_date
from patchkit.model.diff import split_lines
from patchkit.model.encoded_words import decode_words, encode_words, needs_words
from patchkit.model.mailinfo import (
    BLANKS,
    BREAK,
    MailField,
    clean_subject,
    decode_lines,
    format_author,
    read_author,
    read_fields,
    read_in_body,
)
from patchkit.model.patch import Header, HeaderForm, Identity

# Lines that our writer must not leave at the start of a line: git apply would see a patch
_UNQUOTABLE = re.compile(r"---[ \t\r]*$|--- |diff -|Index: |@@ -|>?From | ")
_QUOTED_FIELD = "X-Patchkit-Message"
_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")
_SPACES = re.compile(r"[ \t\n\v\f\r]+")
_PARAGRAPHS = re.compile(r"\n(?:[ \t]*\n)+")
_TRAILER_LINE = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*): ?\S")
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
_STATUS = frozenset(
    [
        "origin",
        "forwarded",
        "bug",
        "reviewed-by",
        "acked-by",
        "applied-upstream",
        "last-update",
        "upstream-status",
    ]
)
#: Fields of DEP-3 that the message says otherwise than as trailers.
_SPOKEN = frozenset(("description", "subject", "author", "from", "date"))


class _Entry(Struct, frozen=True):
    """A trailer of a message, with its folded lines; `field` is the field of the file it shows."""

    name: str
    text: str
    field: MailField | None = None

    @property
    def key(self) -> str:
        return self.name.lower()


class _Words(Struct, frozen=True):
    """A message taken apart: `entries` are trailers that stand in the file as fields."""

    subject: str
    body: str
    entries: tuple[_Entry, ...] = ()

    @property
    def message(self) -> str:
        """The whole: the entries join a paragraph of trailers at the end of the body."""
        body = self.body
        if self.entries:
            block = "\n".join(each.text for each in self.entries)
            last = _PARAGRAPHS.split(body)[-1]
            gap = "\n" if last and is_trailers(last) else "\n\n"
            body = f"{body}{gap}{block}" if body else block
        return f"{self.subject}\n\n{body}" if body else self.subject


class _Layout(Struct, frozen=True):
    """Where things stand in the lines above a diff, by index.

    `first` is the first line that says something, `fields` come before `after_fields`, `in_body`
    are fields at the top of a mail's body, the text is from `text` to `end`.
    """

    form: HeaderForm
    first: int
    fields: tuple[MailField, ...]
    after_fields: int
    in_body: tuple[MailField, ...]
    text: int
    end: int

    @property
    def quoted(self) -> bool:
        """Whether our own writer quoted the message."""
        return self.value(_QUOTED_FIELD.lower()) == "quoted"

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
    lines = _decoded(raw)
    layout = _layout(lines)
    if layout.form is HeaderForm.NONE:
        return HeaderForm.NONE, None
    if layout.form is HeaderForm.MAIL:
        _refuse_encoded(layout, name)
    words = _words(lines, layout)
    message = clean_message(words.message)
    if words.entries and not words.subject and layout.form is HeaderForm.DEP3:
        message = f"\n\n{message}"  # no field is the subject
    author = _author(lines, layout)
    if not message.strip() and author is None:
        return HeaderForm.NONE, None
    return layout.form, Header(message, author)


def clean_message(text: str) -> str:
    """A message in the form that a Header has: subject, one empty line, body; no blank ends."""
    subject, _, body = _trim(text).partition("\n\n")
    body = _trim(body)
    return f"{subject}\n\n{body}" if body else subject


def is_trailers(paragraph: str) -> bool:
    """Whether a paragraph has nothing but trailers, perhaps folded."""
    lines = paragraph.strip("\n").split("\n")
    return bool(_TRAILER_LINE.match(lines[0])) and all(
        _TRAILER_LINE.match(line) or line[:1] in (" ", "\t") for line in lines
    )


def _decoded(raw: Sequence[bytes]) -> list[str]:
    return [line.decode("utf-8", "surrogateescape").rstrip("\r\n") for line in raw]


def _layout(lines: Sequence[str]) -> _Layout:
    first = next((index for index, line in enumerate(lines) if line.strip(BLANKS)), None)
    if first is None:
        return _Layout(HeaderForm.NONE, 0, (), 0, (), 0, 0)
    lines = [*lines[:first], lines[first].lstrip(BLANKS), *lines[first + 1 :]]
    fields, at = read_fields(lines, first)
    form = _form({each.key for each in fields})
    if form is HeaderForm.TEXT:
        return _Layout(form, first, (), first, (), first, _break(lines, first))
    body = at
    in_body: list[MailField] = []
    layout = _Layout(form, first, tuple(fields), at, (), body, len(lines))
    if form is HeaderForm.MAIL and not layout.quoted:
        in_body, body = read_in_body(lines, at)
    return _Layout(form, first, tuple(fields), at, tuple(in_body), body, _break(lines, body))


def _form(keys: set[str]) -> HeaderForm:
    if "description" in keys:
        return HeaderForm.DEP3
    if keys & {"from", "subject"}:
        return HeaderForm.MAIL
    known = any(key in _DEP3 or key.startswith("bug-") for key in keys)
    return HeaderForm.DEP3 if known else HeaderForm.TEXT


def _break(lines: Sequence[str], start: int) -> int:
    return next((i for i in range(start, len(lines)) if BREAK.match(lines[i])), len(lines))


def _refuse_encoded(layout: _Layout, name: str) -> None:
    encoding = layout.value("content-transfer-encoding").strip().lower()
    if encoding in ("base64", "quoted-printable"):
        raise BadInputError(
            Problem(
                f"mail in {encoding}",
                where=name,
                hint="import it as a mailbox, or decode it with git mailinfo",
            )
        )


def _words(lines: Sequence[str], layout: _Layout) -> _Words:
    text = _text(lines, layout)
    if layout.form is HeaderForm.TEXT:
        subject, _, body = _trim("\n".join(text)).partition("\n\n")
        return _Words(subject, _trim(body))
    entries = tuple(map(_entry, _shown(layout)))
    if layout.form is HeaderForm.MAIL:
        subject = decode_words(layout.value("subject").strip())
        subject = subject if layout.quoted else clean_subject(subject)
        return _Words(subject, _trim("\n".join(text)), entries)
    if layout.description is None:
        subject, _, body = _trim("\n".join(text)).partition("\n\n")
        return _Words(subject, _trim(body), entries)
    described = [said for said, _ in _description(lines, layout.description)]
    subject, *long = [*described, ""]
    parts = (_trim("\n".join(long)), _trim("\n".join(text)))
    return _Words(subject, "\n\n".join(filter(None, parts)), entries)


def _text(lines: Sequence[str], layout: _Layout) -> list[str]:
    """The lines of the text as they are meant."""
    text = list(lines[layout.text : layout.end])
    if layout.form is not HeaderForm.MAIL:
        return text
    if layout.quoted:
        text = [line[1:] if line.startswith(" ") else line for line in text]
    return decode_lines(text, layout.value("content-type"))


def _description(lines: Sequence[str], field: MailField) -> list[tuple[str, int]]:
    """What a description says line by line, with the index of the line; its first is the subject.

    The subject may stand on the line under the field's name.
    """
    first = lines[field.start].lstrip(BLANKS).partition(":")[2].strip()
    rows = [(first, field.start)] if first else []
    for index in range(field.start + 1, field.end):
        said = lines[index][1:].rstrip()
        rows.append(("" if said.strip() == "." else said if rows else said.strip(), index))
    return rows


def _shown(layout: _Layout) -> Iterator[MailField]:
    """The fields that the message shows as trailers."""
    for field in layout.fields:
        shown = field.key not in _SPOKEN
        if layout.form is HeaderForm.MAIL:
            shown = field.key in _STATUS or field.key.startswith("bug-")
        if shown and field.value.strip() and _TRAILER_LINE.match(f"{field.name}: x"):
            yield field


def _entry(field: MailField) -> _Entry:
    return _Entry(field.name, _joined(f"{field.name}: {field.value}"), field)


def _joined(text: str) -> str:
    """A folded trailer in one line."""
    return _SPACES.sub(" ", text).strip()


def _author(lines: Sequence[str], layout: _Layout) -> Identity | None:
    if layout.form is HeaderForm.TEXT:
        found = _AUTHOR_IN_TEXT.search("\n".join(lines[layout.text : layout.end]))
        return read_author(_first_mailbox(found[1]), "") if found else None
    text = layout.value("from", "author")
    if layout.form is HeaderForm.DEP3:
        text = _first_mailbox(layout.value("author", "from"))
    return read_author(text, layout.value("date"))


def _first_mailbox(text: str) -> str:
    """The first of several authors, as DEP-3 allows them in one field."""
    match = re.match(r"[^<>]*<[^<>]*>(?=\s*(?:,|;|and\b|&))", text)
    return match[0] if match else text


def _trim(text: str) -> str:
    """Without the blank lines at its beginning and what is blank at its end."""
    # git has no place for NUL in a commit
    return _BLANK_LINES.sub("", text.replace("\x00", "")).rstrip(" \t\r\n")


# -- a message and the fields of its file --------------------------------------------------------


def says(preamble: Sequence[bytes], message: str) -> bool:
    """Whether lines above a diff say what `message` says, up to what git cleans from a message.

    Fields of the file that the message leaves out do not count: they are the file's.
    """
    lines = _decoded(preamble)
    layout = _layout(lines)
    there = _words(lines, layout)
    wanted = _taken_apart(message, there, layout)
    known = {_joined(each.text) for each in there.entries}
    same = _cleaned(_Words(there.subject, there.body).message) == _cleaned(
        _Words(wanted.subject, wanted.body).message
    )
    return same and all(_joined(each.text) in known for each in wanted.entries)


def _taken_apart(message: str, old: _Words, layout: _Layout, *, fold: bool = True) -> _Words:
    """A message's words, its last trailers matched with the fields that the file has.

    A trailer is a field's if it says what the field says, else if it has the name of a field that
    no trailer says, else, in DEP-3, if it is new. Trailers that the old body had stay its.
    """
    subject, _, body = clean_message(message).partition("\n\n")
    if fold and layout.form is HeaderForm.DEP3 and "\n" in subject:
        subject, _, more = subject.partition("\n")
        body = f"{more}\n\n{body}".strip("\n")
    if layout.form not in (HeaderForm.MAIL, HeaderForm.DEP3):
        return _Words(subject, body)
    lines = body.split("\n") if body else []
    found = list(_last_trailers(lines))
    free = {_joined(each.text): each.field for each in old.entries}
    own = set(old.body.split("\n"))
    taken: dict[int, _Entry] = {}
    for number, (entry, _, _) in enumerate(found):
        field = free.pop(_joined(entry.text), None)
        if field is not None:
            taken[number] = _Entry(entry.name, entry.text, field)
    names = {each.key: each for each in free.values() if each is not None}
    for number, (entry, start, _) in enumerate(found):
        if number in taken or lines[start] in own:
            continue
        new = layout.form is HeaderForm.DEP3 and entry.key not in _SPOKEN
        if entry.key in names or new:
            taken[number] = _Entry(entry.name, entry.text, names.pop(entry.key, None))
    gone = {at for number in taken for at in range(found[number][1], found[number][2])}
    kept = [line for at, line in enumerate(lines) if at not in gone]
    return _Words(subject, _trim("\n".join(kept)), tuple(taken[n] for n in sorted(taken)))


def _last_trailers(lines: Sequence[str]) -> Iterator[tuple[_Entry, int, int]]:
    """The trailers of the paragraphs of trailers that end a body: entry, first line, end."""
    at = len(lines)
    start = at
    while at:
        end = at
        while at and lines[at - 1].strip():
            at -= 1
        if at < end and not is_trailers("\n".join(lines[at:end])):
            break
        start = at
        while at and not lines[at - 1].strip():
            at -= 1
    while start < len(lines):
        end = start + 1
        while end < len(lines) and lines[end][:1] in (" ", "\t") and lines[end].strip():
            end += 1
        if lines[start].strip():
            text = "\n".join(lines[start:end])
            yield _Entry(text.partition(":")[0], text), start, end
        start = end


def _cleaned(text: str) -> str:
    """A text as `git commit` cleans it: no comments, no blanks at line ends, no double gaps."""
    lines = [line.rstrip() for line in text.split("\n") if not line.startswith("#")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


# -- writing ---------------------------------------------------------------------------------


def format_header(header: Header) -> bytes:
    """Our canonical text above the diff: mail fields, message, an empty line."""
    subject, _, body = header.message.partition("\n\n")
    fields = [*_author_lines(header.author), f"Subject: {_raw_subject(subject)}"]
    lines = body.split("\n") if body else []
    if _needs_quoting(subject, lines):
        fields.append(f"{_QUOTED_FIELD}: quoted")
        lines = _quoted(lines)
    text = "\n".join([*fields, "", *lines, ""]) + ("\n" if lines else "")
    return text.encode("utf-8", "surrogateescape")


def _author_lines(author: Identity | None) -> list[str]:
    if author is None:
        return []
    date = format_date(author.date)
    return [f"From: {format_author(author)}", *([f"Date: {date}"] if date else [])]


def _raw_subject(subject: str) -> str:
    return encode_words(subject) if needs_words(subject) else subject


def _needs_quoting(subject: str, lines: Sequence[str]) -> bool:
    # a line that begins with a blank needs no quoting by itself, only where others are quoted
    return clean_subject(subject) != subject or any(
        quoted != line and line[:1] != " "
        for quoted, line in zip(_quoted(lines), lines, strict=True)
    )


def _quoted(lines: Sequence[str]) -> list[str]:
    fields = bool(lines and lines[0]) and read_in_body(lines, 0)[1] > 0
    return [
        f" {line}" if _UNQUOTABLE.match(line) or (fields and not at) else line
        for at, line in enumerate(lines)
    ]


class _Edit(Struct, frozen=True):
    """The lines from `start` to `end` are to be `lines`, with their ends."""

    start: int
    end: int
    lines: tuple[bytes, ...]


def reword(preamble: Sequence[bytes], old: Header | None, new: Header) -> bytes:
    """The lines above a diff with the words of `new` where `old` is what they said so far.

    Every other line stays to the byte: other fields, tags before the subject, what stands under
    the `---`. Only what differs between `old` and `new` is written; an author who is None in both
    is none. The result may fail to say `new` where its form has no way to (see `says`).
    """
    lines = _decoded(preamble)
    layout = _layout(lines)
    if layout.form is HeaderForm.NONE:
        return format_header(new)
    old = old or Header("")
    for write in (_in_place, _in_place_quoted):
        text = write(preamble, lines, layout, old, new)
        if text is not None and _reads(text, new, old):
            return text
    return _as_mail(preamble, lines, layout, new)


def _reads(text: bytes, new: Header, old: Header) -> bool:
    raw = split_lines(text)
    lines = _decoded(raw)
    layout = _layout(lines)
    author = _author(lines, layout)
    same = new.author == old.author or _person(author) == _person(new.author)
    return same and says(raw, new.message)


def _person(author: Identity | None) -> tuple[str, str] | None:
    return None if author is None else (author.name, author.email)


def _in_place(
    raw: Sequence[bytes], lines: Sequence[str], layout: _Layout, old: Header, new: Header
) -> bytes | None:
    eol = b"\r\n" if any(line.endswith(b"\r\n") for line in raw) else b"\n"
    before = _words(lines, layout)
    after = _taken_apart(new.message, before, layout)
    edits = [*_author_edits(lines, layout, old.author, new.author, eol)]
    if layout.form is HeaderForm.TEXT:
        if new.author != old.author:
            return None
        whole = [*after.subject.split("\n"), *([""] if after.body else []), *_lines(after.body)]
        edits += _text_edit(raw, lines, layout, whole, eol)
        return _edited(raw, edits)
    edits += _entry_edits(layout, after, eol)
    if layout.form is HeaderForm.MAIL:
        edits += _subject_edits(layout, before.subject, after.subject, eol)
        if _cleaned(before.body) != _cleaned(after.body):
            edits += _text_edit(raw, lines, layout, _lines(after.body), eol)
    else:
        edits += _described_edits(raw, lines, layout, after, eol)
    return _edited(raw, edits)


def _in_place_quoted(
    raw: Sequence[bytes], lines: Sequence[str], layout: _Layout, old: Header, new: Header
) -> bytes | None:
    """A mail whose message cannot stand there as it is: quoted, as our own writer does it."""
    if layout.form is not HeaderForm.MAIL or layout.quoted or layout.in_body:
        return None
    eol = b"\r\n" if any(line.endswith(b"\r\n") for line in raw) else b"\n"
    after = _taken_apart(new.message, _words(lines, layout), layout)
    text = _quoted(_lines(after.body))
    at = layout.fields[-1].end
    subject = layout.field("subject")
    said = f"Subject: {_raw_subject(after.subject)}"
    edits = [
        *_author_edits(lines, layout, old.author, new.author, eol),
        *_entry_edits(layout, after, eol),
        _edit(subject.start if subject else at, subject.end if subject else at, [said], eol),
        _edit(at, at, [f"{_QUOTED_FIELD}: quoted"], eol),
        *_text_edit(raw, lines, layout, text, eol),
    ]
    return _edited(raw, edits)


def _as_mail(raw: Sequence[bytes], lines: Sequence[str], layout: _Layout, new: Header) -> bytes:
    """Our own form, with the other fields of the file and what stands under its message."""
    after = _taken_apart(new.message, _words(lines, layout), layout, fold=False)
    head, _, body = format_header(
        Header(_Words(after.subject, after.body).message, new.author)
    ).partition(b"\n\n")
    own = {"from", "date", "subject", "author", "description", _QUOTED_FIELD.lower()}
    kept = [
        b"".join(raw[each.start : each.end]).replace(b"\r\n", b"\n")
        for each in layout.fields
        if each.key not in own
    ]
    return head + b"\n" + b"".join(kept) + b"\n" + body + b"".join(raw[layout.end :])


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _edit(start: int, end: int, lines: Iterable[str], eol: bytes) -> _Edit:
    return _Edit(start, end, tuple(_bytes(line) + eol for line in lines))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _edited(raw: Sequence[bytes], edits: Iterable[_Edit]) -> bytes:
    """The lines with all edits made; those at one place in the order given."""
    out = list(raw)
    ordered = sorted(enumerate(edits), key=lambda each: (each[1].start, each[0]))
    for _, edit in reversed(ordered):
        out[edit.start : edit.end] = edit.lines
    return b"".join(out)


def _author_edits(
    lines: Sequence[str],
    layout: _Layout,
    old: Identity | None,
    new: Identity | None,
    eol: bytes,
) -> Iterator[_Edit]:
    if new is None or new == old or layout.form is HeaderForm.TEXT:
        return
    keys = ("author", "from") if layout.form is HeaderForm.DEP3 else ("from", "author")
    field, date = layout.field(*keys), layout.field("date")
    at = layout.fields[0].start
    if layout.form is HeaderForm.DEP3 and layout.description is not None:
        at = layout.description.end
    if _person(new) != _person(old):
        name = field.name if field else keys[0].capitalize()
        place = (field.start, field.end) if field else (at, at)
        yield _edit(*place, [f"{name}: {format_author(new)}"], eol)
    when = format_date(new.date)
    if not when or (old is not None and new.date == old.date):
        return
    if date is not None:
        yield _edit(date.start, date.end, [f"{date.name}: {when}"], eol)
    elif layout.form is HeaderForm.MAIL:
        at = field.end if field else at
        yield _edit(at, at, [f"Date: {when}"], eol)


def _subject_edits(layout: _Layout, old: str, new: str, eol: bytes) -> Iterator[_Edit]:
    if new == old:
        return
    field = layout.field("subject")
    if field is None:
        at = layout.fields[-1].end
        yield _edit(at, at, [f"Subject: {_raw_subject(new)}"], eol)
        return
    said = decode_words(field.value)
    tags = said[: len(said) - len(old)] if old and said.endswith(old) else ""
    if field in layout.in_body and said.startswith("[PATCH]"):
        yield _edit(field.start, field.end, [f"[PATCH] {new}"], eol)
    else:
        yield _edit(field.start, field.end, [f"{field.name}: {_raw_subject(tags + new)}"], eol)


def _entry_edits(layout: _Layout, after: _Words, eol: bytes) -> Iterator[_Edit]:
    end = max((each.end for each in layout.fields), default=layout.after_fields)
    for entry in after.entries:
        field = entry.field
        if field is None:
            yield _edit(end, end, entry.text.split("\n"), eol)
        elif _entry(field).text != _joined(entry.text):
            yield _edit(field.start, field.end, entry.text.split("\n"), eol)


def _described_edits(
    raw: Sequence[bytes], lines: Sequence[str], layout: _Layout, after: _Words, eol: bytes
) -> Iterator[_Edit]:
    """Subject and reason of a DEP-3 header: in its description, and in the text below the fields.

    The part of the reason that did not change stays where it is.
    """
    field = layout.description
    text = _trim("\n".join(_text(lines, layout)))
    if field is None:
        if not text:
            at = layout.fields[0].start
            said = [after.subject, *_lines(after.body)]
            yield _edit(at, at, _folded("Description", said), eol)
            return
        whole = [after.subject, *([""] if after.body else []), *_lines(after.body)]
        if _cleaned("\n".join(whole)) != _cleaned(text):
            yield from _text_edit(raw, lines, layout, whole, eol)
        return
    rows = _description(lines, field)
    said = [each for each, _ in rows]
    long = _trim("\n".join(said[1:]))
    body, rest = _parted(_cleaned(after.body), _cleaned(long), _cleaned(text))
    if rest != _cleaned(text):
        yield from _text_edit(raw, lines, layout, _lines(rest), eol)
    if after.subject == (said or [""])[0] and body == _cleaned(long):
        return
    if body == _cleaned(long):
        body = long
    name = lines[field.start].lstrip(BLANKS).partition(":")[0]
    kept = {each: raw[index] for each, index in rows[1:] if index > field.start}
    first, *more = _folded(name, [after.subject, *_lines(body)])
    new = [_bytes(first) + eol]
    for line, plain in zip(more, _lines(body), strict=True):
        new.append(kept.get(plain, _bytes(line) + eol))
    if rows and after.subject == said[0] and rows[0][1] == field.start:
        new[0] = raw[field.start]
    yield _Edit(field.start, field.end, tuple(new))


def _parted(body: str, long: str, text: str) -> tuple[str, str]:
    """Which part of a new reason is the description's, and which stands in the text below."""
    if not text:
        return body, ""
    if body == text or body.endswith(f"\n\n{text}"):
        return body[: len(body) - len(text)].rstrip("\n"), text
    if body == long or not long or body.startswith(f"{long}\n\n"):
        return long, body[len(long) :].lstrip("\n")
    return body, ""


def _folded(name: str, lines: Sequence[str]) -> list[str]:
    first, *more = lines
    return [f"{name}: {first}", *(f" {line}" if line.strip() else " ." for line in more)]


def _text_edit(
    raw: Sequence[bytes], lines: Sequence[str], layout: _Layout, new: Sequence[str], eol: bytes
) -> Iterator[_Edit]:
    """The text replaced; its lines that stay keep their bytes.

    So do the comments in it, which git takes off a message that is edited.
    """
    start, end = layout.text, layout.end
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    meant = _text(lines, layout)[start - layout.text : end - layout.text]
    if layout.quoted:
        new = _quoted(new)
        meant = list(lines[start:end])
    if start == end:
        if not new:
            return
        gap = [] if start > layout.after_fields and not lines[start - 1].strip() else [""]
        below = [""] if end == len(lines) else []
        yield _edit(start, end, [*gap, *new, *below], eol)
        return
    merged = _merged(meant, raw[start:end], new, lambda line: _bytes(line) + eol)
    yield _Edit(start, end, tuple(merged))


def _merged(
    old: Sequence[str], raw: Sequence[bytes], new: Sequence[str], write: Callable[[str], bytes]
) -> list[bytes]:
    """`new` with the bytes that a line has already; comments and gaps of `old` that git drops."""
    comments = any(line.startswith("#") for line in new)  # it was not cleaned
    kept = list(range(len(old))) if comments else _kept(old)
    matcher = SequenceMatcher(
        None, [old[at].rstrip() for at in kept], [line.rstrip() for line in new], autojunk=False
    )
    out: list[bytes] = []
    at = 0  # the raw lines before it are done
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            out += raw[at : kept[i2 - 1] + 1]
            at = kept[i2 - 1] + 1
            continue
        if tag != "insert":
            out += raw[at : kept[i1]]
            at = kept[i2 - 1] + 1
        out += map(write, new[j1:j2])
        if tag != "insert":
            out += [raw[n] for n in range(kept[i1], at) if old[n].startswith("#")]
    return out + list(raw[at:])


def _kept(lines: Sequence[str]) -> list[int]:
    """The lines that git leaves when it cleans a message."""
    kept: list[int] = []
    for at, line in enumerate(lines):
        if line.startswith("#") or (not line.strip() and not (kept and lines[kept[-1]].strip())):
            continue
        kept.append(at)
    while kept and not lines[kept[-1]].strip():
        kept.pop()
    return kept
