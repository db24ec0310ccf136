"""What a merge says about itself: which rules it needed, how sure they are, what speaks against."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct


class Rule(str, Enum):
    """How a change of the patch came into upstream's file."""

    CLEAN = "clean"  # only the patch changed these lines, or both sides alike
    BESIDE = "beside"  # upstream changed the lines next to it, none of its own
    BOTH_INSERT = "both-insert"  # both sides insert at one point
    IMPORTS = "imports"  # both sides change import statements
    CONTAINED = "contained"  # upstream has these lines already
    MOVED = "moved"  # upstream moved the surroundings elsewhere in the file
    WORDS = "words"  # both sides change other words of the same lines


class Doubt(str, Enum):
    """What a check found in a merged file that a person should look at, or that forbids it."""

    UPSTREAM_HAS_MOST = "upstream-has-most"  # most of the added lines are new upstream, too
    UPSTREAM_HAS_A_HUNK = "upstream-has-a-hunk"  # it stands elsewhere, new upstream, all of it
    NAME_GONE = "name-gone"  # a name that the added lines use is not in upstream's file any more
    UNBOUND = "unbound"  # a name is used that nothing in the file binds, as it did on both sides
    DOES_NOT_PARSE = "does-not-parse"  # it did before
    DEFINED_TWICE = "defined-twice"  # both sides define the same name in one scope
    LINES_LOST = "lines-lost"  # not every changed line came through
    REWRITTEN = "rewritten"  # what stands beside was rewritten, not just extended

    @property
    def forbids(self) -> bool:
        """Whether a result with this doubt is refused, unless it is git's own."""
        return self in (Doubt.DOES_NOT_PARSE, Doubt.DEFINED_TWICE, Doubt.LINES_LOST)


class MergeEdit(Struct, frozen=True):
    """Lines start..end of upstream's file (from 0, end excluded) that become `lines`."""

    start: int
    end: int
    lines: tuple[bytes, ...]


def edited(lines: Sequence[bytes], edits: Sequence[MergeEdit]) -> list[bytes] | None:
    """`lines` with all edits; None if two of them meet."""
    result: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        if edit.start < at:
            return None
        result += lines[at : edit.start]
        result += edit.lines
        at = edit.end
    return [*result, *lines[at:]]


class RegionResolution(Struct, frozen=True):
    """How one region was settled: what it does to upstream's file, by which rule.

    `detail` says in a few words what a reviewer should know. `doubts` lower the confidence.
    """

    rule: Rule
    edits: tuple[MergeEdit, ...]
    detail: str = ""
    doubts: tuple[Doubt, ...] = ()
