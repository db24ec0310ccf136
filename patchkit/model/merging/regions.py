"""Where two texts changed their common base, and where both did: the raw material of a merge.

The regions are those of git's own three-way merge: changes that overlap or merely touch form one
region. Where only one side changed, or both alike, there is nothing to decide.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from patchkit.model.line_diff import Edit, diff_lines

Lines = Sequence[bytes]


class Region(Struct, frozen=True):
    """A stretch of the base that at least one side changed; all ranges count from 0.

    `start`..`end` are its lines in the base. `upstream` and `patch` are the lines that the sides
    have there, `upstream_edits` and `patch_edits` the edits it is made of, `upstream_at`
    where its lines begin there.
    """

    start: int
    end: int
    base: tuple[bytes, ...]
    upstream: tuple[bytes, ...]
    patch: tuple[bytes, ...]
    upstream_at: int
    upstream_edits: tuple[Edit, ...]
    patch_edits: tuple[Edit, ...]

    @property
    def settled(self) -> tuple[bytes, ...] | None:
        """The lines that git's three-way merge puts here; None where it finds a conflict."""
        if not self.patch_edits or self.patch == self.upstream:
            return self.upstream
        return self.patch if not self.upstream_edits else None


class ThreeWay(Struct, frozen=True):
    """Three texts as lines, the edits of both sides, and their regions in order."""

    base: Lines
    upstream: Lines
    patch: Lines
    upstream_edits: tuple[Edit, ...]
    patch_edits: tuple[Edit, ...]
    regions: tuple[Region, ...]

    @property
    def conflicts(self) -> tuple[Region, ...]:
        """The regions where git's three-way merge gives up."""
        return tuple(each for each in self.regions if each.settled is None)

    def assemble(self, texts: Sequence[Lines]) -> bytes:
        """The file with `texts`, one per region, in place of the regions."""
        pieces: list[bytes] = []
        at = 0
        for region, text in zip(self.regions, texts, strict=True):
            pieces += self.base[at : region.start]
            pieces += text
            at = region.end
        pieces += self.base[at:]
        return b"".join(pieces)


def compare_three(
    base: Lines, upstream: Lines, patch: Lines, patch_edits: tuple[Edit, ...] | None = None
) -> ThreeWay:
    """Find the regions of three texts given as lines with their ends.

    `patch_edits` are those of the patch, where they are known.
    """
    ours = diff_lines(base, upstream)
    theirs = diff_lines(base, patch) if patch_edits is None else patch_edits
    groups = _group(ours, theirs)
    regions = []
    grown_upstream = grown_patch = 0
    for start, end, up, own in groups:
        more_upstream, more_patch = _growth(up), _growth(own)
        first_up, first_patch = start + grown_upstream, start + grown_patch
        last_up, last_patch = end + grown_upstream + more_upstream, end + grown_patch + more_patch
        regions.append(
            Region(
                start,
                end,
                tuple(base[start:end]),
                tuple(upstream[first_up:last_up]),
                tuple(patch[first_patch:last_patch]),
                first_up,
                tuple(up),
                tuple(own),
            )
        )
        grown_upstream += more_upstream
        grown_patch += more_patch
    return ThreeWay(base, upstream, patch, ours, theirs, tuple(regions))


def _growth(edits: Sequence[Edit]) -> int:
    return sum(e.new_end - e.new_start - (e.end - e.start) for e in edits)


def _group(
    upstream: Sequence[Edit], patch: Sequence[Edit]
) -> list[tuple[int, int, list[Edit], list[Edit]]]:
    """(first base line, end, upstream's edits, the patch's) of edits that overlap or touch."""
    tagged = sorted(
        [(e.start, e.end, 0, e) for e in upstream] + [(e.start, e.end, 1, e) for e in patch],
        key=lambda row: row[:3],
    )
    groups: list[tuple[int, int, list[Edit], list[Edit]]] = []
    for start, end, side, edit in tagged:
        # edits of one side never touch each other
        if groups and start <= groups[-1][1]:
            first, last, up, own = groups.pop()
            groups.append((first, max(last, end), up, own))
        else:
            groups.append((start, end, [], []))
        (groups[-1][3] if side else groups[-1][2]).append(edit)
    return groups
