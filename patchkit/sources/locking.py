"""One patchkit at a time fetches an upstream; the others wait, and then find it there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from patchkit.errors import SurroundingsError
from patchkit.flock import FileLock
from patchkit.model.stop import Stop


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
