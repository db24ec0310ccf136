"""Our trailer in commit messages: it carries a patch's file name through git.

A commit that was amended, reordered or dropped on the stack finds its patch file again by it;
what is exported does not have it.
"""

from __future__ import annotations

import re

PATCH_TRAILER = "Patchkit-Patch"

_TRAILER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*: ?\S")
_OURS = re.compile(rf"{PATCH_TRAILER}: *(\S+) *")


def add_patch_trailer(message: str, name: str) -> str:
    """`message` with the trailer that names the patch file, and no other of its kind."""
    text = split_patch_trailer(message)[0]
    paragraphs = re.split(r"\n[ \t]*\n", text)
    lines = paragraphs[-1].split("\n")
    joins = len(paragraphs) > 1 and all(_TRAILER.match(line) for line in lines)
    return f"{text}{chr(10) if joins else chr(10) * 2}{PATCH_TRAILER}: {name}"


def split_patch_trailer(message: str) -> tuple[str, str | None]:
    """The message without our trailers, and the patch name that the last one gave, if any."""
    lines = message.rstrip("\n").split("\n")
    names = [match[1] for match in map(_OURS.fullmatch, lines) if match]
    if not names:
        return message.rstrip("\n"), None
    kept = [line for line in lines if not _OURS.fullmatch(line)]
    return "\n".join(kept).rstrip("\n"), names[-1]
