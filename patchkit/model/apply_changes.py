"""Apply the file changes of one patch to a tree, all or none, with the verdict of `git apply`.

As git does, every change is first tried in memory, then files are removed, then created. A change
of a path that an earlier one of the same patch has changed starts from that result; renames and
copies start from the tree. Whatever does not fit is reported, not only the first of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import advice
from patchkit.model.diff_parse import apply_delta, split_lines
from patchkit.model.hunks import place_hunks
from patchkit.model.names import COMMIT_ID, PYTHON, unsafe_path
from patchkit.model.objects import (
    EXECUTABLE_MODE,
    FILE_MODE,
    LONGEST_TARGET,
    SUBMODULE_MODE,
    SYMLINK_MODE,
    TREE_MODE,
    GitObject,
    TreeEntry,
    make_object,
)
from patchkit.model.outcome import Certainty, Clash, FileResult, Preimage, Reason, Status, judged
from patchkit.model.patch import BinaryMethod, FileChange, Kind
from patchkit.model.tree import ObjectSource, ObstructedError, Tree

_TYPE = 0o170000
_SUBPROJECT = b"Subproject commit "


class Blobs:
    """File contents by id: read from `source` when first asked for, or made here."""

    def __init__(self, source: ObjectSource) -> None:
        self._source = source
        self._known: dict[str, bytes] = {}

    def load(self, oids: Iterable[str]) -> None:
        """Read many at once; those already known are not read again."""
        missing = dict.fromkeys(oid for oid in oids if oid not in self._known)
        self._known.update(self._source.read_many(missing, "blob"))

    def load_files(self, tree: Tree, changes: Iterable[FileChange]) -> None:
        """Read at once the files of a tree that changes start from."""
        paths = {
            each.old_path
            for each in changes
            if each.old_path is not None and (each.hunks or each.binary)
        }
        entries = (tree.entry(path) for path in sorted(paths))
        self.load(each.oid for each in entries if each and each.mode != SUBMODULE_MODE)

    def contents(self, oid: str) -> bytes:
        """The contents of a blob."""
        if oid not in self._known:
            self._known[oid] = self._source.read(oid, "blob")
        return self._known[oid]

    def add(self, blob: GitObject) -> None:
        """Know a new blob from now on."""
        self._known[blob.oid] = blob.payload


class Applied(Struct, frozen=True):
    """What came of a patch: the tree after it and its new blobs, or `tree` None if it clashes."""

    tree: Tree | None
    files: tuple[FileResult, ...]  # in the patch's order
    blobs: tuple[GitObject, ...] = ()


def apply_changes(
    tree: Tree,
    blobs: Blobs,
    changes: Sequence[FileChange],
    *,
    terse: bool = False,
) -> Applied:
    """Apply `changes` to `tree`; nothing is written, `blobs` learns what the changes made.

    With `terse` clashes do not tell what a hunk expects, nor what stands where it should go.
    """
    attempt = _Attempt(tree, blobs, changes, terse)
    outcomes = [attempt.try_change(change) for change in changes]
    if any(outcome.clashes for outcome in outcomes):
        return Applied(None, tuple(outcomes))
    after = attempt.settle(changes, outcomes)
    if after is None:
        return Applied(None, tuple(outcomes))
    for blob in attempt.made:
        blobs.add(blob)
    return Applied(after, tuple(outcomes), tuple(attempt.made))


class _Gone(Enum):
    """What the patch does to a path besides giving it contents."""

    LATER = auto()  # a change further down removes it
    ALREADY = auto()  # a change further up removed it


class _File(Struct, frozen=True):
    """What a path holds; `data` None: whatever the blob holds."""

    mode: int  # octal, as git's
    oid: str  # of the blob
    data: bytes | None = None


class _ClashError(Exception):
    """A change that does not fit; carries the clashes."""

    def __init__(self, *clashes: Clash, offsets: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.clashes = clashes
        self.offsets = offsets


class _Attempt(Struct):
    """One patch on its way; `table` is what it has made of the paths so far."""

    tree: Tree
    blobs: Blobs
    changes: Sequence[FileChange]  # of the patch, in order
    terse: bool  # clashes carry no lines
    table: dict[str, _File | _Gone] = {}
    #: Each change with what it makes.
    results: list[tuple[FileChange, _File | None]] = []
    made: list[GitObject] = []
    #: Paths through which nothing may be written.
    kept_symlinks: set[str] = set()
    lost_symlinks: set[str] = set()  # paths of links that the patch takes away

    def __post_init__(self) -> None:
        for change in self.changes:
            leaves = change.kind in (Kind.DELETE, Kind.RENAME)
            if leaves and change.old_path is not None:
                self.table[change.old_path] = _Gone.LATER
                if change.old_mode == SYMLINK_MODE:
                    self.lost_symlinks.add(change.old_path)
            if change.new_path is not None and change.new_mode == SYMLINK_MODE:
                self.kept_symlinks.add(change.new_path)

    # -- one change --------------------------------------------------------------------------

    def try_change(self, change: FileChange) -> FileResult:
        """Work out one change in memory."""
        preimage = Preimage.UNKNOWN
        try:
            _refuse_unsafe(change)
            before = self._before(change)
            preimage = _compare_preimage(change, before)
            mode = self._mode_after(change, before)
            self._refuse_beyond_symlink(change, before)
            after, offsets = self._contents_after(change, before, mode)
            elsewhere = () if self.terse else self._elsewhere(change, before, preimage, offsets)
        except _ClashError as error:
            return FileResult(
                change.path, Status.CONFLICTED, preimage, error.offsets, error.clashes
            )
        self._record(change, after)
        status = Status.SHIFTED if any(offsets) else Status.UNCHANGED
        outcome = FileResult(change.path, status, preimage, offsets)
        if elsewhere:
            outcome = judged(outcome, Certainty.LOOK, elsewhere)
        return outcome

    def _elsewhere(
        self,
        change: FileChange,
        before: _File | None,
        preimage: Preimage,
        offsets: tuple[int, ...],
    ) -> tuple[str, ...]:
        """What to say of hunks that fit, and were made in another function or class."""
        if not change.path.endswith(PYTHON) or not change.hunks:
            return ()
        if preimage is Preimage.MATCHES and not any(offsets):
            return ()
        from patchkit.model.merging.scopes import UNCHECKED, misplaced_hunks  # noqa: PLC0415

        found = advice(misplaced_hunks, self._data(before), change.hunks, offsets)
        if found is None:
            return (UNCHECKED,)
        return tuple(f"hunk {number + 1} {each}" for number, each in found)

    def _before(self, change: FileChange) -> _File | None:
        """What the change starts from; None if it starts from nothing."""
        if change.old_path is None:
            return None
        if change.kind not in (Kind.RENAME, Kind.COPY):
            known = self.table.get(change.old_path)
            if isinstance(known, _File):
                return known
            if known is _Gone.ALREADY:
                raise _clash(change, Reason.MISSING, "renamed or deleted further up in this patch")
        entry = self.tree.entry(change.old_path)
        if entry is not None:
            return _File(entry.mode, entry.oid)
        # a plain diff whose only hunk adds lines to nothing may make a file
        if change.plain and len(change.hunks) == 1 and change.hunks[0].old_count == 0:
            return None
        raise _clash(change, Reason.MISSING, path=change.old_path)

    def _mode_after(self, change: FileChange, before: _File | None) -> int:
        path = change.new_path
        if change.kind in (Kind.ADD, Kind.RENAME, Kind.COPY) and path is not None:
            is_gone = isinstance(self.table.get(path), _Gone)
            if not is_gone and self.tree.entry(path) is not None:
                raise _clash(change, Reason.EXISTS)
        if before is None:
            return _canonical(change, change.new_mode or FILE_MODE)
        expected = change.old_mode or before.mode
        if (expected ^ before.mode) & _TYPE:
            detail = f"the patch expects {_type_name(expected)}, it is {_type_name(before.mode)}"
            raise _clash(change, Reason.MODE, detail, path=change.old_path)
        mode = change.new_mode or before.mode
        if change.kind is not Kind.DELETE and (mode ^ expected) & _TYPE:
            detail = f"the patch turns {_type_name(expected)} into {_type_name(mode)} in one step"
            raise _clash(change, Reason.MODE, detail)
        return _canonical(change, mode)

    def _refuse_beyond_symlink(self, change: FileChange, before: _File | None) -> None:
        path = change.new_path
        if path is None:
            return
        folders = accumulate(path.split("/")[:-1], "{}/{}".format)
        own = next((folder for folder in folders if folder in self.kept_symlinks), None)
        if own is not None:
            raise _clash(change, Reason.UNSAFE, f"{own} becomes a symlink by this patch")
        if before is not None and path == change.old_path:
            return  # it stands in the tree, so there are folders above it
        link = self.tree.symlink_above(path)
        if link is not None and link not in self.lost_symlinks:
            raise _clash(change, Reason.UNSAFE, f"{link} is a symlink")

    # -- contents ----------------------------------------------------------------------------

    def _contents_after(
        self, change: FileChange, before: _File | None, mode: int
    ) -> tuple[_File, tuple[int, ...]]:
        if change.binary is not None or change.binary_differs:
            data = self._binary(change, before)
            if data and change.kind is Kind.DELETE:
                raise _clash(change, Reason.BINARY, "the payload leaves the deleted file contents")
            return self._make(change, mode, data), ()
        if not change.hunks:
            if before is not None and change.kind is not Kind.DELETE:
                return _File(mode, before.oid, before.data), ()
            data = self._data(before)
            if data:
                raise _held_more(change, data)
            return self._make(change, mode, b""), ()
        data = self._data(before)
        placed = place_hunks(data, change.hunks, terse=self.terse)
        if placed.data is None:
            clashes = [
                Clash(
                    change.path,
                    Reason.CONTEXT,
                    each.hunk.line,
                    hunk=each.number,
                    expected=() if self.terse else tuple(each.hunk.preimage),
                    found=each.found,
                    found_at=each.found_at,
                )
                for each in placed.misfits
            ]
            raise _ClashError(*clashes, offsets=placed.offsets)
        if change.kind is Kind.DELETE and placed.data:
            raise _held_more(change, placed.data)
        return self._make(change, mode, placed.data), placed.offsets

    def _data(self, before: _File | None) -> bytes:
        if before is None:
            return b""
        if before.data is not None:
            return before.data
        if before.mode == SUBMODULE_MODE:
            return _SUBPROJECT + before.oid.encode() + b"\n"
        return self.blobs.contents(before.oid)

    def _binary(self, change: FileChange, before: _File | None) -> bytes:
        old, new = change.old_blob or "", change.new_blob or ""
        if len(old) != 40 or len(new) != 40:
            raise _clash(change, Reason.BINARY, "a binary patch needs full ids in its index line")
        if before is not None and before.oid != old:
            raise _clash(change, Reason.BINARY, f"made against blob {old}, here is {before.oid}")
        if not new.strip("0"):
            return b""
        if change.binary is None:
            raise _clash(change, Reason.BINARY, "the patch does not carry the contents")
        forward = change.binary[0]
        data: bytes | None = forward.data
        if forward.method is BinaryMethod.DELTA:
            data = apply_delta(self._data(before), forward.data)
        if data is None or make_object("blob", data).oid != new:
            raise _clash(change, Reason.BINARY, "the payload does not give the blob it promises")
        return data

    def _make(self, change: FileChange, mode: int, data: bytes) -> _File:
        if mode == SUBMODULE_MODE and change.kind is not Kind.DELETE:
            oid = data.removeprefix(_SUBPROJECT)[:40].decode("ascii", "replace")
            if not data.startswith(_SUBPROJECT) or not COMMIT_ID.fullmatch(oid):
                raise _clash(change, Reason.MODE, "no commit of a submodule")
            return _File(mode, oid, data)
        fits = 0 < len(data) <= LONGEST_TARGET and b"\0" not in data
        if mode == SYMLINK_MODE and change.kind is not Kind.DELETE and not fits:
            raise _clash(change, Reason.UNSAFE, "symlink with a target that no disk takes")
        blob = make_object("blob", data)
        if change.kind is not Kind.DELETE:
            self.made.append(blob)
        return _File(mode, blob.oid, data)

    def _record(self, change: FileChange, after: _File) -> None:
        if change.new_path is not None:
            self.table[change.new_path] = after
        if change.old_path is not None and change.kind in (Kind.DELETE, Kind.RENAME):
            self.table[change.old_path] = _Gone.ALREADY
        self.results.append((change, after))

    # -- all changes -------------------------------------------------------------------------

    def settle(self, changes: Sequence[FileChange], outcomes: list[FileResult]) -> Tree | None:
        """The tree after all changes; None, with the outcome corrected, if a path is obstructed."""
        tree = self.tree
        for change, _ in self.results:
            if change.kind is not Kind.COPY and change.old_path not in (None, change.new_path):
                tree = tree.remove(change.old_path)
        sound = True
        for number, (change, after) in enumerate(self.results):
            if change.new_path is None or after is None:
                continue
            try:
                tree = tree.put(change.new_path, TreeEntry(after.mode, after.oid))
            except ObstructedError as error:
                clash = Clash(
                    change.path, Reason.EXISTS, change.line, detail=f"{error.by} is in the way"
                )
                outcomes[number] = replace(
                    outcomes[number], status=Status.CONFLICTED, clashes=(clash,)
                )
                sound = False
        return tree if sound else None


def _refuse_unsafe(change: FileChange) -> None:
    sides = (change.old_path, change.old_mode), (change.new_path, change.new_mode)
    for path, mode in sides:
        fault = unsafe_path(path, mode) if path is not None else None
        if fault is not None:
            raise _clash(change, Reason.UNSAFE, fault, path=path)


def _compare_preimage(change: FileChange, before: _File | None) -> Preimage:
    if change.old_blob is None:
        return Preimage.UNKNOWN
    if before is None:
        return Preimage.DIFFERS if change.old_blob.strip("0") else Preimage.MATCHES
    # git writes at least four digits of an id
    if len(change.old_blob) < 4:
        return Preimage.UNKNOWN
    return Preimage.MATCHES if before.oid.startswith(change.old_blob) else Preimage.DIFFERS


def _clash(
    change: FileChange, reason: Reason, detail: str = "", *, path: str | None = None
) -> _ClashError:
    named = change.path if path is None else path
    return _ClashError(Clash(named, reason, change.line, detail=detail))


def _held_more(change: FileChange, rest: bytes) -> _ClashError:
    """The refusal to delete a file that holds more than the patch knows."""
    what = "the file to delete holds more than the patch removes"
    lines = tuple(split_lines(rest)[:8])
    return _ClashError(
        Clash(change.path, Reason.CONTEXT, change.line, found=lines, found_at=1, detail=what)
    )


def _canonical(change: FileChange, mode: int) -> int:
    kind = mode & _TYPE
    if kind in (SYMLINK_MODE, SUBMODULE_MODE):
        return kind
    if kind == TREE_MODE:  # git writes an index that it cannot make a tree of
        raise _clash(change, Reason.MODE, f"{mode:o} is no mode of a file")
    return EXECUTABLE_MODE if mode & 0o100 else FILE_MODE


def _type_name(mode: int) -> str:
    names = {0o100000: "a file", SYMLINK_MODE: "a symlink", SUBMODULE_MODE: "a submodule"}
    return names.get(mode & _TYPE, f"mode {mode:o}")
