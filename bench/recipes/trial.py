"""What the recipe did on one commit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trial:
    """The recipe on one commit.

    `sites` were removed in `files`; `wrong` says what is not as it should be. `text` is what became
    of the patch that was made at the pin: whether it applies, and how many sites it leaves then.
    `beyond` are places outside the scope that still name jit_fuser.
    """

    branch: str
    commit: str
    date: str
    sites: int
    files: int
    wrong: tuple[str, ...]
    text: int | None
    beyond: tuple[str, ...]
