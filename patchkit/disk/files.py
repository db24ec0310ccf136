"""Files on disk: replaced so that a crash at any moment leaves the old or the new bytes, never a
mixture; files of others, read up to a bounded size; and locks.

The only writer of manifests, series, patches and locks. A set of files that must change together
is written beside first (`write_beside`), then renamed one after the other.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from patchkit.errors import SHORTAGES, BadInputError, Problem, SurroundingsError
from patchkit.model.progress import Stop

#: How names of unfinished files end; whoever finds one after a crash may delete it.
UNFINISHED = ".patchkit-tmp"
#: In a folder while a set of its files is being replaced (see `disk.transaction`).
JOURNAL = ".patchkit-journal.json"
#: Its name until everything is written that it names.
DRAFT = JOURNAL + UNFINISHED


def is_half_done(root: Path) -> bool:
    """Whether a set of files in a folder is being replaced, or was when its writer was killed."""
    return (root / JOURNAL).exists() or (root / DRAFT).exists()


def replace_file(path: Path, data: bytes, *, named: bool = False) -> None:
    """Make `data` the contents of `path`, keeping mode, owner and extended attributes.

    With `named` the user named the file: a symbolic link's target is replaced, a device or a pipe
    is written to. Else the link itself is replaced: whoever made a project may have put one there.
    On disk: a temporary file beside it, synced, renamed over it. Raises SurroundingsError.
    """
    target = Path(os.path.realpath(path)) if named else path
    if named and target.exists() and not target.is_file() and not target.is_dir():
        try:
            target.write_bytes(data)
        except OSError as error:
            raise _unwritable(path, error) from error
        return
    beside = write_beside(target, data)
    with _or_nothing(path, lambda: beside.unlink(missing_ok=True)):
        beside.replace(target)
        sync_folder(target.parent)


#: What files hold, or are to hold; None where there is none.
Contents = Mapping[Path, bytes | None]


def bytes_at(path: Path) -> bytes | None:
    """The contents of a file; None where there is no file."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


class FileAttributes(Struct, frozen=True):
    """What a file has beside its bytes: mode, owner and group by number, extended attributes."""

    mode: int
    owner: tuple[int, int]
    extended: Mapping[str, bytes]

    def give(self, descriptor: int) -> None:
        """Give it to an open file, less what this user may not give."""
        for user, group in (-1, self.owner[1]), (self.owner[0], -1):
            with suppress(PermissionError):
                os.fchown(descriptor, user, group)
        for name, value in self.extended.items():
            with suppress(PermissionError):
                os.setxattr(descriptor, name, value)
        os.fchmod(descriptor, self.mode)  # last: to change an owner takes bits off the mode


def attributes_of(path: Path) -> FileAttributes | None:
    """What a file has beside its bytes; None of a link and of nothing."""
    if path.is_symlink() or not path.exists():
        return None
    extended, status = {}, path.stat()
    with suppress(OSError, AttributeError):  # a file system, or a system, without them
        extended = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return FileAttributes(stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid), extended)


def make_folder(folder: Path) -> None:
    """Make one folder; like a file, what root makes belongs to the owner of the folder above."""
    folder.mkdir()
    _give_to_owner(folder, folder.parent)


def _give_to_owner(file: Path | int, folder: Path) -> None:
    if os.geteuid() == 0:
        os.chown(file, folder.stat().st_uid, folder.stat().st_gid)


def name_beside(path: Path) -> Path:
    """A name for an unfinished file in the folder of `path`."""
    return path.with_name(f".{path.name[:80]}.{os.urandom(6).hex()}{UNFINISHED}")


def write_beside(
    path: Path,
    data: bytes,
    *,
    beside: Path | None = None,
    executable: bool | None = None,
    attributes: FileAttributes | None = None,
) -> Path:
    """Write `data` to a new synced file in the folder of `path`, with the attributes of `path`.

    Or with those that are given; what root makes belongs to the folder's owner, who could not edit
    or remove it else. With `executable` who may read it may run it, with False nobody
    may. Returns its path, which is `beside` if given, to be renamed to `path` by the caller. Raises
    SurroundingsError, and leaves nothing behind then.
    """
    made = beside or name_beside(path)
    with _or_nothing(path, lambda: made.unlink(missing_ok=True)):
        # 0666 less the umask, as any program makes a file
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as stream:
            given = attributes or attributes_of(path)
            if given is not None:
                given.give(descriptor)
            else:
                _give_to_owner(descriptor, made.parent)
            if executable is not None:
                mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
                os.fchmod(descriptor, mode | (mode & 0o444) >> 2 if executable else mode & ~0o111)
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
    return made


def write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Make `target` a folder of exactly these files by path; it must not be there, or be empty.

    On disk: built beside it and renamed in, so that it is there whole or not at all; what a kill
    leaves beside it goes with the next call. Raises SurroundingsError.
    """
    place = Path(os.path.realpath(target))
    draft = place.with_name(f".{place.name[:80]}{UNFINISHED}")
    with _or_nothing(target, lambda: shutil.rmtree(draft, ignore_errors=True)):
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        for name, data in files.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            (draft / name).write_bytes(data)
        draft.rename(place)


@contextmanager
def _or_nothing(path: Path, undo: Callable[[], object]) -> Iterator[None]:
    """Undo what the block began if it fails; an OSError becomes the news that `path` cannot be
    written.
    """
    try:
        yield
    except OSError as error:
        undo()
        raise _unwritable(path, error) from error
    except BaseException:  # ^C
        undo()
        raise


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """An empty folder for scratch; gone at the end of the block."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 (with it comes `random`; seldom needed)

    with TemporaryDirectory(prefix="patchkit-") as folder:
        yield Path(folder)


def sync_folder(folder: Path) -> None:
    """Make renames in `folder` last over a power cut, where the file system can."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _unwritable(path: Path, error: OSError) -> SurroundingsError:
    return SurroundingsError(f"{path} cannot be written: {error.strerror or error}")


# Read a file that somebody else wrote, of a bounded size: no device, no pipe, no endless patch.


def files_in(folder: Path, pattern: str) -> list[Path]:
    """The paths directly in a folder whose names fit, by name; none where there is no such folder.

    OSError where it cannot be read: `Path.glob` says "none" of it from Python 3.12 on.
    """
    try:
        return sorted(path for path in folder.iterdir() if fnmatchcase(path.name, pattern))
    except (FileNotFoundError, NotADirectoryError):
        return []


def unless_gone(error: OSError) -> None:
    """Raise what `os.walk` met, for its `onerror`: without one an unreadable folder is empty."""
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


#: The largest patch, and the largest of all other files that people write, in bytes. Memory is
#: some seven times that of the patch.
LARGEST_PATCH = 128 << 20
LARGEST_TEXT = 16 << 20


def is_inside(path: Path, root: Path) -> bool:
    """Whether the path stays below the folder when symbolic links are followed."""
    real, real_root = os.path.realpath(path), os.path.realpath(root)
    return os.path.commonpath([real, real_root]) == real_root


def read_plain(path: Path, *, most: int = LARGEST_TEXT, inside: Path | None = None) -> bytes:
    """The bytes of an ordinary file; OSError as for any other, too, where it is none or larger.

    With `inside`, the root of a project that the file is a part of, OSError as well where a
    symbolic link leads out of it: whoever sends a change to a project decides what lies in it, and
    not which files of the machine are read.

    SurroundingsError where the system has no descriptor left or fails: callers say of an OSError
    that the file is wrong, which is not known then.
    """
    if inside is not None and not is_inside(path, inside):
        raise OSError(errno.EXDEV, "leads out of the project by a symbolic link", str(path))
    try:
        return _read_plain(path, most)
    except OSError as error:
        if error.errno in SHORTAGES:
            raise SurroundingsError(Problem(str(error.strerror), str(path))) from error
        raise


def read_given(path: Path, where: str = "", *, inside: Path | None = None) -> bytes:
    """The bytes of a file as long as a patch may be; BadInputError names `where`, or the path."""
    try:
        return read_plain(path, most=LARGEST_PATCH, inside=inside)
    except OSError as error:
        raise BadInputError(Problem(str(error.strerror), where or str(path))) from error


def _read_plain(path: Path, most: int) -> bytes:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        kind = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
        raise OSError(kind, "is not a regular file", str(path))
    with path.open("rb") as stream:
        # not `most` at once: that much memory would be set aside for each small file
        data = stream.read(min(status.st_size, most) + 1)
        if len(data) > status.st_size:  # it grew, or its size is not known
            data += stream.read(most + 1 - len(data))
    if len(data) > most:
        raise OSError(errno.EFBIG, f"is larger than {most >> 20} MiB", str(path))
    return data


# Lock files that vanish with the process that holds them, however it ends: locks of the operating
# system (flock), so that a lock file that was left behind locks nobody out.
#
# Not by a library: the one that does it took a tenth of a small command's start, and more in the
# versions for Python 3.10.


_POLL = 0.05  # seconds
_TURN = 0.5  # seconds: so often one who waits looks whether to stop


class FileLock:
    """The lock on one file, which stays on disk: one holder at a time, on the whole machine.

    Another lock on the same file is another holder, in the same process, too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self, patience: float) -> bool:
        """Take the lock; False if somebody else has it for more than `patience` seconds.

        OSError if the file cannot be made, is a link, or lies where there are no locks.
        """
        end = time.monotonic() + patience
        while not self._taken():
            if time.monotonic() >= end:
                return False
            time.sleep(_POLL)
        return True

    def release(self) -> None:
        """Give it back, if it was taken."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _taken(self) -> bool:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        self._descriptor = os.open(self._path, flags, 0o666)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # somebody may have deleted the file since, and the next one would lock another
            if os.path.samestat(os.fstat(self._descriptor), os.lstat(self._path)):
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            self.release()
            raise
        self.release()
        return False


# One patchkit at a time fetches an upstream; the others wait, and then find it there.


@contextmanager
def locked(path: Path, stop: Stop, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file `path`; `waiting` is called once if somebody else has it."""
    lock = _acquired(path, stop, waiting)
    try:
        yield
    finally:
        lock.release()


def _acquired(path: Path, stop: Stop, waiting: Callable[[], None]) -> FileLock:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        stop.check()
        if not lock.acquire(0):
            waiting()
            while not lock.acquire(_TURN):
                stop.check()
        return lock
    except OSError as error:
        hint = "put the cache elsewhere with --cache DIR"
        if isinstance(error, PermissionError):
            hint = (
                "the cache is another user's: give it a group of both (chgrp -R GROUP, chmod -R"
                " g+rwX, setgid folders, umask 002), or have one of your own with --cache DIR"
            )
        what = f"{path} cannot be locked: {error.strerror or error}"
        raise SurroundingsError(what, hint=hint) from error
