"""Which of two neighbouring insertions comes first: sorted order, scope, likeness, then upstream.

Lines that are indented deeper go on with the block above; a line that is indented less ends it.
So a deeper insertion has to stand before the first shallower line of its neighbour, or it would
land in another scope. Lines that resemble each other are kept together, as people do.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.model.alignment import likeness
from patchkit.model.enclosing import depth_of

Lines = Sequence[bytes]

# Fewer lines do not show that a list is kept in order; import statements are sorted by tools.
_SHOWS_ORDER = 3
_IMPORTS_SHOW_ORDER = 2
_IMPORTS = (b"import", b"from")

_LOOKED_AT = 300  # bytes of a line


def join_insertions(
    upstream: Lines, patch: Lines, around: tuple[Lines, Lines], *, patch_first: bool = False
) -> list[bytes]:
    """Both sides' lines for one gap; `around` are the base's lines above and below it.

    Upstream's come first unless scope, sorted order or likeness to the neighbours say otherwise;
    with `patch_first` the patch's come first whatever they say.
    """
    if patch_first:
        return put_behind(patch, upstream)
    above, below = around
    in_order = _sorted_together(upstream, patch, above, below)
    if in_order is not None:
        return in_order
    stays = leaves_scope(upstream, indentation(patch)) == len(upstream)
    if stays and leaves_scope(patch, indentation(upstream)) == len(patch):
        near = (above[-1] if above else b"", below[0] if below else b"")
        if _affinity(patch, upstream, near) > _affinity(upstream, patch, near):
            return [*patch, *upstream]
    return put_behind(upstream, patch)


def put_behind(first: Lines, second: Lines) -> list[bytes]:
    """`second` behind `first`, but before the line of it that leaves the scope of `second`."""
    cut = leaves_scope(first, indentation(second))
    return [*first[:cut], *second, *first[cut:]]


def leaves_scope(lines: Lines, depth: int) -> int:
    """The first of `lines` that is indented less than `depth`, with the blank lines before it."""
    for number, line in enumerate(lines):
        if line.strip() and depth_of(line) < depth:
            cut = number
            while cut and not lines[cut - 1].strip():
                cut -= 1
            return cut
    return len(lines)


def indentation(lines: Lines) -> int:
    """How deep the first line that is not blank stands; 0 if all are blank."""
    return next((depth_of(line) for line in lines if line.strip()), 0)


def alike(one: bytes, other: bytes) -> float:
    """How like two lines are by how they begin: a minified file has lines of a megabyte."""
    return likeness(one[:_LOOKED_AT], other[:_LOOKED_AT])


def _affinity(first: Lines, second: Lines, around: tuple[bytes, bytes]) -> float:
    """How much each line resembles its neighbour where the blocks meet, summed over the seams."""
    seams = ((around[0], first[0]), (first[-1], second[0]), (second[-1], around[1]))
    return sum(alike(one, other) if one.strip() and other.strip() else 0.0 for one, other in seams)


def _sorted_together(
    upstream: Lines, patch: Lines, above: Lines, below: Lines
) -> list[bytes] | None:
    """The lines merged in order, if the list that they join is one that is kept sorted.

    Each line has to be an entry by itself, and with either side's lines the list has to be sorted:
    then whoever added them kept it so.
    """
    if not upstream or not patch:
        return None
    before, after = list(_entries(above[::-1], patch))[::-1], list(_entries(below, patch))
    with_upstream = [*before, *upstream, *after]
    with_patch = [*before, *patch, *after]
    enough = _IMPORTS_SHOW_ORDER if _opening(patch[0]) in _IMPORTS else _SHOWS_ORDER
    if min(len(with_upstream), len(with_patch)) < enough:
        return None
    if not (_is_sorted(with_upstream) and _is_sorted(with_patch)):
        return None
    return sorted([*upstream, *patch], key=_sort_key)


def _entries(lines: Lines, like: Lines) -> list[bytes]:
    """The lines up to the first one that is no entry of the same list."""
    depth, start = indentation(like), _opening(like[0])
    found: list[bytes] = []
    for line in lines:
        if not line.strip() or depth_of(line) != depth or _opening(line) != start:
            break
        found.append(line)
    return found


def _opening(line: bytes) -> bytes:
    """What kind of entry a line is: its first character, or word of an import."""
    bare = line.strip()
    word = bare.split(b" ", 1)[0]
    return word if word in _IMPORTS else (bare[:1] if not bare[:1].isalnum() else b"a")


def _is_sorted(lines: Lines) -> bool:
    keys = [_sort_key(line) for line in lines]
    return all(bare.strip() for bare in lines) and keys == sorted(keys)


def _sort_key(line: bytes) -> bytes:
    return line.strip().rstrip(b",").lower()
