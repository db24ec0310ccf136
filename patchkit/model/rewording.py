"""Find the one renaming that explains why lines of a patch are not the lines of the file.

A rename that goes over a whole repository also goes over the patch files kept in it, and rewrites
their context; or a patch was made after a rename that its base does not have. Either way the lines
that differ, differ by the same names: `slime.observability` here, `slime.utils` there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from msgspec import Struct

from patchkit.model.alignment import likeness

# A name with its parts, or any other run of signs.
_TOKEN = re.compile(r"\.*[A-Za-z_]\w*(?:[./]\w+)*|\d+|\s+|[^\w\s]")
_NAME = re.compile(r"\.*[A-Za-z_]\w*(?:[./]\w+)*")
_RELATIVE = re.compile(r"^(\s*from\s+)(\.+)([\w.]*)(\s+import\b)")

# Lines less alike than this were not reworded but replaced.
_ALIKE = 0.5


class Pair(Struct, frozen=True):
    """A line that the patch expects and the one that stands in its place, in the file `path`."""

    path: str
    expected: bytes
    found: bytes


class Rewording(Struct, frozen=True):
    """The patch says `expected` where the file says `found`, in `lines` lines of `files`."""

    expected: str
    found: str
    lines: int
    files: tuple[str, ...]


def find_rewordings(pairs: Sequence[Pair]) -> tuple[Rewording, ...]:
    """The renamings that at least two lines agree on, the most frequent first."""
    seen: dict[tuple[str, str], list[str]] = {}
    for pair in pairs:
        for change in set(changed_names(pair)):
            seen.setdefault(change, []).append(pair.path)
    found = [
        Rewording(old, new, len(paths), tuple(dict.fromkeys(paths)))
        for (old, new), paths in seen.items()
        if len(paths) > 1
    ]
    return tuple(sorted(found, key=lambda each: (-each.lines, each.expected, each.found)))


def changed_names(pair: Pair) -> list[tuple[str, str]]:
    """(name in the patch, name in the file) of each name that is another one in the pair."""
    old, new = _tokens(pair.expected, pair.path), _tokens(pair.found, pair.path)
    changes: list[tuple[str, str]] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "replace" and i2 - i1 == j2 - j1:
            names = zip(old[i1:i2], new[j1:j2], strict=True)
            changes += [_difference(a, b) for a, b in names if _are_names(a, b)]
    return changes


def explains(pair: Pair, rewordings: Iterable[Rewording]) -> bool:
    """Whether the renamings make the expected line the found one."""
    changes = {(each.expected, each.found) for each in rewordings}
    old, new = _tokens(pair.expected, pair.path), _tokens(pair.found, pair.path)
    return len(old) == len(new) and all(
        a == b or _difference(a, b) in changes for a, b in zip(old, new, strict=True)
    )


def pair_lines(
    path: str, expected: Sequence[bytes], found: Sequence[bytes]
) -> list[tuple[int, Pair]]:
    """Lines of two blocks that are versions of one another, with the place in `expected`."""
    pairs: list[tuple[int, Pair]] = []
    start = 0
    for number, line in enumerate(expected):
        alike = Counter({at: likeness(line, found[at]) for at in range(start, len(found))})
        if alike and (best := alike.most_common(1)[0])[1] >= _ALIKE:
            pairs.append((number, Pair(path, line, found[best[0]])))
            start = best[0] + 1
    return pairs


def absolute_import(line: str, path: str) -> str:
    """A Python line with a relative import written as an absolute one, as far as `path` tells."""
    match = _RELATIVE.match(line)
    if match is None or not path.endswith(".py"):
        return line
    parents = PurePosixPath(path).parts[:-1]
    package = parents[: len(parents) - len(match[2]) + 1]
    module = ".".join([*package, *filter(None, [match[3]])])
    return match[1] + module + match[4] + line[match.end() :]


def _difference(old: str, new: str) -> tuple[str, str]:
    """Two names without the parts at their end that both have."""
    a, b = re.split(r"([./])", old), re.split(r"([./])", new)
    while len(a) > 1 and len(b) > 1 and a[-1] == b[-1]:
        a, b = a[:-2], b[:-2]
    return "".join(a), "".join(b)


def _are_names(*tokens: str) -> bool:
    return all(_NAME.fullmatch(token) for token in tokens)


def _tokens(line: bytes, path: str) -> list[str]:
    text = absolute_import(line.decode("utf-8", "surrogateescape"), path)
    return _TOKEN.findall(text.rstrip())
