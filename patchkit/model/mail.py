"""Patch files as people write them: a header, the diff, perhaps a mail signature; and our trailer
in their messages.

`preamble + diff + signature` is the file to the byte. `header.py` reads what the header says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from patchkit.model.diff_parse import read_diff, split_lines
from patchkit.model.header import format_header, is_trailers, read_header
from patchkit.model.header_edit import reword
from patchkit.model.patch import Header, PatchFile


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


# The trailer `Patchkit-Patch` carries a patch's file name through git: a commit that was amended,
# reordered or dropped on the stack finds its patch file again by it; what is exported does not have
# it.


PATCH_TRAILER = "Patchkit-Patch"

_OURS = re.compile(rf"{PATCH_TRAILER}: *(\S+) *")


def add_patch_trailer(message: str, name: str) -> str:
    """`message` with the trailer that names the patch file, and no other of its kind."""
    text = split_patch_trailer(message)[0]
    paragraphs = re.split(r"\n[ \t]*\n", text)
    joins = len(paragraphs) > 1 and is_trailers(paragraphs[-1])
    return f"{text}{chr(10) if joins else chr(10) * 2}{PATCH_TRAILER}: {name}"


def split_patch_trailer(message: str) -> tuple[str, str | None]:
    """The message without our trailers, and the patch name that the last one gave, if any."""
    lines = message.rstrip("\n").split("\n")
    names = [match[1] for match in map(_OURS.fullmatch, lines) if match]
    if not names:
        return message.rstrip("\n"), None
    kept = [line for line in lines if not _OURS.fullmatch(line)]
    return "\n".join(kept).rstrip("\n"), names[-1]


def with_trailer(file: PatchFile, trailer: str, otherwise: str) -> bytes:
    """A patch file with further trailers below its message (in DEP-3 among its fields).

    All else is kept. A patch that says nothing gets a header with the message `otherwise`.
    """
    old = file.header
    if old is None:
        head = format_header(Header(f"{otherwise}\n\n{trailer}")) + file.preamble
    else:
        last = re.split(r"\n[ \t]*\n", old.message)[-1]
        is_body = last != old.message  # a subject may look like a trailer
        gap = "\n" if is_body and is_trailers(last) else "\n\n"
        new = Header(f"{old.message}{gap}{trailer}", old.author)
        head = reword(split_lines(file.preamble), old, new)
    return head + file.diff + file.signature


def subject_from(name: str) -> str:
    """What a patch that says nothing is called: its file's name in words."""
    words = name.removesuffix(".patch").replace("-", " ")
    return f"{words[:1].upper()}{words[1:]}"
