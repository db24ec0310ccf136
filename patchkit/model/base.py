"""The commit that a stack sits on, as everything above the store needs to know it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Base:
    """A base commit; `date` is its committer's in git's raw form ("1700000000 +0100")."""

    commit: str
    tree: str
    date: str
