"""The history of what commands did: to the project's files, and to checkouts.

A repository of patchkit's own beside the checkouts has one commit for each operation, complete in
itself: what was done, as text, and the bytes of each file before and after. It is on disk before
anything is changed. To undo is to rename its ref, from `done` to `undone`, and to redo is to rename
it back; one that is undone counts until another operation is done.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from patchkit.disk.files import files_in, replace_file, sync_folder
from patchkit.disk.transaction import JOURNAL
from patchkit.errors import PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.object_reader import ObjectReader, reading, write_objects
from patchkit.gitcmd.repository import Repository, init_repository
from patchkit.model.decoding import from_builtins
from patchkit.model.names import can_be_a_file
from patchkit.model.objects import (
    EMPTY_TREE,
    FILE_MODE,
    CommitId,
    GitObject,
    TreeEntry,
    TreeId,
    Treeish,
    make_commit,
    make_object,
)
from patchkit.model.patch import Identity
from patchkit.model.resolution import ENDING
from patchkit.model.tree import Tree
from patchkit.stack.lockfile import (
    Lock,
    LockedComponent,
    load_lock,
    lock_bytes,
    lock_digest,
    merge_lock,
)
from patchkit.workspace.checkout import (
    BASE_REF,
    BRANCH,
    OWN_FOLDER,
    SAVED_REFS,
    Checkout,
    locked_file,
)
from patchkit.workspace.recover import has_leftovers

_VERSION = 3

_DONE, _UNDONE = "done", "undone"

_TEXT = "operation.json"

#: So many operations on a checkout are kept.
MOST = 50


class LockEntries(Struct, frozen=True):
    """What an operation made of a lock file: of its own components, the others' are left alone."""

    existed: bool  # whether there was the file before
    components: Mapping[str, tuple[LockedComponent | None, LockedComponent | None]]

    @property
    def turned(self) -> LockEntries:
        """The same with before and after exchanged: then the file is there before."""
        return LockEntries(True, {n: (new, old) for n, (old, new) in self.components.items()})


class Place(Struct, frozen=True):
    """Where a checkout is before an operation, or after it."""

    base: CommitId  # the upstream commit
    tip: CommitId  # of the branch
    files: TreeId = TreeId("")  # what its files hold, where that is not the tip's tree
    # path -> rows of the index ("mode id stage"), where they are not the tip's
    index: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refs: Mapping[str, str] = field(default_factory=dict)  # that are on this side alone

    @property
    def tree(self) -> Treeish:
        """What leads to the tree of its files."""
        return self.files or self.tip

    @property
    def stack(self) -> tuple[CommitId, CommitId]:
        """(base, tip)."""
        return self.base, self.tip


class Operation(Struct, frozen=True):
    """Something that a command did, which can be undone.

    `files`: path below the root -> its bytes before and after, None for no file; `locks` is the
    same of lock files. `before` and `after` are where the checkout was, None if it was not moved.
    """

    component: str  # its name
    what: str  # the command and what it did, for a person
    files: Mapping[str, tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    locks: Mapping[str, LockEntries] = field(default_factory=dict)
    before: Place | None = None
    after: Place | None = None
    bump: bool = False  # the pin was moved, and conflicts were resolved on the way
    edits: bool = False  # edits of the checkout went into patches, and its files stayed as they are
    head: CommitId = CommitId("")  # of the user's, if not the tip: commits that became patches
    when: int = 0  # in nanoseconds since the epoch
    final: bool = False  # it cannot be taken back: `undo` stops there once
    # what a bump reported, for its review: see `report_text`; None of what is no bump
    report: Mapping[str, Any] | None = None
    number: int = 0  # counts the operations on a checkout

    @property
    def turned(self) -> Operation:
        """The way back as a way on: what was before comes after."""
        files = {path: (new, old) for path, (old, new) in self.files.items()}
        locks = {path: lock.turned for path, lock in self.locks.items()}
        return replace(self, files=files, locks=locks, before=self.after, after=self.before)

    def is_done(self, root: Path) -> bool:
        """Whether every file is as the operation made it."""
        return not self.changed(root)

    def changed(self, root: Path) -> list[str]:
        """The paths that are not as the operation made them; what was resolved is nobody's else."""
        rows = self.files.items()
        files = [p for p, (_, new) in rows if _bytes(root / p) != new and not is_resolution(p)]
        return files + [path for path in self.locks if not self._is_lock(root, path)]

    def is_undone(self, root: Path) -> bool:
        """Whether every file is as it was before."""
        return not self.turned.changed(root)

    def files_before(self, root: Path) -> dict[Path, bytes | None]:
        """What to write where, to have the files as they were before."""
        return {root / path: old for path, (old, _) in self.files.items()} | {
            root / path: self._old_lock(root / path, path) for path in self.locks
        }

    def _is_lock(self, root: Path, path: str) -> bool:
        """Whether a lock says of these components what it did after the operation."""
        try:
            lock = load_lock(root / path) or Lock({})
        except PatchkitError:
            return False
        rows = self.locks[path].components.items()
        return all(lock_digest(lock.components.get(n)) == lock_digest(new) for n, (_, new) in rows)

    def _old_lock(self, file: Path, path: str) -> bytes | None:
        entries = self.locks[path].components
        old = {name: pair[0] for name, pair in entries.items() if pair[0] is not None}
        lock = merge_lock(load_lock(file), old, drop=entries.keys() - old.keys())
        empty = not (lock.components or lock.overrides or self.locks[path].existed)
        return None if empty else lock_bytes(lock)


def is_resolution(path: str) -> bool:
    """Whether a file of the project remembers how a conflict was resolved."""
    return path.endswith(ENDING)


def files_made(
    root: Path, writes: Mapping[Path, bytes | None]
) -> dict[str, tuple[bytes | None, bytes | None]]:
    """The files of an operation that is about to write these."""
    return {
        path.relative_to(root).as_posix(): (_bytes(path), data)
        for path, data in writes.items()
        if path.is_relative_to(root)
    }


def locks_made(
    root: Path, locks: Mapping[Path, Mapping[str, LockedComponent]]
) -> dict[str, LockEntries]:
    """The same of lock files, of what is about to be written into them."""
    made = {}
    for path, components in locks.items():
        if path.is_relative_to(root):
            lock = load_lock(path)
            before = lock.components if lock is not None else {}
            entries = {name: (before.get(name), locked) for name, locked in components.items()}
            made[path.relative_to(root).as_posix()] = LockEntries(lock is not None, entries)
    return made


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


# The repository. The pack of an operation has all of its objects and the name of its commit: both
# go together.


def history_of(checkout: Checkout) -> Repository:
    """The repository with the history of all checkouts of a workspace."""
    return Repository(checkout.workspace / OWN_FOLDER / "history.git")


@contextmanager
def recorded(checkout: Checkout, root: Path, operation: Operation) -> Iterator[None]:
    """Have an operation in the history before the block makes it; not if the block fails to."""
    record(checkout, root, operation)
    try:
        yield
    except BaseException:
        settle_history(checkout, root, forget=True)
        raise


def record(checkout: Checkout, root: Path, operation: Operation) -> None:
    """Put an operation into the history, before it is made; the oldest one may go."""
    repository = history_of(checkout)
    with locked_file(repository.git_dir.with_suffix(".lock"), repository.git_dir):
        if repository.git_dir.is_symlink():  # of whoever made the project: to where, nobody knows
            raise SurroundingsError(f"{repository.git_dir} is a symbolic link", hint="delete it")
        init_repository(repository.git_dir)
        with suppress(PatchkitError):  # what cannot be read says nothing of what is done now
            settle_history(checkout, root)
        objects = _objects(repository, replace(operation, when=time.time_ns()))
        _prune(repository, checkout)
        write_objects(repository, objects, name=objects[-1].oid)
        sync_folder(repository.git_dir / "objects/pack")
        numbers = [0, *_refs(checkout, _DONE), *_refs(checkout, _UNDONE)]
        ref = _ref(checkout, _DONE, max(numbers) + 1)
        ref.parent.mkdir(parents=True, exist_ok=True)
        replace_file(ref, f"{objects[-1].oid}\n".encode())


def operations(checkout: Checkout, *, undone: bool = False) -> Iterator[Operation]:
    """What was done, the last one first; or what was undone and not done again, that one first.

    SurroundingsError where a record cannot be read: what it says is not passed over.
    """
    refs = _refs(checkout, _DONE)
    if undone:
        last = max(refs, default=0)
        refs = {n: ref for n, ref in _refs(checkout, _UNDONE).items() if n > last}
    if refs:
        with reading(history_of(checkout)) as reader:
            yield from (_read(reader, n, refs[n]) for n in sorted(refs, reverse=not undone))


def last_operation(checkout: Checkout, *, undone: bool = False) -> Operation | None:
    """The first of them; None if there is none."""
    return next(operations(checkout, undone=undone), None)


def readable_operations(checkout: Checkout) -> Iterator[Operation]:
    """What was done, the last one first, as far as it can be read, for who would do without."""
    with suppress(SurroundingsError):
        yield from operations(checkout)


def settle_history(checkout: Checkout, root: Path, *, forget: bool = False) -> None:
    """Count the last operation as undone where it is: it, or the undo of it, was killed.

    With `forget` it never was. Files or a move that the next command finishes count as made.
    """
    last = max(_refs(checkout, _DONE).items(), default=None)
    if last is None or (root / JOURNAL).exists() or has_leftovers(checkout):
        return
    with reading(history_of(checkout)) as reader:
        operation = _read(reader, *last)
    made = operation.final or not operation.is_undone(root)
    if made or _is_there(checkout, operation, failed=forget):
        return
    if forget:
        last[1].unlink()
    else:
        mark_undone(checkout, operation)


def mark_undone(checkout: Checkout, operation: Operation, *, undone: bool = True) -> None:
    """An operation that was done is undone, or the other way round."""
    old, new = (_DONE, _UNDONE) if undone else (_UNDONE, _DONE)
    target = _ref(checkout, new, operation.number)
    target.parent.mkdir(parents=True, exist_ok=True)
    _ref(checkout, old, operation.number).rename(target)
    sync_folder(target.parent)


def forget(checkout: Checkout, operation: Operation) -> None:
    """Take an operation that is done out of the history."""
    _ref(checkout, _DONE, operation.number).unlink()


def _is_there(checkout: Checkout, operation: Operation, *, failed: bool) -> bool:
    """Whether an operation whose files are as before did something to the checkout.

    Edits there, which a failed one put back, are not looked at.
    """
    before, after = operation.before, operation.after
    if before is None or after is None or not checkout.git_dir.is_dir():
        return False
    if before.refs:
        return not checkout.repository.refs(SAVED_REFS).items() >= before.refs.items()
    if before.stack == after.stack:
        return before.files != after.files and not failed
    refs = (checkout.repository.ref(BASE_REF), checkout.repository.ref(BRANCH))
    return refs == (after.base, after.tip)


def _ref(checkout: Checkout, state: str, number: int) -> Path:
    folder = history_of(checkout).git_dir / "refs/patchkit" / state / checkout.name
    return folder / f"{number:08}"


def _refs(checkout: Checkout, state: str) -> dict[int, Path]:
    refs = files_in(_ref(checkout, state, 0).parent, "[0-9]" * 8)
    return {int(ref.name): ref for ref in refs}


def _prune(repository: Repository, checkout: Checkout) -> None:
    """Let go what is too old, or undone for good, and the packs that nothing names."""
    done = _refs(checkout, _DONE)
    undone = _refs(checkout, _UNDONE)
    old = sorted(done)[: max(0, len(done) - MOST + 1)]
    stale = [number for number in undone if number < max(done, default=0)]
    for ref in (*(done[number] for number in old), *(undone[number] for number in stale)):
        ref.unlink()
    refs = (path for path in (repository.git_dir / "refs").rglob("*") if path.is_file())
    kept = {path.read_text().strip() for path in refs}
    packs = repository.git_dir / "objects/pack"
    for ending in ("idx", "pack"):  # git believes a pack by its index
        for path in files_in(packs, f"pack-*.{ending}"):
            if path.stem.removeprefix("pack-") not in kept:
                path.unlink()


def _objects(repository: Repository, operation: Operation) -> list[GitObject]:
    """The objects of an operation, its commit last."""
    objects: list[GitObject] = []

    def put(tree: Tree, path: str, data: bytes | None) -> tuple[Tree, str | None]:
        if data is None:
            return tree, None
        objects.append(make_object("blob", data))
        return tree.put(path, TreeEntry(FILE_MODE, objects[-1].oid)), objects[-1].oid

    tree, files = Tree(ObjectReader(repository), EMPTY_TREE), {}
    for path, (old, new) in operation.files.items():
        tree, before = put(tree, f"before/{path}", old)
        tree, after = put(tree, f"after/{path}", new)
        files[path] = (before, after)
    text = {"version": _VERSION, **to_builtins(replace(operation, files={})), "files": files}
    tree, _ = put(tree, _TEXT, json.dumps(text, indent=1).encode("ascii"))
    who = Identity("patchkit", "patchkit@localhost", date=f"{operation.when // 10**9} +0000")
    oid = tree.write(objects)
    what = f"{operation.component}: {operation.what}"
    commit = make_commit(tree=oid, parents=[], author=who, committer=who, message=what)
    return [*objects, commit]


def _read(reader: ObjectReader, number: int, ref: Path) -> Operation:
    try:
        tree = reader.tree(reader.root(CommitId(ref.read_text().strip())))
        operation = parse_operation(reader.blob(tree[_TEXT].oid), reader.blob)
    except (SurroundingsError, OSError, ValueError, KeyError) as error:
        what = f"what was done cannot be read: {str(error) or 'it makes no sense'}"
        hint = f"rm {shlex.quote(str(ref))}  forgets it"
        raise SurroundingsError(Problem(what, str(ref), hint)) from error
    return replace(operation, number=number)


def parse_operation(data: bytes, blob: Callable[[str], bytes]) -> Operation:
    """An operation from its text and the blobs that this names; ValueError if it makes no sense.

    It may have come with a project: no path leads out of that.
    """
    try:
        text = json.loads(data)
        if text.pop("version") != _VERSION:
            raise ValueError
        files: dict[str, tuple[bytes | None, bytes | None]] = {}
        for path, (old, new) in text.pop("files").items():
            before, after = (None if oid is None else blob(oid) for oid in (old, new))
            files[path] = (before, after)
        operation = replace(from_builtins({**text, "files": {}}, Operation), files=files)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError from error
    if not all(can_be_a_file(path) for path in (*files, *operation.locks)):
        raise ValueError
    return operation
