"""Find the parts of a file that upstream took apart: each edit where its surroundings are now.

Only where every edit has one place, in one file, and stands there with more of the lines around it
than anywhere else, is it taken for the same code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from patchkit.model.diff import split_lines
from patchkit.model.linediff import Edit as LineEdit
from patchkit.model.linediff import diff_lines
from patchkit.model.merging.checking import file_doubts, names_used
from patchkit.model.merging.moved import placed_at, scored_places
from patchkit.model.merging.values import Edit, edited

# Telling lines that must stand around the edit there, too: more than within one file.
_ENOUGH = 4
_NUL = b"\x00"


class SplitMerge(Struct, frozen=True):
    """Path -> the file with the edits that belong there; `names` are used there and not known."""

    files: Mapping[str, bytes]
    names: tuple[str, ...]


def merge_split(base: bytes, patch: bytes, candidates: Mapping[str, bytes]) -> SplitMerge | None:
    """The patch's edits in the files that have their surroundings; None if one has no place.

    A file that could be parsed and no longer can is none, either.
    """
    if any(_NUL in each for each in (base, patch)):
        return None
    old, new = split_lines(base), split_lines(patch)
    texts = {path: split_lines(data) for path, data in candidates.items() if _NUL not in data}
    found: dict[str, list[tuple[LineEdit, Edit]]] = {}
    for edit in diff_lines(old, new):
        place = _place(old, new, edit, texts)
        if place is None:
            return None
        found.setdefault(place[0], []).append((edit, place[1]))
    files, gone = dict[str, bytes](), set[bytes]()
    for path, edits in found.items():
        lines = edited(texts[path], [each for _, each in edits])
        data = b"".join(lines or ())
        if lines is None or file_doubts(path, [candidates[path]], data):
            return None
        files[path] = data
        added = (line for edit, _ in edits for line in new[edit.new_start : edit.new_end])
        gone |= (names_used(added) & names_used(old)) - names_used(texts[path])
    names = sorted(name.decode("ascii", "replace") for name in gone)
    return SplitMerge(files, tuple(names)) if files else None


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
