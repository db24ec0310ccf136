"""Replace a set of files together: after a crash the whole set is old or the whole set is new.

A draft first says which files and folders are about to be made. Then all new contents are written
beside their files and synced, with their folders. The draft, which names every rename to do, is
then itself renamed to be the journal: this is the moment at which the set is new. What follows (the
renames, the removals) is repeated by `recover` if a crash cuts it short; what a draft names that
became no journal is removed by it.

The journal says by hash what each path holds before and after. A path that holds something else
was written by the user after the crash, or the journal came with somebody else's project: nothing
is touched then.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, to_builtins

from patchkit.disk.files import (
    DRAFT,
    JOURNAL,
    UNFINISHED,
    Contents,
    FileAttributes,
    bytes_at,
    files_in,
    is_half_done,
    make_folder,
    name_beside,
    sync_folder,
    write_beside,
)
from patchkit.errors import BadInputError, Problem, SurroundingsError
from patchkit.model.names import can_be_a_file

_VERSION = 2
_STALE = 60.0  # seconds


class _Step(Struct, frozen=True):
    """Rename `beside` to `path`; remove `path` where `beside` is None. Relative to the root.

    `old` and `new` are the SHA-256 of what `path` holds before and after, None for nothing; both
    are the same where only the mode changes.
    """

    path: str
    beside: str | None
    old: str | None
    new: str | None


def write_set(
    root: Path,
    writes: Contents,
    seen: Contents,
    *,
    executable: Mapping[Path, bool] = MappingProxyType({}),
    attributes: Mapping[Path, FileAttributes] = MappingProxyType({}),
    along: AbstractContextManager[object] | None = None,
) -> None:
    """Give every path its new bytes, or remove it where they are None; all of them or none.

    `seen` is what the plan behind `writes` was made from; a path of `writes` that it does not name
    was not there. Raises SurroundingsError with nothing replaced if a file holds something else by
    now, or cannot be written (disk full, no permission).

    Folders are made as needed, and removed again where nothing is left in them. A symbolic link's
    target is replaced; where it is to go, the link goes, as others may use its target. `executable`
    says of paths of `writes` whether they may be run then, `attributes` what mode and owner they
    get; without, a file keeps what it has, and what is new belongs to the owner of its folder.
    `along` is entered once all is written, just before the set counts, and left at once.
    """
    root = Path(os.path.realpath(root))
    with _only_writer(root):
        _roll_forward(root)
        _require_as_seen(root, dict.fromkeys(writes) | dict(seen))
        targets = {_target(path, data): data for path, data in writes.items()}
        for path in targets:
            _require_inside(root, path)
        _sweep({path.parent for path in targets})
        run = {_target(path, b""): runs for path, runs in executable.items()}
        given = {_target(path, b""): each for path, each in attributes.items()}
        steps = tuple(_steps(root, targets, run))
        try:
            draft = _stage(root, steps, targets, run, given) if steps else None
            with along or nullcontext():
                if draft is not None:
                    draft.replace(root / JOURNAL)
            sync_folder(root)
        except BaseException:
            _abandon(root)
            raise
        _roll_forward(root)


def recover(root: Path) -> bool:
    """Finish a set that a crash interrupted, or clear away what it had begun to write.

    False if there was none to be finished.
    """
    if not is_half_done(root):
        return False
    root = Path(os.path.realpath(root))
    with _only_writer(root):
        return _roll_forward(root)


def _steps(root: Path, targets: Contents, executable: Mapping[Path, bool]) -> Iterator[_Step]:
    for path, data in targets.items():
        old, new = _hash_at(path), None if data is None else sha256(data).hexdigest()
        if old != new or (data is not None and executable.get(path) not in (None, runs(path))):
            beside = None if data is None else _relative(root, name_beside(path))
            yield _Step(_relative(root, path), beside, old, new)


def _stage(
    root: Path,
    steps: Sequence[_Step],
    targets: Contents,
    executable: Mapping[Path, bool],
    attributes: Mapping[Path, FileAttributes],
) -> Path:
    """Write everything beside its place, and the draft before all, which is returned."""
    drafts = {root / each.path: root / each.beside for each in steps if each.beside is not None}
    made = sorted({f for path in drafts for f in path.parents if not f.exists()})
    text = json.dumps({"version": _VERSION, "steps": to_builtins(steps)}, indent=1)
    draft = write_beside(root / JOURNAL, text.encode("ascii"), beside=root / DRAFT)
    for folder in made:
        make_folder(folder)
    for path, beside in drafts.items():
        data, run, given = targets[path] or b"", executable.get(path), attributes.get(path)
        write_beside(path, data, beside=beside, executable=run, attributes=given)
    # all of it outlasts a power cut: the journal must never be older than what it names
    for folder in sorted({path.parent for path in [*drafts, *made, draft]}):
        sync_folder(folder)
    return draft


def _abandon(root: Path) -> None:
    """Remove what a draft names, and the folders that are empty then."""
    draft = root / DRAFT
    with suppress(OSError):  # whatever ended the work is the news, not that this is left
        with suppress(BadInputError):  # killed while the draft was written: that is all there is
            for step in _read(draft):
                if step.beside is not None:
                    (root / step.beside).unlink(missing_ok=True)
                    _settle_folder(root, (root / step.path).parent)
        draft.unlink()


def _roll_forward(root: Path) -> bool:
    journal = root / JOURNAL
    _abandon(root)
    if not journal.exists():
        return False
    steps = _read(journal)
    try:
        for step in [each for each in steps if _is_to_do(root, each)]:
            _perform(root, step)
        for folder in {(root / step.path).parent for step in steps}:
            _settle_folder(root, folder)
        journal.unlink()
        sync_folder(root)
    except OSError as error:
        raise SurroundingsError(
            f"{journal} cannot be finished: {error.filename}: {error.strerror}",
            hint="make the folder writable and run any patchkit command on this project again",
        ) from error
    return True


def _is_to_do(root: Path, step: _Step) -> bool:
    """Whether a step is still to do; SurroundingsError if it is neither that nor done.

    One whose bytes stay (its mode changes) is to do as long as what takes its place is there.
    """
    actual = _hash_at(root / step.path)
    ready = step.beside is None or _hash_at(root / step.beside) == step.new
    if actual == step.new:
        return step.old == step.new and ready
    if actual == step.old and ready:
        return True
    raise SurroundingsError(
        f"{root / step.path} was changed after patchkit was killed while it wrote it",
        hint=f"{step.beside or 'nothing'} was to replace it; decide which to keep ({JOURNAL}"
        " lists the files), then delete the journal",
    )


def _perform(root: Path, step: _Step) -> None:
    if step.beside is None:
        (root / step.path).unlink()
    else:
        (root / step.beside).replace(root / step.path)


def _settle_folder(root: Path, folder: Path) -> None:
    while folder != root and root in folder.parents:
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass
        except OSError:  # there is something in it, as there should be
            sync_folder(folder)
            return
        folder = folder.parent


def _read(journal: Path) -> list[_Step]:
    try:
        content = json.loads(journal.read_bytes())
        if content["version"] != _VERSION:
            raise BadInputError(
                f"{journal} was written by another version of patchkit",
                hint="let that version finish it",
            )
        steps = [_Step(**row) for row in content["steps"]]
        if not all(_is_ours(journal.parent, step) for step in steps):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInputError(
            f"{journal} is damaged, or was not written by patchkit",
            hint="look at the files it names, then delete it",
        ) from error
    return steps


def _is_ours(root: Path, step: _Step) -> bool:
    """Whether patchkit itself may have written this step.

    A journal may have come with somebody's project: it must not reach beyond it, nor into what git
    believes, nor move anything but an unfinished file of patchkit's to the name beside it.
    """
    if not can_be_a_file(step.path):
        return False
    if Path(os.path.realpath((root / step.path).parent)) != (root / step.path).parent:
        return False
    if step.beside is None:
        return step.new is None
    beside = Path(step.beside)
    ours = beside.name.startswith(".") and beside.name.endswith(UNFINISHED)
    ours &= can_be_a_file(step.beside)
    return ours and beside.parent == Path(step.path).parent and step.new is not None


def _sweep(folders: Iterable[Path]) -> None:
    """Remove what a killed writer left beside; a minute spares one that is at work now."""
    for folder in folders:
        for beside in files_in(folder, f".*{UNFINISHED}"):
            with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
                if time.time() - beside.stat().st_mtime > _STALE:
                    beside.unlink()


def _require_as_seen(root: Path, seen: Contents) -> None:
    changed = [path for path, data in seen.items() if bytes_at(path) != data]
    if changed:
        hint = "run the command again"
        raise SurroundingsError(
            *(
                Problem(f"{_relative(root, path)} was changed meanwhile", hint=hint)
                for path in changed
            )
        )


def runs(path: Path) -> bool:
    """Whether a file may be run by its owner; False where there is none."""
    try:
        return bool(path.stat().st_mode & stat.S_IXUSR)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _hash_at(path: Path) -> str | None:
    data = bytes_at(path)
    return None if data is None else sha256(data).hexdigest()


def _target(path: Path, data: bytes | None) -> Path:
    if data is None:
        return Path(os.path.realpath(path.parent)) / path.name
    return Path(os.path.realpath(path))


def _require_inside(root: Path, path: Path) -> None:
    folder = Path(os.path.realpath(path.parent))
    if folder != root and root not in folder.parents:
        raise BadInputError(
            f"{path} is outside of the project {root}", hint="patchkit writes inside it only"
        )


def _relative(root: Path, path: Path) -> str:
    return os.path.relpath(path, root)


@contextmanager
def _only_writer(root: Path) -> Iterator[None]:
    """Hold the project's folder itself locked: no lock file is left lying about in it."""
    descriptor = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
