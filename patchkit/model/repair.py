"""What is mended in a damaged patch when it is read, each mend by its name: `last newline`, and
`counts of line N`, where N is the line of an @@ line.

A mend that finds nothing damaged, or more than one way to read what is there, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from patchkit.errors import BadInputError, Problem
from patchkit.model.diff_parse import HUNK, end_of_hunk, lines_counted, split_lines


def repaired(data: bytes, mends: Iterable[str], where: str) -> bytes:
    """The patch with these mends made, in their order; BadInputError says which cannot be made."""
    for mend in mends:
        number = mend.rpartition(" ")[2]
        try:
            data = _counted(data, int(number)) if number.isdigit() else _ended(data)
        except ValueError as error:
            what = f"`{mend}` cannot be mended: {error}"
            hint = "look at the patch, and correct `repair`"
            raise BadInputError(Problem(what, where, hint)) from error
    return data


def _ended(data: bytes) -> bytes:
    if data.endswith(b"\n"):
        raise ValueError("there is a newline at its end")
    return data + b"\n"


def _counted(data: bytes, number: int) -> bytes:
    """With the counts in line `number` those of the lines below it."""
    lines = split_lines(data)
    head = HUNK.match(lines[number - 1]) if number <= len(lines) else None
    if head is None:
        raise ValueError("it is no @@ line")
    end = end_of_hunk(lines, number)
    body = lines[number:end]
    # a line that an editor left empty may be the hunk's, or stand behind it; a header without
    # `diff` above it may be a line taken off and one put there; and `-- ` a line taken off, unless
    # git's version follows
    if body[-1:] == [b"\n"] or re.match(rb"--- |-- \n(?!\d)", b"".join(lines[end : end + 2])):
        raise ValueError(f"whether line {end} is the last of its hunk cannot be told")
    old, new = lines_counted(body)
    if (old, new) == (int(head[2] or 1), int(head[4] or 1)):
        raise ValueError("they are right")
    start = b"@@ -%b,%d +%b,%d @@" % (head[1], old, head[3], new)
    lines[number - 1] = start + lines[number - 1][head.end() :]
    return b"".join(lines)
