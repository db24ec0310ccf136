"""Where two texts changed their common base, and where both did: the raw material of a merge,
the order of lines that both insert at one point, and the markers around what nobody settled.

The regions are those of git's own three-way merge: changes that overlap or merely touch form one
region. Where only one side changed, or both alike, there is nothing to decide. What became of a
region says its `RegionResolution`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cached_property
from itertools import pairwise
from operator import ne

from msgspec import Struct

from patchkit.model.evidence import telling
from patchkit.model.line_diff import Edit, diff_lines
from patchkit.model.merging.scopes import depth_of

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


class ThreeWay(Struct, frozen=True, dict=True):
    """Three texts as lines, the edits of both sides, and their regions in order."""

    base: Lines  # the file for which the patch was made
    upstream: Lines  # the new base's
    patch: Lines  # the file as the patch makes it
    upstream_edits: tuple[Edit, ...]  # from base to upstream
    patch_edits: tuple[Edit, ...]  # from base to the patch's side
    regions: tuple[Region, ...]  # in the order of the file

    @property
    def conflicts(self) -> tuple[Region, ...]:
        """The regions where git's three-way merge gives up."""
        return tuple(each for each in self.regions if each.settled is None)

    @cached_property
    def come(self) -> Counter[bytes]:
        """The telling lines that upstream adds."""
        return added_lines(self.base, self.upstream, self.upstream_edits)

    @cached_property
    def known(self) -> frozenset[bytes]:
        """The base's lines, without blanks around."""
        return frozenset(line.strip() for line in self.base)

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


def added_lines(
    old: Sequence[bytes], new: Sequence[bytes], edits: Iterable[Edit]
) -> Counter[bytes]:
    """The telling lines that the edits add, less those that they take away."""
    come, gone = Counter[bytes](), Counter[bytes]()
    for edit in edits:
        come.update(telling(new[edit.new_start : edit.new_end]))
        gone.update(telling(old[edit.start : edit.end]))
    return come - gone


def compare_three(
    base: Lines,
    upstream: Lines,
    patch: Lines,
    known: tuple[tuple[Edit, ...], tuple[Edit, ...]] | None = None,
) -> ThreeWay:
    """Find the regions of three texts given as lines with their ends.

    `known` are the edits from the base to upstream, and to the patch.
    """
    ours, theirs = known or (diff_lines(base, upstream), diff_lines(base, patch))
    # Invariant (diff3, as git's xdiff/xmerge.c has it): outside the regions the
    # three texts are equal line by line, so that each side's text is the base's with the edits of
    # its regions, and a region begins `grown` lines later in a side than in the base.
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


# What a merge says about itself: which rules it needed, how sure they are, what speaks against.


class Rule(str, Enum):
    """How a change of the patch came into upstream's file."""

    CLEAN = "clean"  # only the patch changed these lines, or both sides alike
    BESIDE = "beside"  # upstream changed the lines next to it, none of its own
    BOTH_INSERT = "both-insert"  # both sides insert at one point
    CONTAINED = "contained"  # upstream has this change already
    MOVED = "moved"  # upstream moved the surroundings elsewhere in the file
    WORDS = "words"  # both sides change different words of the same lines


class Doubt(str, Enum):
    """What a check found in a merged file that a person should look at, or that forbids it."""

    UPSTREAM_HAS_MOST = "upstream-has-most"  # most of the added lines are new upstream, too
    UPSTREAM_HAS_A_HUNK = "upstream-has-a-hunk"  # it stands elsewhere, new upstream, all of it
    NAME_GONE = "name-gone"  # a name that the added lines use is not in upstream's file any more
    UNBOUND = "unbound"  # a name is used that nothing in the file binds, as it did on both sides
    DOES_NOT_PARSE = "does-not-parse"  # it did before
    DEFINED_TWICE = "defined-twice"  # both sides define the same name in one scope
    LINES_LOST = "lines-lost"  # not every changed line came through
    UNCHECKED = "unchecked"  # a check failed, so that nobody knows

    @property
    def forbids(self) -> bool:
        """Whether a result with this doubt is refused, unless it is git's own."""
        return self in (
            Doubt.DOES_NOT_PARSE,
            Doubt.DEFINED_TWICE,
            Doubt.LINES_LOST,
            Doubt.UNCHECKED,
        )


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

    `detail` says in a few words what a reviewer should know. `open_place`: where just the lines
    stand is not known, as which of both sides' come first.
    """

    rule: Rule
    edits: tuple[MergeEdit, ...]  # in the order of upstream's lines
    detail: str = ""
    open_place: bool = False


# A file in which the places that nobody could settle stand with conflict markers.


# A marker, with or without what it was called; `=======` alone may be anybody's.
_LABELLED = re.compile(rb"(?:<{7}|\|{7}|>{7})(?: |$)")
_SEPARATOR = b"======="


class Labels(Struct, frozen=True):
    """What the three sides are called behind the markers."""

    upstream: str = "upstream"  # behind <<<<<<<
    base: str = "base"  # behind |||||||
    patch: str = "patch"  # behind >>>>>>>


def conflict_text(three: ThreeWay, labels: Labels) -> bytes:
    """The file with git's zdiff3 markers where it conflicts; everything else is merged.

    Every place where git's three-way merge gives up is marked, whatever our rules would put there:
    a person who has to look at the file sees all of them alike.
    """
    settled = [(region, region.settled) for region in three.regions]
    texts = [_marked(region, labels) if text is None else text for region, text in settled]
    return three.assemble(texts)


def _marked(region: Region, labels: Labels) -> tuple[bytes, ...]:
    """The region between markers; the lines with which both sides begin and end stand outside."""
    upstream, patch = region.upstream, region.patch
    above, below = common_ends(upstream, patch)
    return (
        *upstream[:above],
        b"<<<<<<< %s\n" % labels.upstream.encode("utf-8", "surrogateescape"),
        *_ended(upstream[above : len(upstream) - below]),
        b"||||||| %s\n" % labels.base.encode("utf-8", "surrogateescape"),
        *_ended(region.base),
        b"=======\n",
        *_ended(patch[above : len(patch) - below]),
        b">>>>>>> %s\n" % labels.patch.encode("utf-8", "surrogateescape"),
        *upstream[len(upstream) - below :],
    )


def common_ends(one: Lines, other: Lines) -> tuple[int, int]:
    """How many lines two texts have in common at the start, and behind those at the end."""
    most = min(len(one), len(other))
    start = next((n for n in range(most) if one[n] != other[n]), most)
    end = next((n for n in range(most - start) if one[-1 - n] != other[-1 - n]), most - start)
    return start, end


def _ended(lines: tuple[bytes, ...]) -> tuple[bytes, ...]:
    if lines and not lines[-1].endswith(b"\n"):
        return (*lines[:-1], lines[-1] + b"\n")
    return lines


def leftover_markers(
    offered: bytes, sides: tuple[bytes, bytes, bytes], edited: bytes
) -> tuple[int, ...]:
    """The numbers of the lines of `edited` that are still markers of `offered`.

    `sides` are the files that were merged: base, upstream's, the patch's. A line of `=======` that
    one of them has, too, is taken for a marker only where it stands between the same two lines as
    in `offered`, or where there are more of them than the sides account for.
    """
    rows, theirs = _lines(edited), [_lines(side) for side in sides]
    own = {line for lines in theirs for line in lines}
    labelled = {
        number for number, line in enumerate(rows) if _LABELLED.match(line) and line not in own
    }
    found = labelled | _leftover_separators(_lines(offered), theirs, rows)
    return tuple(number + 1 for number in sorted(found))


def _leftover_separators(
    offered: Sequence[bytes], sides: Sequence[Sequence[bytes]], edited: Sequence[bytes]
) -> set[int]:
    there = _separators(edited)
    base, upstream, patch = (len(_separators(side)) for side in sides)
    own = {_between(side, at) for side in sides for at in _separators(side)}
    ours = {_between(offered, at) for at in _separators(offered)} - own
    exact = {at for at in there if _between(edited, at) in ours}
    meant = max(upstream, patch, upstream + patch - base)
    return set(there) if len(there) - len(exact) > meant else exact


def _separators(lines: Sequence[bytes]) -> list[int]:
    return [number for number, line in enumerate(lines) if line == _SEPARATOR]


def _between(lines: Sequence[bytes], at: int) -> tuple[bytes | None, bytes | None]:
    """The lines around one."""
    return (lines[at - 1] if at else None, lines[at + 1] if at + 1 < len(lines) else None)


def _lines(text: bytes) -> list[bytes]:
    return [line.rstrip() for line in text.split(b"\n")]


# Two insertions at one point: which comes first, and where the second one begins.
#
# The lines are never changed, only their order: lines go on with the block that they are indented
# for. Where the text says nothing the side decides: a change that is carried onto a newer upstream
# comes after upstream's lines, as if it had been written later; in a merge of upstream into a
# branch the branch's own lines come first, as between git's markers.

_CLOSING = (b")", b"]", b"}")
_NOT_CODE = re.compile(rb"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#.*|//.*")
#: C's comments, but for the globs of shell, YAML and Make.
_OPENS_COMMENT = re.compile(rb"(?:^|\s)/\*")
_ENDS_COMMENT = re.compile(rb"\*/(?=\s|$)")
#: A statement that leaves its block for good, and a comment: `#include` is none.
_LEAVES = re.compile(rb"[ \t]*(?:return|raise|break|continue|goto|throw|exit)\b")
_COMMENT = re.compile(rb"[ \t]*#(?![A-Za-z])")


def put_behind(first: Lines, second: Lines) -> list[bytes]:
    """`second` behind `first`, but before the line of it that leaves the block of `second`.

    Where both go on with the block above and then leave it, so does what is put together: first
    what is in the block, then the rest; unless that would tear a statement apart, whose bracket
    the lines close that leave, or whose first line git shows at the end of both.
    """
    depth = indentation(second)
    cut = _before_leaving(first, leaves_scope(first, depth), depth)
    own = leaves_scope(second, depth)
    if cut < len(first) and own < len(second):
        closes = any(_code(rest).startswith(_CLOSING) for rest in (first[cut:], second[own:]))
        opens = _code(first[::-1]) == _code(second[::-1]) and indentation(second[::-1]) < depth
        if closes or opens:
            return [*first, *second]
        return [*first[:cut], *second[:own], *first[cut:], *second[own:]]
    return [*first[:cut], *second, *first[cut:]]


def _before_leaving(lines: Lines, end: int, depth: int) -> int:
    """`end`, or where the statement begins that leaves the block: nothing behind it is run."""
    for number in range(end - 1, -1, -1):
        if lines[number].strip() and depth_of(lines[number]) <= depth:
            if lines[number].strip().startswith(_CLOSING):
                continue
            leaves = depth_of(lines[number]) == depth and _LEAVES.match(lines[number])
            return number if leaves else end
    return end


def _code(lines: Lines) -> bytes:
    """The first line that is not blank, without its indentation."""
    return next((line.strip() for line in lines if line.strip()), b"")


def leaves_scope(lines: Lines, depth: int) -> int:
    """The first of `lines` that is indented less than `depth`, with the blank lines before it.

    A line that only closes a bracket that `lines` open is still a part of their statement.
    """
    opened = 0
    for number, line in enumerate(lines):
        deep = not line.strip() or _COMMENT.match(line) or depth_of(line) >= depth
        if not deep and opened <= 0:
            cut = number
            while cut and not lines[cut - 1].strip():
                cut -= 1
            return cut
        opened = max(opened + _opened(line), 0)
    return len(lines)


def indentation(lines: Lines) -> int:
    """How deep the first line that is not blank stands; 0 if all are blank."""
    return next((depth_of(line) for line in lines if line.strip()), 0)


def _opened(line: bytes) -> int:
    """How many more brackets, C's comments too, a line opens than it closes; strings apart."""
    code = _NOT_CODE.sub(b"", line)
    opened = sum(map(code.count, (b"(", b"[", b"{"))) - sum(map(code.count, _CLOSING))
    return opened + len(_OPENS_COMMENT.findall(code)) - len(_ENDS_COMMENT.findall(code))


# A list that is kept sorted: with either side's entries it is in order, so that whoever added them
# kept it so, and with both it has to be. An entry is a line with those that are deeper.

_Key = tuple[tuple[int, bytes], ...]

#: Entries looked at above and below, as many as git shows around a change: further on the list
#: may be kept otherwise.
_AROUND = 3
# Fewer entries do not show that a list is kept in order.
_SHOWS_ORDER = 3
_IMPORT = re.compile(rb"(import|from)\s+([\w.]+)(?:\s+import\b)?[\s(]*(.*)")
_DATE = re.compile(rb"(\d{4})[-/.](\d\d?)[-/.](\d\d?)")
_DIGITS = re.compile(rb"(\d+)")


def in_order(
    both: Lines, upstream: Lines, patch: Lines, around: tuple[Lines, Lines]
) -> list[bytes] | None:
    """The entries of `both` sides in order, if the list that they are of is one kept sorted.

    Of equal ones upstream's come first. `around` are the base's lines above and below the place.
    """
    if not (upstream and patch):
        return None
    sides = [_entries(lines, patch) for lines in (upstream, patch, both)]
    if any(map(ne, map(_length, sides), map(len, (upstream, patch, both)))):
        return None
    above, below = _entries_above(around[0], patch)[-_AROUND:], _entries(around[1], patch)[:_AROUND]
    if min(map(len, sides)) + len(above) + len(below) < _SHOWS_ORDER:
        return None
    for key in _KEYS:
        if all(
            key(one[0]) <= key(other[0])
            for entries in sides[:2]
            for one, other in pairwise([*above, *entries, *below])
        ):
            ranked = sorted(sides[2], key=lambda entry: (key(entry[0]), entry not in sides[0]))
            return [line for entry in ranked for line in entry]
    return None


def _length(entries: Sequence[Lines]) -> int:
    return sum(map(len, entries))


def _entries(lines: Lines, like: Lines) -> list[list[bytes]]:
    """The entries up to the first line that is none of the same list."""
    depth, start = indentation(like), _opening(like[0])
    found: list[list[bytes]] = []
    opened = 0
    for line in lines:
        goes_on = depth_of(line) > depth or (opened > 0 and line.strip().startswith(_CLOSING))
        if not line.strip():
            break
        if found and opened > 0 and goes_on:
            found[-1].append(line)
        elif depth_of(line) == depth and _opening(line) == start and opened <= 0:
            found.append([line])
        else:
            break
        opened += _opened(line)
    if opened > 0:  # it does not end here
        found.pop()
    return found


def _entries_above(lines: Lines, like: Lines) -> list[list[bytes]]:
    """The entries that end where `lines` end."""
    depth = indentation(like)
    start = len(lines)
    while start and lines[start - 1].strip() and depth_of(lines[start - 1]) >= depth:
        start -= 1
    while start < len(lines):
        found = _entries(lines[start:], like)
        if _length(found) == len(lines) - start:
            return found
        start += max(_length(found), 1)
    return []


def _opening(line: bytes) -> bytes:
    """What kind of entry a line is: an import, or what its first character is."""
    bare = line.strip()
    if _IMPORT.match(bare):
        return b"import"
    return bare[:1] if not bare[:1].isalnum() else b"a"


def package_of(line: bytes) -> bytes:
    """The package that a line imports, or imports from; b"" if it imports none."""
    found = _IMPORT.match(line.strip())
    return found[2].partition(b".")[0] if found else b""


def _letters(line: bytes) -> _Key:
    return ((0, line.strip().rstrip(b",").lower()),)


def _characters(line: bytes) -> _Key:
    return ((0, line.strip().rstrip(b",")),)


def _numbers(line: bytes) -> _Key:
    """Numbers in it count as such: 2 before 10."""
    parts = _DIGITS.split(line.strip().rstrip(b",").lower())
    return tuple((int(part), b"") if part.isdigit() else (0, part) for part in parts)


def _modules(line: bytes) -> _Key:
    """Imports by what they import, however they do."""
    found = _IMPORT.match(line.strip().lower())
    return (
        tuple((0, part) for part in b".".join(found.groups()[1:]).split(b"."))
        if found
        else _letters(line)
    )


def _kinds(line: bytes) -> _Key:
    """Imports of modules before those of names, as isort has them."""
    found = _IMPORT.match(line.strip().lower())
    return ((int(found[1] == b"from"), found[2]), (0, found[3])) if found else _letters(line)


def _dates(line: bytes) -> _Key:
    """Lines by the date that stands in them."""
    found = _DATE.search(line)
    return tuple((int(part), b"") for part in found.groups()) if found else _letters(line)


_KEYS: tuple[Callable[[bytes], _Key], ...] = (
    _letters,
    _characters,
    _numbers,
    _modules,
    _kinds,
    _dates,
)
