"""Put edits into the commits they belong to: the trees that the whole stack has afterwards.

No merge takes place. Lines go into the weave of their file, so every later commit has them too,
and the last tree is exactly the edited one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from patchkit.errors import ExitCode, PatchkitError, Problem
from patchkit.model.line_history import VersionEdit
from patchkit.model.objects import GitObject, TreeEntry, make_object
from patchkit.model.tree import ObjectSource, ObstructedError, Tree
from patchkit.refresh.assign import EditedPiece, FileHistory

T = TypeVar("T")

#: Path -> what stands there now (None: nothing), for one commit of the stack.
_Puts = dict[str, TreeEntry | None]


class CannotFoldError(PatchkitError):
    """An edit was sent to a patch that cannot take it."""

    exit_code = ExitCode.USAGE


def fold(
    source: ObjectSource,
    trees: Sequence[str],
    changes: Sequence[tuple[int, EditedPiece]],
    names: Sequence[str],
) -> tuple[list[str], list[GitObject]]:
    """The stack's trees with each change made in the commit of that number; [0] is the base's.

    `names` are the patches, names[0] that of commit 1. Returns the new objects, too. Raises
    CannotFoldError with every change that its commit can't take because a later one introduces
    what it changes.
    """
    problems = [
        _misplaced(number, change, names) for number, change in changes if number < change.floor
    ]
    if problems:
        raise CannotFoldError(*problems)
    objects: list[GitObject] = []
    puts: list[_Puts] = [{} for _ in trees]
    for history, pieces in _by_file(changes):
        _plan_file(history, pieces, puts, objects)
    return [
        _with(source, tree, puts[number], objects) for number, tree in enumerate(trees)
    ], objects


def _by_file(
    changes: Iterable[tuple[int, EditedPiece]],
) -> list[tuple[FileHistory, list[tuple[int, EditedPiece]]]]:
    files: dict[str, tuple[FileHistory, list[tuple[int, EditedPiece]]]] = {}
    for number, change in changes:
        files.setdefault(change.path, (change.history, []))[1].append((number, change))
    return list(files.values())


def _plan_file(
    history: FileHistory,
    pieces: Sequence[tuple[int, EditedPiece]],
    puts: list[_Puts],
    objects: list[GitObject],
) -> None:
    lines = [(n, c.edit) for n, c in pieces if c.edit is not None]
    modes = {n: c.mode for n, c in pieces if c.mode is not None}
    whole = {n: c.entry for n, c in pieces if c.edit is None and c.mode is None}
    blobs = _woven(history, lines, objects) if lines else {}
    entry = None
    for number in range(min(n for n, _ in pieces), len(puts)):
        entry = history.entry_at(number)
        blob = _latest(blobs, number)
        if blob is not None and entry is not None:
            entry = replace(entry, oid=blob)
        mode = _latest(modes, number)
        if mode is not None and entry is not None:
            entry = replace(entry, mode=mode)
        if any(start <= number for start in whole):
            entry = _latest(whole, number)
        puts[number][history.path_at(number)] = entry


def _woven(
    history: FileHistory, edits: Sequence[tuple[int, VersionEdit]], objects: list[GitObject]
) -> dict[int, str]:
    """From which commit on the file is which blob, from the first edited one."""
    assert history.weave is not None
    woven = history.weave.edited(edits)
    first = min(number for number, _ in edits)
    starts = {number for number, _ in edits} | {n for n in history.numbers if n > first}
    blobs: dict[int, str] = {}
    for number in sorted(starts):
        if not woven.is_whole(number):
            raise CannotFoldError(
                Problem("an edit follows a line without newline in an earlier patch", history.path)
            )
        blob = make_object("blob", woven.version(number))
        objects.append(blob)
        blobs[number] = blob.oid
    return blobs


def _latest(values: Mapping[int, T], at: int) -> T | None:
    """The value of the last number up to `at`."""
    return values[max(n for n in values if n <= at)] if any(n <= at for n in values) else None


def _with(source: ObjectSource, oid: str, puts: _Puts, objects: list[GitObject]) -> str:
    if not puts:
        return oid
    tree = Tree(source, oid)
    try:
        for path, entry in puts.items():
            if entry is None and tree.entry(path) is not None:
                tree = tree.remove(path)
        for path, entry in puts.items():
            if entry is not None:
                tree = tree.put(path, entry)
    except ObstructedError as error:
        raise CannotFoldError(
            Problem(f"{error.by} is in its way in an earlier patch", error.path)
        ) from error
    return tree.write(objects)


def _misplaced(number: int, change: EditedPiece, names: Sequence[str]) -> Problem:
    where = f"{change.path}:{change.line}" if change.line else change.path
    later = names[change.floor - 1]
    return Problem(
        f"cannot go into {names[number - 1]}: {later} comes later and brings what it changes",
        where,
        f"send it there: --patch {later}",
    )
