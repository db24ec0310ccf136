"""Why one hunk has no place in its file: the nearest thing to it, and how that differs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from patchkit.explain.explanation import Cause, HunkExplanation, Mismatch
from patchkit.gitcmd.tree_view import Terrain
from patchkit.model.lint import numbered_lines
from patchkit.model.outcome import Clash
from patchkit.model.patch import Hunk
from patchkit.model.similarity import (
    Difference,
    Pair,
    Rewording,
    SimilarLines,
    differences,
    explains,
    find_exact,
    find_place,
    pair_lines,
)

_WORD = re.compile(rb"\w")


def explain_hunk(
    terrain: Terrain,
    path: str,
    hunk: Hunk,
    number: int,
    *,
    clash: Clash | None = None,
    elsewhere: Callable[[], Sequence[str]] = tuple,
) -> HunkExplanation:
    """Look for the hunk's lines in the file `path`, then in those that `elsewhere` names.

    `clash` knows what stands at the recorded place, for want of a better one.
    """
    lines = terrain.lines(path)
    place_path, place = path, find_hunk(terrain, path, hunk)
    if place is None:
        place_path, place = _find_elsewhere(terrain, hunk, elsewhere(), path)
    if place is not None:
        differ = differences(hunk.preimage, terrain.lines(place_path), place)
    else:
        differ = _at_recorded_place(hunk, clash)
    added, present = count_present(hunk, terrain, place_path)
    return HunkExplanation(
        number=number,
        line=hunk.line,
        recorded=hunk.old_start,
        cause=_cause(hunk, lines, place, differ, moved=place_path != path),
        place_path=place_path,
        place=place,
        mismatches=_mismatches(differ, hunk),
        added=added,
        present=present,
    )


def find_hunk(terrain: Terrain, path: str, hunk: Hunk) -> SimilarLines | None:
    """The stretch of a file that is most like what the hunk expects."""
    lines = terrain.lines(path)
    return find_place(hunk.preimage, lines, near=hunk.old_start, index=terrain.index(path))


def is_contained(hunk: Hunk, lines: Sequence[bytes]) -> bool:
    """Whether what the hunk leaves behind stands in the file, and it is not only context."""
    at = find_exact(hunk.postimage, lines, near=hunk.new_start)
    return at is not None and hunk.preimage != hunk.postimage


def count_present(hunk: Hunk, terrain: Terrain, path: str) -> tuple[int, int]:
    """(added lines with words in them, how many of these the file has already)."""
    added = {line[1:].strip() for line in hunk.lines if line[:1] == b"+" and _WORD.search(line)}
    kept = {line.strip() for line in hunk.preimage}
    added -= kept
    have = {line.strip() for line in terrain.lines(path)} if added else set()
    return len(added), len(added & have)


def line_pairs(explanation: HunkExplanation) -> list[Pair]:
    """The lines that stand reworded in the file, each with its present form."""
    return [
        pair
        for mismatch in explanation.mismatches
        for _, pair in pair_lines(explanation.place_path, mismatch.expected, mismatch.found)
    ]


def apply_rewordings(
    explanation: HunkExplanation, rewordings: Sequence[Rewording]
) -> HunkExplanation:
    """The explanation with cause REWORDED where the renamings make up for all that differs."""
    if explanation.cause is not Cause.CHANGED or not rewordings:
        return explanation
    for mismatch in explanation.mismatches:
        pairs = pair_lines(explanation.place_path, mismatch.expected, mismatch.found)
        whole = len(pairs) == len(mismatch.expected) == len(mismatch.found)
        if not whole or not all(explains(pair, rewordings) for _, pair in pairs):
            return explanation
    return replace(explanation, cause=Cause.REWORDED)


def _find_elsewhere(
    terrain: Terrain, hunk: Hunk, paths: Sequence[str], default: str
) -> tuple[str, SimilarLines | None]:
    found = [(path, place) for path in paths if (place := find_hunk(terrain, path, hunk))]
    # half of a hunk's lines in a file of another name is a coincidence too often
    good = [(path, place) for path, place in found if place.similarity >= 0.7]
    return max(good, key=lambda each: each[1].similarity, default=(default, None))


def _at_recorded_place(hunk: Hunk, clash: Clash | None) -> tuple[Difference, ...]:
    if clash is None:
        return ()
    return (Difference(tuple(hunk.preimage), clash.found, 0, clash.found_at),)


def _mismatches(differ: Sequence[Difference], hunk: Hunk) -> tuple[Mismatch, ...]:
    numbers = [number for number, line in numbered_lines(hunk) if line[:1] != b"+"]
    return tuple(
        Mismatch(
            each.expected,
            tuple(numbers[each.expected_at : each.expected_at + len(each.expected)]),
            each.found,
            each.found_at,
        )
        for each in differ
    )


def _misses_anchor(hunk: Hunk, lines: Sequence[bytes], place: SimilarLines) -> bool:
    """Whether git wants the hunk at an end of the file, and its lines stand elsewhere."""
    at_start = hunk.old_start <= 1 and place.start != 1
    at_end = hunk.lines[-1][:1] != b" " and place.end != len(lines) + 1
    return at_start or at_end


def _cause(  # noqa: PLR0911 -- a decision list reads best flat
    hunk: Hunk,
    lines: Sequence[bytes],
    place: SimilarLines | None,
    differ: Sequence[Difference],
    *,
    moved: bool,
) -> Cause:
    if is_contained(hunk, lines):
        return Cause.CONTAINED
    if place is None:
        return Cause.GONE
    if moved:
        return Cause.MOVED
    if not differ:
        return Cause.ANCHORED if _misses_anchor(hunk, lines, place) else Cause.ORDER
    if all(each.line_ends_only for each in differ):
        return Cause.LINE_ENDS
    if all(each.whitespace_only for each in differ):
        return Cause.WHITESPACE
    return Cause.CHANGED
