"""Patches that changed the tree once, and have no change now."""

from __future__ import annotations

from collections.abc import Iterable

from patchkit.errors import Problem
from patchkit.stack.lockfile import LockedComponent
from patchkit.stack.series import LoadedPatch


def emptied_patches(
    recorded: LockedComponent | None, patches: Iterable[LoadedPatch], target: str
) -> tuple[Problem, ...]:
    """The patches that changed the tree when the lock was written, and have no change now.

    `target` is how hints name the component.
    """
    if recorded is None:
        return ()
    trees = (recorded.tree, *(patch.tree for patch in recorded.patches))  # one more than patches
    rows = zip(recorded.patches, trees, strict=False)
    full = {patch.name for patch, before in rows if patch.tree != before}
    emptied = [patch for patch in patches if patch.name in full and not patch.file.changes]
    names = " ".join(patch.name for patch in emptied)
    what = "changes no file, and did when the lock was written"
    hint = f"restore the file, or take it off with: patchkit drop {names} {target}"
    return tuple(Problem(what, f"{patch.where}:1", hint) for patch in emptied)
