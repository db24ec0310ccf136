"""Put the files of a move in place, and take out what stood there, so that no byte is lost.

What is at a path and what is to be there change places by one rename: what an editor saved up to
that moment comes out whole, is compared with what was judged, and goes back if it differs. A path
at which nothing was is filled only while nothing is there. So nobody's file is ever overwritten.

What came out of a path is kept until the move is through, and looked at once more before it goes:
an editor that had the file open may have written to it since.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from patchkit.errors import Problem, SurroundingsError
from patchkit.workspace.contents import (
    FOLDER,
    Contents,
    blocking_parent,
    contents_at,
    contents_of,
    full_path,
    is_there,
    on_disk,
)
from patchkit.workspace.journal import MoveStep

_NO_REPLACE, _EXCHANGE = 1, 2
_AT_FDCWD = -100
# How long an editor may take to close a file that was replaced while it wrote it, in seconds.
_PATIENCE = 0.5
# what systems and file systems say that know no such rename
_UNKNOWN = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM)
# what says that there is something at a path, or a file in the place of a folder above it
_OCCUPIED = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR)


class ChangedMeanwhileError(SurroundingsError):
    """Somebody wrote to a path while it was being replaced; their bytes are kept."""


def changed_meanwhile(path: str) -> ChangedMeanwhileError:
    """The error for a path that somebody wrote to."""
    what = f"{path} was changed while patchkit worked on it"
    return ChangedMeanwhileError(Problem(what, hint="run the command again"))


def put_in_place(
    root: Path, folder: Path, steps: Sequence[MoveStep], *, again: bool = False
) -> None:
    """Make every step's path hold its new contents; `again`: those that do are left alone.

    `folder` is the move's: contents come from its `new/`, what they replace goes to its `old/`.
    Raises ChangedMeanwhileError at a path that holds neither its old nor its new contents.
    """
    (folder / "old").mkdir(exist_ok=True)
    do = _do_again if again else _do
    numbered = list(enumerate(steps))
    # what goes makes room: a file may follow a folder of that name, or the other way round
    for number, step in [each for each in numbered if each[1].new is None]:
        do(root, folder, number, step)
    for number, step in [each for each in numbered if each[1].new is not None]:
        do(root, folder, number, step)


def put_back(root: Path, folder: Path, steps: Sequence[MoveStep]) -> None:
    """Undo `put_in_place`, wherever it stopped; what somebody wrote since stays where it is.

    OSError where that cannot be done, as a removed folder needs room to be made again: every file
    is then in its place or in the move's folder, and `put_in_place` can be done again.
    """
    numbered = list(enumerate(steps))
    for number, step in numbered:
        _tidy_exchange(folder, number, step)
    for number, step in reversed(numbered):
        if step.new is not None and step.old is None:
            _take_away(root, folder, number, step)
    for number, step in reversed(numbered):
        if is_there(_kept(folder, number)):
            _give_back(root, folder, number, step)


def give_back_unknown(root: Path, folder: Path, steps: Sequence[MoveStep]) -> None:
    """After a kill: what came out of a path and was not what was judged goes back there."""
    for number, step in enumerate(steps):
        _tidy_exchange(folder, number, step)
        kept = _kept(folder, number)
        if is_there(kept) and contents_of(kept) not in (step.old, step.new):
            _give_back(root, folder, number, step)


def strangers(root: Path, folder: Path, steps: Iterable[MoveStep]) -> list[str]:
    """The paths that hold neither their old nor their new contents: written by somebody else."""
    return [
        step.path
        for number, step in enumerate(steps)
        if not _is_known(step, contents_at(root, step.path), _kept(folder, number))
    ]


def release(folder: Path, steps: Sequence[MoveStep]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Remove what the move took out of the way, once that is in a commit or saved.

    Returns path -> file of what somebody wrote to after it was taken out, and of what some program
    still has open for writing.
    """
    written: dict[str, Path] = {}
    still_open: dict[str, Path] = {}
    for number, step in enumerate(steps):
        kept = _kept(folder, number)
        now = contents_of(kept)
        if now is None or now.kind == FOLDER:
            continue
        if not now.is_regular:
            os.unlink(kept)  # a link cannot be written to
            continue
        with _without_writers(kept) as alone:
            if not alone:
                still_open[step.path] = Path(os.fsdecode(kept))
            elif contents_of(kept) in (step.old, step.new):
                os.unlink(kept)
            else:
                written[step.path] = Path(os.fsdecode(kept))
    return written, still_open


@contextmanager
def _without_writers(path: bytes) -> Iterator[bool]:
    """Whether no program has a file open for writing; in the block none can begin to.

    The kernel grants a lease only then. Where it knows none, nobody can tell: True.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield _has_lease(descriptor)
    finally:
        os.close(descriptor)  # which gives the lease back


def _has_lease(descriptor: int) -> bool:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except BlockingIOError:  # somebody has it open, and may be about to close it
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        except (OSError, AttributeError):  # no such file system, or no such system
            return True
        else:
            return True


def remove_empty_folder(root: Path, path: str) -> None:
    """Remove a folder and its parents up to `root`, as far as they are empty."""
    while path:
        try:
            full_path(root, path).rmdir()
        except OSError:
            return
        path = path.rpartition("/")[0]


def _do(root: Path, folder: Path, number: int, step: MoveStep) -> None:
    """One step, for the first time; `_do_again` for what may be done already."""
    if blocking_parent(root, step.path) is not None:
        if step.new is None:
            return
        raise changed_meanwhile(step.path)
    kept, target = _kept(folder, number), on_disk(root, step.path)
    there = is_there(target) and (os.path.islink(target) or not os.path.isdir(target))
    if step.new is None:
        if there:
            _take_out(target, kept, step)
        remove_empty_folder(root, step.path.rpartition("/")[0])
        return
    new = _staged(folder, step)
    if step.old is None or step.old.kind == FOLDER:
        _bring(new, target, step)
        return
    if not there:
        raise changed_meanwhile(step.path)
    if exchanged(new, target):
        os.rename(new, kept)
        _require_old(kept, step)
    else:
        _take_out(target, kept, step)
        _bring(new, target, step)


def _do_again(root: Path, folder: Path, number: int, step: MoveStep) -> None:
    actual, kept = contents_at(root, step.path), _kept(folder, number)
    if _stands(actual, step.new):
        return
    if not _is_known(step, actual, kept):
        raise changed_meanwhile(step.path)
    if is_there(kept) and step.new is not None and _stands(actual, None):
        _bring(_staged(folder, step), on_disk(root, step.path), step)
    else:
        _do(root, folder, number, step)


def _take_out(target: bytes, kept: bytes, step: MoveStep) -> None:
    os.rename(target, kept)
    _require_old(kept, step)


def _require_old(kept: bytes, step: MoveStep) -> None:
    if contents_of(kept) != step.old:
        raise changed_meanwhile(step.path)


def _bring(new: bytes, target: bytes, step: MoveStep) -> None:
    """Put a file where nothing is."""
    try:
        _rename_new(new, target)
    except (FileNotFoundError, FileExistsError, IsADirectoryError):
        # no folder for it, or an empty one in its place
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _clear_folder(target)
        try:
            _rename_new(new, target)
        except FileExistsError:
            raise changed_meanwhile(step.path) from None


def _give_back(root: Path, folder: Path, number: int, step: MoveStep) -> None:
    """Put what came out of a path back there, unless somebody has put something else there."""
    kept, target = _kept(folder, number), on_disk(root, step.path)
    actual = contents_at(root, step.path)
    if actual is not None and actual == step.new:
        if exchanged(kept, target):
            if contents_of(kept) != step.new and contents_of(target) == step.old:
                exchanged(kept, target)  # saved between the two looks
            _tidy_exchange(folder, number, step)
            return
        _take_away(root, folder, number, step)
    try:
        _clear_folder(target)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _rename_new(kept, target)
    except OSError as error:
        if error.errno not in _OCCUPIED:  # else somebody has put something there
            raise


def _take_away(root: Path, folder: Path, number: int, step: MoveStep) -> None:
    """Move new contents from their place back to the move's folder."""
    target = on_disk(root, step.path)
    if contents_at(root, step.path) == step.new:
        back = _staged(folder, step)
        os.makedirs(os.path.dirname(back), exist_ok=True)
        os.rename(target, back)
        if contents_of(back) != step.new:  # saved between the two looks
            try:
                _rename_new(back, target)
            except FileExistsError:
                os.rename(back, _kept(folder, number))
    remove_empty_folder(root, step.path.rpartition("/")[0])


def _tidy_exchange(folder: Path, number: int, step: MoveStep) -> None:
    """Let each of the two files that change places be where it belongs, after a kill in between.

    What came out of the path is kept, what goes there waits among the new ones.
    """
    kept, new = _kept(folder, number), _staged(folder, step)
    if step.old is None or step.new is None:
        return
    there = contents_of(kept)
    if there is None:
        waiting = contents_of(new)
        if waiting is not None and waiting != step.new and waiting.kind != FOLDER:
            os.rename(new, kept)
    elif there == step.new and not is_there(new):
        os.makedirs(os.path.dirname(new), exist_ok=True)
        os.rename(kept, new)


def _clear_folder(place: bytes) -> None:
    """Remove a folder in which there is no file; OSError if there is one."""
    if os.path.isdir(place) and not os.path.islink(place):
        for name in os.listdir(place):
            _clear_folder(os.path.join(place, name))
        os.rmdir(place)


def _stands(actual: Contents | None, wanted: Contents | None) -> bool:
    """Whether the wanted contents are there; a folder counts as nothing: git has no folders."""
    if wanted is None:
        return actual is None or actual.kind == FOLDER
    return actual == wanted


def _is_known(step: MoveStep, actual: Contents | None, kept: bytes) -> bool:
    if _stands(actual, step.new) or _stands(actual, step.old):
        return True
    # between taking the old away and bringing the new
    return actual is None and contents_of(kept) == step.old


# What moves is named by bytes: to take apart and join a Path takes longer than the system call.


def _kept(folder: Path, number: int) -> bytes:
    return b"%s/old/%d" % (os.fsencode(folder), number)


def _staged(folder: Path, step: MoveStep) -> bytes:
    return on_disk(folder, f"new/{step.path}")


def exchanged(one: Path | bytes, other: Path | bytes) -> bool:
    """Let two files change places at once; False where the system cannot, or one is not there."""
    try:
        return _renameat2(one, other, _EXCHANGE)
    except FileNotFoundError:
        return False


def _rename_new(source: bytes, target: bytes) -> None:
    """Rename to a path at which nothing is, else FileExistsError."""
    if _renameat2(source, target, _NO_REPLACE):
        return
    try:
        os.link(source, target, follow_symlinks=False)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:  # a file system without hard links, either
        if is_there(target):
            raise FileExistsError(
                errno.EEXIST, os.strerror(errno.EEXIST), os.fsdecode(target)
            ) from None
        os.rename(source, target)
    else:
        os.unlink(source)


def _renameat2(source: Path | bytes, target: Path | bytes, flag: int) -> bool:
    """Linux's rename with a condition; False where that is not to be had."""
    call = _libc_rename()
    if call is None:
        return False
    names = os.fsdecode(source), os.fsdecode(target)
    sys.audit("os.rename", *names, -1, -1)
    number = call(os.fsencode(source), os.fsencode(target), flag)
    if number in _UNKNOWN:
        return False
    if number:
        raise OSError(number, os.strerror(number), names[0], None, names[1])
    return True


@cache
def _libc_rename() -> Callable[[bytes, bytes, int], int] | None:
    """A function that renames and returns an error number, 0 for none."""
    if sys.platform != "linux":
        return None
    # what moves no file need not wait for it
    import ctypes  # noqa: PLC0415

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return None
    path, folder = ctypes.c_char_p, ctypes.c_int
    call.argtypes = (folder, path, folder, path, ctypes.c_uint)

    def rename(source: bytes, target: bytes, flag: int) -> int:
        failed = call(_AT_FDCWD, source, _AT_FDCWD, target, flag)
        return ctypes.get_errno() if failed else 0

    return rename
