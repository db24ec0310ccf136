"""The headers of file changes in a diff: which file, what happens to it, its modes and blobs, and
how names are written there.

git writes `diff --git` and extended header lines, everybody else `---` and `+++` alone.

Apart from `diff_parse`, its only user: how git quotes and places names is a grammar of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from patchkit.errors import Problem
from patchkit.model.objects import decode_path
from patchkit.model.patch import BinaryHunk, FileChange, Hunk, Kind

# File names: C-quoted or bare, with time stamps behind them, some folders to strip. The rules are
# those of `git apply`, which settles what a name is: a bare name ends at a tab (or at a date in a
# plain diff), a `diff --git` line without further headers names the same file twice. Names are
# bytes here.


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


_INDEX = re.compile(rb"([^.\n]{0,40})\.\.([^ \n]{0,40})(?: (.*))?\n", re.DOTALL)
# bytes that git wants of a "---" line and of what follows the "+++" line
_SHORTEST = len(b"@@ -a,b +c,d @@\n") - 2
_HEX = re.compile(rb"[0-9a-f]+")
# as strtoul takes it
_MODE = re.compile(rb"[ \t\v\f\r]*([+-]?[0-7]+)[ \t\n\r]")


class HeaderProblems(Struct):
    """What is wrong with a diff; lines are given by index, and told by their number in the file."""

    name: str  # of the patch file, for messages
    first_line: int  # number of the diff's first line in the file
    problems: list[Problem] = []

    def number(self, index: int) -> int:
        """The line's number in the patch file."""
        return self.first_line + index

    def add(self, index: int, what: str, hint: str = "") -> None:
        """Take down one offence."""
        number = self.number(index)
        where = f"{self.name}:{number}" if self.name else f"line {number}"
        self.problems.append(Problem(what, where=where, hint=hint))


class HeaderDraft(Struct):
    """A file change while its header is read; `line` as in FileChange."""

    line: int
    #: Kinds that lines of it say, such as `new file mode`.
    declared: list[Kind] = []
    old_name: bytes | None = None  # as `---` or `rename from` has it; None: not said
    new_name: bytes | None = None  # as `+++` or `rename to` has it; None: not said
    old_mode: int | None = None  # octal, as git's; None: not said
    new_mode: int | None = None  # octal, as git's; None: not said
    old_blob: str | None = None  # of the `index` line; None: not said
    new_blob: str | None = None  # of the `index` line; None: not said
    plain: bool = False  # without git's extended lines

    @property
    def kind(self) -> Kind:
        """What the header says so far."""
        return self.declared[0] if self.declared else Kind.MODIFY

    @property
    def changes_something(self) -> bool:
        """Whether the header alone is a change: of the mode, of the name, an empty file."""
        modes = self.old_mode, self.new_mode
        return bool(self.declared) or (None not in modes and modes[0] != modes[1])

    def finish(
        self,
        hunks: Sequence[Hunk] = (),
        binary: tuple[BinaryHunk, BinaryHunk | None] | None = None,
        *,
        differs: bool = False,
    ) -> FileChange:
        """The change with its body."""
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
            binary=binary,
            binary_differs=differs,
            plain=self.plain,
            line=self.line,
        )


def starts_plain(lines: Sequence[bytes], index: int) -> bool:
    """Whether a header without `diff --git` starts there: `---`, `+++`, and a hunk behind them."""
    return (
        index + 2 < len(lines)
        and lines[index].startswith(b"--- ")
        and lines[index + 1].startswith(b"+++ ")
        and lines[index + 2].startswith(b"@@ -")
        and len(lines[index]) + sum(map(len, lines[index + 2 : index + 16])) >= _SHORTEST
    )


def read_plain_header(
    lines: Sequence[bytes], at: int, strip: int, offences: HeaderProblems
) -> HeaderDraft | None:
    """The header in the two lines from `at` on; None if it is unsound."""
    old, new = lines[at][4:], lines[at + 1][4:]
    draft = HeaderDraft(offences.number(at), plain=True)
    if is_dev_null(old):
        draft.declared = [Kind.ADD]
        name = plain_name(new, strip)
    elif is_dev_null(new):
        draft.declared = [Kind.DELETE]
        name = plain_name(old, strip)
    else:
        name = plain_name(new, strip, plain_name(old, strip))
        if has_epoch_stamp(old):
            draft.declared = [Kind.ADD]
        elif has_epoch_stamp(new):
            draft.declared = [Kind.DELETE]
    if name is None:
        _nameless(offences, at, strip)
        return None
    draft.old_name = draft.new_name = name
    return draft


def read_git_header(
    lines: Sequence[bytes], at: int, strip: int, offences: HeaderProblems
) -> tuple[HeaderDraft | None, int]:
    """The header that the `diff --git` line at `at` opens, and the index of the line after it.

    None if it is unsound.
    """
    known = len(offences.problems)
    reader = _Reader(HeaderDraft(offences.number(at)), lines, lines[at], strip, offences, at + 1)
    while reader.at < len(lines) and reader.take(lines[reader.at]):
        reader.at += 1
    reader.settle(at)
    sound = len(offences.problems) == known
    return (reader.draft if sound else None), reader.at


class _Reader(Struct):
    """Takes in a git header line by line; `at` is the index of the line."""

    draft: HeaderDraft  # what the lines so far say
    lines: Sequence[bytes]
    opening: bytes  # the `diff --git` line
    strip: int  # leading folders to take off paths
    offences: HeaderProblems  # what is wrong; filled
    at: int

    def take(self, line: bytes) -> bool:
        """Take in one line; False if the header ends before it."""
        row = next((row for row in _LINES if line.startswith(row[0])), None)
        if row is None or not line.endswith(b"\n"):
            return False
        mark, kind, name = row
        text, draft = line[len(mark) :], self.draft
        if kind is not None and kind not in draft.declared:
            draft.declared.append(kind)
        if mark in (b"--- ", b"+++ "):
            self._verify_name(text, name.partition("_")[0])
        elif mark == b"index ":
            self._index(text)
        elif name.endswith("_mode"):
            setattr(draft, name, self._mode(text))
            if kind is not None:  # a file that comes or goes has one name
                setattr(draft, name.replace("mode", "name"), self._common_name())
        elif name.endswith("_name"):
            setattr(draft, name, moved_name(text, self.strip))
        return True

    def settle(self, start: int) -> None:
        """Check, at the header's end, that the names are known and go together."""
        draft = self.draft
        if draft.old_name is None and draft.new_name is None:
            draft.old_name = draft.new_name = self._common_name()
        if len(draft.declared) > 1:
            said = " and ".join(kind.value for kind in draft.declared)
            self.offences.add(start, f"header says both {said}")
            return
        # A name may stand above the line that says so. For a new file git aborts there; a deleted
        # one it takes away, and counts as still there for the rest of the patch: which of the two
        # lines is wrong, nobody can tell.
        if draft.kind is Kind.ADD and draft.old_name is not None:
            self.offences.add(start, "header gives a new file an old name")
            return
        if draft.kind is Kind.DELETE and draft.new_name is not None:
            self.offences.add(start, "header gives a deleted file a new name")
            return
        missing_old = draft.old_name is None and draft.kind is not Kind.ADD
        missing_new = draft.new_name is None and draft.kind is not Kind.DELETE
        if missing_old or missing_new:
            _nameless(self.offences, start, self.strip)

    def _common_name(self) -> bytes | None:
        if b"\0" in self.opening:
            return None
        return common_name(self.opening[len(b"diff --git ") :], self.strip)

    def _verify_name(self, text: bytes, side: str) -> None:
        """Check the name in a `---`, `+++` line, `text` being what follows the marker."""
        name = _quoted_name(text, self.strip) or _stripped(_bare(_NAME_TO_TAB, text), self.strip)
        draft = self.draft
        known = draft.old_name if side == "old" else draft.new_name
        if draft.kind is (Kind.ADD if side == "old" else Kind.DELETE):
            if not is_dev_null(text):
                self.offences.add(self.at, "expected /dev/null here, as the header says")
        elif text.startswith(b'"') and runs_on(text + b"".join(self.lines[self.at + 1 :])):
            self.offences.add(self.at, "quoted name that is not closed on its line")
        elif known is None:
            setattr(draft, f"{side}_name", name)
        elif name != known:
            self.offences.add(self.at, f"{side} name is not the one that the header gave")

    def _index(self, text: bytes) -> None:
        match = _INDEX.fullmatch(text)
        if match is None:
            return
        old, new = match[1], match[2].rstrip(b"\r")
        if _HEX.fullmatch(old) and _HEX.fullmatch(new):
            self.draft.old_blob, self.draft.new_blob = old.decode(), new.decode()
        if match[3] is not None:
            self.draft.old_mode = self._mode(match[3] + b"\n")

    def _mode(self, text: bytes) -> int | None:
        match = _MODE.match(text)
        if match is None:
            self.offences.add(self.at, "mode is not an octal number")
            return None
        # in 32 bits; zero says nothing
        return int(match[1], 8) & 0xFFFFFFFF or None


#: How a line of a header begins, which kind of change it declares, and what of a HeaderDraft it
#: says. How alike two files are, or how unlike, says nothing.
_LINES: tuple[tuple[bytes, Kind | None, str], ...] = (
    (b"--- ", None, "old_name"),
    (b"+++ ", None, "new_name"),
    (b"index ", None, ""),
    (b"old mode ", None, "old_mode"),
    (b"new mode ", None, "new_mode"),
    (b"deleted file mode ", Kind.DELETE, "old_mode"),
    (b"new file mode ", Kind.ADD, "new_mode"),
    (b"copy from ", Kind.COPY, "old_name"),
    (b"copy to ", Kind.COPY, "new_name"),
    (b"rename old ", Kind.RENAME, "old_name"),
    (b"rename new ", Kind.RENAME, "new_name"),
    (b"rename from ", Kind.RENAME, "old_name"),
    (b"rename to ", Kind.RENAME, "new_name"),
    (b"similarity index ", None, ""),
    (b"dissimilarity index ", None, ""),
)


def _nameless(offences: HeaderProblems, at: int, strip: int) -> None:
    folders = "1 leading folder is" if strip == 1 else f"{strip} leading folders are"
    offences.add(
        at,
        f"header names no file once {folders} stripped",
        "set the strip level that the patch was made with",
    )
