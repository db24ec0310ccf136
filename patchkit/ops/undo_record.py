"""What it takes to undo a change of a component: the project's files as they were, and where the
checkout was.

Each checkout has a stack of records in the workspace, the last change on top, of which only a few
are kept. A record is believed only where the files are what it says that the change made of them;
so what came after a change is undone before it.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from patchkit.disk.files import read_plain, replace_file
from patchkit.disk.transaction import write_set
from patchkit.errors import ExitCode, PatchkitError, Problem
from patchkit.model.names import can_be_a_file
from patchkit.model.objects import CommitId, TreeId
from patchkit.model.resolution import ENDING
from patchkit.ops.refresh_report import BumpedComponent
from patchkit.stack.lockfile import (
    Lock,
    LockedComponent,
    load_lock,
    lock_bytes,
    merge_lock,
)
from patchkit.workspace import (
    Checkout,
)
from patchkit.workspace.checkout import OWN_FOLDER

_VERSION = 2
_REPORT_VERSION = 1

#: So many changes of a checkout can be undone, one after the other.
MOST = 10


class CannotUndoError(PatchkitError):
    """There is nothing to undo, or it changed since."""

    exit_code = ExitCode.FINDING


class LockEntries(Struct, frozen=True):
    """What a change made of a lock file: of its own components, the others' are left alone."""

    existed: bool  # whether there was the file before
    components: Mapping[str, tuple[LockedComponent | None, LockedComponent | None]]


#: A stack in a checkout: (base, tip).
StackPlace: TypeAlias = tuple[CommitId, CommitId]


class Undo(Struct, frozen=True):
    """A change that can be undone: a bump, a refresh, a new patch, a verb on the series.

    `files`: path below the root -> (bytes before, SHA-256 after), None for no file; `locks` is the
    same of lock files. `before` and `after` are the (base, tip) of the checkout, None if it was not
    moved.
    """

    component: str
    files: Mapping[str, tuple[bytes | None, str | None]]
    before: StackPlace | None = None
    after: StackPlace | None = None
    bump: bool = True  # the pin was moved
    what: str = "bump"  # the command and what it did, for a person
    when: int = 0  # in nanoseconds since the epoch
    locks: Mapping[str, LockEntries] = field(default_factory=dict)
    # the checkout's edits went into patches, and are edits again afterwards: no file is touched
    edits: bool = False
    # where the branch was, if not at the tip: commits of the user's that became patches
    head: CommitId = CommitId("")
    # path -> rows of the index before ("mode id stage"), where they were not the tip's
    index: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # the trees of the checkout's files before and after, where only these changed; `index` has the
    # rows that the index got
    worktree: tuple[TreeId, TreeId] | None = None
    # refs of the checkout that were deleted
    refs: Mapping[str, str] = field(default_factory=dict)

    def is_done(self, root: Path) -> bool:
        """Whether every file is as the change made it."""
        return not self.changed(root)

    def changed(self, root: Path) -> list[str]:
        """The paths that are not as the change made them."""
        files = [path for path, (_, new) in self.files.items() if _digest(root / path) != new]
        return files + [path for path in self.locks if not self._lock_is(root, path, after=True)]

    @property
    def taken_back(self) -> dict[str, tuple[bytes | None, str | None]]:
        """The files that undo puts back: not what remembers how a conflict was resolved."""
        return {path: each for path, each in self.files.items() if not is_resolution(path)}

    def is_undone(self, root: Path) -> bool:
        """Whether every file is as it was before."""
        files = self.taken_back.items()
        return all(_digest(root / path) == _hash(old) for path, (old, _) in files) and all(
            self._lock_is(root, path, after=False) for path in self.locks
        )

    def put_back(self, root: Path) -> bool:
        """Give every file its old bytes, all or none; False if they have them.

        Recorded resolutions stay: they are work of a person's. CannotUndoError if a file was
        changed since.
        """
        if self.is_undone(root):
            return False
        if changed := [path for path in self.changed(root) if not is_resolution(path)]:
            what = f"{self.what}: {', '.join(changed)} changed since"
            hint = "undo what came after it first; or take it back with git"
            raise CannotUndoError(Problem(what, self.component, hint))
        writes = {root / path: old for path, (old, _) in self.taken_back.items()}
        writes |= {root / path: self._old_lock(root / path, path) for path in self.locks}
        seen = {path: _bytes(path) for path in writes}
        write_set(root, writes, seen)
        return True

    def _lock_is(self, root: Path, path: str, *, after: bool) -> bool:
        """Whether a lock says of these components what it did after the change, or before it."""
        try:
            lock = load_lock(root / path) or Lock({})
        except PatchkitError:
            return False
        entries = self.locks[path].components
        return all(lock.components.get(name) == each[after] for name, each in entries.items())

    def _old_lock(self, file: Path, path: str) -> bytes | None:
        entries = self.locks[path].components
        old = {name: each[0] for name, each in entries.items() if each[0] is not None}
        lock = merge_lock(load_lock(file), old, drop=entries.keys() - old.keys())
        empty = not (lock.components or lock.overrides or self.locks[path].existed)
        return None if empty else lock_bytes(lock)


def is_resolution(path: str) -> bool:
    """Whether a file of the project remembers how a conflict was resolved."""
    return path.endswith(ENDING)


def record_path(checkout: Checkout) -> Path:
    """Where the records of a checkout's last changes are."""
    return checkout.workspace / OWN_FOLDER / f"{checkout.name}.undo.json"


def bump_record_path(checkout: Checkout) -> Path:
    """Where the report of a checkout's last finished bump is, for its review."""
    return checkout.workspace / OWN_FOLDER / f"{checkout.name}.bump.json"


def keep_report(checkout: Checkout, row: BumpedComponent) -> BumpedComponent:
    """Record what a bump did, in place of the one before; only of one that is finished, and
    where there is a workspace. Returns `row`.
    """
    path = bump_record_path(checkout)
    if row.moved and path.parent.is_dir():
        kept = replace(row, halted=None, notes=(), problems=(), findings=())
        replace_file(path, msgspec.json.encode({"version": _REPORT_VERSION, "component": kept}))
    return row


def read_report(path: Path) -> BumpedComponent | None:
    """The report that was kept there; None if there is none, or it is no report."""
    try:
        text = json.loads(read_plain(path))
        if text["version"] != _REPORT_VERSION:
            return None
        return msgspec.convert(text["component"], BumpedComponent)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


# The records of a checkout, the last change last. The file is replaced whole: after a kill there
# is one more of them than there are changes at most, which says what the files are still.


def push_undo(checkout: Checkout, root: Path, undo: Undo) -> None:
    """Put a record on top, before its change is made; nothing where there is no workspace."""
    if not record_path(checkout).parent.is_dir():
        return
    drop_unmade(checkout, root)
    _write(checkout, [*read_undos(checkout), replace(undo, when=time.time_ns())])


def drop_unmade(checkout: Checkout, root: Path) -> None:
    """Take the record on top away if its change was never made: it failed, or was killed."""
    found = list(read_undos(checkout))
    kept = list(found)
    while kept and kept[-1].is_undone(root) and not kept[-1].is_done(root):
        kept.pop()
    if kept != found:
        _write(checkout, kept)


def read_undos(checkout: Checkout) -> tuple[Undo, ...]:
    """All records, the last one on top; none if they cannot be read."""
    try:
        return tuple(_parsed(json.loads(record_path(checkout).read_bytes())))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ()


def last_undo(checkout: Checkout) -> Undo | None:
    """The record on top; None if there is none that can be read."""
    found = read_undos(checkout)
    return found[-1] if found else None


def pop_undo(checkout: Checkout) -> None:
    """Take the record on top away, with the report of its bump."""
    kept = list(read_undos(checkout))
    if kept and kept.pop().bump:
        bump_record_path(checkout).unlink(missing_ok=True)
    _write(checkout, kept)


def _write(checkout: Checkout, undos: list[Undo]) -> None:
    if not undos:
        record_path(checkout).unlink(missing_ok=True)
        return
    text = {"version": _VERSION, "changes": [_plain(each) for each in undos[-MOST:]]}
    replace_file(record_path(checkout), json.dumps(text, indent=1).encode("ascii"))


def _plain(undo: Undo) -> dict[str, Any]:
    files = {name: [_encoded(old), new] for name, (old, new) in undo.files.items()}
    return {**msgspec.to_builtins(replace(undo, files={})), "files": files}


def _parsed(text: dict[str, Any]) -> Iterator[Undo]:
    if text["version"] not in (1, _VERSION):
        return
    for row in [text] if text["version"] == 1 else text["changes"]:
        files = {_inside(name): (_decoded(old), new) for name, (old, new) in row["files"].items()}
        undo = msgspec.convert({**row, "files": {}}, Undo)
        for name in undo.locks:
            _inside(name)
        yield replace(undo, files=files)


def made_of(
    root: Path, writes: Mapping[Path, bytes | None]
) -> dict[str, tuple[bytes | None, str | None]]:
    """The files of an Undo, of a set that is about to be written."""
    return {
        path.relative_to(root).as_posix(): (_bytes(path), _hash(data))
        for path, data in writes.items()
        if path.is_relative_to(root)
    }


def locks_made_of(
    root: Path, locks: Mapping[Path, Mapping[str, LockedComponent]]
) -> dict[str, LockEntries]:
    """The same of lock files, of what is about to be written into them."""
    found = {}
    for path, components in locks.items():
        if path.is_relative_to(root):
            lock = load_lock(path)
            before = lock.components if lock is not None else {}
            entries = {name: (before.get(name), each) for name, each in components.items()}
            found[path.relative_to(root).as_posix()] = LockEntries(lock is not None, entries)
    return found


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _hash(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()


def _digest(path: Path) -> str | None:
    return _hash(_bytes(path))


def _encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _inside(name: str) -> str:
    """A path of a record, which may have come with a project; ValueError if it leads out."""
    if not can_be_a_file(name):
        raise ValueError(name)
    return name


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)
