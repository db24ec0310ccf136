"""Explain the patches of a stack that do not apply: file by file, hunk by hunk, with where a file
may be now and which names were changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import PurePosixPath

from msgspec.structs import replace

from patchkit.explain.explanation import (
    Cause,
    FileExplanation,
    HunkExplanation,
    MovedPath,
    PatchExplanation,
    RenamedName,
)
from patchkit.explain.failed_hunks import apply_rewordings, explain_hunk, find_hunk, line_pairs
from patchkit.explain.origin import Results, find_origin
from patchkit.gitcmd.commit_history import find_rename
from patchkit.gitcmd.object_reader import MissingObjectError
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.tree_view import Overlay, Terrain
from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.outcome import Clash, FileResult, PatchResult, Reason, Status
from patchkit.model.patch import FileChange
from patchkit.model.revision import reverse_changes
from patchkit.model.similarity import Rewording, changed_names, find_rewordings
from patchkit.model.tree import ObjectSource
from patchkit.stack.build import SeriesPatch, Stack, patch_changes

# Where a file that a patch names may be now: by its name, its contents, or git's history.


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
) -> tuple[MovedPath, ...]:
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
            MovedPath(move.path, move.likeness, f"renamed by {renamed.commit}"),
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


def _compare(terrain: Terrain, change: FileChange, path: str) -> MovedPath:
    entry = terrain.tree.entry(path)
    if entry is not None and _is_blob(change, entry.oid):
        return MovedPath(path, 1.0, "same contents")
    hunks = change.hunks[:_HUNKS_COMPARED]
    places = [find_hunk(terrain, path, hunk) for hunk in hunks]
    likeness = sum(place.similarity for place in places if place) / max(1, len(hunks))
    same = _name(path) == _name(change.path)
    return MovedPath(path, round(likeness, 3), "same name" if same else "similar contents")


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


# Renamings between a patch's words and the tree's, with what the tree says about them.


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


def explain_stack(
    source: ObjectSource,
    stack: Stack,
    patches: Sequence[SeriesPatch],
    *,
    history: Repository | None = None,
    results: Results | None = None,
) -> tuple[PatchExplanation, ...]:
    """An explanation for each patch of the stack that does not apply; none for a clean one.

    `history` is a repository with the base's history, as far as it is at hand; `results` see
    `find_origin`.
    """
    if stack.clean:
        return ()
    terrain = Terrain(Overlay(source, stack.objects), stack.tree)
    return tuple(
        explain_patch(
            terrain, patch, outcome, base=stack.base.commit, history=history, results=results
        )
        for patch, outcome in zip(patches, stack.outcomes, strict=True)
        if outcome.status is Status.CONFLICTED
    )


def explain_patch(
    terrain: Terrain,
    patch: SeriesPatch,
    outcome: PatchResult,
    *,
    base: str,
    history: Repository | None = None,
    results: Results | None = None,
) -> PatchExplanation:
    """Why `patch`, with `outcome` on the tree of `terrain`, does not apply."""
    changes = patch_changes(patch)
    files = [
        _explain_file(terrain, change, file, base, history)
        for change, file in zip(changes, outcome.files, strict=True)
        if file.clashes
    ]
    hunks = [hunk for file in files for hunk in file.hunks]
    rewordings = find_rewordings([pair for hunk in hunks for pair in line_pairs(hunk)])
    files = [
        replace(file, hunks=tuple(apply_rewordings(hunk, rewordings) for hunk in file.hunks))
        for file in files
    ]
    return PatchExplanation(
        name=patch.name,
        contained=_undoes(terrain, changes),
        files_total=len(changes),
        files=tuple(files),
        renamed=renamed_names(terrain, files, rewordings),
        origin=find_origin(terrain, changes, base=base, history=history, results=results),
    )


def _explain_file(
    terrain: Terrain,
    change: FileChange,
    outcome: FileResult,
    base: str,
    history: Repository | None,
) -> FileExplanation:
    first = outcome.clashes[0]
    moves = (
        find_moves(terrain, change, base=base, history=history)
        if first.reason is Reason.MISSING
        else ()
    )
    return FileExplanation(
        path=first.path,
        reason=first.reason,
        preimage=outcome.preimage,
        line=first.line,
        detail=first.detail,
        contained=_undoes(terrain, [change]),
        hunks_total=len(change.hunks),
        hunks=_explain_hunks(terrain, change, outcome.clashes, moves),
        moves=moves,
    )


def _explain_hunks(
    terrain: Terrain, change: FileChange, clashes: Sequence[Clash], moves: Sequence[MovedPath]
) -> tuple[HunkExplanation, ...]:
    if clashes[0].reason is Reason.MISSING:
        # the file is gone: how its hunks fit the likeliest place where it may be now
        path = moves[0].path if moves else None
        chosen = list(enumerate(change.hunks, 1)) if path else []
        return tuple(explain_hunk(terrain, path or "", h, n) for n, h in chosen)
    path = change.old_path or change.path

    @cache
    def elsewhere() -> Sequence[str]:
        return candidates(terrain, change)

    return tuple(
        explain_hunk(
            terrain,
            path,
            change.hunks[clash.hunk - 1],
            clash.hunk,
            clash=clash,
            elsewhere=elsewhere,
        )
        for clash in clashes
        if clash.hunk
    )


def _undoes(terrain: Terrain, changes: Sequence[FileChange]) -> bool:
    """Whether the tree is as the changes leave it: all of them can be undone exactly."""
    undo = reverse_changes(changes)
    try:
        return apply_changes(terrain.tree, Blobs(terrain.source), undo).tree is not None
    except MissingObjectError:
        return False
