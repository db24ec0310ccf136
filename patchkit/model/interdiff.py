"""The difference between two versions of a patch, without the numbers that always change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff

from patchkit.model.diff import split_lines
from patchkit.model.patch import PatchFile

_NUMBERS = re.compile(rb"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_INDEX = re.compile(rb"^(?:dis)?similarity index |^index ")


def interdiff(old: PatchFile | None, new: PatchFile | None, name: str) -> bytes:
    """A unified diff of the patch files, `@@` numbers and blob ids left out; b"" if it is empty."""
    before, after = (list(_lines(each)) if each is not None else [] for each in (old, new))
    sides = (f"old/{name}" if old else "/dev/null", f"new/{name}" if new else "/dev/null")
    # difflib knows text only; latin-1 takes any byte there and back
    rows = unified_diff(_text(before), _text(after), *sides, lineterm="\n")
    return "".join(row if row.endswith("\n") else row + "\n" for row in rows).encode("latin-1")


def _lines(file: PatchFile) -> Iterator[bytes]:
    yield from split_lines(file.preamble)
    for line in split_lines(file.diff):
        if not _INDEX.match(line):
            yield _NUMBERS.sub(b"@@", line)


def _text(lines: list[bytes]) -> list[str]:
    return [line.decode("latin-1") for line in lines]
