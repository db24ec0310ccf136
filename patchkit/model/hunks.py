"""Place hunks in a file as `git apply` does: byte for byte, at the nearest place, zero fuzz.

The rules, as git has them: a hunk that starts at line 1 (or 0) must match at the beginning of the
file; one without trailing context must match at its end; otherwise the search starts at the line
where the hunk wants to be afterwards and goes outward, forward first. Lines that an earlier hunk
put in place, context included, are not matched again. All places are looked up in the original
bytes: git's image is the original with some ranges replaced, and only original lines may match.

The source is git's apply.c (find_pos, match_fragment, update_image). Invariant: the ranges do not
overlap, each has the lines that its hunk expected there, and a hunk that fails changes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from patchkit.model.patch import Hunk

_NEWLINE = 10
_PLUS = 43
_MINUS = 45
_BLANKS = b" \t\r\n"


class HunkMismatch(Struct, frozen=True):
    """A hunk that fails."""

    #: Its place among the hunks of its file, from 1.
    number: int
    hunk: Hunk
    #: The lines of the file where it should go, moved as far as the hunk before it was.
    found: tuple[bytes, ...]
    #: The first of these lines, from 1.
    found_at: int


class Placement(Struct, frozen=True):
    """What came of placing hunks."""

    #: The new contents; None if a hunk fails.
    data: bytes | None
    #: Of each hunk that fits, how many lines from its recorded place.
    offsets: tuple[int, ...]
    misfits: tuple[HunkMismatch, ...] = ()  # hunks that fail, in order


def place_hunks(data: bytes, hunks: Sequence[Hunk], *, terse: bool = False) -> Placement:
    """Apply `hunks` to `data`; the ones that fit are placed even where others do not.

    With `terse` misfits do not tell what stands in their place, which takes as long as all else.
    """
    image = _Image(data)
    offsets: list[int] = []
    misfits: list[HunkMismatch] = []
    lines: list[bytes] = []
    moved = 0
    for number, hunk in enumerate(hunks, 1):
        placed = image.place(hunk)
        if placed is None:
            if terse:
                misfits.append(HunkMismatch(number, hunk, (), 0))
                continue
            lines = lines or data.split(b"\n")
            misfits.append(_misfit(lines, hunk, number, moved))
        else:
            offset, moved = placed
            offsets.append(offset)
    return Placement(None if misfits else image.contents(), tuple(offsets), tuple(misfits))


class _Span(Struct):
    """A replaced range of the original bytes; `line` is its first line there, 0-based."""

    start: int  # index of its first byte in the original
    end: int  # index behind its last byte
    line: int
    old_lines: int  # how many lines it takes the place of
    new_lines: int  # how many stand there then
    text: bytes  # what stands there then


class _Image(Struct):
    """The file while hunks are put in; `spans` are in its order, `grown` is by how many lines."""

    data: bytes  # the original file
    spans: list[_Span] = []
    grown: int = 0
    last: bytes | None = None  # of the hunk in hand: its last line, if that has no newline
    _lines: int = -1
    _known: tuple[int, int] = (0, 0)  # a place in the data, and how many lines are before it

    def place(self, hunk: Hunk) -> tuple[int, int] | None:
        """Put one hunk in; None, and no change, if it has no place.

        Says how far it is from where it wants to be afterwards, which is its offset, and how far
        its lines were, in the file as it came, from where it was made.
        """
        lines = hunk.lines
        wanted = max(hunk.new_start - 1, 0)
        needle, old_lines, text, new_lines, self.last = _sides(lines)
        if needle.count(b"\n") < old_lines - (self.last is not None):
            return None  # "no newline" in the middle: no file looks like that
        at_start = hunk.old_start <= 1
        at_end = not lines or lines[-1][0] in (_PLUS, _MINUS)
        if at_start or at_end:
            found = self._at_edge(needle, old_lines, at_start=at_start, at_end=at_end)
        else:
            found = self._nearest(needle, wanted)
        if found is None:
            return None
        start, end, line, current = found
        self._insert(_Span(start, end, line, old_lines, new_lines, text))
        return current - wanted, line - max(hunk.old_start - 1, 0)

    def contents(self) -> bytes:
        """The bytes as they now are."""
        pieces = []
        at = 0
        for span in self.spans:
            pieces.append(self.data[at : span.start])
            pieces.append(span.text)
            at = span.end
        pieces.append(self.data[at:])
        return b"".join(pieces)

    def _insert(self, span: _Span) -> None:
        # Invariant: in the order of the file. Of two at one byte the empty one is in front, as the
        # other begins with that byte; of two empty ones the later goes behind what is there.
        index = len(self.spans)
        while index and (self.spans[index - 1].start, self.spans[index - 1].end) > (
            span.start,
            span.end,
        ):
            index -= 1
        self.spans.insert(index, span)
        self.grown += span.new_lines - span.old_lines

    def _at_edge(
        self, needle: bytes, lines: int, *, at_start: bool, at_end: bool
    ) -> tuple[int, int, int, int] | None:
        """The place at the beginning of the file, or the one at its end."""
        total = self._total() if at_end else 0
        for place in self._places(needle, 0) if lines else self._gaps():
            current = place[3]
            if (at_start and current) or (at_end and current + lines != total):
                continue
            if at_end and place[0] + len(needle) != place[1]:
                continue
            return place
        return None

    def _nearest(self, needle: bytes, wanted: int) -> tuple[int, int, int, int] | None:
        """The best place, as git's outward search would come upon it."""
        if not self.spans:
            return self._best(needle, wanted, 0)
        last = self.spans[-1]
        found = self._best(needle, wanted, last.end)
        # places before the end of what was put in are as far away at least as that end
        if found is not None and abs(found[3] - wanted) <= wanted - (
            last.line + last.old_lines + self.grown
        ):
            return found
        return self._best(needle, wanted, 0)

    def _best(self, needle: bytes, wanted: int, start: int) -> tuple[int, int, int, int] | None:
        best = None
        for place in self._places(needle, start):
            if best is None or abs(place[3] - wanted) <= abs(best[3] - wanted):
                best = place  # of two that are as near the later one: git looks forward first
            if place[3] >= wanted:
                break  # all others are farther
        return best

    def _places(self, needle: bytes, start: int) -> Iterator[tuple[int, int, int, int]]:
        """Where the lines stand untouched, in order: start, end, original and current line."""
        for at in self._occurrences(needle, start):
            line = self._line_at(at)
            end = self._line_end(needle, at)
            if end is not None and not self._touched(at, end):
                yield at, end, line, line + self._growth_before(at)

    def _gaps(self) -> Iterator[tuple[int, int, int, int]]:
        """Both ends of the file: the only places for a hunk that neither removes nor keeps."""
        yield 0, 0, 0, 0
        size = len(self.data)
        total = self._total()
        yield size, size, total - self.grown, total

    def _occurrences(self, needle: bytes, start: int) -> Iterator[int]:
        """Where `needle` begins a line, from `start` on."""
        data = self.data
        at = data.find(needle, start)
        while at >= 0:
            if at == 0 or data[at - 1] == _NEWLINE:
                yield at
            at = data.find(needle, at + 1)

    def _line_at(self, start: int) -> int:
        """The line that begins at `start`; counts on from the last answer where it can."""
        place, line = self._known if self._known[0] <= start else (0, 0)
        self._known = start, line + self.data.count(b"\n", place, start)
        return self._known[1]

    def _line_end(self, needle: bytes, start: int) -> int | None:
        """Where the matched lines end; None if the last one goes on.

        git compares bytes up to the end of the hunk and, of the last line, a hash that ignores
        blanks: a last line that the patch knows without its newline matches one with blanks or a
        newline behind it, and replaces it whole.
        """
        end = start + len(needle)
        if self.last is None or (end == len(self.data) and self.last):
            return end
        if end == len(self.data):
            return None  # it is empty, and there is no such line
        stop = self.data.find(b"\n", end)
        stop = len(self.data) if stop < 0 else stop + 1
        return None if self.data[end:stop].strip(_BLANKS) else stop

    def _touched(self, start: int, end: int) -> bool:
        if self._is_behind_all(start):
            return False
        return any(span.start < end and start < span.end for span in self.spans)

    def _growth_before(self, start: int) -> int:
        if self._is_behind_all(start):
            return self.grown
        return sum(s.new_lines - s.old_lines for s in self.spans if s.end <= start)

    def _is_behind_all(self, start: int) -> bool:
        # as nearly always, so that thousands of hunks that all moved take no time squared
        return not self.spans or start >= self.spans[-1].end

    def _total(self) -> int:
        if self._lines < 0:
            place, line = self._known
            rest = self.data.count(b"\n", place)
            open_end = not self.data.endswith(b"\n") and bool(self.data)
            self._lines = line + rest + open_end
        return self._lines + self.grown


@lru_cache(maxsize=4096)
def _sides(lines: tuple[bytes, ...]) -> tuple[bytes, int, bytes, int, bytes | None]:
    """What a hunk takes and what it leaves, each with the number of its lines.

    Last what it takes last, if that has no newline, else None.
    """
    old = [text[1:] for text in lines if text[0] != _PLUS]
    # a text without anything after the marker is an empty line that lost even its newline
    new = [text[1:] for text in lines if text[0] != _MINUS and len(text) > 1]
    last = old[-1] if old and not old[-1].endswith(b"\n") else None
    return b"".join(old), len(old), b"".join(new), len(new), last


def _misfit(lines: Sequence[bytes], hunk: Hunk, number: int, moved: int) -> HunkMismatch:
    """What stands where the hunk should go; `lines` of the file are without their newlines."""
    first = max(hunk.old_start - 1 + moved, 0)
    ended = [line + b"\n" for line in lines[first : first + hunk.old_count]]
    if ended and first + len(ended) == len(lines):  # what follows the last newline
        ended[-1] = lines[-1]
    return HunkMismatch(number, hunk, tuple(line for line in ended if line), first + 1)
