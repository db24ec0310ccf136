"""Trailers in the messages of commits and patch files.

Ours carries a patch's file name through git: a commit that was amended, reordered or dropped on the
stack finds its patch file again by it; what is exported does not have it.
"""

from __future__ import annotations

import re

from patchkit.model.mail import format_header
from patchkit.model.patch import Header, PatchFile

PATCH_TRAILER = "Patchkit-Patch"

_TRAILER = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*: ?\S")
_TRAILERS = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]*: ?\S.*\n?)+")
_EMPTY_LINE = re.compile(rb"(?m)^\r?\n")
#: Where the message of a mail ends, as `mail` has it.
_BREAK = re.compile(rb"(?m)^(?:---[ \t]*\r?$|--- \S|diff -|Index: )")
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


def with_trailer(file: PatchFile, trailer: str, otherwise: str) -> bytes:
    """A patch file with a further trailer below its message; all else is kept.

    A raw diff gets a header with the message `otherwise`.
    """
    if file.header is None:
        head = format_header(Header(f"{otherwise}\n\n{trailer}"))
        return head + file.preamble + file.diff + file.signature
    body = _EMPTY_LINE.search(file.preamble)
    break_line = _BREAK.search(file.preamble, body.end() if body else 0)
    end = break_line.start() if break_line else len(file.preamble)
    above, below = file.preamble[:end], file.preamble[end:]
    text = above.rstrip(b"\r\n")
    eol = b"\r\n" if b"\r\n" in above else b"\n"
    last = re.split(r"\n[ \t]*\n", file.header.message)[-1]
    is_body = last != file.header.message  # a subject may look like a trailer
    gap = eol if is_body and _TRAILERS.fullmatch(last) else eol * 2
    head = text + gap + trailer.encode() + (eol + below if below else eol * 2)
    return head + file.diff + file.signature


def subject_from(name: str) -> str:
    """What a patch that says nothing is called: its file's name in words."""
    words = name.removesuffix(".patch").replace("-", " ")
    return f"{words[:1].upper()}{words[1:]}"
