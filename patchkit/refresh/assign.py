"""Which patch an edit belongs to: the one that last touched those lines, or ambiguous.

An edit belongs to a patch only if the lines say so beyond doubt:

- it changes or removes lines that the patch added (and none of another patch);
- it adds lines directly beside lines that the patch added, or where the patch removed some, and
  beside those of no other patch;
- it removes or changes lines of the base that stand between lines of the patch;
- it changes the mode, or the whole of a binary file or link, that the patch changed last;
- it removes a file that the patch added and no other patch touched, or brings one back that the
  patch removed.

Everything else is ambiguous, and left to the user.

Apart from `draft`, its only user: the rules above are read, and tested, by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import ExitCode, PatchkitError, Problem
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import diff_trees
from patchkit.model.diff_parse import parse_diff
from patchkit.model.line_history import EditNeighbours, VersionEdit, Weave, weave
from patchkit.model.objects import (
    EXECUTABLE_MODE,
    FILE_MODE,
    TREE_MODE,
    GitObject,
    TreeEntry,
    TreeId,
    make_object,
)
from patchkit.model.patch import FileChange, Hunk, Kind
from patchkit.model.tree import ObjectSource, ObstructedError, Tree

# The history of one file within the stack, followed backwards through renames.


_REGULAR = (FILE_MODE, EXECUTABLE_MODE)


class ObjectCache(Protocol):
    """Objects by id."""

    def blob(self, oid: str) -> bytes:
        """The contents of a blob."""

    def tree(self, oid: str) -> dict[str, TreeEntry]:
        """The entries of a tree."""


class FileStep(Struct, frozen=True):
    """One commit's change of the file; `number` counts the stack's commits from 1.

    `old` is None where the commit adds the file, `new` None where it removes it; `edits` is None
    where the change is not one of lines (binary files, links, submodules).
    """

    number: int
    old_path: str  # before the commit
    old: TreeEntry | None
    path: str  # after it
    new: TreeEntry | None
    edits: tuple[VersionEdit, ...] | None


class FileHistory(Struct, frozen=True):
    """A file of the tip with everything that the stack did to it, oldest first.

    `weave` holds its versions as lines, None where one of them is not made of lines.
    """

    path: str  # at the tip
    entry: TreeEntry | None  # at the tip; None where the stack removed it
    steps: tuple[FileStep, ...]  # of the commits that change it, oldest first
    weave: Weave | None

    @property
    def numbers(self) -> frozenset[int]:
        """The commits that touch the file."""
        return frozenset(each.number for each in self.steps)

    @property
    def born(self) -> int:
        """The commit that adds the file, 0 if the base has it."""
        first = self.steps[0] if self.steps else None
        return first.number if first is not None and first.old is None else 0

    @property
    def mode_set_by(self) -> int:
        """The last commit that set the file's mode or added it, 0 if none did."""
        return max((p.number for p in self.steps if _sets_mode(p)), default=0)

    def at(self, number: int) -> tuple[str, TreeEntry | None]:
        """The path that the file has after commit `number`, and what is there."""
        for step in reversed(self.steps):
            if step.number <= number:
                return step.path, step.new
        first = self.steps[0] if self.steps else None
        return (first.old_path, first.old) if first is not None else (self.path, self.entry)


class StackTrees(Struct, frozen=True):
    """The stack that histories are read from: `trees[0]` is the base's, `trees[n]` after n."""

    repository: Repository
    reader: ObjectCache  # reads their objects, and keeps what it read
    trees: tuple[TreeId, ...]

    @property
    def tip(self) -> int:
        """The number of the last commit."""
        return len(self.trees) - 1


def lookup(reader: ObjectCache, tree: TreeId, path: str) -> TreeEntry | None:
    """What a tree has at a path; None for nothing and for a folder."""
    *folders, name = path.split("/")
    for folder in folders:
        entry = reader.tree(tree).get(folder)
        if entry is None or entry.mode != TREE_MODE:
            return None
        tree = TreeId(entry.oid)
    entry = reader.tree(tree).get(name)
    return None if entry is None or entry.mode == TREE_MODE else entry


def read_history(ground: StackTrees, path: str) -> FileHistory:
    """The history of the file that the tip has, or lacks, at `path`."""
    entry = lookup(ground.reader, ground.trees[-1], path)
    steps: list[FileStep] = []
    current = path
    for number in range(ground.tip, 0, -1):
        step = _step(ground, number, current)
        if step is not None:
            steps.append(step)
            current = step.old_path
            if step.old is None or step.new is None:
                break
    ordered = tuple(reversed(steps))
    return FileHistory(path, entry, ordered, _weave(ground.reader, entry, ordered))


def hunk_edits(hunks: Sequence[Hunk]) -> tuple[VersionEdit, ...]:
    """The edits that hunks without context stand for."""
    edits = []
    for hunk in hunks:
        # "-7,0" inserts behind line 7
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        edits.append(VersionEdit(start, start + hunk.old_count, tuple(hunk.postimage)))
    return tuple(edits)


def is_text_change(change: FileChange) -> bool:
    """Whether the change is one of the lines, or the mode, of an ordinary file."""
    modes = [mode for mode in (change.old_mode, change.new_mode) if mode is not None]
    return change.binary is None and all(mode in _REGULAR for mode in modes)


def _step(ground: StackTrees, number: int, path: str) -> FileStep | None:
    before, after = ground.trees[number - 1], ground.trees[number]
    if before == after:
        return None
    old, new = (lookup(ground.reader, tree, path) for tree in (before, after))
    if old == new:
        return None
    (diff,) = diff_trees(ground.repository, [(before, after)], "-U0", "-M50%")
    changes = [each for each in parse_diff(diff) if path in (each.old_path, each.new_path)]
    if new is None:
        return FileStep(number, path, old, path, None, None)
    change = next((each for each in changes if each.new_path == path), None)
    if change is not None and change.kind is Kind.RENAME and change.old_path is not None:
        old = lookup(ground.reader, before, change.old_path)
        return FileStep(number, change.old_path, old, path, new, _edits(change, old, new))
    return FileStep(number, path, old, path, new, _edits(change, old, new))


def _edits(
    change: FileChange | None, old: TreeEntry | None, new: TreeEntry
) -> tuple[VersionEdit, ...] | None:
    regular = new.mode in _REGULAR and (old is None or old.mode in _REGULAR)
    if change is None or not regular or not is_text_change(change):
        return None
    return hunk_edits(change.hunks)


def _weave(reader: ObjectCache, tip: TreeEntry | None, steps: Sequence[FileStep]) -> Weave | None:
    first = steps[0].old if steps else tip
    if any(each.edits is None for each in steps):
        return None
    if first is not None and first.mode not in _REGULAR:
        return None
    result = weave(b"" if first is None else reader.blob(first.oid))
    for step in steps:
        assert step.edits is not None
        result = result.grown(step.number, step.edits)
    return result


def _sets_mode(step: FileStep) -> bool:
    return step.new is not None and (step.old is None or step.old.mode != step.new.mode)


class EditedPiece(Struct, frozen=True):
    """One piece of what was edited: some lines, a mode, or a whole file.

    `edit` is set for lines, `mode` for a change of mode; for a whole file neither. `owner` is the
    number of the commit that the piece belongs to, None if that is not certain; `candidates` are
    those it has to do with. `floor` is the earliest commit that could take it.
    """

    history: FileHistory  # of the file that it is in
    owner: int | None
    reason: str  # why it goes to `owner`, or to no one for certain
    candidates: tuple[int, ...]
    floor: int
    edit: VersionEdit | None = None
    mode: int | None = None
    entry: TreeEntry | None = None  # the edited file; None where it was removed

    @property
    def path(self) -> str:
        """The file."""
        return self.history.path

    @property
    def line(self) -> int:
        """The first line concerned, counted from 1 in the last commit; 0: the file as a whole."""
        return self.edit.start + 1 if self.edit is not None else 0


class RoutedEdit(Struct, frozen=True):
    """One piece of what was edited, and the patch that it goes to.

    `line` is the first line concerned in the stack's last tree, 0 for a file as a whole; `removed`
    and `added` count lines. `patch` is empty if that is not known; `candidates` are the patches
    that the piece has to do with.
    """

    path: str  # in the checkout
    line: int
    removed: int
    added: int
    patch: str
    reason: str  # why it goes there, or to no one for certain
    candidates: tuple[str, ...]


def read_changes(ground: StackTrees, worktree: TreeId) -> tuple[EditedPiece, ...]:
    """What differs between the stack's last tree and `worktree`, piece by piece, with owners."""
    (diff,) = diff_trees(ground.repository, [(ground.trees[-1], worktree)], "-U0", "--no-renames")
    by_path: dict[str, list[FileChange]] = {}
    for change in parse_diff(diff):
        by_path.setdefault(change.path, []).append(change)
    pieces: list[EditedPiece] = []
    for path, changes in by_path.items():
        history = read_history(ground, path)
        pieces += _pieces(history, changes, lookup(ground.reader, worktree, path))
    return tuple(pieces)


def _pieces(
    history: FileHistory, changes: Sequence[FileChange], entry: TreeEntry | None
) -> list[EditedPiece]:
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


def _lines(history: FileHistory, edit: VersionEdit) -> EditedPiece:
    assert history.weave is not None
    touched = history.weave.touched(edit)
    floor = max(touched.replaced, default=0)
    owners, reason = _owners(touched)
    certain = len(owners) == 1
    doubt = "touches lines of several patches" if owners else "touches lines of no patch"
    return EditedPiece(
        history,
        owner=next(iter(owners)) if certain else None,
        reason=reason if certain else doubt,
        candidates=tuple(sorted(owners)),
        floor=floor,
        edit=edit,
    )


def _owners(touched: EditNeighbours) -> tuple[frozenset[int], str]:
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


def _added(history: FileHistory, entry: TreeEntry | None) -> EditedPiece:
    last = history.steps[-1].number if history.steps else 0
    return EditedPiece(
        history,
        owner=last or None,
        reason="brings back what it removed" if last else "a new file",
        candidates=(last,) if last else (),
        floor=last,
        entry=entry,
    )


def _removed(history: FileHistory) -> EditedPiece:
    numbers = history.numbers
    mine = history.born and numbers == {history.born}
    return EditedPiece(
        history,
        owner=history.born if mine else None,
        reason="removes the file that it adds" if mine else "removes the file",
        candidates=tuple(sorted(numbers)),
        floor=max(numbers, default=0),
    )


def _rewritten(history: FileHistory, entry: TreeEntry) -> EditedPiece:
    last = max(history.numbers, default=0)
    return EditedPiece(
        history,
        owner=last or None,
        reason="changes its file as a whole" if last else "changes a file of no patch",
        candidates=tuple(sorted(history.numbers)),
        floor=last,
        entry=entry,
    )


def _mode(history: FileHistory, mode: int) -> EditedPiece:
    owner = history.mode_set_by
    return EditedPiece(
        history,
        owner=owner or None,
        reason="changes the mode that it set" if owner else "changes the mode",
        candidates=(owner,) if owner else (),
        floor=owner,
        mode=mode,
    )


# Put edits into the commits they belong to: the trees that the whole stack has afterwards.
#
# No merge takes place. Lines go into the weave of their file, so every later commit has them too,
# and the last tree is exactly the edited one.


T = TypeVar("T")

#: Path -> what is there now (None: nothing), for one commit of the stack.
_Puts = dict[str, TreeEntry | None]


class CannotFoldError(PatchkitError):
    """An edit was sent to a patch that cannot take it."""

    exit_code = ExitCode.USAGE


def fold(
    source: ObjectSource,
    trees: Sequence[TreeId],
    changes: Sequence[tuple[int, EditedPiece]],
    names: Sequence[str],
) -> tuple[list[TreeId], list[GitObject]]:
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
    for number in range(min(n for n, _ in pieces), len(puts)):
        path, entry = history.at(number)
        blob = _latest(blobs, number)
        if blob is not None and entry is not None:
            entry = replace(entry, oid=blob)
        mode = _latest(modes, number)
        if mode is not None and entry is not None:
            entry = replace(entry, mode=mode)
        if any(start <= number for start in whole):
            entry = _latest(whole, number)
        puts[number][path] = entry


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


def _with(source: ObjectSource, oid: TreeId, puts: _Puts, objects: list[GitObject]) -> TreeId:
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
