"""Which patch does an edit belong to: the one that last touched those lines, or nobody knows.

An edit belongs to a patch only if the lines say so beyond doubt:

- it changes or removes lines that the patch added (and none of another patch);
- it adds lines directly beside lines that the patch added, or where the patch removed some, and
  beside those of no other patch;
- it removes or changes lines of the base that stand between lines of the patch;
- it changes the mode, or the whole of a binary file or link, that the patch changed last;
- it removes a file that the patch added and no other patch touched, or brings one back that the
  patch removed.

Everything else is ambiguous, and left to the user.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from patchkit.gitcmd.diffs import diff_trees
from patchkit.model.diff import parse_diff
from patchkit.model.objects import TreeEntry
from patchkit.model.patch import FileChange
from patchkit.model.weave import Edit, Touched
from patchkit.refresh.history import (
    FileHistory,
    Ground,
    hunk_edits,
    is_text_change,
    lookup,
    read_history,
)


class Change(Struct, frozen=True):
    """One piece of what was edited: some lines, a mode, or a whole file.

    `edit` is set for lines, `mode` for a change of mode; for a whole file neither. `owner` is the
    number of the commit that the piece belongs to, None if that is not certain; `candidates` are
    those it has to do with. `floor` is the earliest commit that could take it.
    """

    history: FileHistory
    owner: int | None
    reason: str
    candidates: tuple[int, ...] = ()
    floor: int = 0
    edit: Edit | None = None
    mode: int | None = None
    entry: TreeEntry | None = None

    @property
    def path(self) -> str:
        """The file."""
        return self.history.path

    @property
    def line(self) -> int:
        """The first line concerned, counted from 1 in the last commit; 0: the file as a whole."""
        return self.edit.start + 1 if self.edit is not None else 0


def read_changes(ground: Ground, worktree: str) -> tuple[Change, ...]:
    """What differs between the stack's last tree and `worktree`, piece by piece, with owners."""
    (diff,) = diff_trees(ground.repository, [(ground.trees[-1], worktree)], "-U0", "--no-renames")
    by_path: dict[str, list[FileChange]] = {}
    for change in parse_diff(diff):
        by_path.setdefault(change.path, []).append(change)
    pieces: list[Change] = []
    for path, changes in by_path.items():
        history = read_history(ground, path)
        pieces += _pieces(history, changes, lookup(ground.reader, worktree, path))
    return tuple(pieces)


def _pieces(
    history: FileHistory, changes: Sequence[FileChange], entry: TreeEntry | None
) -> list[Change]:
    old = history.entry
    if old is None:
        return [_added(history, entry)]
    if entry is None:
        return [_removed(history)]
    if history.weave is None or len(changes) != 1 or not is_text_change(changes[0]):
        return [_rewritten(history, entry)]
    pieces = [_lines(history, edit) for edit in hunk_edits(changes[0].hunks)]
    if entry.mode != old.mode:
        pieces.append(_mode(history, entry.mode))
    return pieces


def _lines(history: FileHistory, edit: Edit) -> Change:
    assert history.weave is not None
    touched = history.weave.touched(edit)
    floor = max(touched.replaced, default=0)
    owners, reason = _owners(touched)
    certain = len(owners) == 1
    return Change(
        history,
        owner=next(iter(owners)) if certain else None,
        reason=reason if certain else _doubt(owners),
        candidates=tuple(sorted(owners)),
        floor=floor,
        edit=edit,
    )


def _owners(touched: Touched) -> tuple[frozenset[int], str]:
    """The patches that the lines speak for, and how they do."""
    own = touched.replaced - {0}
    if own:
        return own, "changes its lines"
    if touched.replaced:
        # lines of the base: a patch's only where they are enclosed by its own
        if touched.before is not None and touched.before == touched.after and touched.before:
            return frozenset({touched.before}), "between its lines"
        return frozenset(), ""
    neighbours = {each for each in (touched.before, touched.after) if each}
    return frozenset(neighbours | touched.struck), "beside its lines"


def _doubt(owners: frozenset[int]) -> str:
    return "touches lines of several patches" if owners else "touches lines of no patch"


def _added(history: FileHistory, entry: TreeEntry | None) -> Change:
    last = history.passages[-1].number if history.passages else 0
    return Change(
        history,
        owner=last or None,
        reason="brings back what it removed" if last else "a new file",
        candidates=(last,) if last else (),
        floor=last,
        entry=entry,
    )


def _removed(history: FileHistory) -> Change:
    numbers = history.numbers
    mine = history.born and numbers == {history.born}
    return Change(
        history,
        owner=history.born if mine else None,
        reason="removes the file that it adds" if mine else "removes the file",
        candidates=tuple(sorted(numbers)),
        floor=max(numbers, default=0),
    )


def _rewritten(history: FileHistory, entry: TreeEntry) -> Change:
    last = max(history.numbers, default=0)
    return Change(
        history,
        owner=last or None,
        reason="changes its file as a whole" if last else "changes a file of no patch",
        candidates=tuple(sorted(history.numbers)),
        floor=last,
        entry=entry,
    )


def _mode(history: FileHistory, mode: int) -> Change:
    owner = history.mode_set_by
    return Change(
        history,
        owner=owner or None,
        reason="changes the mode that it set" if owner else "changes the mode",
        candidates=(owner,) if owner else (),
        floor=owner,
        mode=mode,
    )
