"""File systems that take `README` and `readme` for one file: no tree may need both there.

git notes when it makes a repository whether names that differ by case are the same ones. Where they
are not, nothing here costs anything.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator

from patchkit.errors import Problem, SurroundingsError
from patchkit.gitcmd.repository import Repository

_FOLDS = re.compile(r"^\s*ignorecase\s*=\s*(true|yes|on|1)\s*$", re.IGNORECASE | re.MULTILINE)
_MOST_TOLD = 5


def require_distinct(repository: Repository, commit: str) -> None:
    """SurroundingsError if names of a tree are one on the file system of this worktree."""
    if not folds_case(repository):
        return
    listing = repository.git("ls-tree", "-r", "-t", "--name-only", "-z", commit).out
    paths = [os.fsdecode(path) for path in listing.split(b"\0")[:-1]]
    if told := _told(paths):
        raise SurroundingsError(
            Problem(
                f"this file system takes names for one that differ only by case: {told}",
                str(repository.work_tree),
                "put the workspace where case counts (--workspace DIR)",
            )
        )


def require_steady(repository: Repository, changed: Iterable[str]) -> None:
    """SurroundingsError if paths that change are one on the file system of this worktree.

    To put the one there and to take the other away would leave neither.
    """
    if not folds_case(repository):
        return
    above = (path.split("/")[:deep] for path in changed for deep in range(1, path.count("/") + 2))
    if told := _told(list(dict.fromkeys("/".join(parts) for parts in above))):
        raise SurroundingsError(
            Problem(
                f"names change only by case, which this file system takes for one: {told}",
                str(repository.work_tree),
                "rename the checkout: apply makes it anew; or put the workspace where case counts",
            )
        )


def _told(paths: list[str]) -> str:
    """The first of the clashes among paths, "" for none."""
    clashes = list(clashing(paths))
    more = f", and {len(clashes) - _MOST_TOLD} more" if len(clashes) > _MOST_TOLD else ""
    return ", ".join(f"{one} and {other}" for one, other in clashes[:_MOST_TOLD]) + more


def folds_case(repository: Repository) -> bool:
    """Whether git found that names here are the same whatever their case."""
    try:
        text = (repository.git_dir / "config").read_text("utf-8", "replace")
    except OSError:
        return False
    return _FOLDS.search(text) is not None


def clashing(paths: list[str]) -> Iterator[tuple[str, str]]:
    """Pairs of paths that are one where case does not count, nor how an accent is written."""
    first: dict[str, str] = {}
    for path in paths:
        before = first.setdefault(unicodedata.normalize("NFC", path).casefold(), path)
        if before != path:
            yield before, path
