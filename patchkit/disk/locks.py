"""Lock files that vanish with the process that holds them, however it ends: locks of the operating
system (flock), so that a lock file that was left behind locks nobody out.

Not by a library: the one that does it took a tenth of a small command's start, and more in the
versions for Python 3.10.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from patchkit.errors import SurroundingsError
from patchkit.model.progress import Stop

_POLL = 0.05  # seconds


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
        for patience in _patience(waiting):
            stop.check()
            if lock.acquire(patience):
                return lock
    except PermissionError as error:
        hint = (
            "the cache is another user's: give it a group of both (chgrp -R GROUP, chmod -R g+rwX,"
            " setgid folders, umask 002), or have one of your own with --cache DIR"
        )
        raise SurroundingsError(f"{path} cannot be locked: {error.strerror}", hint=hint) from error
    except OSError as error:
        what = f"{path} cannot be locked: {error}"
        raise SurroundingsError(what, hint="put the cache elsewhere with --cache DIR") from error
    raise AssertionError("patience is without end")


def _patience(waiting: Callable[[], None]) -> Iterator[float]:
    yield 0.0
    waiting()
    while True:
        yield 0.5
