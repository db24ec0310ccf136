"""Which paths a patch must not name: those that leave the tree or enter git's own folder.

The rules are those of git's index (`verify_path`), with core.protectNTFS and core.protectHFS on
everywhere: a stack that can be applied on one machine can be on every other.
"""

from __future__ import annotations

import re

from patchkit.model.objects import SYMLINK_MODE

# Nearly all paths, told at one glance: no dot at the start of a name, no "~", no odd character.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*")
# HFS+ ignores these in names: ".g\u200cit" opens ".git".
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
# NTFS drops dots and blanks at the end of a name, has short names, and streams after a colon.
_GIT_ON_NTFS = re.compile(r"(?:\.git|git~1)[ .]*(?::.*)?", re.IGNORECASE | re.DOTALL)
_GITMODULES_ON_NTFS = re.compile(
    r"(?:\.gitmodules|gitmod~[1-4]|gi7eba~[1-9]|gi7eb~[1-9][0-9]|gi7e~[1-9][0-9]{2}"
    r"|gi7~[1-9][0-9]{3}|gi~[1-9][0-9]{4}|g~[1-9][0-9]{5})[ .]*(?::.*)?",
    re.IGNORECASE | re.DOTALL,
)


_LONGEST_NAME = 255  # bytes, on all file systems that we know
#: So many folders may lie in each other: no path of more fits a system call, nor our recursion.
DEEPEST = 500


def unsafe_path(path: str, mode: int | None = None) -> str | None:
    """Why `path` must not be written, None if it may be; `mode` is what would be put there."""
    if path.count("/") > DEEPEST:
        return f"path of more than {DEEPEST} folders"
    if _PLAIN.fullmatch(path):
        return None
    if path.startswith("/"):
        return "absolute path"
    if "\x00" in path:
        return "path with a NUL byte"
    faults = (unsafe_name(part, mode) for part in path.split("/"))
    return next((fault for fault in faults if fault is not None), None)


def can_be_a_file(path: str) -> bool:
    """Whether a path that a record names leads to a place below, by names that a file can have.

    As from a file system: bytes that are no UTF-8 are surrogates.
    """
    try:
        parts = path.encode("utf-8", "surrogateescape").split(b"/")
    except UnicodeEncodeError:
        return False
    return max(map(len, parts)) <= _LONGEST_NAME and unsafe_path(path) is None


def unsafe_name(part: str, mode: int | None) -> str | None:
    """Why one name in a path must not be written, None if it may be."""
    if part in ("", "."):
        return "path with an empty or '.' component"
    if part == "..":
        return "path that leaves the tree"
    # a backslash separates folders on Windows
    pieces = [_IGNORED_BY_HFS.sub("", piece) for piece in part.split("\\")]
    if any(_GIT_ON_NTFS.fullmatch(piece) for piece in pieces):
        return "path inside a .git folder"
    if mode == SYMLINK_MODE and any(_GITMODULES_ON_NTFS.fullmatch(piece) for piece in pieces):
        return "symlink in the place of .gitmodules"
    return None
