"""Two insertions at one point: which comes first, and where the second one begins.

The lines are never changed, only their order. A list that is kept sorted stays so, and lines go on
with the block that they are indented for. Where the text says nothing the side decides: a change
that is carried onto a newer upstream comes after upstream's lines, as if it had been written later;
in a merge of upstream into a branch the branch's own lines come first, as between git's markers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from msgspec import Struct

from patchkit.model.merging.scopes import depth_of

Lines = Sequence[bytes]
_Key = tuple[tuple[int, bytes], ...]

# Fewer entries do not show that a list is kept in order; import statements are sorted by tools.
_SHOWS_ORDER = 3
_IMPORTS_SHOW_ORDER = 2
_IMPORTS = (b"import", b"from")
_CLOSING = (b")", b"]", b"}")
_NOT_CODE = re.compile(rb"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#.*|//.*")
_DIGITS = re.compile(rb"(\d+)")


class Order(Struct, frozen=True):
    """What decides where the text does not: whose lines come first.

    `whole`: no side's lines go into the other's, not even where those leave a block.
    """

    patch_first: bool = False
    whole: bool = False


def possible_orders(*, patch_first: bool) -> tuple[Order, ...]:
    """All orders, the likeliest first: those after it count where a check refuses the result."""
    sides = (patch_first, not patch_first)
    return tuple(Order(first, whole) for first in sides for whole in (False, True))


def join_insertions(
    upstream: Lines, patch: Lines, around: tuple[Lines, Lines], order: Order
) -> list[bytes]:
    """Both sides' lines for one gap; `around` are the base's lines above and below it."""
    in_order = _sorted_together(upstream, patch, around)
    if in_order is not None:
        return in_order
    first, second = (patch, upstream) if order.patch_first else (upstream, patch)
    return [*first, *second] if order.whole else put_behind(first, second)


def put_behind(first: Lines, second: Lines) -> list[bytes]:
    """`second` behind `first`, but before the line of it that leaves the block of `second`.

    Where both go on with the block above and then leave it, so does what is put together: first
    what is in the block, then the rest; unless that would tear a statement apart, whose bracket
    the lines close that leave.
    """
    cut = leaves_scope(first, indentation(second))
    own = leaves_scope(second, indentation(second))
    if cut < len(first) and own < len(second):
        if any(
            _code(lines[at:]).startswith(_CLOSING) for lines, at in ((first, cut), (second, own))
        ):
            return [*first, *second]
        return [*first[:cut], *second[:own], *first[cut:], *second[own:]]
    return [*first[:cut], *second, *first[cut:]]


def _code(lines: Lines) -> bytes:
    """The first line that is not blank, without its indentation."""
    return next((line.strip() for line in lines if line.strip()), b"")


def leaves_scope(lines: Lines, depth: int) -> int:
    """The first of `lines` that is indented less than `depth`, with the blank lines before it.

    A line that only closes a bracket that `lines` open is still a part of their statement.
    """
    opened = 0
    for number, line in enumerate(lines):
        if line.strip() and opened <= 0 and depth_of(line) < depth:
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
    """How many more brackets a line opens than it closes, but for strings and comments."""
    code = _NOT_CODE.sub(b"", line)
    return sum(map(code.count, (b"(", b"[", b"{"))) - sum(map(code.count, _CLOSING))


# A list that is kept sorted: with either side's entries it is in order, so that whoever added them
# kept it so, and with both it has to be. An entry is a line with those that are deeper.


def _sorted_together(
    upstream: Lines, patch: Lines, around: tuple[Lines, Lines]
) -> list[bytes] | None:
    """The entries of both in order, if the list that they join is one that is kept sorted."""
    ours, theirs = _entries(patch, patch), _entries(upstream, patch)
    if not ours or not theirs or _length(ours) < len(patch) or _length(theirs) < len(upstream):
        return None
    before, after = _entries_above(around[0], patch), _entries(around[1], patch)
    enough = _IMPORTS_SHOW_ORDER if _opening(patch[0]) in _IMPORTS else _SHOWS_ORDER
    if min(len(ours), len(theirs)) + len(before) + len(after) < enough:
        return None
    for key in _KEYS:
        sides = ([*before, *each, *after] for each in (theirs, ours))
        if all(_is_sorted(side, key) for side in sides):
            both = sorted([*theirs, *ours], key=lambda entry: key(entry[0]))
            return [line for entry in both for line in entry]
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
    """What kind of entry a line is: its first character, or word of an import."""
    bare = line.strip()
    word = bare.split(b" ", 1)[0]
    return word if word in _IMPORTS else (bare[:1] if not bare[:1].isalnum() else b"a")


def _is_sorted(entries: Sequence[Lines], key: Callable[[bytes], _Key]) -> bool:
    keys = [key(entry[0]) for entry in entries]
    return all(earlier <= later for earlier, later in pairwise(keys))


def _letters(line: bytes) -> _Key:
    return ((0, line.strip().rstrip(b",").lower()),)


def _characters(line: bytes) -> _Key:
    return ((0, line.strip().rstrip(b",")),)


def _numbers(line: bytes) -> _Key:
    """Numbers in it count as such: 2 before 10."""
    parts = _DIGITS.split(line.strip().rstrip(b",").lower())
    return tuple((int(part), b"") if part.isdigit() else (0, part) for part in parts)


_KEYS: tuple[Callable[[bytes], _Key], ...] = (_letters, _characters, _numbers)
