"""Read diffs: git's extended format and plain unified diffs, as `git apply` reads them.

Text between file changes is passed over, as git does. What claims to be a diff and is not sound is
never guessed at: every offence is reported with its line, and nothing is returned. Unsafe paths
are no offence here; `names.py` judges them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

from msgspec import Struct

from patchkit.errors import BadInputError
from patchkit.model.diff_header import (
    HeaderDraft,
    HeaderProblems,
    read_git_header,
    read_plain_header,
    starts_plain,
)
from patchkit.model.objects import decode_path
from patchkit.model.patch import BinaryHunk, BinaryMethod, FileChange, Hunk, Kind

# The payload of a `GIT binary patch`: base-85 lines, deflated, a literal or a delta.
#
# The format is git's (gitformat-patch is silent about it, `git apply` is the oracle): a line
# `literal SIZE` or `delta SIZE`, lines of a length letter and base-85 groups, an empty line.


_SHORTEST_DELTA = 4  # of bytes; git takes no shorter one
_DIGITS = 18  # of a length; no file has more bytes
#: How many bytes a line has is said by its letter: 1 by the first, 52 by the last.
_LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class BadPayloadError(ValueError):
    """A payload that cannot be decoded; `index` is the offending line's place in the sequence."""

    def __init__(self, index: int, what: str) -> None:
        super().__init__(what)
        self.index = index


def read_binary_hunk(lines: Sequence[bytes], start: int) -> tuple[BinaryHunk, int] | None:
    """The binary hunk that begins at `lines[start]` and the index of the first line after it.

    None if no such hunk begins there; BadPayloadError if one does and cannot be decoded. Lines
    keep their newline.
    """
    head = lines[start] if start < len(lines) else b""
    method, _, number = head.rstrip(b"\r\n").partition(b" ")
    if method not in (b"literal", b"delta"):
        return None
    if not number.isdigit() or len(number) > _DIGITS:
        raise BadPayloadError(start, "binary hunk without a length")
    end = start + 1
    while end < len(lines) and lines[end] != b"\n":
        end += 1
    if end == len(lines):
        raise BadPayloadError(end - 1, "binary hunk is not closed by an empty line")
    data = _inflate(_decode_lines(lines, start + 1, end), int(number), start)
    return BinaryHunk(BinaryMethod(method.decode()), data), end + 1


def apply_delta(source: bytes, delta: bytes) -> bytes | None:
    """The target that `delta` makes of `source`; None if it does not fit (git's pack delta)."""
    if len(delta) < _SHORTEST_DELTA:
        return None
    try:
        expected, position = _varint(delta, 0)
        size, position = _varint(delta, position)
        if expected != len(source):
            return None
        target = b"".join(_delta_pieces(source, delta, position))
    except (IndexError, ValueError):
        return None
    return target if len(target) == size else None


def _decode_lines(lines: Sequence[bytes], start: int, end: int) -> bytes:
    from base64 import b85decode  # noqa: PLC0415 (few patches are binary)

    chunks = []
    for index in range(start, end):
        text = lines[index].rstrip(b"\n")
        size = _LENGTHS.find(text[:1]) + 1
        # five characters carry four bytes; at most three bytes of the last group are filler
        if not size or len(text) % 5 != 1 or (len(text) - 1) // 5 != (size + 3) // 4:
            raise BadPayloadError(index, "binary line of a wrong length")
        try:
            chunks.append(b85decode(text[1:])[:size])
        except ValueError:
            raise BadPayloadError(index, "binary line is not base-85") from None
    return b"".join(chunks)


def _inflate(data: bytes, size: int, line: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        # one byte more than promised is enough to see that it is too long
        result = inflater.decompress(data, size + 1)
    except zlib.error:
        raise BadPayloadError(line, "binary hunk cannot be inflated") from None
    if len(result) != size or not inflater.eof:
        raise BadPayloadError(line, f"binary hunk does not inflate to the {size} bytes it promises")
    return result


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, position


def _delta_pieces(source: bytes, delta: bytes, position: int) -> list[bytes]:
    pieces = []
    while position < len(delta):
        command = delta[position]
        position += 1
        if command & 0x80:
            offset, position = _copy_field(delta, position, command, 4)
            size, position = _copy_field(delta, position, command >> 4, 3)
            size = size or 0x10000
            if offset + size > len(source):
                raise ValueError("copies from beyond the source")
            pieces.append(source[offset : offset + size])
        elif command and position + command <= len(delta):
            pieces.append(delta[position : position + command])
            position += command
        else:
            raise ValueError("reserved or cut-off command")
    return pieces


def _copy_field(delta: bytes, position: int, flags: int, width: int) -> tuple[int, int]:
    value = 0
    for byte in range(width):
        if flags >> byte & 1:
            value |= delta[position] << 8 * byte
            position += 1
    return value, position


# no file has as many lines as more digits say, and Python refuses to read thousands of them
_NUMBER = rb"(\d{1,18})"
HUNK = re.compile(rb"@@ -%b(?:,%b)? \+%b(?:,%b)? @@" % ((_NUMBER,) * 4))
_SPACE, _PLUS, _MINUS, _NEWLINE = b" +-\n"
# bytes below a line: with no more it opens no change
_TOO_FEW = 5
_COMBINED = (b"diff --cc ", b"diff --combined ")
_CORRUPT_HINT = "regenerate the patch, or correct the counts in the @@ line"


class DiffLines(Struct, frozen=True):
    """The changes in some lines, and the indices between which they stand there.

    `start` is where the first change (with what announces it: `Index: x`, `diff -u a b`) begins,
    `end` the line after the last one; both are the number of lines where there is no change.
    `stray` are the line numbers that look like lines of the hunk above them and are beyond its
    counts: git passes over them without a word.
    """

    changes: tuple[FileChange, ...]
    start: int
    end: int
    stray: tuple[int, ...] = ()


def parse_diff(
    data: bytes, first_line: int = 1, *, strip: int = 1, name: str = ""
) -> tuple[FileChange, ...]:
    """The file changes in a diff, in order; empty if there are none.

    `first_line` is the number of the first line in the patch file `name`, `strip` how many leading
    folders to take off the paths. Raises BadInputError with every offence found.
    """
    return read_diff(split_lines(data), first_line, strip=strip, name=name).changes


def read_diff(
    lines: list[bytes], first_line: int = 1, *, strip: int = 1, name: str = ""
) -> DiffLines:
    """As `parse_diff`, of lines that keep their newlines; says also where the changes stand."""
    parser = _Parser(lines, first_line, strip, name)
    changes, end = parser.run()
    if parser.offences.problems:
        raise BadInputError(*parser.offences.problems)
    if not changes:
        return DiffLines((), len(lines), len(lines))
    start = changes[0].line - first_line
    if changes[0].plain:
        start = _with_its_announcement(lines, start)
    return DiffLines(tuple(changes), start, end, tuple(parser.stray))


_LOOKED_AT = 8000  # bytes: git's buffer_is_binary looks no further


def is_binary(data: bytes) -> bool:
    """Whether git takes a file for binary: a NUL stands near its beginning."""
    return data.find(b"\0", 0, _LOOKED_AT) >= 0


def split_lines(data: bytes) -> list[bytes]:
    """The lines of `data` with their newlines; only LF ends a line."""
    if b"\r" not in data:  # at which bytes are split as well, and at nothing else
        return data.splitlines(keepends=True)
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    if not lines[-1]:
        lines.pop()
    return lines


class _Parser:
    """Walks over the lines; `_at` is the index of the next one."""

    def __init__(self, lines: list[bytes], first_line: int, strip: int, name: str) -> None:
        self.offences = HeaderProblems(name, first_line)
        self.stray: list[int] = []
        self._lines = lines
        self._strip = strip
        self._at = 0
        # a `diff --git` line that nothing follows: text, if no other header comes after it; git
        # lets that one inherit its name, and may so change a file that nobody meant
        self._bare: int | None = None

    def run(self) -> tuple[list[FileChange], int]:
        """The changes, and the index of the line after the last one."""
        changes = []
        end = 0
        while self._at < len(self._lines):
            draft = self._next_header()
            change = self._body(draft) if draft is not None else None
            if change is not None:
                changes.append(change)
                end = self._at
                self._note_strays(change)
        return changes, end

    def _note_strays(self, change: FileChange) -> None:
        if change.hunks:
            stop = end_of_hunk(self._lines, self._at)
            beyond = range(self._at, stop)
            self.stray += [
                self.offences.number(index)
                for index in beyond
                if self._lines[index].strip() not in (b"", b"--")
            ]

    # -- finding headers ---------------------------------------------------------------------

    def _next_header(self) -> HeaderDraft | None:
        """Pass over one line, or read the header that starts there."""
        lines, at = self._lines, self._at
        line = lines[at]
        self._at += 1
        opens = _more_than(_TOO_FEW, lines, at + 1)
        if opens and line.startswith(b"diff --git "):
            return self._git_header(at)
        if opens and starts_plain(lines, at):
            return self._plain_header(at)
        if line.startswith(b"@@ -") and line.endswith(b"\n") and HUNK.match(line):
            self.offences.add(at, "hunk without a file header above it", _CORRUPT_HINT)
            self._skip_hunk_lines()
        elif line.startswith(_COMBINED):
            self.offences.add(
                at, "combined diff of a merge commit", "make the patch against one of the parents"
            )
        return None

    def _git_header(self, at: int) -> HeaderDraft | None:
        draft, self._at = read_git_header(self._lines, at, self._strip, self.offences)
        bare, self._bare = self._bare, None
        if self._at == at + 1:
            self._bare = at
            return None
        if bare is not None:
            self.offences.add(bare, "header of a file without any change")
        if draft is None:
            self._skip_hunks()
        return draft

    def _plain_header(self, at: int) -> HeaderDraft | None:
        draft = read_plain_header(self._lines, at, self._strip, self.offences)
        self._at = at + 2
        bare, self._bare = self._bare, None
        if draft is None:
            self._skip_hunks()
        elif bare is not None and draft.declared:
            self.offences.add(bare, "header of a file without any change")
        elif bare is not None:
            draft.plain = False  # it inherits from the bare header that it adds no file
        return draft

    @property
    def _line(self) -> bytes:
        """The line in hand, b"" behind the last one."""
        return self._lines[self._at] if self._at < len(self._lines) else b""

    # -- bodies ------------------------------------------------------------------------------

    def _body(self, draft: HeaderDraft) -> FileChange | None:
        hunks = self._hunks()
        if hunks is None:
            return None
        if hunks:
            return self._with_hunks(draft, hunks)
        line = self._line
        if line == b"GIT binary patch\n":
            return self._binary(draft)
        if line.startswith((b"Binary files ", b"Files ")) and line.endswith(b" differ\n"):
            self._at += 1
            return draft.finish(differs=True)
        if not draft.changes_something:
            path = decode_path(draft.new_name or draft.old_name or b"")
            self._offend_header(draft, f"{path}: header without any change")
            return None
        return draft.finish()

    def _with_hunks(self, draft: HeaderDraft, hunks: list[Hunk]) -> FileChange | None:
        if draft.kind is Kind.ADD and any(hunk.old_count for hunk in hunks):
            self._offend_header(draft, "new file depends on old contents")
            return None
        if draft.kind is Kind.DELETE and any(hunk.new_count for hunk in hunks):
            self._offend_header(draft, "deleted file still has contents")
            return None
        return draft.finish(hunks)

    def _offend_header(self, draft: HeaderDraft, what: str) -> None:
        self.offences.add(draft.line - self.offences.first_line, what)

    def _hunks(self) -> list[Hunk] | None:
        """The hunks that follow, None if one is corrupt; reads on to report every corrupt one."""
        hunks: list[Hunk] = []
        sound = True
        while self._starts_hunk():
            hunk = self._hunk()
            if hunk is None:
                sound = False
                self._skip_hunk_lines()
            else:
                hunks.append(hunk)
        return hunks if sound else None

    def _starts_hunk(self) -> bool:
        # a file may end here, in the middle of a line: that begins no hunk
        return self._line.startswith(b"@@ -") and self._line != b"@@ -"

    def _hunk(self) -> Hunk | None:
        start = self._at
        head = self._lines[start]
        match = HUNK.match(head)
        self._at += 1
        if match is None:
            self.offences.add(start, "malformed @@ line")
            return None
        old, new = int(match[2] or 1), int(match[4] or 1)
        body = self._hunk_body(old, new) if old or new else []
        if body is None:
            self._miscounted(start, old, new)
            return None
        if all(text[0] == _SPACE for text in body):
            self.offences.add(start, "hunk changes nothing")
            return None
        section = head[match.end() :].rstrip(b"\n").removeprefix(b" ")
        return Hunk(
            int(match[1]),
            old,
            int(match[3]),
            new,
            section,
            tuple(body),
            self.offences.number(start),
        )

    def _hunk_body(self, old: int, new: int) -> list[bytes] | None:
        """Exactly the promised lines; None, with `_at` somewhere within, if they do not follow."""
        body: list[bytes] = []
        lines = self._lines
        for at in range(self._at, len(lines)):
            line = lines[at]
            mark = line[0]
            if mark == _SPACE:
                old -= 1
                new -= 1
            elif mark == _PLUS:
                new -= 1
            elif mark == _MINUS:
                old -= 1
            elif mark == _NEWLINE:  # an empty context line whose space was stripped on the way
                old -= 1
                new -= 1
                line = b" \n"
            elif _is_no_newline(line):
                self._at += 1
                body[-1:] = [text.removesuffix(b"\n") for text in body[-1:]]
                continue
            else:
                return None
            body.append(line)
            if old <= 0 and new <= 0:
                break
        self._at += len(body)
        at, end = self._at, len(lines)
        if old or new or (at == end and not lines[-1].endswith(b"\n")):
            return None
        # behind a hunk git counts what is left of the file, not the line
        if lines[at : at + 1] and lines[at].startswith(b"\\ ") and _more_than(12, lines, at):
            body[-1] = body[-1].removesuffix(b"\n")
            self._at += 1
        return body

    def _miscounted(self, start: int, old: int, new: int) -> None:
        follow = self._lines[start + 1 : end_of_hunk(self._lines, start + 1)]
        while follow and follow[-1] == b"\n":
            follow.pop()
        has_old, has_new = lines_counted(follow)
        what = f"hunk at line {self.offences.number(start)}"
        hint = _CORRUPT_HINT
        if (has_old, has_new) != (old, new):
            what += f" declares {old} old and {new} new lines, but has {has_old} and {has_new}"
        elif not self._lines[-1].endswith(b"\n"):
            what += " lacks only the newline at its end"
            hint = "add it: the patch is whole otherwise"
        else:
            what += " is cut off"
        self.offences.add(start, what, hint)

    def _skip_hunks(self) -> None:
        while self._line.startswith(b"@@ -"):
            self._at += 1
            self._skip_hunk_lines()

    def _skip_hunk_lines(self) -> None:
        self._at = end_of_hunk(self._lines, self._at)

    def _binary(self, draft: HeaderDraft) -> FileChange | None:
        start = self._at
        try:
            forward = read_binary_hunk(self._lines, start + 1)
            if forward is None:
                self._at = start + 1
                self.offences.add(start, "binary patch without a literal or a delta")
                return None
            hunk, self._at = forward
            reverse = read_binary_hunk(self._lines, self._at)
            if reverse is None:
                return draft.finish(binary=(hunk, None))
            self._at = reverse[1]
            return draft.finish(binary=(hunk, reverse[0]))
        except BadPayloadError as error:
            self.offences.add(error.index, str(error), "the patch was damaged on its way")
            self._at = error.index + 1
            return None


def _more_than(count: int, lines: Sequence[bytes], at: int) -> bool:
    """Whether the lines from `at` on have more than `count` bytes."""
    return sum(map(len, lines[at : at + count + 1])) > count


def _is_no_newline(line: bytes) -> bool:
    # "\ No newline at end of file" in any language; 12 is git's own sanity check
    return line.startswith(b"\\ ") and len(line) >= 12


def _with_its_announcement(lines: Sequence[bytes], index: int) -> int:
    """Step back over `diff -u a b`, `Index: x` and the line of `=` that may precede `---`."""
    while index and announces(lines[index - 1]):
        index -= 1
    return index


def announces(line: bytes) -> bool:
    """Whether a line may announce a file of a plain diff: `diff -u a b`, `Index: x`, `=====`."""
    bare = line.rstrip()
    return line.startswith((b"diff ", b"Index: ")) or (len(bare) > 10 and not bare.strip(b"="))


def lines_counted(body: Sequence[bytes]) -> tuple[int, int]:
    """How many old and new lines the lines of a hunk are."""
    marks = [line[:1].strip() for line in body if line[:1] != b"\\"]
    return len(marks) - marks.count(b"+"), len(marks) - marks.count(b"-")


def end_of_hunk(lines: Sequence[bytes], index: int) -> int:
    """Where the lines stop that may belong to a hunk whose counts cannot be trusted."""
    while index < len(lines):
        line = lines[index]
        if line[:1] not in (b" ", b"+", b"-", b"\\", b"\n"):
            break
        if line == b"-- \n" or starts_plain(lines, index):
            break
        index += 1
    return index
