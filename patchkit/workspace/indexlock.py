"""Hold git's own lock on a checkout's index while its files move.

As long as `.git/index.lock` is there no `git add`, `commit` or `checkout` of the user's starts.
Ours has contents that git never writes, so that one which a killed run left is known as ours.
"""

from __future__ import annotations

import os
from pathlib import Path

from patchkit.errors import Problem, SurroundingsError
from patchkit.workspace.checkout import Checkout

_OURS = b"held by patchkit while it moves this checkout\n"


def hold_index(checkout: Checkout) -> None:
    """Take the lock; one of ours that a killed run left counts. SurroundingsError if git has it."""
    lock = checkout.git_dir / "index.lock"
    draft = checkout.own_folder / "index.lock"
    try:
        draft.write_bytes(_OURS)
        _link(checkout, draft, lock)
    finally:
        draft.unlink(missing_ok=True)


def _link(checkout: Checkout, draft: Path, lock: Path) -> None:
    try:
        # by a link, so that the lock is never seen without its contents
        os.link(draft, lock)
    except FileExistsError:
        _require_ours(checkout, lock)
    except OSError:
        _create(checkout, lock)  # a file system without hard links


def release_index(checkout: Checkout) -> None:
    """Give the lock back, if it is ours."""
    lock = checkout.git_dir / "index.lock"
    try:
        if lock.read_bytes() == _OURS:
            lock.unlink()
    except FileNotFoundError:
        return


def _create(checkout: Checkout, lock: Path) -> None:
    try:
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        _require_ours(checkout, lock)
        return
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(_OURS)
    except BaseException:
        lock.unlink(missing_ok=True)  # empty, it would be taken for git's
        raise


def _require_ours(checkout: Checkout, lock: Path) -> None:
    if lock.read_bytes() != _OURS:
        raise SurroundingsError(
            Problem(
                f"{checkout.path} is locked by git: {lock} exists",
                hint=f"wait for the git command there to end; if none runs: rm {lock}",
            )
        )
