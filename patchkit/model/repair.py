"""How a damaged patch is mended, each mend by its name, and what else it may have said.

A manifest names the mends of a patch that it takes from elsewhere: one that finds nothing damaged,
or more than one way to read what is there, is refused. `readings` tries all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import unescape

from msgspec import Struct

from patchkit.errors import BadInputError, Problem
from patchkit.model.diff_parse import HUNK, end_of_hunk, lines_counted, split_lines
from patchkit.model.patch import FileChange, Hunk

#: The mend that takes blanks from the files of the base, which a manifest cannot name.
BLANKS_OF_BASE = "blanks of the base"

_ENTITY = re.compile(rb"&(?:lt|gt|amp|quot|apos|nbsp|#39|#x27|#34);")
_NO_BREAK = "\N{NO-BREAK SPACE}".encode()
_ADDED_NO_BREAK = re.compile(rb"^(?:\s|\xc2\xa0)*\+.*\xc2\xa0", re.MULTILINE)
_BLANKS = "which blanks its added lines had cannot be told"


class PatchReading(Struct, frozen=True):
    """What a damaged patch may have been: its bytes with some mends made.

    `doubt` says why it may have been something else even where it applies; "" for no reason.
    """

    mends: tuple[str, ...]  # by their names, in the order in which they were made
    data: bytes
    doubt: str = ""


def repaired(data: bytes, mends: Iterable[str], where: str) -> bytes:
    """The patch with these mends made, in their order; BadInputError says which cannot be made."""
    for mend in mends:
        number = mend.rpartition(" ")[2]
        try:
            made = _counted(data, int(number)) if number.isdigit() else _MENDS[mend](data)
            if made == data:
                raise ValueError("nothing there is damaged so")
        except ValueError as error:
            what = f"`{mend}` cannot be mended: {error}"
            hint = "look at the patch, and correct `repair`"
            raise BadInputError(Problem(what, where, hint)) from error
        data = made
    return data


def readings(data: bytes) -> list[PatchReading]:
    """All that a patch may have been, as it is first, then with the fewest mends."""
    found = {data: PatchReading((), data)}
    for name, mend in _MENDS.items():
        for each in [*found.values()]:
            made = mend(each.data)
            doubt = each.doubt
            if mend is _with_spaces and _ADDED_NO_BREAK.search(each.data):
                doubt = _BLANKS
            found.setdefault(made, PatchReading((*each.mends, name), made, doubt))
    for each in [*found.values()]:
        if (counted := _all_counted(each)) is not None:
            found.setdefault(counted.data, counted)
    return sorted(found.values(), key=lambda each: len(each.mends))


def without_returns(data: bytes) -> bytes:
    """A mail without the line ends of its transport: CRLF throughout is none of the patch's."""
    ends = data.count(b"\r\n"), data.count(b"\n")
    return data.replace(b"\r\n", b"\n").removesuffix(b"\r") if ends[0] == ends[1] else data


def _unescaped(data: bytes) -> bytes:
    return _ENTITY.sub(lambda each: unescape(each[0].decode()).encode(), data)


def _with_spaces(data: bytes) -> bytes:
    return data.replace(_NO_BREAK, b" ")


def _dedented(data: bytes) -> bytes:
    """Without the blanks that all lines begin with but empty ones."""
    lines = split_lines(data)
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return b"".join(line[depth:] or b"\n" for line in lines) if depth else data


def _ended(data: bytes) -> bytes:
    return data if data.endswith(b"\n") else data + b"\n"


def _spaced(data: bytes, marks: bytes = b"+-\\ \n") -> bytes:
    """With a space before the lines of hunks that have none of these marks."""
    lines = split_lines(data)
    for number, head in _heads(lines):
        old, new = _declared(head)
        for at in range(number, len(lines)):
            mark = lines[at][:1]
            if old <= 0 >= new:
                break
            old, new = old - (mark not in b"+\\"), new - (mark not in b"-\\")
            if mark not in marks:
                lines[at] = b" " + lines[at]
    return b"".join(lines)


def _heads(lines: Sequence[bytes]) -> Iterator[tuple[int, re.Match[bytes]]]:
    """The @@ lines, by their numbers."""
    matches = enumerate(map(HUNK.match, lines), 1)
    yield from ((number, match) for number, match in matches if match is not None)


def _declared(head: re.Match[bytes]) -> tuple[int, int]:
    return int(head[2] or 1), int(head[4] or 1)


_MENDS: Mapping[str, Callable[[bytes], bytes]] = {
    "line ends": without_returns,
    "entities": _unescaped,
    "non-breaking spaces": _with_spaces,
    "indentation": _dedented,
    "last newline": _ended,
    "context spaces": _spaced,
    "all context spaces": lambda data: _spaced(data, b"+-\\"),
}


def _all_counted(reading: PatchReading) -> PatchReading | None:
    """With the counts of all hunks; None where they are right, or cannot be told."""
    data, doubt = reading.data, reading.doubt
    lines, mends = split_lines(data), list[str]()
    for number, head in _heads(lines):
        try:
            made = _counted(data, number)
        except ValueError:
            return None
        if made != data:
            data = made
            mends.append(f"counts of line {number}")
            end = end_of_hunk(lines, number)
            pairs = zip(lines_counted(lines[number:end]), _declared(head), strict=True)
            if end == len(lines) and any(there < told for there, told in pairs):
                doubt = "its last hunk may have been cut off"
    return PatchReading((*reading.mends, *mends), data, doubt) if mends else None


def _counted(data: bytes, number: int) -> bytes:
    """With the counts in line `number` those of the lines below it."""
    lines = split_lines(data)
    head = HUNK.match(lines[number - 1]) if number <= len(lines) else None
    if head is None:
        raise ValueError("it is no @@ line")
    end = end_of_hunk(lines, number)
    body = lines[number:end]
    old, new = lines_counted(body)
    if (old, new) == _declared(head):
        return data
    # a line that an editor left empty may be the hunk's, or stand behind it; a header without
    # `diff` above it may be a line taken off and one put there; and `-- ` a line taken off, unless
    # git's version follows
    if body[-1:] == [b"\n"] or re.match(rb"--- |-- \n(?!\d)", b"".join(lines[end : end + 2])):
        raise ValueError(f"whether line {end} is the last of its hunk cannot be told")
    start = b"@@ -%b,%d +%b,%d @@" % (head[1], old, head[3], new)
    lines[number - 1] = start + lines[number - 1][head.end() :]
    return b"".join(lines)


# Blanks that were changed on the way: what the patch expects is written as the base has it.


def readings_at(
    reading: PatchReading, changes: Iterable[FileChange], file: Callable[[str], Sequence[bytes]]
) -> Iterator[PatchReading]:
    """The reading with the lines that it expects as they are in the base, blanks apart.

    `file` has the lines of a path. Added lines stay, or begin as expected ones that began alike.
    """
    lines = split_lines(reading.data)
    added, begins = list[int](), dict[bytes, bytes]()
    for change in changes:
        for hunk in change.hunks:
            base = file(change.old_path) if change.old_path else ()
            if (start := _place(hunk, base)) is None:
                return
            at, expected = hunk.line, iter(base[start:])
            for text in hunk.lines:
                at += lines[at].startswith(b"\\")
                if text[:1] == b"+":
                    added.append(at)
                else:
                    line = text[:1] + next(expected)
                    begins[_begin(lines[at])] = _begin(line)
                    lines[at] = line
                at += 1
    bare = not any(set(b" \t") & {*lines[at]} for at in added)
    doubt = reading.doubt if bare else _BLANKS
    mends = (*reading.mends, BLANKS_OF_BASE)
    yield PatchReading(mends, b"".join(lines), doubt)
    for at in added:
        line, begin = lines[at], _begin(lines[at])
        lines[at] = line[:1] + begins.get(begin, begin) + line[1 + len(begin) :]
    yield PatchReading(mends, b"".join(lines), doubt)


def _begin(line: bytes) -> bytes:
    """The blanks that a line of a hunk begins with behind its mark."""
    return line[1 : len(line) - len(line[1:].lstrip())]


def _place(hunk: Hunk, base: Sequence[bytes]) -> int | None:
    """Where the only lines are that a hunk expects, blanks apart."""
    wanted, there = list(map(_bare, hunk.preimage)), list(map(_bare, base))
    last = len(there) - len(wanted) + 1
    found = [at for at in range(last) if there[at : at + len(wanted)] == wanted]
    return found[0] if len(found) == 1 else None


def _bare(line: bytes) -> bytes:
    return b"".join(_with_spaces(line).split())
