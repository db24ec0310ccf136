"""A patch file as values: a header that a person wrote, and file changes made of hunks.

Paths are `str` decoded with `surrogateescape`, so that any byte sequence survives; contents are
`bytes`. Nothing here knows how to parse (see `diff.py`, `mail.py`) or to apply (see `hunks.py`).
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class Kind(str, Enum):
    """What a file change does to the path."""

    ADD = "add"
    DELETE = "delete"
    MODIFY = "modify"  # contents, mode, or both
    RENAME = "rename"
    COPY = "copy"


class Hunk(Struct, frozen=True):
    """One `@@` hunk.

    `lines` keep their marker (` `, `-`, `+`) and their newline; a line that the patch marks with
    "\\ No newline at end of file" is the one without a newline. Line numbers are 1-based, and 0 for
    an empty side, as in the `@@` line. `line` is where the `@@` stands in the patch file.
    """

    old_start: int  # first line of the preimage
    old_count: int  # lines of the preimage
    new_start: int  # first line of the result
    new_count: int  # lines of the result
    section: bytes  # the text behind the second @@
    lines: tuple[bytes, ...]
    line: int

    @property
    def preimage(self) -> list[bytes]:
        """The lines that must stand in the file: context and removed ones, without markers."""
        return [text[1:] for text in self.lines if text[:1] != b"+"]

    @property
    def postimage(self) -> list[bytes]:
        """The lines that stand there afterwards: context and added ones, without markers."""
        return [text[1:] for text in self.lines if text[:1] != b"-"]

    @property
    def added(self) -> list[bytes]:
        """The lines that it adds, without markers."""
        return [text[1:] for text in self.lines if text[:1] == b"+"]


class BinaryMethod(str, Enum):
    """How git encodes a binary payload."""

    LITERAL = "literal"
    DELTA = "delta"


class BinaryHunk(Struct, frozen=True):
    """One direction of a `GIT binary patch`; `data` is inflated."""

    method: BinaryMethod  # literal or delta
    data: bytes


class FileChange(Struct, frozen=True):
    """What a patch does to one path.

    `old_path` is None for an added file, `new_path` None for a deleted one. Modes are git's octal
    numbers (0o100644, 0o100755, 0o120000, 0o160000), None where the patch does not say. Blob ids
    are as written in the `index` line, possibly abbreviated, all zeros for an absent side, None
    where there is no such line. `binary` is (forward, reverse or None); `binary_differs` marks a
    "Binary files differ" that carries no payload. `plain` marks a diff without git's header:
    it names no modes, and whether it adds a file or fills an empty one only the tree can tell.
    `line` is where the change starts in the patch file.
    """

    kind: Kind
    old_path: str | None
    new_path: str | None
    hunks: tuple[Hunk, ...] = ()
    old_mode: int | None = None  # before
    new_mode: int | None = None  # after
    old_blob: str | None = None  # before
    new_blob: str | None = None  # after
    binary: tuple[BinaryHunk, BinaryHunk | None] | None = None
    binary_differs: bool = False
    plain: bool = False
    line: int = 1

    @property
    def path(self) -> str:
        """The path to name in messages: where the file is afterwards, or was if deleted."""
        path = self.new_path if self.new_path is not None else self.old_path
        assert path is not None
        return path

    @property
    def counts(self) -> tuple[int, int]:
        """How many lines it adds, and how many it removes."""
        marks = [line[:1] for hunk in self.hunks for line in hunk.lines]
        return marks.count(b"+"), marks.count(b"-")


class Identity(Struct, frozen=True):
    """An author; `date` is in git's raw form ("1700000000 +0100"), empty if unknown."""

    name: str  # "" if unknown
    email: str  # without < and >
    date: str = ""


class HeaderForm(str, Enum):
    """What the text above a diff is written as."""

    NONE = "none"  # there is none, or it says nothing
    TEXT = "text"
    MAIL = "mail"  # with From: or Subject:
    DEP3 = "dep-3"  # Debian's patch tagging guidelines: Description:, Origin:, Forwarded:, ...


class Header(Struct, frozen=True):
    """What stands above the diff, understood.

    `message` is the whole commit message (subject, blank line, body with trailers), without a
    trailing newline. `author` is None where the file names none.
    """

    message: str
    author: Identity | None = None


class PatchFile(Struct, frozen=True):
    """A parsed patch file.

    `preamble` is every byte above the diff, `diff` every byte from the first file change on
    (including whatever stands between changes), `signature` the mail signature below, if any;
    preamble + diff + signature is the file again. `header` is None for a raw diff. `strip` is how
    many leading folders were taken off the paths of `changes`, as `git apply -p` counts. `stray`
    are the numbers of lines that a hunk's counts leave out though they look like lines of it.
    `form` is what the preamble is written as.
    """

    preamble: bytes
    diff: bytes
    signature: bytes
    header: Header | None
    changes: tuple[FileChange, ...]
    strip: int = 1
    stray: tuple[int, ...] = ()
    form: HeaderForm = HeaderForm.NONE

    @property
    def data(self) -> bytes:
        """The file's bytes."""
        return self.preamble + self.diff + self.signature

    @property
    def message(self) -> str:
        """What its header says, "" without one."""
        return self.header.message if self.header is not None else ""

    @property
    def author(self) -> Identity | None:
        """Whom its header names, if it has one."""
        return self.header.author if self.header is not None else None

    @property
    def subject(self) -> str:
        """The first line of its message."""
        return self.message.partition("\n")[0]
