"""Edits of text as other programs do them: what each finds in a text, and what it makes of it.

An edit is a replacement as Python's `str.replace` does it, or a command of sed. Nothing here runs
another program; a pattern that takes too long is ended.
"""

from __future__ import annotations

from typing import Protocol

import regex
from msgspec import Struct

from patchkit.model.names import AtLine

#: Stands in a text for what cannot be known of it.
UNKNOWN = "\0"
#: Seconds that one pattern may take in one text.
PATIENCE = 5.0


class UnreadableEditError(Exception):
    """An edit that cannot be read, or is not ended in time."""


class EditedText(Struct, frozen=True):
    """What a script makes of a text; for each of its edits the lines that it changed, from 1."""

    text: str
    lines: tuple[tuple[int, ...], ...]


class SourceEdit(Struct, frozen=True):
    """What one edit looks for, as it is written, and what it is held to.

    `new` is the text that it leaves, "" where that is not plain; `most` how often it may find
    something, None for any number. `numbers` are the lines that it names by their numbers; `blind`:
    nothing but these numbers says which lines are meant.
    """

    anchor: str
    new: str = ""
    most: int | None = None
    numbers: tuple[int, ...] = ()
    blind: bool = False


class EditScript(Protocol):
    """Edits that are done one after the other, to one text."""

    @property
    def edits(self) -> tuple[SourceEdit, ...]:
        """What each looks for."""

    @property
    def exact(self) -> bool:
        """Whether `run` gives the bytes that the other program gives."""

    def run(self, text: str) -> EditedText:
        """Do them; UnreadableEditError where one does not end in time."""

    def anywhere(self, number: int, text: str) -> tuple[int, ...]:
        """The lines in which an edit finds what it looks for, whatever lines it names."""


class Replacement(Struct, frozen=True):
    """`text.replace(old, new, count)`; with `is_pattern` `re.sub(old, new, text, count)`.

    `written` is shown of what is written in other words.
    """

    old: str
    new: str
    count: int = -1  # below 0: all
    is_pattern: bool = False
    written: str = ""

    @property
    def edits(self) -> tuple[SourceEdit, ...]:
        """See EditScript."""
        most = self.count if self.count >= 0 else None
        is_plain = UNKNOWN not in self.new and not (self.is_pattern and "\\" in self.new)
        return (SourceEdit(self.written or self.old, self.new if is_plain else "", most),)

    @property
    def exact(self) -> bool:
        """See EditScript; Python's own patterns are not quite those that are run here."""
        return UNKNOWN not in self.new and not self.is_pattern

    def run(self, text: str) -> EditedText:
        """See EditScript."""
        lines = self.anywhere(0, text)
        if len(lines) * len(self.new) > 1 << 28:
            raise UnreadableEditError("what it writes is too large")
        if not self.is_pattern:
            after = text.replace(self.old, self.new, self.count)
        else:
            try:
                after = self._pattern().sub(self.new, text, max(self.count, 0), timeout=PATIENCE)
            except (regex.error, IndexError, TimeoutError) as error:
                what = f"{self.new!r:.200} cannot be put there: {error}"
                raise UnreadableEditError(what) from error
        return EditedText(after, (lines if self.count < 0 else lines[: self.count],))

    def anywhere(self, number: int, text: str) -> tuple[int, ...]:
        """See EditScript."""
        return tuple(line_at(text, each.start()) for each in found_in(self._pattern(), text))

    def _pattern(self) -> regex.Pattern[str]:
        return compile_pattern(self.old if self.is_pattern else regex.escape(self.old), 0)


class Rewrite(AtLine, Struct, frozen=True):
    """Edits of one file of another upstream, and where they are written.

    `target` is a path, with UNKNOWN for what nobody knows of it, or, if `is_name`, a dotted name.
    `script` says what is edited, or `patch` is the patch that is applied; without either `problem`
    says why that is not known. `reason` is what is written beside it.
    """

    path: str
    line: int  # from 1
    target: str
    is_name: bool = False
    script: EditScript | None = None
    patch: bytes | None = None
    problem: str = ""
    reason: str = ""


def compile_pattern(pattern: str, flags: int) -> regex.Pattern[str]:
    """A pattern that `found_in` takes; UnreadableEditError if it is none."""
    try:
        return regex.compile(pattern, flags)
    except (regex.error, RecursionError, OverflowError) as error:
        raise UnreadableEditError(f"{pattern!r:.200} is no pattern: {error}") from error


def found_in(pattern: regex.Pattern[str], text: str) -> list[regex.Match[str]]:
    """All that a pattern finds; UnreadableEditError where that takes too long."""
    try:
        return list(pattern.finditer(text, timeout=PATIENCE))
    except TimeoutError as error:
        what = f"{pattern.pattern!r:.200} takes more than {PATIENCE:.0f} seconds"
        raise UnreadableEditError(what) from error


def line_at(text: str, place: int) -> int:
    """The line, from 1, that a character stands in."""
    return text.count("\n", 0, place) + 1
