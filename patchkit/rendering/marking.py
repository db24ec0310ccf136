"""The mark of a generated file: where it comes from, and a digest of all that is in it.

The digest tells a file that somebody edited from one that is merely out of date. It stands in one
line, in whatever notation the file has for comments, and covers everything but itself.
"""

from __future__ import annotations

import hashlib
import re
from enum import Enum

from patchkit.errors import BadInputError, Problem

_LINE = re.compile(r"patchkit-digest: sha256:([0-9a-f]{64}|)")

#: What a template writes where the digest goes.
UNSIGNED = "patchkit-digest: sha256:"


class Condition(str, Enum):
    """How a file stands to what the manifest says now."""

    FRESH = "fresh"
    STALE = "stale"  # as patchkit made it, from something older
    EDITED = "edited"  # changed by hand since
    FOREIGN = "foreign"  # not made by patchkit
    MISSING = "missing"
    LEFTOVER = "leftover"  # made by patchkit, from nothing that the manifest still has


def signed(text: str) -> str:
    """A text that has `UNSIGNED` once, with its digest filled in."""
    return _LINE.sub(f"{UNSIGNED}{_digest(text)}", text, count=1)


def is_marked(text: str) -> bool:
    """Whether patchkit made this file."""
    return _LINE.search(text) is not None


def is_intact(text: str) -> bool:
    """Whether a marked text is as patchkit made it."""
    found = _LINE.search(text)
    return found is not None and found[1] == _digest(text)


def condition(actual: str | None, wanted: str) -> Condition:
    """How a file's text stands to the signed text that it ought to have."""
    if actual is None:
        return Condition.MISSING
    if actual == wanted:
        return Condition.FRESH
    if not is_marked(actual):
        return Condition.FOREIGN
    return Condition.STALE if is_intact(actual) else Condition.EDITED


def _digest(text: str) -> str:
    return hashlib.sha256(_LINE.sub(UNSIGNED, text, count=1).encode()).hexdigest()


# The version table between two marks of a Markdown file that is somebody's own.
#
# The first mark says which manifest; patchkit adds the digest to it:
#
#     <!-- patchkit versions: manifests/demo.yaml -->
#     <!-- patchkit versions: end -->


_BLOCK = re.compile(
    r"(?P<begin>^<!-- patchkit versions: (?P<manifest>[^\n;]+?)(?:;[^\n]*)? -->\n)"
    r"(?P<body>.*?)"
    r"(?P<end>^<!-- patchkit versions: end -->$)",
    re.MULTILINE | re.DOTALL,
)


def replaced(page: str, manifest: str, table: str, where: str) -> tuple[str, Condition]:
    """The page with the table of `manifest` in its place, and how the page stood to that.

    A block without a digest is one that waits for its first table, so long as it is empty. Raises
    BadInputError if the page has no block for the manifest, or more than one.
    """
    blocks = [each for each in _BLOCK.finditer(page) if each["manifest"] == manifest]
    begin = f"<!-- patchkit versions: {manifest} -->"
    if len(blocks) != 1:
        what = "has no place" if not blocks else f"has {len(blocks)} places"
        hint = f"put these two lines where it belongs: {begin} and <!-- patchkit versions: end -->"
        raise BadInputError(Problem(f"{what} for the version table of {manifest}", where, hint))
    (block,) = blocks
    head = f"<!-- patchkit versions: {manifest}; generated, do not edit; {UNSIGNED} -->\n"
    wanted = signed(f"{head}\n{table.strip()}\n\n") + block["end"]
    new = page[: block.start()] + wanted + page[block.end() :]
    if not block["body"].strip() and UNSIGNED not in block["begin"]:
        return new, Condition.MISSING
    return new, condition(block["begin"] + block["body"], wanted.removesuffix(block["end"]))
