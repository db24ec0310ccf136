"""Renamings between a patch's words and the tree's, with what the tree says about them."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.explain.hunks import line_pairs
from patchkit.explain.terrain import Terrain
from patchkit.explain.values import Cause, FileExplanation, HunkExplanation, RenamedName
from patchkit.model.rewording import Rewording, changed_names


def renamed_names(
    terrain: Terrain, files: Sequence[FileExplanation], rewordings: Sequence[Rewording]
) -> tuple[RenamedName, ...]:
    """The renamings that explain hunks, those that explain most first."""
    reworded = [h for file in files for h in file.hunks if h.cause is Cause.REWORDED]
    names = [_renamed(terrain, each, reworded) for each in rewordings]
    return tuple(sorted((n for n in names if n.hunks), key=lambda n: (-n.hunks, -n.lines)))


def _renamed(
    terrain: Terrain, rewording: Rewording, hunks: Sequence[HunkExplanation]
) -> RenamedName:
    change = (rewording.expected, rewording.found)
    explained = [h for h in hunks if any(change in changed_names(p) for p in line_pairs(h))]
    return RenamedName(
        expected=rewording.expected,
        found=rewording.found,
        lines=rewording.lines,
        hunks=len(explained),
        files=rewording.files,
        expected_exists=_exists(terrain, rewording.expected),
        found_exists=_exists(terrain, rewording.found),
    )


def _exists(terrain: Terrain, name: str) -> bool | None:
    """Whether the tree has a module or folder of that name, at its top or in a source folder."""
    path = "/" + name.replace(".", "/")
    if "/" not in path[1:]:
        return None
    return any(f"/{file}".find(f"{path}{end}") >= 0 for file in terrain.files() for end in "/.")
