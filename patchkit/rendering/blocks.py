"""The version table between two marks of a Markdown file that is somebody's own.

The first mark says which manifest; patchkit adds the digest to it:

    <!-- patchkit versions: manifests/demo.yaml -->
    <!-- patchkit versions: end -->
"""

from __future__ import annotations

import re

from patchkit.errors import BadInputError, Problem
from patchkit.rendering.marking import UNSIGNED, Condition, condition, signed

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
