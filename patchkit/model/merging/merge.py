"""One file, carried: what upstream made of it, with the patch's change, and how sure that is."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from patchkit.model.diff_parse import split_lines
from patchkit.model.line_diff import Edit as LineEdit
from patchkit.model.line_diff import diff_lines
from patchkit.model.merging.checks import (
    MOST,
    file_doubts,
    has_doubled_hunk,
    lines_lost,
    names_gone,
    names_unbound,
    upstream_share,
)
from patchkit.model.merging.insertions import Order, possible_orders
from patchkit.model.merging.merge_rules import resolve
from patchkit.model.merging.regions import (
    Doubt,
    Region,
    RegionResolution,
    Rule,
    ThreeWay,
    compare_three,
    edited,
)

_NUL = b"\x00"


class FileMerge(Struct, frozen=True):
    """What became of one file.

    `data` is the result, None if a region is left in conflict. `steps` has one entry per region
    that the patch changes: the region and its resolution, None for a conflict. `clean` marks what
    git's own three-way merge gives. `doubts` are what the checks of the whole file found, `names`
    those that are gone, `unbound` those that nothing binds any more.
    """

    data: bytes | None
    three: ThreeWay
    steps: tuple[tuple[Region, RegionResolution | None], ...]
    clean: bool
    doubts: tuple[Doubt, ...] = ()
    names: tuple[str, ...] = ()
    unbound: tuple[str, ...] = ()

    @property
    def absorbed(self) -> bool:
        """Whether upstream's file is the result: it has all of the change."""
        return self.data == b"".join(self.three.upstream)

    @property
    def edits(self) -> tuple[LineEdit, ...]:
        """What the settled regions do to upstream's file, line by line."""
        upstream, found, grown = self.three.upstream, list[LineEdit](), 0
        settled = [edit for _, each in self.steps if each is not None for edit in each.edits]
        for edit in sorted(settled, key=lambda each: (each.start, each.end)):
            for each in diff_lines(upstream[edit.start : edit.end], edit.lines):
                first, begin = edit.start + each.start, edit.start + grown + each.new_start
                end = begin + each.new_end - each.new_start
                found.append(LineEdit(first, edit.start + each.end, begin, end))
            grown += len(edit.lines) - (edit.end - edit.start)
        return tuple(found)

    @property
    def conflicts(self) -> tuple[Region, ...]:
        """The regions that nobody could settle."""
        return tuple(region for region, resolution in self.steps if resolution is None)


def merge_file(
    path: str, base: bytes, upstream: bytes, patch: bytes, *, patch_first: bool = False
) -> FileMerge | None:
    """Merge three versions of a text; None for a binary file, which is never merged.

    Where git's three-way merge is clean its result is taken; nothing else is accepted unless every
    check passes. `patch_first`: upstream is merged into the patch's branch, see `insertions`.
    """
    if any(_NUL in each for each in (base, upstream, patch)):
        return None
    three = _compare(base, upstream, patch)
    if not three.conflicts:
        return _clean(path, three)
    ends = [each.endswith(b"\n") for each in (base, upstream, patch)]
    if not all(ends):
        # as if all ended in a newline; whether the result does is a question of its own
        full = [each.removesuffix(b"\n") + b"\n" for each in (base, upstream, patch)]
        three = _compare(*full)
    newline = ends[1] if ends[0] == ends[2] else ends[2]
    first: FileMerge | None = None
    for order in possible_orders(patch_first=patch_first):
        merged = _merged(path, three, newline=newline, order=order)
        if merged.data is None:
            return merged  # no order helps
        if not merged.doubts or (first is None and not any(d.forbids for d in merged.doubts)):
            return merged
        first = first or merged
    return replace(first, data=None) if first is not None else None


def _compare(base: bytes, upstream: bytes, patch: bytes) -> ThreeWay:
    lines, changed, edits = _change(base, patch)
    return compare_three(lines, split_lines(upstream), changed, edits)


@lru_cache(maxsize=16)
def _change(base: bytes, patch: bytes) -> tuple[list[bytes], list[bytes], tuple[LineEdit, ...]]:
    """The patch's change of one file, which may be tried on many versions of upstream's."""
    old, new = split_lines(base), split_lines(patch)
    return old, new, diff_lines(old, new)


def _clean(path: str, three: ThreeWay) -> FileMerge:
    regions = [region for region in three.regions if region.patch_edits]
    steps = tuple((region, resolve(region, three, python=False)) for region in regions)
    data = three.assemble([region.settled or () for region in three.regions])
    return _with_doubts(path, FileMerge(data, three, steps, clean=True))


def _merged(path: str, three: ThreeWay, *, newline: bool, order: Order) -> FileMerge:
    """The merge by our own rules, with all doubts."""
    python = path.endswith(".py")
    steps = tuple(
        (region, resolve(region, three, python=python, order=order))
        for region in three.regions
        if region.patch_edits
    )
    settled = [resolution for _, resolution in steps if resolution is not None]
    merge = FileMerge(None, three, steps, clean=False)
    if len(settled) < len(steps):
        return merge
    lines = edited(three.upstream, [edit for each in settled for edit in each.edits])
    if lines is None:
        return merge
    doubts: list[Doubt] = []
    by_line = all(each.rule not in (Rule.CONTAINED, Rule.IMPORTS, Rule.WORDS) for each in settled)
    if by_line and lines_lost(three.base, three.upstream, three.patch, lines):
        doubts.append(Doubt.LINES_LOST)
    data = b"".join(lines)
    doubts += file_doubts(path, [b"".join(three.upstream), b"".join(three.patch)], data)
    data = data if newline else data.removesuffix(b"\n")
    return _with_doubts(path, replace(merge, data=data, doubts=tuple(doubts)))


def _with_doubts(path: str, merge: FileMerge) -> FileMerge:
    """The merge with the doubts that concern clean ones, too: none where it changes nothing."""
    if merge.absorbed:
        return merge
    doubts = list(merge.doubts)
    if upstream_share(merge.three) >= MOST:
        doubts.append(Doubt.UPSTREAM_HAS_MOST)
    elif _puts_in_all(merge) and has_doubled_hunk(merge.three):
        doubts.append(Doubt.UPSTREAM_HAS_A_HUNK)
    names = names_gone(merge.three)
    if names:
        doubts.append(Doubt.NAME_GONE)
    unbound = names_unbound(path, merge.three, merge.data or b"")
    if unbound:
        doubts.append(Doubt.UNBOUND)
    return replace(merge, doubts=tuple(doubts), names=names, unbound=unbound)


def _puts_in_all(merge: FileMerge) -> bool:
    """Whether no place was left as upstream has it because that has the change already."""
    return not any(each is not None and each.rule is Rule.CONTAINED for _, each in merge.steps)
