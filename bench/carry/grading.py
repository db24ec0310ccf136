"""Compare a carried file with the maintainers' one."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from enum import Enum
from itertools import accumulate

from patchkit.model.diff_parse import split_lines
from patchkit.model.line_diff import Edit, diff_lines

# Brackets and blank lines stand everywhere: which of them is new is a matter of the comparison.
_WORD = re.compile(rb"\w")


class Grade(str, Enum):
    """How a result stands to the maintainers'."""

    RIGHT = "right"  # the same bytes
    ORDER = "order"  # the same lines between the same old ones, new lines in another order
    WRONG = "wrong"  # other lines, or another place
    CONFLICT = "conflict"  # none


def grade(base: bytes, upstream: bytes, truth: bytes, result: bytes | None) -> Grade:
    """Grade `result`; `base` and `upstream` are the file on the old and on the new base."""
    if result is None:
        return Grade.CONFLICT
    if result == truth:
        return Grade.RIGHT
    old, new = split_lines(base), split_lines(upstream)
    edits = [diff_lines(new, split_lines(each)) for each in (truth, result)]
    come = {line for e in diff_lines(old, new) for line in range(e.new_start, e.new_end)}
    gone = {line for each in edits for e in each for line in range(e.start, e.end)}
    staying = set(range(len(new))) - come - gone
    before = list(accumulate((line in staying for line in range(len(new))), initial=0))
    one, other = (
        _gaps(before, new, split_lines(data), each)
        for data, each in zip((truth, result), edits, strict=True)
    )
    return Grade.ORDER if one == other else Grade.WRONG


def _gaps(
    before: list[int], new: list[bytes], lines: list[bytes], edits: Sequence[Edit]
) -> dict[int, Counter[bytes]]:
    """What is added and removed, by the number of old lines before it that nobody touches."""
    gaps: defaultdict[int, Counter[bytes]] = defaultdict(Counter)
    for edit in edits:
        gap = gaps[before[edit.start]]
        gap.update(x.strip() for x in lines[edit.new_start : edit.new_end])
        gap.subtract(x.strip() for x in new[edit.start : edit.end])
    return {
        place: Counter({line: n for line, n in gap.items() if n and _WORD.search(line)})
        for place, gap in gaps.items()
        if any(n and _WORD.search(line) for line, n in gap.items())
    }
