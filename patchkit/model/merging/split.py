"""Find code that upstream moved to other files: each edit where its surroundings are now.

Only where every edit has one place, in one file, and stands there with more of the lines around it
than anywhere else, is it taken for the same code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from patchkit.model.diff import split_lines
from patchkit.model.linediff import Edit as LineEdit
from patchkit.model.linediff import diff_lines
from patchkit.model.merging.checking import file_doubts, names_used
from patchkit.model.merging.moved import placed_at, scored_places
from patchkit.model.merging.regions import Region, ThreeWay
from patchkit.model.merging.values import Edit, edited

# Telling lines that must stand around the edit there, too: more than within one file.
_ENOUGH = 4
_NUL = b"\x00"

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
    if any(_NUL in each for each in (base, patch)):
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
    kept = [Edit(a, b, tuple(three.patch[e.new_start : e.new_end])) for a, b, e in left]
    return MovedMerge(merge.files, merge.names, b"".join(edited(three.base, kept) or ()))


def _merge_elsewhere(
    old: Sequence[bytes],
    new: Sequence[bytes],
    edits: Iterable[LineEdit],
    candidates: Mapping[str, bytes],
) -> SplitMerge | None:
    texts = {path: split_lines(data) for path, data in candidates.items() if _NUL not in data}
    found: dict[str, list[tuple[LineEdit, Edit]]] = {}
    for edit in edits:
        place = _place(old, new, edit, texts)
        if place is None:
            return None
        found.setdefault(place[0], []).append((edit, place[1]))
    files, gone = dict[str, bytes](), set[bytes]()
    for path, placed in found.items():
        lines = edited(texts[path], [each for _, each in placed])
        data = b"".join(lines or ())
        if lines is None or file_doubts(path, [candidates[path]], data):
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
) -> tuple[str, Edit] | None:
    """The only place in all files that has the most of what stands around the edit."""
    scored = sorted(
        (
            (score, path, at)
            for path, lines in texts.items()
            for score, at in scored_places(old, lines, edit, range(len(lines)))[:2]
        ),
        reverse=True,
    )
    if not scored or scored[0][0] < _ENOUGH:
        return None
    if len(scored) > 1 and scored[1][0] == scored[0][0]:
        return None
    _, path, at = scored[0]
    placed = placed_at(old, texts[path], new, edit, at)
    return None if placed is None else (path, placed)
