"""Which lines of two texts are the same ones: the edits that lead from one to the other.

The lines that stand least often on the old side anchor the comparison, as in git's histogram
diff, so that what three-way merging compares is what git's own compares. Where lines repeat too
often for that, the longest runs of them decide.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

# A line that stands more often than this on the old side anchors nothing (git's own limit).
_COMMON = 64
# Beyond so many pairs of equal lines, where all repeat, the whole stretch counts as rewritten.
_DEAREST = 1 << 18
# Lines: a longer stretch that repeats says nothing of where an edit belongs.
_LONGEST_SLIDE = 100


class Edit(Struct, frozen=True):
    """Old lines start..end become new lines new_start..new_end; counted from 0, ends excluded."""

    start: int
    end: int
    new_start: int
    new_end: int

    @property
    def inserts_only(self) -> bool:
        """Whether no old line goes."""
        return self.start == self.end


def diff_lines(old: Sequence[bytes], new: Sequence[bytes]) -> tuple[Edit, ...]:
    """The edits that make `new` of `old`, in order; neighbours have a common line between them."""
    side = _numbered(tuple(old))
    a, numbers = side.lines, dict(side.numbers)
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    gone, come = bytearray(len(a)), bytearray(len(b))
    _compare(side, b, gone, come)
    _slide(a, gone, come)
    _slide(b, come, gone)
    return tuple(_edits(gone, come))


class _OldSide(Struct, frozen=True):
    """The old lines, equal ones by one number."""

    numbers: dict[bytes, int]
    lines: list[int]
    #: Number * how many lines there are + place, for each: so the places of a line are in one row.
    places: list[int]

    def rows(self, line: int, low: int, high: int) -> range:
        """The rows of `places` that say where a line stands in low..high."""
        first = line * len(self.lines)
        return range(bisect_left(self.places, first + low), bisect_left(self.places, first + high))


@lru_cache(maxsize=2)  # a file is compared with one version after another
def _numbered(old: tuple[bytes, ...]) -> _OldSide:
    numbers: dict[bytes, int] = {}
    lines = [numbers.setdefault(line, len(numbers)) for line in old]
    places = sorted(line * len(lines) + place for place, line in enumerate(lines))
    return _OldSide(numbers, lines, places)


def _edits(gone: bytearray, come: bytearray) -> Iterator[Edit]:
    """The edits, by the gaps between unchanged lines: these stand on both sides alike."""
    lost = won = 0  # lines above
    gaps = zip(gone.split(b"\0"), come.split(b"\0"), strict=True)
    for gap, (old, new) in enumerate(gaps):
        if old or new:
            start, new_start = gap + lost, gap + won
            yield Edit(start, start + len(old), new_start, new_start + len(new))
            lost, won = lost + len(old), won + len(new)


def sliding_places(edit: Edit, old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[Edit]:
    """The edit at each place where it comes to the same, but its own, the nearest first.

    A run that is inserted or removed may stand as well one line up or down where the line that it
    gains equals the one that it loses.
    """
    up = list(_slides(edit, old, new, -1))
    down = list(_slides(edit, old, new, 1))
    for number in range(max(len(up), len(down))):
        yield from up[number : number + 1]
        yield from down[number : number + 1]


def _slides(edit: Edit, old: Sequence[bytes], new: Sequence[bytes], step: int) -> Iterator[Edit]:
    if edit.start < edit.end and edit.new_start < edit.new_end:
        return
    lines = new if edit.inserts_only else old
    start, end = (edit.new_start, edit.new_end) if edit.inserts_only else (edit.start, edit.end)
    for shift in range(step, _LONGEST_SLIDE * step, step):
        first, last = start + shift, end + shift
        if first < 0 or last > len(lines):
            return
        gained, lost = (first, last) if step < 0 else (last - 1, first - 1)
        if lines[gained] != lines[lost]:
            return
        yield Edit(
            edit.start + shift, edit.end + shift, edit.new_start + shift, edit.new_end + shift
        )


# Histogram diff, as in git (xdiff/xhistogram.c) and before it in JGit. Invariant of `_compare`:
# what lies outside of the windows still to do is decided, equal where neither `gone` nor `come` is
# set. Each anchor splits a window into two smaller ones, so it ends.
def _compare(old: _OldSide, b: Sequence[int], gone: bytearray, come: bytearray) -> None:
    a = old.lines
    todo = [(0, len(a), 0, len(b))]
    while todo:
        a_low, a_high, b_low, b_high = window = todo.pop()
        anchor, common = _anchor(old, b, window)
        if anchor is not None:
            begin, end, new_begin, new_end = anchor
            todo.append((a_low, begin, b_low, new_begin))
            todo.append((end, a_high, new_end, b_high))
        elif common:
            _longest_runs(a, b, window, gone, come)
        else:
            gone[a_low:a_high] = b"\x01" * (a_high - a_low)
            come[b_low:b_high] = b"\x01" * (b_high - b_low)


def _anchor(
    old: _OldSide, b: Sequence[int], window: tuple[int, int, int, int]
) -> tuple[tuple[int, int, int, int] | None, bool]:
    """The run of common lines whose rarest line is rarest of all, the longest of those.

    The second answer is whether there are common lines at all, however often they stand there.
    """
    a_low, a_high, b_low, b_high = window
    a = old.lines
    best: tuple[int, int, int, int] | None = None
    best_count, best_length = _COMMON + 1, 0
    common = False
    j = b_low if a_low < a_high else b_high
    while j < b_high:
        following = j + 1
        known = old.rows(b[j], a_low, a_high)
        common = common or bool(known)
        past = a_low
        for row in known if len(known) <= best_count else ():
            i = old.places[row] % len(a)
            if i < past:
                continue
            begin, new_begin = i, j
            while begin > a_low and new_begin > b_low and a[begin - 1] == b[new_begin - 1]:
                begin, new_begin = begin - 1, new_begin - 1
            size = _alike(a, b, (begin, new_begin), min(a_high - begin, b_high - new_begin))
            end, new_end = begin + size, new_begin + size
            following = max(following, new_end)
            rarest = len(known)
            for line in a[begin:end]:
                if rarest == 1:
                    break
                rarest = min(rarest, len(old.rows(line, a_low, a_high)))
            if end - begin > best_length or rarest < best_count:
                best, best_length, best_count = (
                    (begin, end, new_begin, new_end),
                    end - begin,
                    rarest,
                )
            past = end
        j = following
    return (best if best_count <= _COMMON else None), common


def _alike(a: Sequence[int], b: Sequence[int], start: tuple[int, int], most: int) -> int:
    """How many lines are the same on both sides from two places on, of `most`."""
    i, j = start
    size, step = 0, 1
    while step:
        end = size + step
        if end <= most and a[i + size : i + end] == b[j + size : j + end]:
            size, step = end, step * 2
        else:
            step //= 2
    return size


def _longest_runs(
    a: Sequence[int],
    b: Sequence[int],
    window: tuple[int, int, int, int],
    gone: bytearray,
    come: bytearray,
) -> None:
    """Compare a window in which every common line repeats a lot, by its longest common runs."""
    a_low, a_high, b_low, b_high = window
    old, new = a[a_low:a_high], b[b_low:b_high]
    gone[a_low:a_high] = b"\x01" * len(old)
    come[b_low:b_high] = b"\x01" * len(new)
    there = Counter(new)
    if sum(there[line] for line in old) > _DEAREST:
        return
    from difflib import SequenceMatcher  # noqa: PLC0415 (hardly any file needs it)

    for i, j, size in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        gone[a_low + i : a_low + i + size] = bytes(size)
        come[b_low + j : b_low + j + size] = bytes(size)


def _slide(lines: Sequence[int], changed: bytearray, other: bytearray) -> None:
    """Move each run of changed lines to where git puts it.

    A run may stand as well one line up or down where the line that it gains equals the one that it
    loses. It goes down as far as it can, or to the last place beside which the other side has
    changes, too. A gap is numbered by the unchanged lines before it, on both sides alike.
    """
    filled = bytearray(map(bool, other.split(b"\0")))
    at = gap = 0
    while (start := changed.find(1, at)) >= 0:
        at, gap = _slide_run(lines, changed, filled, start, gap + start - at)


def _slide_run(
    lines: Sequence[int], changed: bytearray, filled: bytearray, start: int, gap: int
) -> tuple[int, int]:
    """Move the run that begins at `start`; its end and its gap afterwards."""
    size = len(lines)
    end = start
    while end < size and changed[end]:
        end += 1
    length = -1
    highest = matching = gap
    while length != end - start:  # it may have run into neighbours, and slide further with them
        length = end - start
        while start and lines[start - 1] == lines[end - 1]:
            start, end, gap = start - 1, end - 1, gap - 1
            changed[start], changed[end] = 1, 0
            while start and changed[start - 1]:
                start -= 1
        highest = gap
        matching = gap if filled[gap] else -1
        while end < size and lines[start] == lines[end]:
            changed[start], changed[end] = 0, 1
            start, end, gap = start + 1, end + 1, gap + 1
            while end < size and changed[end]:
                end += 1
            matching = gap if filled[gap] else matching
    if gap != highest and matching >= 0:
        while gap > matching:
            start, end, gap = start - 1, end - 1, gap - 1
            changed[start], changed[end] = 1, 0
            while start and changed[start - 1]:
                start -= 1
    return end, gap
