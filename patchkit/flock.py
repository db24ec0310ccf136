"""Lock files that vanish with the process that holds them, however it ends: locks of the operating
system (flock), so that a lock file that was left behind locks nobody out.

Not by a library: the one that does it took a tenth of a small command's start, and more in the
versions for Python 3.10.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

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
