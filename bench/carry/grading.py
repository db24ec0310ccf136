"""Compare a carried file with the maintainers' one, and say how far a share of files is known."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import accumulate

from patchkit.model.diff_parse import split_lines
from patchkit.model.line_diff import Edit, diff_lines

# Brackets and blank lines stand everywhere: which of them is new is a matter of the comparison.
_WORD = re.compile(rb"\w")


class Grade(str, Enum):
    """How a result stands to the maintainers'."""

    RIGHT = "right"  # the same bytes
    SPACING = "spacing"  # the same but for blank lines, and for white space behind the indentation
    ORDER = "order"  # the same lines between the same old ones, new lines in another order
    WRONG = "wrong"  # other lines, or another place
    CONFLICT = "conflict"  # none


class Whole(str, Enum):
    """How a whole patch stands to the maintainers': by the worst of its files."""

    RIGHT = "right"  # every file has the same bytes
    LINES = "lines"  # the same lines: spacing or order differ
    FLAGGED = "flagged"  # what differs is in conflict or flagged: a person looks at it
    SILENT = "silent"  # a file differs, and nobody is told


ALL = "all"
_OTHERS = "others"
_LANGUAGES = {
    "Python": ("py", "pyi"),
    "C": ("c", "h"),
    "C++": ("cc", "cpp", "cxx", "hh", "hpp", "hxx", "cu", "cuh"),
    "shell": ("sh", "bash"),
    "YAML": ("yml", "yaml"),
}
_ENDINGS = {ending: name for name, endings in _LANGUAGES.items() for ending in endings}


def language(path: str) -> str:
    """The language of a file, by the ending of its name."""
    return _ENDINGS.get(path.rpartition("/")[2].rpartition(".")[2].lower(), _OTHERS)


def languages(found: Iterable[str]) -> list[str]:
    """The groups of a table, in order: all, and each language that occurs beside others."""
    there = set(found)
    order = [each for each in (*_LANGUAGES, _OTHERS) if each in there]
    return [ALL, *order] if there else []


def grade_whole(files: Iterable[tuple[Grade, bool]]) -> Whole:
    """Grade a patch by its files: each one's grade, and whether it is wrong and nobody is told."""
    given = list(files)
    if any(silent for _, silent in given):
        return Whole.SILENT
    grades = {each for each, _ in given}
    if grades & {Grade.WRONG, Grade.CONFLICT}:
        return Whole.FLAGGED
    return Whole.LINES if grades - {Grade.RIGHT} else Whole.RIGHT


def grade(base: bytes, upstream: bytes, truth: bytes | None, result: bytes | None) -> Grade:
    """Grade `result`; `base` and `upstream` are the file on the old and on the new base.

    None is no file there.
    """
    if result == truth:
        return Grade.RIGHT
    if result is None or truth is None:
        return Grade.WRONG
    if _spaced(result) == _spaced(truth):
        return Grade.SPACING
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


def _spaced(data: bytes) -> list[tuple[bytes, bytes]]:
    """(indentation, text without white space) of each line that is not blank."""
    lines = (line.expandtabs() for line in split_lines(data) if line.strip())
    return [(x[: len(x) - len(x.lstrip())], b"".join(x.split())) for x in lines]


def _gaps(
    before: list[int], new: list[bytes], lines: list[bytes], edits: Sequence[Edit]
) -> dict[int, Counter[bytes]]:
    """What is added and removed, by the number of old lines before it that nobody touches."""
    gaps: defaultdict[int, Counter[bytes]] = defaultdict(Counter)
    for edit in edits:
        gap = gaps[before[edit.start]]
        gap.update(x.rstrip() for x in lines[edit.new_start : edit.new_end])
        gap.subtract(x.rstrip() for x in new[edit.start : edit.end])
    return {
        place: Counter({line: n for line, n in gap.items() if n and _WORD.search(line)})
        for place, gap in gaps.items()
        if any(n and _WORD.search(line) for line, n in gap.items())
    }


def interval(right: int, files: int) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson."""
    spread = 1.96**2 / files
    share = right / files
    middle = (share + spread / 2) / (1 + spread)
    half = (spread * (share * (1 - share) + spread / 4)) ** 0.5 / (1 + spread)
    return middle - half, middle + half
