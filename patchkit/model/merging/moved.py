"""Find where upstream moved the lines that an edit stands among in the same file.

Only lines that upstream inserted count as a place to look: lines that stayed are where they were.
The lines around the edit, and all that it removes, must stand there in one piece, indented deeper
or less deep as a whole; the most of them at one place only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from patchkit.model.line_diff import Edit as LineEdit
from patchkit.model.merging.regions import MergeEdit

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
