"""The history of what commands did: to the project's files, and to checkouts.

A repository of patchkit's own beside the checkouts has one commit for each operation, complete in
itself: what was done, as text, and the bytes of each file before and after. It is on disk before
anything is changed. To undo is to rename its ref, to NUMBER.undone, and to redo is to rename it
back; one that is undone counts until another operation is done.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.disk.files import JOURNAL, Contents, bytes_at, files_in, replace_file, sync_folder
from patchkit.errors import PatchkitError, Problem, SurroundingsError
from patchkit.gitcmd.object_reader import ObjectReader, reading, write_objects
from patchkit.gitcmd.repository import Repository, init_repository
from patchkit.model.decoding import from_builtins
from patchkit.model.names import RESOLUTION_ENDING, can_be_a_file
from patchkit.model.objects import (
    EMPTY_TREE,
    FILE_MODE,
    CommitId,
    GitObject,
    TreeEntry,
    make_object,
    own_commit,
)
from patchkit.model.tree import Tree
from patchkit.stack.lockfile import (
    Lock,
    LockedComponent,
    Locks,
    load_lock,
    lock_bytes,
    lock_digest,
    merge_lock,
)
from patchkit.workspace.checkout import (
    BASE_REF,
    BRANCH,
    OWN_FOLDER,
    Checkout,
    locked_file,
)
from patchkit.workspace.recover import has_leftovers
from patchkit.workspace.state import Place

_VERSION = 3

_TEXT = "operation.json"

#: How the names of refs are, and how they end if they are undone.
_REFS, _UNDONE = "0*", ".undone"

#: So many operations on a checkout are kept.
MOST = 50


#: What an operation made of a lock file: its own components, before and after. The others' are
#: left alone.
LockEntries: TypeAlias = Mapping[str, tuple[LockedComponent | None, LockedComponent | None]]


class Operation(Struct, frozen=True):
    """Something that a command did, which can be undone.

    `files`: path below the root -> its bytes before and after, None for no file; `locks` is the
    same of lock files. `before` and `after` are where the checkout was, None if it was not moved.
    """

    component: str  # its name
    what: str  # the command and what it did, for a person
    files: Mapping[str, tuple[bytes | None, bytes | None]] = {}
    locks: Mapping[str, LockEntries] = {}
    before: Place | None = None
    after: Place | None = None
    bump: bool = False  # the pin was moved, and conflicts were resolved on the way
    edits: bool = False  # edits of the checkout went into patches, and its files stayed as they are
    head: CommitId = CommitId("")  # of the user's, if not the tip: commits that became patches
    when: int = 0  # the command began, in nanoseconds since the epoch: what it did is undone as one
    final: bool = False  # it cannot be taken back: `undo` stops there once
    # what a bump reported, for its review: see `report_text`; None of what is no bump
    report: Mapping[str, Any] | None = None
    #: Submodule of the project -> its commit in git's index before and after.
    gitlinks: Mapping[str, tuple[str, str]] = {}
    ref: str = ""  # the file that names it, once it is recorded

    @property
    def turned(self) -> Operation:
        """The way back as a way on: what was before comes after."""
        files = {path: (new, old) for path, (old, new) in self.files.items()}
        locks = {
            path: {name: (new, old) for name, (old, new) in entries.items()}
            for path, entries in self.locks.items()
        }
        links = {path: (new, old) for path, (old, new) in self.gitlinks.items()}
        turned = replace(self, files=files, locks=locks, gitlinks=links)
        return replace(turned, before=self.after, after=self.before)

    def changed(self, root: Path) -> list[str]:
        """The paths that are not as the operation made them; what was resolved is nobody's else.

        A submodule is one where its commit is neither the one before nor the one after: a kill
        comes before or behind the files.
        """
        from patchkit.gitcmd.gitlinks import staged_gitlink  # noqa: PLC0415 (for undo)

        rows = self.files.items()
        files = [
            p
            for p, (_, new) in rows
            if bytes_at(root / p) != new and not p.endswith(RESOLUTION_ENDING)
        ]
        files += [path for path in self.locks if not self._is_lock(root, path)]
        links = self.gitlinks.items()
        return files + [path for path, known in links if staged_gitlink(root, path) not in known]

    def is_undone(self, root: Path) -> bool:
        """Whether every file is as it was before."""
        return not self.turned.changed(root)

    def files_before(self, root: Path) -> Contents:
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
        rows = self.locks[path].items()
        return all(lock_digest(lock.components.get(n)) == lock_digest(new) for n, (_, new) in rows)

    def _old_lock(self, file: Path, path: str) -> bytes | None:
        entries = self.locks[path]
        old = {name: pair[0] for name, pair in entries.items() if pair[0] is not None}
        lock = merge_lock(load_lock(file), old, drop=entries.keys() - old.keys())
        return lock_bytes(lock) if lock.components or lock.overrides or lock.names else None


def files_made(root: Path, writes: Contents) -> dict[str, tuple[bytes | None, bytes | None]]:
    """The files of an operation that is about to write these."""
    return {
        path.relative_to(root).as_posix(): (bytes_at(path), data)
        for path, data in writes.items()
        if path.is_relative_to(root)
    }


def locks_made(root: Path, locks: Locks) -> dict[str, LockEntries]:
    """Lock files and what is about to be written into them, as `Operation.locks` has it."""
    made: dict[str, LockEntries] = {}
    for path, components in locks.items():
        if path.is_relative_to(root):
            lock = load_lock(path)
            before = lock.components if lock is not None else {}
            entries = {name: (before.get(name), locked) for name, locked in components.items()}
            made[path.relative_to(root).as_posix()] = entries
    return made


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
        # what this leaves, the next operation prunes
        with suppress(PatchkitError, OSError), _locked(checkout):
            _prune(checkout)
        raise


def record(checkout: Checkout, root: Path, operation: Operation) -> None:
    """Put an operation into the history, before it is made; the oldest one may go."""
    repository, folder = history_of(checkout), _folder(checkout)
    with _locked(checkout):
        if repository.git_dir.is_symlink():  # of whoever made the project: to where, nobody knows
            raise SurroundingsError(f"{repository.git_dir} is a symbolic link", hint="delete it")
        if not repository.exists:
            init_repository(repository.git_dir)
        with suppress(PatchkitError):  # what cannot be read says nothing of what is done now
            settle_history(checkout, root)
        _prune(checkout)
        objects = _objects(repository, replace(operation, when=operation.when or time.time_ns()))
        write_objects(repository, objects, name=objects[-1].oid)
        sync_folder(repository.git_dir / "objects/pack")
        folder.mkdir(parents=True, exist_ok=True)
        last = max((int(ref.stem) for ref in files_in(folder, _REFS)), default=0)
        replace_file(folder / f"{last + 1:08}", f"{objects[-1].oid}\n".encode())


def _locked(checkout: Checkout) -> AbstractContextManager[None]:
    place = history_of(checkout).git_dir
    return locked_file(place.with_suffix(".lock"), place)


def operations(checkout: Checkout, *, undone: bool = False) -> Iterator[Operation]:
    """What was done, the last one first; or what was undone and not done again, that one first.

    SurroundingsError where a record cannot be read: what it says is not passed over.
    """
    if refs := _refs(checkout, undone=undone):
        with reading(history_of(checkout)) as reader:
            yield from (_read(reader, ref) for ref in (refs if undone else reversed(refs)))


def last_operation(checkout: Checkout, *, undone: bool = False) -> Operation | None:
    """The first of them; None if there is none."""
    return next(operations(checkout, undone=undone), None)


def readable_operations(checkout: Checkout) -> Iterator[Operation]:
    """What was done, the last one first, as far as it can be read, for who would do without."""
    with suppress(SurroundingsError):
        yield from operations(checkout)


def settle_history(checkout: Checkout, root: Path, *, forget: bool = False) -> Operation | None:
    """Count the last operation as undone where it is: it, or the undo of it, was killed.

    Returns it if so.

    With `forget` it never was. Files or a move that the next command finishes count as made.
    """
    last = last_operation(checkout)
    if last is None or last.final or (root / JOURNAL).exists() or has_leftovers(checkout):
        return None
    if not last.is_undone(root) or _is_there(checkout, last, failed=forget):
        return None
    if forget:
        Path(last.ref).unlink()
    else:
        mark_undone(last)
    return last


def mark_undone(operation: Operation, *, undone: bool = True) -> None:
    """An operation that was done is undone, or the other way round."""
    ref = Path(operation.ref)
    for earlier in files_in(ref.parent, f"0*{_UNDONE}") if undone else ():
        if earlier.stem < ref.stem:  # undone before this one was done, and so for good
            earlier.unlink()
    ref.rename(ref.with_suffix(_UNDONE if undone else ""))
    sync_folder(ref.parent)


def _is_there(checkout: Checkout, operation: Operation, *, failed: bool) -> bool:
    """Whether an operation whose files are as before did something to the checkout.

    Edits there, which a failed one put back, are not looked at.
    """
    before, after, repository = operation.before, operation.after, checkout.repository
    if before is None or after is None:
        return False
    if (repository.ref(BASE_REF), repository.ref(BRANCH)) != after.stack:
        return False
    return before.stack != after.stack or (before.files != after.files and not failed)


def _folder(checkout: Checkout) -> Path:
    """Where the refs of a checkout's operations are: a number, and whether it is undone."""
    return history_of(checkout).git_dir / "refs/patchkit" / checkout.name


def _refs(checkout: Checkout, *, undone: bool = False) -> list[Path]:
    refs = files_in(_folder(checkout), _REFS)
    done = [ref for ref in refs if not ref.suffix]
    last = done[-1].stem if done else ""
    return [ref for ref in refs if ref.suffix and ref.stem > last] if undone else done


def _prune(checkout: Checkout) -> None:
    """Let go what is too old, or undone for good, and the packs that nothing names."""
    folder = history_of(checkout).git_dir
    recent = {*_refs(checkout)[1 - MOST :], *_refs(checkout, undone=True)}
    for ref in files_in(_folder(checkout), _REFS):
        if ref not in recent:
            ref.unlink()
    kept = {path.read_text().strip() for path in (folder / "refs").rglob("0*")}
    for ending in ("idx", "pack"):  # git believes a pack by its index
        for path in files_in(folder / "objects/pack", f"pack-*.{ending}"):
            if path.stem.removeprefix("pack-") not in kept:
                path.unlink()


def _objects(repository: Repository, operation: Operation) -> list[GitObject]:
    """The objects of an operation, its commit last."""
    objects: list[GitObject] = []
    tree = Tree(ObjectReader(repository), EMPTY_TREE)
    text = {**to_builtins(replace(operation, files={})), "files": [*operation.files]}
    data = json.dumps({"version": _VERSION, **text}, indent=1).encode("ascii")
    files: dict[str, bytes | None] = {_TEXT: data}
    for path, (old, new) in operation.files.items():
        files |= {f"before/{path}": old, f"after/{path}": new}
    for path, contents in files.items():
        if contents is not None:
            objects.append(make_object("blob", contents))
            tree = tree.put(path, TreeEntry(FILE_MODE, objects[-1].oid))
    oid = tree.write(objects)
    what = f"{operation.component}: {operation.what}"
    return [*objects, own_commit(oid, (), what, when=operation.when // 10**9)]


def _read(reader: ObjectReader, ref: Path) -> Operation:
    def contents(path: str) -> bytes | None:
        entry = tree.entry(path)
        return None if entry is None else reader.blob(entry.oid)

    try:
        tree = Tree(reader, reader.root(CommitId(ref.read_text().strip())))
        operation = parse_operation(contents(_TEXT) or b"", contents)
    except (SurroundingsError, OSError, ValueError) as error:
        what = f"what was done cannot be read: {str(error) or 'it makes no sense'}"
        hint = f"rm {shlex.quote(str(ref))}  forgets it"
        raise SurroundingsError(Problem(what, str(ref), hint)) from error
    return replace(operation, ref=str(ref))


def parse_operation(data: bytes, contents: Callable[[str], bytes | None]) -> Operation:
    """An operation from its text and the files before/PATH and after/PATH that it names.

    It may have come with a project: no path leads out of that. ValueError if it makes no sense.
    """
    try:
        text = json.loads(data)
        if text.pop("version") != _VERSION:
            raise ValueError
        names = text.pop("files")
        if not all(map(can_be_a_file, (*names, *text["locks"], *text["gitlinks"]))):
            raise ValueError
        files = {path: (contents(f"before/{path}"), contents(f"after/{path}")) for path in names}
        return replace(from_builtins(text, Operation), files=files)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError from error
