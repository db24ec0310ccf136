"""Import statements of Python: whose order has no meaning, and which say the same in many ways."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from typing import AnyStr

_FROM = re.compile(rb"^(\s*)from\s+(\S+)\s+import\s+([\w., ]+?)\s*$")
_IMPORT = re.compile(rb"^\s*import\s+([\w., ]+?)\s*$")
_COMMENT = re.compile(rb"\s*#.*$")
_AS = re.compile(rb"\s+as\s+")

#: (module, name, alias) of one imported name; a plain `import m` has the name b"".
Imported = tuple[bytes, bytes, bytes]


def imported_by(lines: Iterable[bytes]) -> set[Imported] | None:
    """What statements of one line each import; None if a line is anything else."""
    found: set[Imported] = set()
    for line in lines:
        bare = _COMMENT.sub(b"", line.rstrip(b"\r\n"))
        if not bare.strip():
            continue
        names = _names(bare)
        if names is None:
            return None
        found |= names
    return found


def merge_imports(
    base: Sequence[bytes], upstream: Sequence[bytes], patch: Sequence[bytes]
) -> tuple[bytes, ...] | None:
    """Upstream's imports with those that the patch adds; None if that cannot be said in lines.

    What the patch takes away must still be imported upstream by a line of its own, or be gone; a
    name that both sides import anew from different places is a conflict.
    """
    sides = [imported_by(lines) for lines in (base, upstream, patch)]
    before, theirs, ours = sides
    if before is None or theirs is None or ours is None:
        return None
    if both_rebind(before, theirs, ours):
        return None
    added, removed = ours - before - theirs, (before - ours) & theirs
    kept = [line for line in upstream if not _only(line, removed)]
    if removed - _all_of(line for line in upstream if _only(line, removed)):
        return None
    lines = [line for line in patch if line not in base and _all_of([line]) & added]
    if not all(_all_of([line]) <= added for line in lines):
        return None  # a statement that imports other names as well: see `listed`
    return (*kept, *lines)


def both_rebind(
    before: Set[tuple[AnyStr, AnyStr, AnyStr]],
    theirs: Set[tuple[AnyStr, AnyStr, AnyStr]],
    ours: Set[tuple[AnyStr, AnyStr, AnyStr]],
) -> bool:
    """Whether a name that the patch imports anew is imported anew, or no more, by upstream, too.

    With both lines in the file the last would win, or one would be left that nobody needs.
    """
    for name in {_bound(each) for each in ours - before}:
        old, now, wanted = (
            {each for each in side if _bound(each) == name} for side in (before, theirs, ours)
        )
        if now not in (old, wanted):
            return True
    return False


def _bound(imported: tuple[AnyStr, AnyStr, AnyStr]) -> AnyStr:
    """The name that an import binds; of a plain one the whole module's, dots and all."""
    module, name, alias = imported
    return alias or name or module


def _only(line: bytes, imported: set[Imported]) -> bool:
    names = _all_of([line])
    return bool(names) and names <= imported


def _all_of(lines: Iterable[bytes]) -> set[Imported]:
    return imported_by(lines) or set()


def _names(line: bytes) -> set[Imported] | None:
    match = _FROM.match(line)
    if match:
        return {(match[2], *_renamed(each)) for each in match[3].split(b",") if each.strip()}
    match = _IMPORT.match(line)
    if match:
        pairs = [_renamed(each) for each in match[1].split(b",") if each.strip()]
        return {(module, b"", alias) for module, alias in pairs}
    return None


def _renamed(text: bytes) -> tuple[bytes, bytes]:
    name, *alias = _AS.split(text.strip())
    return name, alias[0] if alias else b""
