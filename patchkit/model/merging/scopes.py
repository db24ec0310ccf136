"""Scopes of code by indentation: in which function or class a line stands, and whether an edit
landed in another one.

Nothing is parsed, so a file that only a newer Python understands, or half a file, is as good as any
other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from patchkit.model.line_diff import Edit, diff_lines
from patchkit.model.names import PYTHON
from patchkit.model.patch import Hunk
from patchkit.model.syntax import kept

# Whether an edit landed in another function or class than it was made in. The lines around a hunk
# may stand in a second class as well, and neither git's placing nor its merge asks. So two
# questions are answered here. Of a file whose old version is at hand: are the lines that the patch
# adds and removes in the functions where it was made (`misplaced`)? Of a patch alone: does the
# function that git wrote behind its `@@` stand around the place (`misplaced_hunks`)?


#: What to say of a result where nobody could tell.
UNCHECKED = "it could not be checked in which function its lines land"

_OPENING = re.compile(rb"[ \t]*(?:async[ \t]+def|def|class)[ \t]+([A-Za-z_]\w*)")
_FIRST_COLUMN = re.compile(rb"[A-Za-z_$]")

#: What a line begins with whose depth says nothing.
_NOTHING = frozenset((b"", b"#", b")", b"]", b"}"))


class Enclosure(Struct, frozen=True):
    """A function or class by its qualified name, and its lines from `def` or `class` on."""

    name: str
    lines: tuple[bytes, ...]


def enclosing(lines: Sequence[bytes], at: int) -> Enclosure | None:
    """The innermost function or class around line `at` (from 0); None at a module's top level."""
    names = scopes_of(b"".join(lines))
    name = names[at] if at < len(names) else ""
    if not name:
        return None
    inside = [each == name or each.startswith(f"{name}.") for each in names]
    first = next((number for number in range(at, 0, -1) if not inside[number - 1]), 0)
    end = next((number for number in range(at, len(names)) if not inside[number]), len(names))
    return Enclosure(name, tuple(lines[first:end]))


def find_enclosure(lines: Sequence[bytes], name: str) -> Enclosure | None:
    """The function or class of that qualified name; None if there is none."""
    names = scopes_of(b"".join(lines))
    return enclosing(lines, names.index(name)) if name in names else None


class Misplaced(Struct, frozen=True):
    """Lines of a patch that are in another scope than where it was made; "" is the top level.

    Lines count from 1 in the file where they land; 0 is one that is not known, or is none.
    """

    was: str  # the scope in which the patch made it
    now: str  # the scope in which it is now
    at: int = 0  # the line where it lands
    there: int = 0  # the line where the scope begins in which it was made

    def __str__(self) -> str:
        at, there = (f" (line {line})" if line else "" for line in (self.at, self.there))
        return f"lands in {self.now or 'no function'}{at}, was made in {self.was or 'none'}{there}"


@lru_cache(maxsize=64)
def scopes_of(data: bytes) -> tuple[str, ...]:
    """For each line of a Python file the qualified name of the scope around it."""
    lines = data.split(b"\n")
    names = [""] * len(lines)
    around: list[tuple[int, str]] = []  # of functions and classes above: depth, name
    waiting = 0  # lines without a depth of their own go with the next one that has one
    # Invariant: the depths in `around` rise, and each entry is in the block that the one before it
    # opens: a stack of indentation, as Python's own tokenizer keeps one.
    for number, line in enumerate(lines):
        opening = _OPENING.match(line)
        if opening is None and (not around or not _counts(line)):
            continue
        depth = depth_of(line)
        while around and around[-1][0] >= depth:
            around.pop()
        outer = around[-1][1] if around else ""
        names[waiting:number] = [outer] * (number - waiting)
        names[number], waiting = outer, number + 1
        if opening is not None:
            names[number] = f"{outer}.{opening[1].decode()}" if outer else opening[1].decode()
            around.append((depth, names[number]))
    return tuple(names)


@kept  # a stack is carried to many commits, and most of its files are the same there
def misplaced(
    before: bytes,
    after: bytes,
    upstream: bytes,
    result: bytes,
    *,
    path: str,
    edits: tuple[Edit, ...],
) -> tuple[Misplaced, ...]:
    """Lines of a patch that landed in another function or class than the one they were made in.

    The file on the old base without and with the patch, and on the new base, where `edits` lead
    from the one to the other. An edit counts if most of its lines are elsewhere: lines that repeat
    may be compared one up or down. One that upstream renamed is another one.
    """
    if not path.endswith(PYTHON) or before == upstream:
        return ()
    old, new = (before, after), (upstream, result)
    lines, own = _change(*old)
    found: dict[tuple[str, str], Misplaced] = {}
    for side, ranges in ((1, _new_ranges), (0, _old_ranges)):
        made = _made(lines[side], scopes_of(old[side]), ranges(own))
        now, scopes = new[side].split(b"\n"), scopes_of(new[side])
        for place in ranges(edits):
            for each in _elsewhere(made, now, scopes, place):
                found.setdefault((each.was, each.now), each)
    return tuple(found.values())


@lru_cache(maxsize=16)
def _change(before: bytes, after: bytes) -> tuple[tuple[list[bytes], ...], tuple[Edit, ...]]:
    """The lines of a patch's two sides, and its edits, which may be looked for in many versions."""
    lines = before.split(b"\n"), after.split(b"\n")
    return lines, diff_lines(*lines)


def misplaced_hunks(
    data: bytes, hunks: Sequence[Hunk], offsets: Sequence[int]
) -> list[tuple[int, Misplaced]]:
    """(index of the hunk, what is wrong) for hunks that name another function than the one here.

    `data` is a Python file before the hunks, `offsets` are those of `place_hunks`. What is written
    behind the `@@` is the last line above that begins in the first column, or (git's driver for
    Python) that opens a function or class; here the same lines are looked at, by name.
    """
    found: list[tuple[int, Misplaced]] = []
    grown = 0
    for number, (hunk, offset) in enumerate(zip(hunks, offsets, strict=True)):
        first = max(hunk.new_start - 1 + offset - grown, 0)
        grown += hunk.new_count - hunk.old_count
        opening = _OPENING.match(hunk.section.strip())
        if opening is None:
            continue
        scopes, was = scopes_of(data), opening[1].decode()
        around = scopes[first : first + hunk.old_count] or scopes[-1:]
        if any(was in name.split(".") for name in set(around)):
            continue
        if was not in _headings(data.split(b"\n"), first):
            change = next((n for n, line in enumerate(hunk.lines) if line[:1] != b" "), 0)
            found.append((number, Misplaced(was, around[min(change, len(around) - 1)])))
    return found


def _headings(lines: Sequence[bytes], at: int) -> Iterator[str]:
    """The names of the last function or class above a line, and of the last in the first column."""
    for pattern in (_OPENING, _FIRST_COLUMN):
        line = next((each for each in reversed(lines[:at]) if pattern.match(each)), b"")
        opening = _OPENING.match(line)
        if opening is not None:
            yield opening[1].decode()


def _new_ranges(edits: Sequence[Edit]) -> list[range]:
    return [range(each.new_start, each.new_end) for each in edits]


def _old_ranges(edits: Sequence[Edit]) -> list[range]:
    return [range(each.start, each.end) for each in edits]


def _made(
    lines: Sequence[bytes], scopes: Sequence[str], ranges: Sequence[range]
) -> dict[bytes, list[str]]:
    """Line -> the scopes in which the patch has it, one for each time."""
    made: dict[bytes, list[str]] = {}
    for number in chain.from_iterable(ranges):
        if _counts(lines[number]):
            made.setdefault(lines[number].strip(), []).append(scopes[number])
    return made


def _elsewhere(
    made: dict[bytes, list[str]], lines: Sequence[bytes], scopes: Sequence[str], place: range
) -> list[Misplaced]:
    """What is elsewhere of one edit on the new base; takes what it finds in place out of `made`."""
    found: list[Misplaced] = []
    known = 0
    for number in place:
        there = made.get(lines[number].strip()) if _counts(lines[number]) else None
        if not there:
            continue
        known += 1
        if scopes[number] in there:
            if len(there) > 1:
                there.remove(scopes[number])
        else:
            begins = scopes.index(there[0]) + 1 if there[0] in scopes else 0
            found.append(Misplaced(there[0], scopes[number], number + 1, begins))
    return found if 2 * len(found) > known else []


def _counts(line: bytes) -> bool:
    """Whether a line's indentation says something: not blank, no comment, no closing bracket."""
    return line.lstrip()[:1] not in _NOTHING


def depth_of(line: bytes) -> int:
    """How many columns the line is indented."""
    if b"\t" not in line:
        return len(line) - len(line.lstrip())
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())
