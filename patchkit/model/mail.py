"""Patch files as people write them: a header, the diff, perhaps a mail signature; the words of the
header changed in place; and our trailer in their messages.

`preamble + diff + signature` is the file to the byte. `header.py` reads what the header says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from patchkit.model.dates import format_date
from patchkit.model.diff_parse import end_of_hunk, read_diff, split_lines
from patchkit.model.header import (
    QUOTED_FIELD,
    SPOKEN,
    Entry,
    HeaderLayout,
    Words,
    add_trailers,
    author_of,
    clean_message,
    description_of,
    entry_of,
    format_header,
    is_trailers,
    joined,
    layout_of_header,
    quoted,
    raw_subject,
    read_header,
    text_of,
    trimmed,
    words_of,
)
from patchkit.model.mailinfo import BLANKS, MailField, decode_words, format_author
from patchkit.model.patch import Header, HeaderForm, Identity, PatchFile

# The words of a header changed in place: every other line above the diff stays to the byte.
#
# The lines that say subject, reason, author or a field are found as `header.py` reads them; those
# of the text that stay are matched line by line, and keep their bytes. What comes out is read
# again: where a form has no way to say the new words, the header becomes a mail of our own form.


# No line of a hunk can be one: these begin with a mark.
_MAIL_START = re.compile(rb"^(?=From \S+ .*\d\d:\d\d:\d\d|(?:From|Subject|Date):)", re.MULTILINE)


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
    layout = layout_of_header(preamble)
    if layout.form is HeaderForm.NONE:
        return format_header(new)
    old = old or Header("")
    if layout.form is not HeaderForm.TEXT or new.author == old.author:
        text = _in_place(layout, old, new)
        if _reads(text, new, old):
            return text
    return _as_mail(layout, new)


def _reads(text: bytes, new: Header, old: Header) -> bool:
    raw = split_lines(text)
    author = author_of(layout_of_header(raw))
    same = new.author == old.author or _person(author) == _person(new.author)
    return same and says(raw, new.message)


def _person(author: Identity | None) -> tuple[str, str] | None:
    return None if author is None else (author.name, author.email)


def _in_place(layout: HeaderLayout, old: Header, new: Header) -> bytes:
    before = words_of(layout)
    after = _taken_apart(new.message, before, layout)
    if layout.form is HeaderForm.TEXT:
        return _edited(layout.raw, _text_edit(layout, _lines(after.text)))
    edits = [*_author_edits(layout, old.author, new.author)]
    for entry in after.entries:
        if entry.field is None or entry_of(entry.field).text != joined(entry.text):
            edits.append(_field_edit(layout, entry.field, entry.text))
    if layout.form is HeaderForm.DEP3:
        edits += _described_edits(layout, after)
    else:
        if before.subject != after.subject:
            edits.append(_subject_edit(layout, before.subject, after.subject))
        if _cleaned(before.body) != _cleaned(after.body):
            edits += _text_edit(layout, _lines(after.body))
    return _edited(layout.raw, edits)


def _as_mail(layout: HeaderLayout, new: Header) -> bytes:
    """Our own form, with the other fields of the file and what stands under its message."""
    after = _taken_apart(new.message, words_of(layout), layout, fold=False)
    head, _, body = format_header(Header(after.text, new.author)).partition(b"\n\n")
    own = {"from", "date", "subject", "author", "description", QUOTED_FIELD.lower()}
    kept = [
        b"".join(layout.raw[field.start : field.end]).replace(b"\r\n", b"\n")
        for field in layout.fields
        if field.key not in own
    ]
    return head + b"\n" + b"".join(kept) + b"\n" + body + b"".join(layout.raw[layout.end :])


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _edit(layout: HeaderLayout, start: int, end: int, lines: Iterable[str]) -> _Edit:
    return _Edit(start, end, tuple(_bytes(line) + layout.eol for line in lines))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _edited(raw: Sequence[bytes], edits: Iterable[_Edit]) -> bytes:
    """The lines with all edits made; those at one place in the order given."""
    out = list(raw)
    for edit in sorted(edits, key=lambda edit: edit.start)[::-1]:
        out[edit.start : edit.end] = edit.lines
    return b"".join(out)


def _field_edit(layout: HeaderLayout, field: MailField | None, text: str) -> _Edit:
    """Another text in the place of a field, or below all fields."""
    end = layout.fields[-1].end
    return _edit(layout, field.start if field else end, field.end if field else end, _lines(text))


def _author_edits(
    layout: HeaderLayout, old: Identity | None, new: Identity | None
) -> Iterator[_Edit]:
    if new is None:
        return
    keys = ("author", "from") if layout.form is HeaderForm.DEP3 else ("from", "author")
    field, date = layout.field(*keys), layout.field("date")
    if _person(new) != _person(old):
        name = field.name if field else keys[0].capitalize()
        yield _field_edit(layout, field, f"{name}: {format_author(new)}")
    when = format_date(new.date)
    if when and new.date != (old and old.date) and (date or layout.form is HeaderForm.MAIL):
        yield _field_edit(layout, date, f"{date.name if date else 'Date'}: {when}")


def _subject_edit(layout: HeaderLayout, old: str, new: str) -> _Edit:
    field = layout.field("subject")
    said = decode_words(field.value) if field else ""
    tags = said[: len(said) - len(old)] if old and said.endswith(old) else ""
    name = field.name if field else "Subject"
    return _field_edit(layout, field, f"{name}: {raw_subject(tags + new)}")


def _described_edits(layout: HeaderLayout, after: Words) -> Iterator[_Edit]:
    """Subject and reason of a DEP-3 header: in its description, and in the text below the fields.

    The part of the reason that did not change stays where it is.
    """
    field = layout.description
    text = trimmed("\n".join(text_of(layout)))
    if field is None and text:
        if _cleaned(after.text) != _cleaned(text):
            yield from _text_edit(layout, _lines(after.text))
        return
    rows = description_of(layout)
    long = trimmed("\n".join(said for said, _ in rows[1:]))
    body, rest = _parted(_cleaned(after.body), _cleaned(long), _cleaned(text))
    if rest != _cleaned(text):
        yield from _text_edit(layout, _lines(rest))
    if rows and after.subject == rows[0][0] and body == _cleaned(long):
        return
    name = layout.lines[field.start].lstrip(BLANKS).partition(":")[0] if field else "Description"
    more = _merged(
        [said for said, _ in rows[1:]],
        [layout.raw[index] for _, index in rows[1:]],
        _lines(body),
        lambda line: _bytes(f" {line}" if line.strip() else " .") + layout.eol,
    )
    first = _bytes(f"{name}: {after.subject}") + layout.eol
    at = layout.fields[0].start
    yield _Edit(field.start if field else at, field.end if field else at, (first, *more))


def _parted(body: str, long: str, text: str) -> tuple[str, str]:
    """Which part of a new reason is the description's, and which stands in the text below."""
    if not text:
        return body, ""
    if body == text or body.endswith(f"\n\n{text}"):
        return body[: len(body) - len(text)].rstrip("\n"), text
    if body == long or not long or body.startswith(f"{long}\n\n"):
        return long, body[len(long) :].lstrip("\n")
    return body, ""


def _text_edit(layout: HeaderLayout, new: Sequence[str]) -> Iterator[_Edit]:
    """The text replaced; its lines that stay keep their bytes.

    So do the comments in it, which git takes off a message that is edited.
    """
    start, end, lines = layout.text, layout.end, layout.lines
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    meant = text_of(layout)[start - layout.text : end - layout.text]
    if layout.quoted:
        new = quoted(new)
        meant = list(lines[start:end])
    if start == end:
        if not new:
            return
        gap = [] if start > layout.after_fields and not lines[start - 1].strip() else [""]
        below = [""] if end == len(lines) else []
        yield _edit(layout, start, end, [*gap, *new, *below])
        return
    merged = _merged(meant, layout.raw[start:end], new, lambda line: _bytes(line) + layout.eol)
    yield _Edit(start, end, tuple(merged))


def _merged(
    old: Sequence[str], raw: Sequence[bytes], new: Sequence[str], write: Callable[[str], bytes]
) -> list[bytes]:
    """`new` with the bytes that a line has already; comments and gaps of `old` that git drops."""
    from difflib import SequenceMatcher  # noqa: PLC0415 (where a header changes)

    cleaned = not any(line.startswith("#") for line in new)
    rows: list[tuple[str, list[bytes], bytes]] = []  # a line, what git drops above it, its bytes
    above: list[bytes] = []
    for said, data in zip(old, raw, strict=True):
        gap = not said.strip() and not (rows and rows[-1][0])
        if cleaned and (gap or said.startswith("#")):
            above.append(data)
        else:
            rows.append((said.rstrip(), above, data))
            above = []
    if rows and not rows[-1][0]:  # git drops a gap at the end, too
        _, before, data = rows.pop()
        above = [*before, data, *above]
    sides = [row[0] for row in rows], [line.rstrip() for line in new]
    out: list[bytes] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, *sides, autojunk=False).get_opcodes():
        for _, before, data in rows[i1:i2]:
            out += [*before, data] if tag == "equal" else before
        out += map(write, new[j1:j2]) if tag != "equal" else ()
    return out + above


# -- a message and the fields of its file ---------------------------------------------------------


def says(preamble: Sequence[bytes], message: str) -> bool:
    """Whether lines above a diff say what `message` says, up to what git cleans from a message.

    Fields of the file that the message leaves out do not count: they are the file's.
    """
    layout = layout_of_header(preamble)
    there = words_of(layout)
    wanted = _taken_apart(message, there, layout)
    known = {joined(each.text) for each in there.entries}
    same = _cleaned(there.text) == _cleaned(wanted.text)
    return same and all(joined(each.text) in known for each in wanted.entries)


def _taken_apart(message: str, old: Words, layout: HeaderLayout, *, fold: bool = True) -> Words:
    """A message's words, its last trailers matched with the fields that the file has.

    A trailer is a field's if it says what the field says, else if it has the name of a field that
    no trailer says, else, in DEP-3, if it is new. Trailers that the old body had stay its.
    """
    subject, _, body = clean_message(message).partition("\n\n")
    if fold and layout.form is HeaderForm.DEP3 and "\n" in subject:
        subject, _, more = subject.partition("\n")
        body = f"{more}\n\n{body}".strip("\n")
    if layout.form not in (HeaderForm.MAIL, HeaderForm.DEP3):
        return Words(subject, body)
    lines = body.split("\n") if body else []
    trailers = list(_last_trailers(lines))
    said = {joined(entry.text) for entry, _, _ in trailers}
    known = {joined(entry.text): entry.field for entry in old.entries}
    named = {entry.key: entry.field for entry in old.entries if joined(entry.text) not in said}
    taken: list[Entry] = []
    gone: set[int] = set()
    for entry, start, end in trailers:
        field = known.get(joined(entry.text))
        is_free = field is None and lines[start] not in old.body.split("\n")
        new = layout.form is HeaderForm.DEP3 and entry.key not in SPOKEN
        if field is not None or (is_free and (new or entry.key in named)):
            taken.append(Entry(entry.name, entry.text, field or named.pop(entry.key, None)))
            gone.update(range(start, end))
    kept = [line for at, line in enumerate(lines) if at not in gone]
    return Words(subject, trimmed("\n".join(kept)), tuple(taken))


def _last_trailers(lines: Sequence[str]) -> Iterator[tuple[Entry, int, int]]:
    """The trailers of the paragraph that ends a body: entry, first line, end."""
    start = len(lines)
    while start and lines[start - 1].strip():
        start -= 1
    if not is_trailers("\n".join(lines[start:])):
        return
    while start < len(lines):
        end = start + 1
        while end < len(lines) and lines[end][:1] in (" ", "\t"):
            end += 1
        text = "\n".join(lines[start:end])
        yield Entry(text.partition(":")[0], text), start, end
        start = end


def _cleaned(text: str) -> str:
    """A text as `git commit` cleans it: no comments, no blanks at line ends, no double gaps."""
    lines = [line.rstrip() for line in text.split("\n") if not line.startswith("#")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def parse_patch(data: bytes, *, name: str, strip: int = 1) -> PatchFile:
    """The patch file `name` with the contents `data`; `strip` is what `git apply -p` means by it.

    Raises BadInputError with `name:line` for every corrupt place.
    """
    lines = split_lines(data)
    found = read_diff(lines, strip=strip, name=name)
    end = _signature_start(lines, found.end if found.changes else 0)
    if found.changes:
        end = min(end, end_of_hunk(lines, found.end))
    start = min(found.start, end)
    form, header = read_header(lines[:start], name)
    return PatchFile(
        preamble=b"".join(lines[:start]),
        diff=b"".join(lines[start:end]),
        signature=b"".join(lines[end:]),
        header=header,
        changes=found.changes,
        strip=strip,
        stray=found.stray,
        form=form,
    )


def mails_of(file: PatchFile, name: str) -> list[PatchFile]:
    """The mails that a file consists of: each begins where a header follows a diff."""
    mails = [b""]
    for piece in _MAIL_START.split(file.data):
        if read_diff(split_lines(mails[-1]), strip=file.strip, name=name).changes:
            mails.append(b"")
        mails[-1] += piece
    return [parse_patch(mail, name=name, strip=file.strip) for mail in mails]


def _signature_start(lines: Sequence[bytes], end: int) -> int:
    """The index of the last `-- ` line at or after `end`; len(lines) if there is none."""
    for index in range(len(lines) - 1, end - 1, -1):
        if lines[index] in (b"-- \n", b"--\n", b"-- \r\n"):
            return index
    return len(lines)


# The trailer `Patchkit-Patch` carries a patch's file name through git: a commit that was amended,
# reordered or dropped on the stack finds its patch file again by it; what is exported does not have
# it.


PATCH_TRAILER = "Patchkit-Patch"

_OURS = re.compile(rf"{PATCH_TRAILER}: *(\S+) *")


def add_patch_trailer(message: str, name: str) -> str:
    """`message` with the trailer that names the patch file, and no other of its kind."""
    return add_trailers(split_patch_trailer(message)[0], f"{PATCH_TRAILER}: {name}")


def split_patch_trailer(message: str) -> tuple[str, str | None]:
    """The message without our trailers, and the patch name that the first one gave, if any.

    Commits that git squashed have several: the whole is the first one's, as its subject is.
    """
    lines = message.rstrip("\n").split("\n")
    names = [match[1] for match in map(_OURS.fullmatch, lines) if match]
    if not names:
        return message.rstrip("\n"), None
    text = "\n".join(line for line in lines if not _OURS.fullmatch(line)).rstrip("\n")
    return text if len(names) == 1 else re.sub(r"\n{3,}", "\n\n", text), names[0]


def with_trailer(file: PatchFile, trailer: str, otherwise: str) -> bytes:
    """A patch file with further trailers below its message (in DEP-3 among its fields).

    All else is kept. A patch that says nothing gets a header with the message `otherwise`.
    """
    old = file.header
    if old is None:
        head = format_header(Header(f"{otherwise}\n\n{trailer}")) + file.preamble
    else:
        new = Header(add_trailers(old.message, trailer), old.author)
        head = reword(split_lines(file.preamble), old, new)
    return head + file.diff + file.signature


def subject_from(name: str) -> str:
    """What a patch that says nothing is called: its file's name in words."""
    words = name.removesuffix(".patch").replace("-", " ")
    return f"{words[:1].upper()}{words[1:]}"
