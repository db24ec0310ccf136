"""One file, carried: what upstream made of it, with the patch's change.

Git's three-way merge first (`regions`); the regions that it leaves in conflict are settled by rules
that say why they may, or not at all; `checks` looks over the result.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import advice
from patchkit.model.diff_parse import is_binary, split_lines
from patchkit.model.evidence import has_words, is_piece, telling
from patchkit.model.line_diff import Edit as LineEdit
from patchkit.model.line_diff import diff_lines, sliding_places
from patchkit.model.merging.checks import (
    MOST,
    doubled_hunk,
    file_doubts,
    lines_lost,
    names_gone,
    names_unbound,
    novel_of,
    upstream_share,
)
from patchkit.model.merging.moved import find_moved
from patchkit.model.merging.regions import (
    Doubt,
    MergeEdit,
    Region,
    RegionResolution,
    Rule,
    ThreeWay,
    compare_three,
    edited,
    in_order,
    package_of,
    put_behind,
)
from patchkit.model.syntax import kept

# Settle the regions where git's three-way merge gives up, each by a rule that says why it may.
#
# Every rule answers with edits of upstream's file, or not at all. None of them drops a line of
# the patch, or one of upstream's: `checks` proves that for the whole file afterwards.


# Words: lines that both sides changed are merged word by word, where they changed other words. The
# rule is the three-way merge's own, one level down: what both changed, or changed side by
# side, is a conflict. Blanks and line ends are words, too: nothing is ignored.


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
    most = max(len(three.upstream_edits), len(three.patch_edits))
    if three.conflicts or most * 2 > len(sides[0]):  # a side changed it throughout
        return None
    merged = three.assemble([each.settled or () for each in three.regions])
    return tuple(split_lines(merged))


_ADJACENT = "upstream changed adjacent lines"
_BOTH_ADD = "both sides add lines at one place; only their order is open"

#: Rules that do not put each changed line of both sides into the result once.
_BY_SETS = (Rule.CONTAINED, Rule.WORDS)
#: Of a patch's lines, the part that must not be upstream already where both sides insert.
_SOME = 0.4
#: So many lines, all new upstream, are the patch's change even where they stand elsewhere.
_ENOUGH_ANYWHERE = 3


def resolve(
    region: Region, three: ThreeWay, *, patch_first: bool = False
) -> RegionResolution | None:
    """What the patch does in a region where both sides changed; None if that is not known.

    `patch_first` counts where both sides insert at one point and nothing in the text speaks for
    one.
    """
    settled = region.settled
    if settled is not None:
        return RegionResolution(Rule.CLEAN, _edit(region, settled))
    share = _upstream_share(region, three)
    if _is_contained(region, three, taken=share == 1.0):
        return RegionResolution(Rule.CONTAINED, (), "nothing is there that it would change")
    if share >= _SOME:
        return None  # upstream made a part of this change, in its own way
    return (
        _beside(region, three, patch_first=patch_first)
        or _words(region)
        or _slid_apart(region, three, patch_first=patch_first)
    )


def _edit(region: Region, lines: Sequence[bytes]) -> tuple[MergeEdit, ...]:
    if tuple(lines) == region.upstream:
        return ()
    start = region.upstream_at
    return (MergeEdit(start, start + len(region.upstream), tuple(lines)),)


# -- what upstream has already -----------------------------------------------------------------


def _upstream_share(region: Region, three: ThreeWay) -> float:
    """The part of the telling lines that the patch adds here and upstream added, too.

    Of a line or two only those count that upstream added at this very place: single lines happen
    to be alike, as the arguments of calls are. Lines that the file had before (the same step in
    every job of a workflow) say nothing where enough others do.
    """
    added = _telling(region.patch) - _telling(region.base)
    if not added:
        return 0.0
    added = novel_of(added, three) or added
    new = _telling(region.upstream) - _telling(region.base)
    if sum(added.values()) >= _ENOUGH_ANYWHERE:
        new += three.come
    return sum((added & new).values()) / sum(added.values())


def _is_contained(region: Region, three: ThreeWay, *, taken: bool) -> bool:
    """Whether upstream does all that the patch does here.

    What the patch adds upstream adds at this very place, or, if all of it is `taken`, lines enough
    in one piece each anywhere. What it removes stood here and is gone; lines that upstream put
    elsewhere are not, and where nothing comes instead a line must tell that stands nowhere now.
    """
    before, ours, theirs = map(Counter, (region.base, region.patch, region.upstream))
    removed, come = before - ours, ours - before
    arrived = [_new_lines(edit, 0, three) for edit in three.upstream_edits]
    if removed - (before - theirs) or any(
        line in lines for lines in arrived for line in removed if has_words(line)
    ):
        return False
    if not come:
        return not set(telling(removed)) <= set(_stripped(three.upstream))
    if not come - (theirs - before):
        return True
    pieces = [_stripped(_new_lines(edit, 1, three)) for edit in region.patch_edits]
    enough = sum(len(list(telling(piece))) for piece in pieces) >= _ENOUGH_ANYWHERE
    return (
        taken
        and enough
        and all(any(is_piece(piece, _stripped(lines)) for lines in arrived) for piece in pieces)
    )


def _stripped(lines: Sequence[bytes]) -> list[bytes]:
    return [line.strip() for line in lines if line.strip()]


def _telling(lines: Sequence[bytes]) -> Counter[bytes]:
    return Counter(telling(lines))


# -- edits that do not overlap -----------------------------------------------------------------


def _are_apart(region: Region) -> bool:
    """Whether no base line is changed by both, and no insertion is inside the other's change."""
    return all(_is_apart(own, region.upstream_edits) for own in region.patch_edits)


def _beside(region: Region, three: ThreeWay, *, patch_first: bool) -> RegionResolution | None:
    """Each of the patch's edits beside upstream's, or where upstream moved its surroundings."""
    moved: list[MergeEdit] = []
    staying: list[LineEdit] = []
    for edit in region.patch_edits:
        place = _moved(edit, region, three)
        if place is None:
            staying.append(edit)
        else:
            moved.append(place)
    rest = replace(region, patch_edits=tuple(staying))
    if not _are_apart(rest):
        return None
    edits = (*_edit(region, _woven(rest, three, patch_first=patch_first)), *moved)
    if moved:
        return RegionResolution(Rule.MOVED, edits, f"upstream moved its context{_to_lines(moved)}")
    inserts = any(
        own.inserts_only and up.inserts_only and own.start == up.start
        for own in staying
        for up in region.upstream_edits
    )
    if inserts:
        return RegionResolution(Rule.BOTH_INSERT, edits, _BOTH_ADD, open_place=True)
    return RegionResolution(Rule.BESIDE, edits, _ADJACENT, _is_open(region, three))


def _moved(edit: LineEdit, region: Region, three: ThreeWay) -> MergeEdit | None:
    """The edit's new place, if upstream took away what it removes or stands next to.

    Lines that upstream put back into the same region, indented otherwise perhaps, did not move.
    """
    left = {line.strip() for line in region.upstream}
    near = range(max(edit.start - 1, region.start), min(edit.end + 1, region.end))
    if all(three.base[line].strip() in left for line in near):
        return None
    if any(three.base[line].strip() in left for line in range(edit.start, edit.end)):
        return None
    return find_moved(three.base, three.upstream, three.patch, edit, three.upstream_edits)


def _to_lines(moved: Sequence[MergeEdit]) -> str:
    lines = [str(each.start + 1) for each in moved]
    return f" to line{'s' if len(lines) > 1 else ''} {', '.join(lines)}"


def _woven(region: Region, three: ThreeWay, *, patch_first: bool) -> list[bytes]:
    """The region with the edits of both sides, in the order of the base lines that they change.

    Entries of a list that both sides keep sorted are in the order of the list.
    """
    edits = [
        (edit.start, edit.end, side, edit)
        for side, own in enumerate((region.upstream_edits, region.patch_edits))
        for edit in own
    ]
    edits.sort(key=lambda row: row[:3])
    woven: list[bytes] = []
    at = region.start
    # Invariant: `woven` has every line of the base up to `at` that no side removes, and every line
    # of the edits passed.
    while edits:
        start, end, side, edit = edits.pop(0)
        lines = _new_lines(edit, side, three)
        woven += three.base[at:start]
        if edits and start == end == edits[0][0] == edits[0][1]:
            others = _new_lines(edits.pop(0)[3], 1, three)
            lines = put_behind(others, lines) if patch_first else put_behind(lines, others)
        woven += lines
        at = max(at, end)
    both = [*woven, *three.base[at : region.end]]
    around = three.base[: region.start], three.base[region.end :]
    return in_order(both, region.upstream, region.patch, around) or both


def _new_lines(edit: LineEdit, side: int, three: ThreeWay) -> list[bytes]:
    return list((three.patch if side else three.upstream)[edit.new_start : edit.new_end])


def _is_open(region: Region, three: ThreeWay) -> bool:
    """Whether the text leaves open where lines belong.

    Either side's may come first where one inserts and the other has new lines as well. Lines that
    the patch inserts beside some that upstream took away may belong elsewhere now, but for a block
    with a blank line of its own; and so may all beside lines that upstream put elsewhere.
    """
    moved = {line for edit in three.upstream_edits for line in _new_lines(edit, 0, three)}
    moved &= {line for edit in three.upstream_edits for line in _old_lines(edit, three)}
    return _imports_apart(region, three) or any(
        up.start <= own.end
        and own.start <= up.end
        and (
            (up.inserts_only and _brings(own))
            or (own.inserts_only and (_brings(up) or not _is_block(_new_lines(own, 1, three))))
            or not moved.isdisjoint((*_old_lines(up, three), *_new_lines(up, 0, three)))
        )
        for up in region.upstream_edits
        for own in region.patch_edits
    )


def _is_block(lines: Sequence[bytes]) -> bool:
    """Whether a blank line parts lines from those above or below."""
    return not (lines[0].strip() and lines[-1].strip())


def _imports_apart(region: Region, three: ThreeWay) -> bool:
    """Whether the patch has an import here of a package whose other imports are elsewhere."""
    new = {package_of(line) for e in region.patch_edits for line in _new_lines(e, 1, three)}
    near = (*three.base[max(0, region.start - 1) : region.end + 1], *region.upstream)
    elsewhere = set(map(package_of, three.upstream)) - set(map(package_of, near))
    return not elsewhere.isdisjoint(new - {b""})


def _old_lines(edit: LineEdit, three: ThreeWay) -> list[bytes]:
    """The telling lines that an edit takes away."""
    return [line for line in three.base[edit.start : edit.end] if has_words(line)]


def _brings(edit: LineEdit) -> bool:
    return edit.new_start < edit.new_end


# -- edits of the same lines -------------------------------------------------------------------


# Where lines repeat an edit may begin and end a few lines up or down: the blank lines above a
# function that goes are as good as those below it. If it can stand clear of the other side's edits,
# it does.
# Invariant: wherever it is taken to stand, the edits make the same text of the base.


def _slid_apart(region: Region, three: ThreeWay, *, patch_first: bool) -> RegionResolution | None:
    """The region settled where an edit of one side is slid off what the other side changed."""
    own, theirs = region.patch_edits, region.upstream_edits
    for slid in (
        (_slid_off(own, theirs, three.base, three.patch), theirs),
        (own, _slid_off(theirs, own, three.base, three.upstream)),
    ):
        wide = _widened(region, three, *slid)
        if wide is not None and _are_apart(wide):
            edits = _edit(wide, _woven(wide, three, patch_first=patch_first))
            return RegionResolution(Rule.BESIDE, edits, _ADJACENT, open_place=True)
    return None


def _slid_off(
    edits: Sequence[LineEdit],
    others: Sequence[LineEdit],
    base: Sequence[bytes],
    lines: Sequence[bytes],
) -> tuple[LineEdit, ...]:
    """The edits, each moved by as little as it takes to be apart from the other side's."""
    found: list[LineEdit] = []
    for number, edit in enumerate(edits):
        low = found[-1].end + 1 if found else 0
        high = edits[number + 1].start - 1 if number + 1 < len(edits) else len(base)
        places = (
            each
            for each in chain((edit,), sliding_places(edit, base, lines))
            if low <= each.start and each.end <= high and _is_apart(each, others)
        )
        found.append(next(places, edit))
    return tuple(found)


def _is_apart(edit: LineEdit, others: Sequence[LineEdit]) -> bool:
    return all(edit.end <= other.start or other.end <= edit.start for other in others)


def _widened(
    region: Region, three: ThreeWay, own: Sequence[LineEdit], theirs: Sequence[LineEdit]
) -> Region | None:
    """The region with other edits of the same texts; None if they reach into the next one."""
    both = (*own, *theirs)
    start = min(region.start, *(each.start for each in both))
    end = max(region.end, *(each.end for each in both))
    for other in three.regions:
        if other is not region and other.start <= end and start <= other.end:
            return None
    up, down = region.start - start, end - region.end
    first, last = region.upstream_at - up, region.upstream_at + len(region.upstream) + down
    return replace(
        region,
        start=start,
        end=end,
        base=tuple(three.base[start:end]),
        upstream=tuple(three.upstream[first:last]),
        upstream_at=first,
        patch=(*three.base[start : region.start], *region.patch, *three.base[region.end : end]),
        upstream_edits=tuple(theirs),
        patch_edits=tuple(own),
    )


def _words(region: Region) -> RegionResolution | None:
    merged = merge_words(region.base, region.upstream, region.patch)
    if merged in (None, region.upstream):  # that upstream has the patch's words says no line
        return None
    detail = "both sides change different words of the same lines"
    return RegionResolution(Rule.WORDS, _edit(region, merged), detail)


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


def merge_file(
    path: str, base: bytes, upstream: bytes, patch: bytes, *, patch_first: bool = False
) -> FileMerge | None:
    """Merge three versions of a text; None for a binary file, which is never merged.

    Where git's three-way merge is clean its result is taken; nothing else is accepted unless every
    check passes. `patch_first`: upstream is merged into the patch's branch, whose lines come first;
    the other order counts where a check refuses the first.
    """
    if any(map(is_binary, (base, upstream, patch))):
        return None
    three = compare_texts(base, upstream, patch)
    if not three.conflicts:
        return _clean(path, three)
    ends = [each.endswith(b"\n") for each in (base, upstream, patch)]
    if not all(ends):
        # as if all ended in a newline; whether the result does is a question of its own
        full = [each.removesuffix(b"\n") + b"\n" for each in (base, upstream, patch)]
        three = compare_texts(*full)
    newline = ends[1] if ends[0] == ends[2] else ends[2]
    first: FileMerge | None = None
    for own_first in (patch_first, not patch_first):
        merged = _merged(path, three, newline=newline, patch_first=own_first)
        if merged.data is None:
            return merged  # no order helps
        if not merged.doubts or (first is None and not any(d.forbids for d in merged.doubts)):
            return merged
        first = first or merged
    return replace(first, data=None) if first is not None else None


@lru_cache(maxsize=4)  # a conflict's are asked for again, for what later patches meet
def compare_texts(base: bytes, upstream: bytes, patch: bytes) -> ThreeWay:
    """The regions of three texts."""
    lines, theirs, own = map(split_lines, (base, upstream, patch))
    return compare_three(lines, theirs, own, (_edits(base, upstream), _edits(base, patch)))


@kept  # a change is tried on many versions of a file, and a version with many patches
def _edits(old: bytes, new: bytes) -> tuple[LineEdit, ...]:
    return diff_lines(split_lines(old), split_lines(new))


def _clean(path: str, three: ThreeWay) -> FileMerge:
    regions = [region for region in three.regions if region.patch_edits]
    steps = tuple((region, resolve(region, three)) for region in regions)
    data = three.assemble([region.settled or () for region in three.regions])
    return _with_doubts(path, FileMerge(data, three, steps, clean=True))


def _merged(path: str, three: ThreeWay, *, newline: bool, patch_first: bool) -> FileMerge:
    """The merge by our own rules, with all doubts."""
    steps = tuple(
        (region, resolve(region, three, patch_first=patch_first))
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
    by_line = all(each.rule not in _BY_SETS for each in settled)
    lost = by_line and lines_lost(three.base, three.upstream, three.patch, lines)
    doubts = (Doubt.LINES_LOST,) if lost else ()
    data = b"".join(lines)
    data = data if newline else data.removesuffix(b"\n")
    return _with_doubts(path, replace(merge, data=data, doubts=doubts))


def _with_doubts(path: str, merge: FileMerge) -> FileMerge:
    """The merge with the doubts about its result: none where it changes nothing."""
    if merge.absorbed:
        return merge
    three = merge.three
    texts = [b"".join(lines) for lines in (three.base, three.upstream, three.patch)]
    in_all = not any(each is not None and each.rule is Rule.CONTAINED for _, each in merge.steps)
    check = partial(_looked_over, path=path, in_all=in_all)
    found = advice(check, *texts, merge.data or b"")
    doubts, names, unbound = found or ((Doubt.UNCHECKED,), (), ())
    return replace(merge, doubts=(*merge.doubts, *doubts), names=names, unbound=unbound)


@kept  # a stack is carried to many commits, and most of its files are the same there
def _looked_over(
    base: bytes, upstream: bytes, patch: bytes, data: bytes, *, path: str, in_all: bool
) -> tuple[tuple[Doubt, ...], tuple[str, ...], tuple[str, ...]]:
    """The doubts about a merge of three texts to `data`; names that are gone, and unbound ones.

    `in_all`: no place was left as upstream has it because that has the change already.
    """
    three = compare_texts(base, upstream, patch)
    # the patch's side first: it is known of other versions of upstream's file
    doubts = [*file_doubts(path, [patch, upstream], data)]
    if upstream_share(three) >= MOST:
        doubts.append(Doubt.UPSTREAM_HAS_MOST)
    elif in_all and doubled_hunk(three):
        doubts.append(Doubt.UPSTREAM_HAS_A_HUNK)
    names = names_gone(path, three)
    if names:
        doubts.append(Doubt.NAME_GONE)
    unbound = names_unbound(path, three, data)
    if unbound:
        doubts.append(Doubt.UNBOUND)
    return tuple(doubts), names, unbound
