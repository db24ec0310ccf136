"""All versions of a file in one list of lines (a weave: Rochkind's SCCS, 1975), so that an edit of
the last can go into an earlier one; and from which patch each line comes.

Each line knows with which version it came and with which it went. Invariant: the lines of a version
are those that had come and had not gone, in the list's order. So whatever is inserted or struck out
"as of version k" stands in k and in everything after it, and no later version can conflict with it.

Versions are numbered from 0, the base's; version k is the file after the k-th patch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from patchkit.model.diff_parse import split_lines
from patchkit.model.outcome import FileResult
from patchkit.model.patch import FileChange, Hunk, Kind


class LineLife(Struct, frozen=True):
    """One line, with its newline: in every version from `born` up to, not including, `died`."""

    text: bytes  # ends with its newline, but for a last line without one
    born: int
    died: int | None = None

    def alive(self, version: int) -> bool:
        """Whether the version has the line."""
        return self.born <= version and (self.died is None or version < self.died)


class VersionEdit(Struct, frozen=True):
    """The lines [start, end) of a version, counted from 0, become `lines`."""

    start: int
    end: int
    lines: tuple[bytes, ...]


class EditNeighbours(Struct, frozen=True):
    """What an edit of the last version meets, as versions: 0 for lines of the base."""

    #: Where the lines that it removes or changes came from.
    replaced: frozenset[int]
    #: Where the neighbouring lines came from; None at an end of the file.
    before: int | None
    after: int | None  # the version that the line behind it came with; None at the end
    #: Versions that removed something at this very place.
    struck: frozenset[int]


class Weave(Struct, frozen=True):
    """The versions of one file."""

    #: All lines that ever were, in an order that holds in each version.
    strands: tuple[LineLife, ...]

    def version(self, number: int) -> bytes:
        """The contents of the file in that version."""
        return b"".join(each.text for each in self.strands if each.alive(number))

    def is_whole(self, number: int) -> bool:
        """Whether no line but the last of that version lacks its newline."""
        lines = [each.text for each in self.strands if each.alive(number)]
        return all(line.endswith(b"\n") for line in lines[:-1])

    def grown(self, number: int, edits: Sequence[VersionEdit]) -> Weave:
        """With one more version: the last one with `edits` (in order, apart from each other)."""
        places = self._living()
        strands = list(self.strands)
        for edit in reversed(edits):
            for place in places[edit.start : edit.end]:
                strands[place] = replace(strands[place], died=number)
            at = places[edit.start] if edit.start < len(places) else len(strands)
            strands[at:at] = [LineLife(text, number) for text in edit.lines]
        return Weave(tuple(strands))

    def touched(self, edit: VersionEdit) -> EditNeighbours:
        """Which versions an edit of the last version has to do with."""
        places = self._living()
        first = places[edit.start - 1] if edit.start else -1
        last = places[edit.end] if edit.end < len(places) else len(self.strands)
        gap = self.strands[first + 1 : last]
        return EditNeighbours(
            replaced=frozenset(each.born for each in gap if each.died is None),
            before=self.strands[first].born if edit.start else None,
            after=self.strands[last].born if edit.end < len(places) else None,
            struck=frozenset(each.died for each in gap if each.died is not None),
        )

    def edited(self, edits: Sequence[tuple[int, VersionEdit]]) -> Weave:
        """With edits of the last version made as of the version named with each, in order.

        An edit may only be made as of a version that has all the lines which it removes.
        """
        places = self._living()
        strands: list[LineLife | None] = list(self.strands)
        for number, edit in reversed(edits):
            removed = places[edit.start : edit.end]
            at = self._insertion(places, number, edit)
            for place in removed:
                old = self.strands[place]
                assert old.born <= number
                # a line that came and goes with one patch was never there
                strands[place] = replace(old, died=number) if old.born < number else None
            strands[at:at] = [LineLife(text, number) for text in edit.lines]
        return Weave(tuple(each for each in strands if each is not None))

    def _insertion(self, places: Sequence[int], number: int, edit: VersionEdit) -> int:
        if edit.start == edit.end and edit.start:
            previous = places[edit.start - 1]
            if self.strands[previous].born == number:
                return previous + 1  # beside the line of its own patch
        return places[edit.start] if edit.start < len(places) else len(self.strands)

    def _living(self) -> list[int]:
        return [place for place, each in enumerate(self.strands) if each.died is None]


def weave(data: bytes) -> Weave:
    """The weave of a file that has one version yet, number 0; empty for one that is not there."""
    return Weave(tuple(LineLife(line, 0) for line in split_lines(data)))


# Which patch each line comes from, and so which patches need which. Patches are numbered from 1, 0
# stands for the base. A patch needs an earlier one if a line that it must find (context or removed)
# came with that one, if that one removed lines from between such lines, or if it works on a file
# that the earlier one made. Lines that only moved up or down are no reason: a hunk finds them.


BASE = 0


class PatchDependency(Struct, frozen=True):
    """Patch `number` needs patch `on`: in file `path`, for `lines` of its lines (0: the file)."""

    number: int
    on: int
    path: str
    lines: int


class _File(Struct):
    """A file while patches go over it.

    `owners` has a patch per line; `struck` the patches that removed lines before each line, and at
    the end; `maker` made the file, `toucher` changed it last.
    """

    owners: list[int]
    struck: list[frozenset[int]]
    maker: int
    toucher: int


class Attribution(Struct):
    """The files that a stack touches, as of the last patch that was added.

    `read` gives a file of the base, None where there is none.
    """

    read: Callable[[str], bytes | None]
    _files: dict[str, _File | None] = {}
    _removed_by: dict[str, int] = {}

    def add(
        self, number: int, changes: Sequence[FileChange], outcomes: Sequence[FileResult]
    ) -> tuple[PatchDependency, ...]:
        """Let patch `number`, which applies with `outcomes`, go over the files; what it needs."""
        needs: list[PatchDependency] = []
        for change, outcome in zip(changes, outcomes, strict=True):
            needs += self._change(number, change, outcome.offsets)
        return tuple(needs)

    def owners(self, path: str) -> tuple[int, ...] | None:
        """The patch of each line of a file, None where there is no such file."""
        file = self._file(path)
        return None if file is None else tuple(file.owners)

    def _file(self, path: str) -> _File | None:
        if path not in self._files:
            data = self.read(path)
            self._files[path] = None if data is None else _file_of(len(split_lines(data)), BASE)
        return self._files[path]

    def _change(
        self, number: int, change: FileChange, offsets: Sequence[int]
    ) -> list[PatchDependency]:
        file = self._file(change.old_path or change.path)
        if change.kind is Kind.ADD or file is None:
            path = change.path
            count = sum(len(hunk.postimage) for hunk in change.hunks)
            self._files[path] = _file_of(count, number)
            remover = self._removed_by.get(path, BASE)
            return [PatchDependency(number, remover, path, 0)] if remover else []
        old_path = change.old_path or change.path
        needs = _file_needs(number, change, file, old_path)
        touched = _File(list(file.owners), list(file.struck), file.maker, number)
        for hunk, offset in zip(change.hunks, offsets, strict=False):
            needs += _replace(touched, hunk, offset, number, old_path)
        self._settle(number, change, touched, old_path)
        return _merged(needs)

    def _settle(self, number: int, change: FileChange, file: _File, old_path: str) -> None:
        if change.kind in (Kind.DELETE, Kind.RENAME):
            self._files[old_path] = None
            self._removed_by[old_path] = number
        if change.new_path is not None:
            if change.kind in (Kind.RENAME, Kind.COPY):
                file.maker = number
            self._files[change.new_path] = file


def _file_of(count: int, number: int) -> _File:
    return _File([number] * count, [frozenset()] * (count + 1), number, number)


def _file_needs(number: int, change: FileChange, file: _File, path: str) -> list[PatchDependency]:
    needs = [PatchDependency(number, file.maker, path, 0)] if file.maker else []
    whole = change.binary is not None or not change.hunks
    if whole and file.toucher not in (BASE, file.maker):
        needs.append(PatchDependency(number, file.toucher, path, 0))
    return needs


def _replace(file: _File, hunk: Hunk, offset: int, number: int, path: str) -> list[PatchDependency]:
    """Put a hunk's lines in the place of what it found; the patches whose lines it found."""
    start = max(hunk.new_start - 1, 0) + offset
    found = len(hunk.preimage)
    met = file.owners[start : start + found]
    # a hunk that git wants at an end of the file minds what was removed beyond its lines, too
    first = start if hunk.old_start <= 1 else start + 1
    last = start + found + (hunk.lines[-1][:1] != b" ")
    between = [each for gap in file.struck[first:last] for each in gap]
    owners: list[int] = []
    struck = [file.struck[start]]
    at = start
    for line in hunk.lines:
        if line[:1] == b"+":
            owners.append(number)
            struck.append(frozenset())
            continue
        at += 1
        if line[:1] == b" ":
            owners.append(file.owners[at - 1])
            struck.append(file.struck[at])
        else:
            struck[-1] |= file.struck[at] | {number}
    file.owners[start : start + found] = owners
    file.struck[start : start + found + 1] = struck
    # where a patch replaced lines, those that it wrote count, and not those that went as well
    counted = {each: met.count(each) or between.count(each) for each in {*met, *between}}
    return [
        PatchDependency(number, on, path, lines)
        for on, lines in counted.items()
        if on not in (0, number)
    ]


def _merged(needs: Iterable[PatchDependency]) -> list[PatchDependency]:
    merged: dict[tuple[int, str], PatchDependency] = {}
    for need in needs:
        key = (need.on, need.path)
        before = merged.get(key)
        lines = need.lines + (before.lines if before else 0)
        merged[key] = PatchDependency(need.number, need.on, need.path, lines)
    return sorted(merged.values(), key=lambda each: (each.on, each.path))
