"""Find where upstream moved the lines that an edit stands among, in the same file or in others.

Only lines that upstream inserted count as a place to look: lines that stayed are where they were.
The lines around the edit, and all that it removes, must stand there in one piece, indented deeper
or less deep as a whole; the most of them at one place only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from patchkit.errors import advice
from patchkit.model.diff_parse import is_binary, split_lines
from patchkit.model.line_diff import Edit as LineEdit
from patchkit.model.line_diff import diff_lines
from patchkit.model.merging.checks import file_doubts, names_used
from patchkit.model.merging.regions import MergeEdit, Region, ThreeWay, edited

_AROUND = 8  # lines looked at above and below the edit
_ENOUGH = 2  # lines that say something and must be found again, of what stands around
_TELLING = re.compile(rb"\w.*\w.*\w")


def find_moved(
    base: Sequence[bytes],
    upstream: Sequence[bytes],
    patch: Sequence[bytes],
    edit: LineEdit,
    upstream_edits: Sequence[LineEdit],
) -> MergeEdit | None:
    """The edit at the place where its surroundings are in `upstream` now; None if unknown."""
    come = [line for each in upstream_edits for line in range(each.new_start, each.new_end)]
    scored = scored_places(base, upstream, edit, come)
    if not scored or scored[0][0] < _ENOUGH:
        return None
    if len(scored) > 1 and scored[1][0] == scored[0][0]:
        return None
    return placed_at(base, upstream, patch, edit, scored[0][1])


def scored_places(
    base: Sequence[bytes], upstream: Sequence[bytes], edit: LineEdit, come: Iterable[int]
) -> list[tuple[int, int]]:
    """(telling lines around the edit that stand there, line), best first, beside lines `come`."""
    places = {
        at for line in come for at in _starts(base, upstream, edit, line) if at <= len(upstream)
    }
    return sorted(((_score(base, upstream, edit, at), at) for at in places), reverse=True)


def placed_at(
    base: Sequence[bytes],
    upstream: Sequence[bytes],
    patch: Sequence[bytes],
    edit: LineEdit,
    at: int,
) -> MergeEdit | None:
    """The edit at line `at` of `upstream`, indented as its surroundings are there."""
    lines = tuple(patch[edit.new_start : edit.new_end])
    moved = _reindent(lines, _shift(base, upstream, edit, at))
    return None if moved is None else MergeEdit(at, at + edit.end - edit.start, moved)


def _starts(
    base: Sequence[bytes], upstream: Sequence[bytes], edit: LineEdit, line: int
) -> list[int]:
    """Where the edit would begin if the new upstream line is its neighbour, or its first line."""
    bare = upstream[line].strip()
    if not bare:
        return []
    found = []
    if edit.start and base[edit.start - 1].strip() == bare:
        found.append(line + 1)
    if edit.start < edit.end and base[edit.start].strip() == bare:
        found.append(line)
    if edit.end < len(base) and base[edit.end].strip() == bare:
        found.append(line - (edit.end - edit.start))
    return [at for at in found if at >= 0]


def _score(base: Sequence[bytes], upstream: Sequence[bytes], edit: LineEdit, at: int) -> int:
    """How many telling lines around the edit stand around `at`, too; -1 if it does not fit."""
    removed = base[edit.start : edit.end]
    there = upstream[at : at + len(removed)]
    if [line.strip() for line in there] != [line.strip() for line in removed]:
        return -1
    above = _run(base[: edit.start][::-1], upstream[:at][::-1])
    below = _run(base[edit.end :], upstream[at + len(removed) :])
    return above + below + sum(map(_tells, removed))


def _run(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    telling = 0
    for a, b in zip(one[:_AROUND], other[:_AROUND], strict=False):
        if a.strip() != b.strip():
            break
        telling += _tells(a)
    return telling


def _tells(line: bytes) -> bool:
    return _TELLING.search(line) is not None


def _shift(
    base: Sequence[bytes], upstream: Sequence[bytes], edit: LineEdit, at: int
) -> tuple[bytes, bytes]:
    """(old indentation, new one) by the nearest line that both have."""
    pairs = [(edit.start - 1, at - 1), (edit.end, at + edit.end - edit.start), (edit.start, at)]
    for old, new in pairs:
        inside = 0 <= old < len(base) and 0 <= new < len(upstream)
        if inside and base[old].strip() and base[old].strip() == upstream[new].strip():
            return _indent(base[old]), _indent(upstream[new])
    return b"", b""


def _reindent(lines: Sequence[bytes], shift: tuple[bytes, bytes]) -> tuple[bytes, ...] | None:
    old, new = shift
    if old == new:
        return tuple(lines)
    deeper = new.startswith(old)
    if not deeper and not old.startswith(new):
        return None
    more, less = new[len(old) :], old[len(new) :]
    if not deeper and any(line.strip() and not line.startswith(less) for line in lines):
        return None
    return tuple(
        line if not line.strip() else more + line if deeper else line.removeprefix(less)
        for line in lines
    )


def _indent(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip())]


# The same in other files, each edit where its surroundings are now. Only where every edit has one
# place, in one file, and stands there with more of the lines around it than anywhere else, is it
# taken for the same code.


# Telling lines that must stand around the edit there, too: more than within one file.
_ENOUGH_SPLIT = 4

#: Path -> (what it was on the old base, what it is now).
Homes: TypeAlias = Mapping[str, tuple[bytes, bytes]]


class SplitMerge(Struct, frozen=True):
    """Path -> the file with the edits that belong there; `names` are used there and not known."""

    files: Mapping[str, bytes]
    names: tuple[str, ...]


class MovedMerge(SplitMerge, frozen=True):
    """The same for a part of a file: `rest` is the patched file without what went elsewhere."""

    rest: bytes


def merge_split(base: bytes, patch: bytes, candidates: Mapping[str, bytes]) -> SplitMerge | None:
    """The patch's edits in the files that have their surroundings; None if one has no place.

    A file that could be parsed and no longer can is none, either.
    """
    if is_binary(base) or is_binary(patch):
        return None
    edits = diff_lines(split_lines(base), split_lines(patch))
    return _merge_elsewhere(split_lines(base), split_lines(patch), edits, candidates)


def merge_moved(three: ThreeWay, stuck: Iterable[Region], homes: Homes) -> MovedMerge | None:
    """The patch's edits of the `stuck` regions in the files to which upstream moved that code.

    `homes` has each file that may be one, as it was on the old base (b"" for none) and as it is:
    what stood there before did not come from here. None if an edit has no place, or one that is as
    good in the file itself.
    """
    edits = [edit for region in stuck for edit in region.patch_edits]
    come = {path: now for path, (_, now) in homes.items()}
    merge = _merge_elsewhere(three.base, three.patch, edits, come)
    if merge is None:
        return None
    before = {path: split_lines(homes[path][0]) for path in merge.files} | {"": three.upstream}
    for edit in edits:
        there = _best(three.base, edit, {path: split_lines(come[path]) for path in merge.files})
        if there <= _best(three.base, edit, before):
            return None
    left = [(each.start, each.end, each) for each in three.patch_edits if each not in edits]
    kept = [MergeEdit(a, b, tuple(three.patch[e.new_start : e.new_end])) for a, b, e in left]
    return MovedMerge(merge.files, merge.names, b"".join(edited(three.base, kept) or ()))


def _merge_elsewhere(
    old: Sequence[bytes],
    new: Sequence[bytes],
    edits: Iterable[LineEdit],
    candidates: Mapping[str, bytes],
) -> SplitMerge | None:
    texts = {path: split_lines(data) for path, data in candidates.items() if not is_binary(data)}
    found: dict[str, list[tuple[LineEdit, MergeEdit]]] = {}
    for edit in edits:
        place = _place(old, new, edit, texts)
        if place is None:
            return None
        found.setdefault(place[0], []).append((edit, place[1]))
    files, gone = dict[str, bytes](), set[bytes]()
    for path, placed in found.items():
        lines = edited(texts[path], [each for _, each in placed])
        data = b"".join(lines or ())
        if lines is None or advice(file_doubts, path, [candidates[path]], data) != ():
            return None
        files[path] = data
        added = (line for edit, _ in placed for line in new[edit.new_start : edit.new_end])
        gone |= (names_used(added) & names_used(old)) - names_used(texts[path])
    names = sorted(name.decode("ascii", "replace") for name in gone)
    return SplitMerge(files, tuple(names)) if files else None


def _best(old: Sequence[bytes], edit: LineEdit, texts: Mapping[str, Sequence[bytes]]) -> int:
    """How many telling lines around the edit stand at the best place of some files."""
    scores = (scored_places(old, lines, edit, range(len(lines)))[:1] for lines in texts.values())
    return max((score for first in scores for score, _ in first), default=-1)


def _place(
    old: Sequence[bytes],
    new: Sequence[bytes],
    edit: LineEdit,
    texts: Mapping[str, Sequence[bytes]],
) -> tuple[str, MergeEdit] | None:
    """The only place in all files that has the most of what stands around the edit."""
    scored = sorted(
        (
            (score, path, at)
            for path, lines in texts.items()
            for score, at in scored_places(old, lines, edit, range(len(lines)))[:2]
        ),
        reverse=True,
    )
    if not scored or scored[0][0] < _ENOUGH_SPLIT:
        return None
    if len(scored) > 1 and scored[1][0] == scored[0][0]:
        return None
    _, path, at = scored[0]
    placed = placed_at(old, texts[path], new, edit, at)
    return None if placed is None else (path, placed)
