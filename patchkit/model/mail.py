"""Patch files as people write them: a header, the diff, perhaps a mail signature.

`preamble + diff + signature` is the file to the byte. `header.py` reads what the header says.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.model.diff import read_diff, split_lines
from patchkit.model.header import read_header
from patchkit.model.patch import PatchFile


def parse_patch(data: bytes, *, name: str, strip: int = 1) -> PatchFile:
    """The patch file `name` with the contents `data`; `strip` is what `git apply -p` means by it.

    Raises BadInputError with `name:line` for every corrupt place.
    """
    lines = split_lines(data)
    found = read_diff(lines, strip=strip, name=name)
    end = _signature_start(lines, found.end if found.changes else 0)
    start = min(found.start, end)
    form, header = read_header(lines[:start], name)
    return PatchFile(
        preamble=b"".join(lines[:start]),
        diff=b"".join(lines[start:end]),
        signature=b"".join(lines[end:]),
        header=header,
        changes=found.changes,
        strip=strip,
        stray=found.stray,
        form=form,
    )


def _signature_start(lines: Sequence[bytes], end: int) -> int:
    """The index of the last `-- ` line at or after `end`; len(lines) if there is none."""
    for index in range(len(lines) - 1, end - 1, -1):
        if lines[index] in (b"-- \n", b"--\n", b"-- \r\n"):
            return index
    return len(lines)
