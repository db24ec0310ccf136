"""Merge lines that both sides changed, word by word, where they changed other words.

The rule is the three-way merge's own, one level down: what both changed, or changed side by side,
is a conflict. Blanks and line ends are words, too: nothing is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from patchkit.model.diff import split_lines
from patchkit.model.merging.regions import compare_three

_WORD = re.compile(rb"\w+|\r?\n|[^\S\n]+|[^\w\s]")
_LONGEST = 4000  # words: more is not an edit of the same lines any more


@lru_cache(maxsize=256)  # upstream's file changes, the lines that meet often do not
def merge_words(
    base: tuple[bytes, ...], upstream: tuple[bytes, ...], patch: tuple[bytes, ...]
) -> tuple[bytes, ...] | None:
    """The lines with both sides' changes; None if those meet."""
    sides = [_WORD.findall(b"".join(lines)) for lines in (base, upstream, patch)]
    if not all(sides) or max(map(len, sides)) > _LONGEST:
        return None
    three = compare_three(sides[0], sides[1], sides[2])
    if three.conflicts or not _keeps_most(len(sides[0]), three.upstream_edits, three.patch_edits):
        return None
    merged = three.assemble([each.settled or () for each in three.regions])
    return tuple(split_lines(merged))


def _keeps_most(words: int, *sides: Sequence[object]) -> bool:
    """Whether each side changed the text here and there, not throughout."""
    return all(len(edits) * 2 <= words for edits in sides)
