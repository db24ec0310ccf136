"""Which Python function or class a line stands in, seen by indentation alone.

Good enough to compare two versions of a file: nothing is parsed, so a file that only a newer Python
understands, or half a file, is as good as any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

_OPENING = re.compile(rb"[ \t]*(?:async[ \t]+def|def|class)[ \t]+([A-Za-z_]\w*)")
_NAME = re.compile(rb"[A-Za-z_]\w{3,}")


class Enclosure(Struct, frozen=True):
    """A function or class by its qualified name, and its lines from `def` or `class` on."""

    name: str
    lines: tuple[bytes, ...]


def enclosing(lines: Sequence[bytes], at: int) -> Enclosure | None:
    """The innermost function or class around line `at` (from 0); None at a module's top level."""
    names: list[bytes] = []
    opening: int | None = None
    depth = _depth_below(lines, at)
    for number in range(min(at, len(lines) - 1), -1, -1):
        line = lines[number]
        if not _counts(line) or depth_of(line) >= depth:
            continue
        depth = depth_of(line)
        found = _OPENING.match(line)
        if found:
            names.append(found[1])
            opening = number if opening is None else opening
    if opening is None:
        return None
    name = b".".join(reversed(names)).decode("ascii", "replace")
    return Enclosure(name, tuple(lines[opening : _end(lines, opening)]))


def find_enclosure(lines: Sequence[bytes], name: str) -> Enclosure | None:
    """The function or class of that qualified name; None if there is none."""
    last = name.rpartition(".")[2].encode()
    for number, line in enumerate(lines):
        found = _OPENING.match(line)
        if found and found[1] == last:
            around = enclosing(lines, number)
            if around is not None and around.name == name:
                return around
    return None


def names_in(lines: Sequence[bytes]) -> set[bytes]:
    """Words of four letters or more that can be names."""
    return {name for line in lines for name in _NAME.findall(line)}


def _depth_below(lines: Sequence[bytes], at: int) -> int:
    """How deep the line stands, or for a blank one the next that is not."""
    for number, line in enumerate(lines[at:]):
        if _counts(line):
            # a line that opens a scope belongs to it
            return depth_of(line) + (number == 0 and _OPENING.match(line) is not None)
    return 0


def _end(lines: Sequence[bytes], opening: int) -> int:
    depth = depth_of(lines[opening])
    for number in range(opening + 1, len(lines)):
        if _counts(lines[number]) and depth_of(lines[number]) <= depth:
            return number
    return len(lines)


def _counts(line: bytes) -> bool:
    """Whether a line's indentation says something: not blank, no comment, no closing bracket."""
    bare = line.strip()
    return bool(bare) and not bare.startswith((b"#", b")", b"]", b"}"))


def depth_of(line: bytes) -> int:
    """How many columns the line is indented."""
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())
