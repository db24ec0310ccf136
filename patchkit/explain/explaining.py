"""Explain the patches of a stack that do not apply: file by file, hunk by hunk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from msgspec.structs import replace

from patchkit.explain.hunks import apply_rewordings, explain_hunk, line_pairs
from patchkit.explain.moves import candidates, find_moves
from patchkit.explain.names import renamed_names
from patchkit.explain.origin import Results, find_origin
from patchkit.explain.terrain import Overlay, Terrain
from patchkit.explain.values import (
    FileExplanation,
    HunkExplanation,
    Move,
    PatchExplanation,
)
from patchkit.gitcmd.objects import MissingObjectError
from patchkit.gitcmd.repository import Repository
from patchkit.model.apply import Blobs, apply_changes
from patchkit.model.outcome import Clash, FileOutcome, PatchOutcome, Reason, Status
from patchkit.model.patch import FileChange
from patchkit.model.reverse import reverse_changes
from patchkit.model.rewording import find_rewordings
from patchkit.model.tree import ObjectSource
from patchkit.stack import SeriesPatch, Stack, patch_changes


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
    outcome: PatchOutcome,
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
    outcome: FileOutcome,
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
    terrain: Terrain, change: FileChange, clashes: Sequence[Clash], moves: Sequence[Move]
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
