"""Lists of patches that are a part of other tools' files, in pieces: what stands around them stays.

Edits are made in the text: order, other fields, quotes, comments and line ends stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import ClassVar, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import BadInputError, Problem
from patchkit.manifest.values import LocalSeries
from patchkit.model.series_file import LINE, Series, SeriesLine, name_problems

#: What parts two words of a list.
_PARTING = re.compile(r"[\s,\\]+")
COMPRESSED = (".gz", ".bz2", ".xz", ".Z", ".zst")
Listed = TypeVar("Listed", bound="LineList")
_SPACE = re.compile(r"[\s\\]*\Z")


class ListedPatch(Struct, frozen=True):
    """A patch as a file lists it: `text[start:end]`, with the name at `at`."""

    start: int
    end: int
    name: str  # of its file
    at: int
    strip: int | None = None  # None where nothing is said of it


class ListReading(Struct, kw_only=True):
    """What is known so far of a list whose file has variables, and parts for some builds only."""

    where: str
    text: str
    values: dict[str, str] = {}  # variables
    left_out: list[Problem] = []  # what only some builds have
    unusable: list[Problem] = []  # what is not understood

    def place(self, at: int) -> str:
        """A place in the text, as file:line."""
        return f"{self.where}:{self.text.count(chr(10), 0, at) + 1}"

    def note(self, notes: list[Problem], what: str, at: int) -> None:
        """Note what is left out."""
        hint = "import that file by itself"
        notes.append(Problem(f"left out: {what}", self.place(at), hint))

    def noted(self, empty: Listed) -> Listed:
        """A list with what is left out."""
        return replace(empty, left_out=tuple(self.left_out), unusable=tuple(self.unusable))


class LineList(Series, frozen=True):
    """Patches that have lines of their own, in a file of which only a part is the list."""

    start: int = 0  # the number of the piece before which the first patch would be
    where: str = ""  # the list, as file:line
    begin: str = ""  # what stands before the name of a new patch
    behind: str = ""  # what stands behind it
    ending: str = ""  # of the names, where it is not written
    folders: int | None = None  # go from the paths of new patches; None: what the manifest says
    elsewhere: Mapping[str, str] = {}  # what lists of other versions have, too: name -> which

    @property
    def strip(self) -> int | None:
        """As the tool has it that reads the list."""
        return self.folders

    @property
    def others(self) -> Mapping[str, str]:
        """What lists of other versions have, too."""
        return self.elsewhere

    def with_strip(self, name: str, strip: int) -> Series:
        """Refused: what is new has the level of the list."""
        what = f"{name} needs -p{strip}, and all are taken with -p{self.folders} there"
        raise BadInputError(Problem(what, self.where, "write its paths as the others'"))

    def arrange(self, names: Sequence[str]) -> Series:
        """As in any series; what is new is written like its neighbours, before others go."""
        series: Series = self
        for before, name in zip((None, *names), names, strict=False):
            if name not in series.names:
                series = series.insert_after(before, name)
        return Series.arrange(series, names)

    def _closed(self) -> tuple[SeriesLine, ...]:
        return super()._closed() if self.lines[-1].name else self.lines

    def _first(self) -> int:
        return min((n for n, line in enumerate(self.lines) if line.name), default=self.start)

    def _end(self, place: int) -> int:
        return place

    def _new(self, after: str | None, name: str) -> SeriesLine:
        written = name.removesuffix(self.ending)
        text = f"{self.begin}{written}{self.behind}"
        return SeriesLine(text, name, self.folders, len(self.begin), self.ending)


class HashedList(LineList, frozen=True):
    """Patches behind whose names the list has the hashes of their files, which `hashed` finds."""

    hashed: ClassVar[re.Pattern[str]]  # group 1 is the hash

    def objection(self, name: str, data: bytes) -> Problem | None:
        """That the file's bytes have another hash."""
        said = self._hash(name)[1]
        wanted = self.digest(said, data)
        what = f"{name} is not what {said} was written for"
        hint = f"if the patch is right, write {wanted}"
        return Problem(what, hint=hint) if said != wanted else None

    def with_bytes(self, name: str, data: bytes) -> Series:
        """With the hash of these bytes."""
        place, found = self._index(name), self._hash(name)
        start, end = found.span(1)
        text = found.string[:start] + self.digest(found[1], data) + found.string[end:]
        return self._with(place, replace(self.lines[place], text=text))

    def digest(self, said: str, data: bytes) -> str:
        """The hash of bytes, of the kind of what is said."""
        return sha256(data).hexdigest()

    def _hash(self, name: str) -> re.Match[str]:
        line = self.lines[self._index(name)]
        found = self.hashed.search(line.text, line.at)
        assert found is not None, "the pattern matches at the end, too"
        return found


class WordList(LineList, frozen=True):
    """Patches that are words of a value.

    Invariant: what parts two words keeps its place, and comes and goes with a word.
    """

    mark: str = ""  # what parts two words, before the space

    def insert_after(self, after: str | None, name: str) -> Series:
        """With `name` directly after the patch `after`; None: before the first patch."""
        self._require_new(name)
        new, parting = self._new(after, name), SeriesLine(self._parting)
        place = self._first() if after is None else self._index(after)
        old = self.lines[place]
        if after is not None:
            return self._with(place, old, parting, new)
        if self.names:
            return self._with(place, new, parting, old)
        last = self.lines[place - 1].text.rpartition("\n")[2]
        if "#" in last:
            parting = SeriesLine("\n")
        elif not last.strip(" \t") or last.endswith(("{", '"', "'")):
            return self._with(place, new, old)
        return self._with(place, parting, new, old)

    def remove(self, name: str) -> Series:
        """Without the patch and what parts it from the one before it; the first, from the next."""
        place = self._index(name)
        beside = place - 1 if self._follows(place) else place + 1
        left = _PARTING.match(self.lines[beside].text)
        lines = [*self.lines]
        lines[beside] = SeriesLine(lines[beside].text[left.end() if left else 0 :])
        del lines[place]
        return self._made([line for line in lines if line.text])

    def _reorder(self, names: Sequence[str]) -> Series:
        words = {line.name: line for line in self.lines if line.name}
        order = iter(names)
        return self._made([words[next(order)] if line.name else line for line in self.lines])

    def _follows(self, place: int) -> bool:
        """Whether another patch stands directly before the one there."""
        parted = place > 1 and _PARTING.fullmatch(self.lines[place - 1].text)
        return bool(parted) and self.lines[place - 2].name is not None

    @property
    def _parting(self) -> str:
        """What parts two words: as between those that are there, or as before the first one."""
        for place in range(2, len(self.lines)):
            if self.lines[place].name and self._follows(place):
                return self.lines[place - 1].text
        space = _SPACE.search(self.lines[self._first() - 1].text)
        return self.mark + (space[0] if space and space[0] else " ")


def chosen(entry: LocalSeries, there: Sequence[str], where: str, noun: str) -> str:
    """Which of several lists in a file is meant: the only one, or that for the entry's target."""
    wanted = entry.target or (there[0] if len(there) == 1 else "")
    if wanted not in there:
        what = f"no {noun} {wanted}" if wanted else f"patches of several {noun}s"
        hint = f'beside series: target: "{"".join(there[:1])}" (there are {", ".join(there)})'
        raise BadInputError(Problem(what, where, hint))
    return wanted


def cut(text: str, found: Iterable[ListedPatch], stop: int, empty: Listed) -> Listed:
    """A list of this kind, with the pieces of a file in which it ends at `stop`."""
    pieces: list[SeriesLine] = []
    at = 0
    for each in (*found, ListedPatch(stop, stop, "", stop)):
        between = text[at : each.start]
        pieces += map(
            SeriesLine, [between] if isinstance(empty, WordList) else LINE.findall(between)
        )
        if each.name:
            row, place = text[each.start : each.end], each.at - each.start
            pieces.append(SeriesLine(row, each.name, each.strip, place, empty.ending))
        at = each.end
    rest = map(SeriesLine, LINE.findall(text[stop:]))
    return replace(empty, lines=(*pieces, *rest), start=len(pieces))


def checked(data: bytes, series: Series, entry: LocalSeries) -> Series:
    """The series, with the byte order mark of its file; BadInputError where a name cannot be."""
    mark = "\ufeff" * data.startswith(b"\xef\xbb\xbf")
    first, *rest = series.lines
    problems = name_problems(series, entry.path)
    for line in series.lines:
        written = (line.name or "").removesuffix(line.ending)
        if not line.text.startswith(written, line.at):
            hint = "write its letters as they are"
            problems.append(Problem(f"{line.name!a} is written with escapes", entry.path, hint))
    if problems:
        raise BadInputError(*problems)
    return replace(series, lines=(replace(first, text=mark + first.text), *rest))
