"""Where a file that a patch names may be now: by its name, its contents, or git's history."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from pathlib import PurePosixPath

from patchkit.explain.hunks import find_hunk
from patchkit.explain.terrain import Terrain
from patchkit.explain.values import Move
from patchkit.gitcmd.history import find_rename
from patchkit.gitcmd.repository import Repository
from patchkit.model.patch import FileChange

# Reading is what costs: so many files with the same name, and so many beside it, are looked at.
_NAMESAKES = 24
_NEIGHBOURS = 40
_SHOWN = 3
_HUNKS_COMPARED = 6

# A stem like `utils` tells nothing.
_SHORT = 5

#: Less of a patch's lines than this does not make a file a candidate.
LIKELY = 0.5


def find_moves(
    terrain: Terrain, change: FileChange, *, base: str, history: Repository | None
) -> tuple[Move, ...]:
    """Paths where the file `change.old_path` may be now, the likeliest first.

    With `history`, git's own rename detection is asked where it was renamed before `base`.
    """
    path = change.old_path
    if path is None:
        return ()
    moves = [_compare(terrain, change, each) for each in candidates(terrain, change)]
    likely = sorted(
        (move for move in moves if move.likeness >= LIKELY), key=lambda m: (-m.likeness, m.path)
    )
    renamed = find_rename(history, base, path) if history is not None else None
    if renamed is not None and terrain.tree.entry(renamed.path) is not None:
        move = _compare(terrain, change, renamed.path)
        likely = [
            Move(move.path, move.likeness, f"renamed by {renamed.commit}"),
            *(each for each in likely if each.path != renamed.path),
        ]
    return tuple(likely[:_SHOWN])


def candidates(terrain: Terrain, change: FileChange) -> list[str]:
    """Paths worth a look: the same blob, then the same name, then neighbours of the same kind."""
    path = change.old_path or change.path
    folder, _, name = path.rpartition("/")
    stem, suffix = PurePosixPath(name).stem, PurePosixPath(name).suffix
    files = terrain.files()
    same_blob = [each for each, entry in files.items() if _is_blob(change, entry.oid)]
    namesakes = _nearest(path, (f for f in files if _name(f) == name), _NAMESAKES)
    telling = len(stem) > _SHORT
    beside = (
        f
        for f in files
        if f.endswith(suffix)
        and (f.rpartition("/")[0].startswith(folder) or (telling and stem in _name(f)))
    )
    found = [*same_blob, *namesakes, *_nearest(path, beside, _NEIGHBOURS)]
    return [each for each in dict.fromkeys(found) if each != path]


def _compare(terrain: Terrain, change: FileChange, path: str) -> Move:
    entry = terrain.tree.entry(path)
    if entry is not None and _is_blob(change, entry.oid):
        return Move(path, 1.0, "same contents")
    hunks = change.hunks[:_HUNKS_COMPARED]
    places = [find_hunk(terrain, path, hunk) for hunk in hunks]
    likeness = sum(place.similarity for place in places if place) / max(1, len(hunks))
    same = _name(path) == _name(change.path)
    return Move(path, round(likeness, 3), "same name" if same else "similar contents")


def _is_blob(change: FileChange, oid: str) -> bool:
    blob = change.old_blob or ""
    return len(blob) >= 7 and oid.startswith(blob)


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _nearest(path: str, others: Iterable[str], limit: int) -> list[str]:
    matcher = SequenceMatcher(None, b=path, autojunk=False)

    def unlike(other: str) -> float:
        matcher.set_seq1(other)
        return -matcher.quick_ratio()

    return sorted(others, key=unlike)[:limit]
