"""Read diffs: git's extended format and plain unified diffs, as `git apply` reads them.

Text between file changes is passed over, as git does. What claims to be a diff and is not sound is
never guessed at: every offence is reported with its line, and nothing is returned. Unsafe paths
are no offence here; `paths.py` judges them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from patchkit.errors import BadInputError, Problem
from patchkit.model import diffnames
from patchkit.model.binary import BadPayloadError, read_binary_hunk
from patchkit.model.objects import decode_path
from patchkit.model.patch import BinaryHunk, FileChange, Hunk, Kind

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_INDEX = re.compile(rb"([^.\n]{0,40})\.\.([^ \r\n]{0,40})\r?(?: (.*))?\n", re.DOTALL)
_HEX = re.compile(rb"[0-9a-f]+")
_MODE = re.compile(rb"([0-7]+)[ \t\r\n]")
_COMBINED = (b"diff --cc ", b"diff --combined ")
_CORRUPT_HINT = "regenerate the patch, or correct the counts in the @@ line"


@dataclass(frozen=True, slots=True)
class DiffLines:
    """The changes in some lines, and the indices between which they stand there.

    `start` is where the first change (with what announces it: `Index: x`, `diff -u a b`) begins,
    `end` the line after the last one; both are the number of lines where there is no change.
    """

    changes: tuple[FileChange, ...]
    start: int
    end: int


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
    if parser.problems:
        raise BadInputError(*parser.problems)
    if not changes:
        return DiffLines((), len(lines), len(lines))
    start = changes[0].line - first_line
    if changes[0].plain:
        start = _with_its_announcement(lines, start)
    return DiffLines(tuple(changes), start, end)


def split_lines(data: bytes) -> list[bytes]:
    """The lines of `data` with their newlines; only LF ends a line."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    if not lines[-1]:
        lines.pop()
    return lines


@dataclass(slots=True)
class _Draft:
    """A file change while its header is read."""

    line: int
    declared: list[Kind] = field(default_factory=list)
    old_name: bytes | None = None
    new_name: bytes | None = None
    old_mode: int | None = None
    new_mode: int | None = None
    old_blob: str | None = None
    new_blob: str | None = None
    similarity: int | None = None
    plain: bool = False

    @property
    def kind(self) -> Kind:
        return self.declared[0] if self.declared else Kind.MODIFY

    @property
    def changes_something(self) -> bool:
        modes = self.old_mode, self.new_mode
        return bool(self.declared) or (None not in modes and modes[0] != modes[1])

    def finish(
        self,
        hunks: Sequence[Hunk] = (),
        binary: tuple[BinaryHunk, BinaryHunk | None] | None = None,
        *,
        differs: bool = False,
    ) -> FileChange:
        old = None if self.kind is Kind.ADD else self.old_name
        new = None if self.kind is Kind.DELETE else self.new_name
        return FileChange(
            kind=self.kind,
            old_path=None if old is None else decode_path(old),
            new_path=None if new is None else decode_path(new),
            hunks=tuple(hunks),
            old_mode=self.old_mode,
            new_mode=self.new_mode,
            old_blob=self.old_blob,
            new_blob=self.new_blob,
            similarity=self.similarity,
            binary=binary,
            binary_differs=differs,
            plain=self.plain,
            line=self.line,
        )


class _Parser:
    """Walks over the lines; `_at` is the index of the next one."""

    def __init__(self, lines: list[bytes], first_line: int, strip: int, name: str) -> None:
        self.problems: list[Problem] = []
        self._lines = lines
        self._first = first_line
        self._strip = strip
        self._name = name
        self._at = 0
        # a `diff --git` line that nothing follows: text, if no other header comes after it
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
        return changes, end

    # -- finding headers ---------------------------------------------------------------------

    def _next_header(self) -> _Draft | None:
        """Pass over one line, or read the header that starts there."""
        lines, at = self._lines, self._at
        line = lines[at]
        self._at += 1
        if line.startswith(b"diff --git "):
            return self._git_header(at)
        if line.startswith(b"--- ") and _starts_plain(lines, at):
            return self._plain_header(at)
        if line.startswith(b"@@ -") and _HUNK.match(line):
            self._offend(at, "hunk without a file header above it", _CORRUPT_HINT)
            self._skip_hunk_lines()
        elif line.startswith(_COMBINED):
            self._offend(
                at, "combined diff of a merge commit", "make the patch against one of the parents"
            )
        return None

    def _git_header(self, at: int) -> _Draft | None:
        draft = _Draft(self._number(at))
        known = len(self.problems)
        while self._at < len(self._lines) and self._extended_line(draft, self._lines[self._at]):
            self._at += 1
        bare, self._bare = self._bare, None
        if self._at == at + 1:
            self._bare = at
            self._settle_names(draft, at)
            return None
        if bare is not None:
            self._offend(bare, "header of a file without any change")
        if self._settle_names(draft, at) and len(self.problems) == known:
            return draft
        self._skip_hunks()
        return None

    def _extended_line(self, draft: _Draft, line: bytes) -> bool:
        """Take in one line of the extended header; False if the header ends before it."""
        for prefix, read in _READERS:
            if line.startswith(prefix):
                if line.endswith(b"\n"):
                    read(self, draft, line[len(prefix) :])
                    return True
                return False
        return False

    def _settle_names(self, draft: _Draft, at: int) -> bool:
        if draft.old_name is None and draft.new_name is None:
            draft.old_name = draft.new_name = self._common_name(at)
        if len(draft.declared) > 1:
            said = " and ".join(kind.value for kind in draft.declared)
            self._offend(at, f"header says both {said}")
            return False
        missing_old = draft.old_name is None and draft.kind is not Kind.ADD
        missing_new = draft.new_name is None and draft.kind is not Kind.DELETE
        if missing_old or missing_new:
            self._offend(
                at,
                f"header names no file once {_folders(self._strip)} stripped",
                "set the strip level that the patch was made with",
            )
            return False
        return True

    def _common_name(self, at: int) -> bytes | None:
        return diffnames.common_name(self._lines[at][len(b"diff --git ") :], self._strip)

    def _plain_header(self, at: int) -> _Draft | None:
        old, new = self._lines[at][4:], self._lines[at + 1][4:]
        bare, self._bare = self._bare, None
        draft = _Draft(self._number(at), plain=True)
        self._at = at + 2
        if diffnames.is_dev_null(old):
            draft.declared = [Kind.ADD]
            name = diffnames.plain_name(new, self._strip)
        elif diffnames.is_dev_null(new):
            draft.declared = [Kind.DELETE]
            name = diffnames.plain_name(old, self._strip)
        else:
            name = diffnames.plain_name(new, self._strip, diffnames.plain_name(old, self._strip))
            if diffnames.has_epoch_stamp(old):
                draft.declared = [Kind.ADD]
            elif diffnames.has_epoch_stamp(new):
                draft.declared = [Kind.DELETE]
        draft.old_name = draft.new_name = name
        if bare is not None and draft.declared:
            self._offend(bare, "header of a file without any change")
        if name is None:
            self._offend(
                at,
                f"header names no file once {_folders(self._strip)} stripped",
                "set the strip level that the patch was made with",
            )
            self._skip_hunks()
            return None
        return draft

    # -- lines of the extended header --------------------------------------------------------

    def _old_name(self, draft: _Draft, text: bytes) -> None:
        self._verify_name(draft, text, "old", absent=draft.kind is Kind.ADD)

    def _new_name(self, draft: _Draft, text: bytes) -> None:
        self._verify_name(draft, text, "new", absent=draft.kind is Kind.DELETE)

    def _verify_name(self, draft: _Draft, text: bytes, side: str, *, absent: bool) -> None:
        known = draft.old_name if side == "old" else draft.new_name
        if absent:
            if known is not None or not diffnames.is_dev_null(text):
                self._offend(self._at, "expected /dev/null here, as the header says")
            return
        name = diffnames.header_name(text, self._strip)
        if known is None:
            if side == "old":
                draft.old_name = name
            else:
                draft.new_name = name
        elif name != known:
            self._offend(self._at, f"{side} name is not the one that the header gave")

    def _old_mode(self, draft: _Draft, text: bytes) -> None:
        draft.old_mode = self._mode(text)

    def _new_mode(self, draft: _Draft, text: bytes) -> None:
        draft.new_mode = self._mode(text)

    def _deleted(self, draft: _Draft, text: bytes) -> None:
        self._declare(draft, Kind.DELETE)
        draft.old_name = self._common_name(draft.line - self._first)
        draft.old_mode = self._mode(text)

    def _added(self, draft: _Draft, text: bytes) -> None:
        self._declare(draft, Kind.ADD)
        draft.new_name = self._common_name(draft.line - self._first)
        draft.new_mode = self._mode(text)

    def _copy_from(self, draft: _Draft, text: bytes) -> None:
        self._declare(draft, Kind.COPY)
        draft.old_name = diffnames.moved_name(text, self._strip)

    def _copy_to(self, draft: _Draft, text: bytes) -> None:
        self._declare(draft, Kind.COPY)
        draft.new_name = diffnames.moved_name(text, self._strip)

    def _rename_from(self, draft: _Draft, text: bytes) -> None:
        self._declare(draft, Kind.RENAME)
        draft.old_name = diffnames.moved_name(text, self._strip)

    def _rename_to(self, draft: _Draft, text: bytes) -> None:
        self._declare(draft, Kind.RENAME)
        draft.new_name = diffnames.moved_name(text, self._strip)

    def _similarity(self, draft: _Draft, text: bytes) -> None:
        number = text.rstrip(b"%\r\n")
        if number.isdigit() and int(number) <= 100:
            draft.similarity = int(number)

    def _dissimilarity(self, draft: _Draft, text: bytes) -> None:
        """A complete rewrite is a modification like any other."""

    def _index(self, draft: _Draft, text: bytes) -> None:
        match = _INDEX.fullmatch(text)
        if match is None:
            return
        if _HEX.fullmatch(match[1]) and _HEX.fullmatch(match[2]):
            draft.old_blob, draft.new_blob = match[1].decode(), match[2].decode()
        if match[3] is not None:
            draft.old_mode = self._mode(match[3] + b"\n")

    def _mode(self, text: bytes) -> int | None:
        match = _MODE.match(text)
        if match is None:
            self._offend(self._at, "mode is not an octal number")
            return None
        return int(match[1], 8)

    @staticmethod
    def _declare(draft: _Draft, kind: Kind) -> None:
        if kind not in draft.declared:
            draft.declared.append(kind)

    # -- bodies ------------------------------------------------------------------------------

    def _body(self, draft: _Draft) -> FileChange | None:
        hunks = self._hunks()
        if hunks is None:
            return None
        if hunks:
            return self._with_hunks(draft, hunks)
        line = self._lines[self._at] if self._at < len(self._lines) else b""
        if line == b"GIT binary patch\n":
            return self._binary(draft)
        if line.startswith((b"Binary files ", b"Files ")) and line.endswith(b" differ\n"):
            self._at += 1
            return draft.finish(differs=True)
        if not draft.changes_something:
            path = decode_path(draft.new_name or draft.old_name or b"")
            self._offend(draft.line - self._first, f"{path}: header without any change")
            return None
        return draft.finish()

    def _with_hunks(self, draft: _Draft, hunks: list[Hunk]) -> FileChange | None:
        if draft.kind is Kind.ADD and any(hunk.old_count for hunk in hunks):
            self._offend(draft.line - self._first, "new file depends on old contents")
            return None
        if draft.kind is Kind.DELETE and any(hunk.new_count for hunk in hunks):
            self._offend(draft.line - self._first, "deleted file still has contents")
            return None
        return draft.finish(hunks)

    def _hunks(self) -> list[Hunk] | None:
        """The hunks that follow, None if one is corrupt; reads on to report every corrupt one."""
        hunks: list[Hunk] = []
        sound = True
        while self._at < len(self._lines) and self._lines[self._at].startswith(b"@@ -"):
            hunk = self._hunk()
            if hunk is None:
                sound = False
                self._skip_hunk_lines()
            else:
                hunks.append(hunk)
        return hunks if sound else None

    def _hunk(self) -> Hunk | None:
        start = self._at
        head = self._lines[start]
        match = _HUNK.match(head)
        self._at += 1
        if match is None:
            self._offend(start, "malformed @@ line")
            return None
        old, new = int(match[2] or 1), int(match[4] or 1)
        body = self._hunk_body(old, new)
        if body is None:
            self._miscounted(start, old, new)
            return None
        if all(text[:1] == b" " for text in body):
            self._offend(start, "hunk changes nothing")
            return None
        section = head[match.end() :].rstrip(b"\n").removeprefix(b" ")
        return Hunk(
            int(match[1]), old, int(match[3]), new, section, tuple(body), self._number(start)
        )

    def _hunk_body(self, old: int, new: int) -> list[bytes] | None:
        """Exactly the promised lines; None, with `_at` somewhere within, if they do not follow."""
        lines, at, end = self._lines, self._at, len(self._lines)
        body: list[bytes] = []
        while old > 0 or new > 0:
            line = lines[at] if at < end else b""
            mark = line[:1]
            if mark == b" ":
                old -= 1
                new -= 1
            elif mark == b"+":
                new -= 1
            elif mark == b"-":
                old -= 1
            elif line == b"\n":  # an empty context line whose space was stripped on the way
                old -= 1
                new -= 1
                line = b" \n"
            elif _is_no_newline(line):
                body[-1:] = [text.removesuffix(b"\n") for text in body[-1:]]
                at += 1
                continue
            else:
                return None
            if not line.endswith(b"\n"):
                return None
            body.append(line)
            at += 1
        if at < end and _is_no_newline(lines[at]):
            body[-1] = body[-1].removesuffix(b"\n")
            at += 1
        self._at = at
        return body if old == new == 0 else None

    def _miscounted(self, start: int, old: int, new: int) -> None:
        follow = self._lines[start + 1 : _end_of_hunk(self._lines, start + 1)]
        while follow and follow[-1] == b"\n":
            follow.pop()
        marks = [line[:1].strip() for line in follow if line[:1] != b"\\"]
        has_old, has_new = len(marks) - marks.count(b"+"), len(marks) - marks.count(b"-")
        if (has_old, has_new) == (old, new):
            what = f"hunk at line {self._number(start)} is cut off"
        else:
            what = (
                f"hunk at line {self._number(start)} promises {old} old and {new} new lines,"
                f" {has_old} and {has_new} follow"
            )
        self._offend(start, what, _CORRUPT_HINT)

    def _skip_hunks(self) -> None:
        while self._at < len(self._lines) and self._lines[self._at].startswith(b"@@ -"):
            self._at += 1
            self._skip_hunk_lines()

    def _skip_hunk_lines(self) -> None:
        self._at = _end_of_hunk(self._lines, self._at)

    def _binary(self, draft: _Draft) -> FileChange | None:
        start = self._at
        try:
            forward = read_binary_hunk(self._lines, start + 1)
            if forward is None:
                self._at = start + 1
                self._offend(start, "binary patch without a literal or a delta")
                return None
            hunk, self._at = forward
            reverse = read_binary_hunk(self._lines, self._at)
            if reverse is None:
                return draft.finish(binary=(hunk, None))
            self._at = reverse[1]
            return draft.finish(binary=(hunk, reverse[0]))
        except BadPayloadError as error:
            self._offend(error.index, str(error), "the patch was damaged on its way")
            self._at = error.index + 1
            return None

    # -- reporting ---------------------------------------------------------------------------

    def _number(self, index: int) -> int:
        return self._first + index

    def _offend(self, index: int, what: str, hint: str = "") -> None:
        number = self._number(index)
        where = f"{self._name}:{number}" if self._name else f"line {number}"
        self.problems.append(Problem(what, where=where, hint=hint))


_READERS = (
    (b"--- ", _Parser._old_name),
    (b"+++ ", _Parser._new_name),
    (b"index ", _Parser._index),
    (b"old mode ", _Parser._old_mode),
    (b"new mode ", _Parser._new_mode),
    (b"deleted file mode ", _Parser._deleted),
    (b"new file mode ", _Parser._added),
    (b"copy from ", _Parser._copy_from),
    (b"copy to ", _Parser._copy_to),
    (b"rename old ", _Parser._rename_from),
    (b"rename new ", _Parser._rename_to),
    (b"rename from ", _Parser._rename_from),
    (b"rename to ", _Parser._rename_to),
    (b"similarity index ", _Parser._similarity),
    (b"dissimilarity index ", _Parser._dissimilarity),
)


def _is_no_newline(line: bytes) -> bool:
    # "\ No newline at end of file" in any language; 12 is git's own sanity check
    return line.startswith(b"\\ ") and len(line) >= 12


def _starts_plain(lines: Sequence[bytes], index: int) -> bool:
    return (
        index + 2 < len(lines)
        and lines[index + 1].startswith(b"+++ ")
        and lines[index + 2].startswith(b"@@ -")
    )


def _with_its_announcement(lines: Sequence[bytes], index: int) -> int:
    """Step back over `diff -u a b`, `Index: x` and the line of `=` that may precede `---`."""
    while index and _announces(lines[index - 1]):
        index -= 1
    return index


def _announces(line: bytes) -> bool:
    bare = line.rstrip()
    return line.startswith((b"diff ", b"Index: ")) or (len(bare) > 10 and not bare.strip(b"="))


def _end_of_hunk(lines: Sequence[bytes], index: int) -> int:
    """Where the lines stop that may belong to a hunk whose counts cannot be trusted."""
    while index < len(lines):
        line = lines[index]
        if line[:1] not in (b" ", b"+", b"-", b"\\", b"\n"):
            break
        if line == b"-- \n" or (line.startswith(b"--- ") and _starts_plain(lines, index)):
            break
        index += 1
    return index


def _folders(strip: int) -> str:
    return "1 leading folder is" if strip == 1 else f"{strip} leading folders are"
