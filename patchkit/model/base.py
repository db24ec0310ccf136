"""The commit that a stack sits on, as everything above the store needs to know it."""

from __future__ import annotations

from msgspec import Struct


class Base(Struct, frozen=True):
    """A base commit; `date` is its committer's in git's raw form ("1700000000 +0100")."""

    commit: str
    tree: str
    date: str
