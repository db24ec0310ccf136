"""A file in which the places that nobody could settle stand with conflict markers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from patchkit.model.merging.regions import Region, ThreeWay

# A marker, with or without what it was called; `=======` alone may be anybody's.
_LABELLED = re.compile(rb"(?:<{7}|\|{7}|>{7})(?: |$)")
_SEPARATOR = b"======="


class Labels(Struct, frozen=True):
    """What the three sides are called behind the markers."""

    upstream: str = "upstream"
    base: str = "base"
    patch: str = "patch"


def conflict_text(three: ThreeWay, labels: Labels | None = None) -> bytes:
    """The file with git's diff3 markers where it conflicts; everything else is merged.

    Every place where git's three-way merge gives up is marked, whatever our rules would put there:
    a person who has to look at the file sees all of them alike.
    """
    named = labels or Labels()
    settled = [(region, region.settled) for region in three.regions]
    texts = [_marked(region, named) if text is None else text for region, text in settled]
    return three.assemble(texts)


def _marked(region: Region, labels: Labels) -> tuple[bytes, ...]:
    return (
        b"<<<<<<< %s\n" % labels.upstream.encode("utf-8", "surrogateescape"),
        *_ended(region.upstream),
        b"||||||| %s\n" % labels.base.encode("utf-8", "surrogateescape"),
        *_ended(region.base),
        b"=======\n",
        *_ended(region.patch),
        b">>>>>>> %s\n" % labels.patch.encode("utf-8", "surrogateescape"),
    )


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
