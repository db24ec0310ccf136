"""All versions of a file in one list of lines, so that an edit of the last can go into an earlier.

Each line knows with which version it came and with which it went. The lines of a version are those
that had come and had not gone, in the list's order; so whatever is inserted or struck out "as of
version k" stands in k and in everything after it, and no later version can conflict with it.

Versions are numbered from 0, the base's; version k is the file after the k-th patch.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchkit.model.diff import split_lines


class Strand(Struct, frozen=True):
    """One line, with its newline: in every version from `born` up to, not including, `died`."""

    text: bytes
    born: int
    died: int | None = None

    def alive(self, version: int) -> bool:
        """Whether the version has the line."""
        return self.born <= version and (self.died is None or version < self.died)


class Edit(Struct, frozen=True):
    """The lines [start, end) of a version, counted from 0, become `lines`."""

    start: int
    end: int
    lines: tuple[bytes, ...]


class Touched(Struct, frozen=True):
    """What an edit of the last version meets; versions, 0 for lines of the base.

    `replaced`: where the lines that it removes or changes came from. `before` and `after`: where
    the neighbouring lines came from, None at an end of the file. `struck`: versions that removed
    something at this very place.
    """

    replaced: frozenset[int]
    before: int | None
    after: int | None
    struck: frozenset[int]


class Weave(Struct, frozen=True):
    """The versions of one file."""

    strands: tuple[Strand, ...]

    def version(self, number: int) -> bytes:
        """The contents of the file in that version."""
        return b"".join(each.text for each in self.strands if each.alive(number))

    def is_whole(self, number: int) -> bool:
        """Whether no line but the last of that version lacks its newline."""
        lines = [each.text for each in self.strands if each.alive(number)]
        return all(line.endswith(b"\n") for line in lines[:-1])

    def grown(self, number: int, edits: Sequence[Edit]) -> Weave:
        """With one more version: the last one with `edits` (in order, apart from each other)."""
        places = self._living()
        strands = list(self.strands)
        for edit in reversed(edits):
            for place in places[edit.start : edit.end]:
                strands[place] = replace(strands[place], died=number)
            at = places[edit.start] if edit.start < len(places) else len(strands)
            strands[at:at] = [Strand(text, number) for text in edit.lines]
        return Weave(tuple(strands))

    def touched(self, edit: Edit) -> Touched:
        """Which versions an edit of the last version has to do with."""
        places = self._living()
        first = places[edit.start - 1] if edit.start else -1
        last = places[edit.end] if edit.end < len(places) else len(self.strands)
        gap = self.strands[first + 1 : last]
        return Touched(
            replaced=frozenset(each.born for each in gap if each.died is None),
            before=self.strands[first].born if edit.start else None,
            after=self.strands[last].born if edit.end < len(places) else None,
            struck=frozenset(each.died for each in gap if each.died is not None),
        )

    def edited(self, edits: Sequence[tuple[int, Edit]]) -> Weave:
        """With edits of the last version made as of the version named with each, in order.

        An edit may only be made as of a version that has all the lines which it removes.
        """
        places = self._living()
        strands: list[Strand | None] = list(self.strands)
        for number, edit in reversed(edits):
            removed = places[edit.start : edit.end]
            at = self._insertion(places, number, edit)
            for place in removed:
                old = self.strands[place]
                assert old.born <= number
                # a line that came and goes with one patch was never there
                strands[place] = replace(old, died=number) if old.born < number else None
            strands[at:at] = [Strand(text, number) for text in edit.lines]
        return Weave(tuple(each for each in strands if each is not None))

    def _insertion(self, places: Sequence[int], number: int, edit: Edit) -> int:
        if edit.start == edit.end and edit.start:
            previous = places[edit.start - 1]
            if self.strands[previous].born == number:
                return previous + 1  # beside the line of its own patch
        return places[edit.start] if edit.start < len(places) else len(self.strands)

    def _living(self) -> list[int]:
        return [place for place, each in enumerate(self.strands) if each.died is None]


def weave(data: bytes) -> Weave:
    """The weave of a file that has one version yet, number 0; empty for one that is not there."""
    return Weave(tuple(Strand(line, 0) for line in split_lines(data)))
