"""Where lines that a hunk expects stand now in a file, approximately, and how they differ there.

`git apply` answers only yes or no. To say why a hunk has no place we look for the stretch of the
file that is most like its preimage: lines that both have vote for a shift, the best shifts are
compared line by line. Lines of punctuation alone hardly count, they stand everywhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from difflib import SequenceMatcher

#: Below this share of its weight found again, a hunk counts as gone from the file.
LIKENESS = 0.4

# A line that stands in more places than this says nothing about where a hunk belongs.
_COMMON = 60
_SHIFTS_TRIED = 8
_WORD = re.compile(rb"\w")

Index = Mapping[bytes, Sequence[int]]
Item = TypeVar("Item", bound=Hashable)


class SimilarLines(Struct, frozen=True):
    """A stretch of a file, lines start..end (1-based, end not included); similarity from 0 to 1."""

    start: int
    end: int
    similarity: float


class Difference(Struct, frozen=True):
    """Lines that a hunk expects and the lines that stand in their place; either may be empty.

    `expected_at` counts from 0 in the hunk's preimage, `found_at` from 1 in the file; both are
    where the lines start, or where they would.
    """

    expected: tuple[bytes, ...]  # lines of the hunk
    found: tuple[bytes, ...]  # lines of the file
    expected_at: int
    found_at: int

    def is_only_in(self, bare: Callable[[bytes], bytes]) -> bool:
        """Whether both sides are the same but for what `bare` takes away from each line."""
        return bool(self.expected) and [*map(bare, self.expected)] == [*map(bare, self.found)]


def index_lines(lines: Sequence[bytes]) -> Index:
    """Line without its end -> where it stands, counted from 0."""
    index: defaultdict[bytes, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        index[_key(line)].append(number)
    return index


def find_place(
    expected: Sequence[bytes], lines: Sequence[bytes], *, near: int, index: Index | None = None
) -> SimilarLines | None:
    """The stretch of `lines` most like `expected`; of equal ones the nearest to line `near`.

    None if nothing there is like it. `index` is `index_lines(lines)`, for several searches.
    """
    if not expected or not lines:
        return None
    shifts = _shifts(expected, index_lines(lines) if index is None else index, near - 1)
    places = [_place(expected, lines, shift) for shift in shifts]
    best = max(places, key=lambda each: (each.similarity, -abs(each.start - near)))
    return best if best.similarity >= LIKENESS else None


def differences(
    expected: Sequence[bytes], lines: Sequence[bytes], place: SimilarLines
) -> tuple[Difference, ...]:
    """What of `expected` is otherwise at `place`, in order; lines are compared to the byte."""
    window = lines[place.start - 1 : place.end - 1]
    # alignment by likeness, so that a change of line ends does not unhinge it
    blocks = _matcher(expected, window).get_opcodes()
    found: list[Difference] = []
    for tag, i1, i2, j1, j2 in blocks:
        if tag == "equal":
            found += (
                Difference((old,), (new,), i1 + number, place.start + j1 + number)
                for number, (old, new) in enumerate(
                    zip(expected[i1:i2], window[j1:j2], strict=True)
                )
                if old != new
            )
        else:
            found.append(
                Difference(tuple(expected[i1:i2]), tuple(window[j1:j2]), i1, place.start + j1)
            )
    return tuple(found)


def find_exact(wanted: Sequence[bytes], lines: Sequence[bytes], *, near: int) -> int | None:
    """The line, 1-based, where `wanted` stands to the byte, the nearest to `near`; None if not."""
    if not wanted:
        return None
    wanted = list(wanted)
    first, count = wanted[0], len(wanted)
    starts = [
        at for at, line in enumerate(lines) if line == first and lines[at : at + count] == wanted
    ]
    return min(starts, key=lambda at: abs(at + 1 - near), default=-1) + 1 or None


def likeness(a: bytes, b: bytes) -> float:
    """How like two lines are, from 0 to 1."""
    return _sequences(a.strip(), b.strip()).ratio()


def weight(line: bytes) -> float:
    """How much a line tells about a place: little if it has no word in it."""
    return 1.0 if _WORD.search(line) else 0.1


def _shifts(expected: Sequence[bytes], index: Index, near: int) -> list[int]:
    votes: defaultdict[int, float] = defaultdict(float)
    votes[near] = 0.0  # the recorded place is looked at even if nothing speaks for it
    for number, line in enumerate(expected):
        places = index.get(_key(line), ())
        if len(places) <= _COMMON:
            for at in places:
                votes[at - number] += weight(line) / len(places)
    ranked = sorted(votes, key=lambda shift: (-votes[shift], abs(shift - near)))
    return [*ranked[:_SHIFTS_TRIED], near]


def _place(expected: Sequence[bytes], lines: Sequence[bytes], shift: int) -> SimilarLines:
    slack = max(4, len(expected) // 3)
    low = min(max(0, shift - slack), len(lines))
    window = lines[low : max(low, shift + len(expected) + slack)]
    blocks = _matcher(expected, window).get_matching_blocks()[:-1]
    if blocks:
        first, last = blocks[0], blocks[-1]
        start = max(0, first.b - first.a)
        end = min(len(window), last.b + len(expected) - last.a)
    else:
        start = min(max(0, shift - low), len(window))
        end = min(len(window), start + len(expected))
    score = _score(expected, window[start:end])
    return SimilarLines(low + start + 1, low + end + 1, score)


def _score(expected: Sequence[bytes], window: Sequence[bytes]) -> float:
    got = 0.0
    for tag, i1, i2, j1, j2 in _matcher(expected, window).get_opcodes():
        if tag == "equal":
            got += sum(map(weight, expected[i1:i2]))
        elif tag == "replace":
            # rewritten lines count by how much of them is left, paired in order
            for a, b in zip(expected[i1:i2], window[j1:j2], strict=False):
                alike = likeness(a, b)
                got += weight(a) * alike if alike > 0.6 else 0.0
    # lines that stand between count against it, too
    return round(2 * got / sum(map(weight, [*expected, *window])), 3)


def _matcher(a: Sequence[bytes], b: Sequence[bytes]) -> SequenceMatcher[bytes]:
    return _sequences([_key(x) for x in a], [_key(x) for x in b])


def _sequences(a: Sequence[Item], b: Sequence[Item]) -> SequenceMatcher[Item]:
    from difflib import SequenceMatcher  # noqa: PLC0415 (where a patch does not fit)

    return SequenceMatcher(None, a, b, autojunk=False)


def _key(line: bytes) -> bytes:
    return line.rstrip()


def without_blanks(line: bytes) -> bytes:
    """A line without its blanks and its end."""
    return b"".join(line.split())


def without_end(line: bytes) -> bytes:
    """A line without its end."""
    return line.rstrip(b"\r\n")
