"""Two patches on one file, each in capitals what it changes."""

from __future__ import annotations

from tests.support.repos import Files, make_patch

LINES = [f"line {number}\n" for number in range(1, 41)]


def shouted(*changed: int, more: Files | None = None) -> Files:
    """The upstream's files, with these lines of a.py in capitals."""
    text = [f"LINE {n}\n" if n in changed else line for n, line in enumerate(LINES, 1)]
    return {"a.py": "".join(text), "b.py": "b\n", **(more or {})}


ONE = make_patch(shouted(), shouted(3), subject="Shout line 3", body="Because.")
TWO = make_patch(shouted(3), shouted(3, 20), subject="Shout line 20", body="Why not.")
