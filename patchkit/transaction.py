"""Replace a set of files together: after a crash the whole set is old or the whole set is new.

All new contents are first written beside their files and synced. Then one journal, which names
every rename to do, is itself renamed into place: this is the moment at which the set is new. What
follows (the renames, the removals) is repeated by `recover` if a crash cuts it short.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from patchkit.atomic import UNFINISHED, replace_file, sync_folder, write_beside
from patchkit.errors import BadInputError, SurroundingsError

#: In the project's root while a set is being replaced.
JOURNAL = ".patchkit-journal.json"

_VERSION = 1
_STALE = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class _Step:
    """Rename `beside` to `path`; remove `path` where `beside` is None. Relative to the root."""

    path: str
    beside: str | None


def write_set(root: Path, writes: Mapping[Path, bytes | None]) -> None:
    """Give every path its new bytes, or remove it where they are None; all of them or none.

    Folders are made as needed, and removed again where nothing is left in them. A symbolic link's
    target is replaced. Raises SurroundingsError with nothing replaced (disk full, no permission).
    """
    root = Path(os.path.realpath(root))
    with _only_writer(root):
        _roll_forward(root)
        targets = {Path(os.path.realpath(path)): data for path, data in writes.items()}
        for path in targets:
            _require_inside(root, path)
        _sweep({path.parent for path in targets})
        steps, made = _stage(root, targets)
        if steps:
            _publish(root, steps, made)
            _roll_forward(root)


def recover(root: Path) -> bool:
    """Finish a set that a crash interrupted; False if there was none."""
    if not (root / JOURNAL).exists():
        return False
    root = Path(os.path.realpath(root))
    with _only_writer(root):
        return _roll_forward(root)


def _stage(root: Path, targets: Mapping[Path, bytes | None]) -> tuple[list[_Step], list[Path]]:
    steps: list[_Step] = []
    made: list[Path] = []
    try:
        for path, data in targets.items():
            if data is None:
                steps.append(_Step(_relative(root, path), None))
            elif not _has(path, data):
                made += _make_folders(path.parent)
                beside = write_beside(path, data)
                steps.append(_Step(_relative(root, path), _relative(root, beside)))
    except BaseException:
        _discard(root, steps, made)
        raise
    return steps, made


def _publish(root: Path, steps: Sequence[_Step], made: Sequence[Path]) -> None:
    rows = [{"path": step.path, "from": step.beside} for step in steps]
    text = json.dumps({"version": _VERSION, "steps": rows}, indent=1)
    try:
        replace_file(root / JOURNAL, text.encode("ascii"))
    except BaseException:
        if not (root / JOURNAL).exists():
            _discard(root, steps, made)
        raise


def _roll_forward(root: Path) -> bool:
    journal = root / JOURNAL
    if not journal.exists():
        return False
    steps = _read(journal)
    try:
        for step in steps:
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


def _perform(root: Path, step: _Step) -> None:
    path = root / step.path
    if step.beside is None:
        path.unlink(missing_ok=True)
        return
    beside = root / step.beside
    if beside.exists():  # else the rename was done before the crash
        beside.replace(path)


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
                f"{journal} was written by a newer patchkit", hint="upgrade patchkit"
            )
        steps = [_Step(row["path"], row["from"]) for row in content["steps"]]
        for step in steps:
            for name in filter(None, (step.path, step.beside)):
                # a journal may have come with somebody's project: it must not reach beyond it
                _require_inside(journal.parent, journal.parent / name)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInputError(
            f"{journal} is damaged", hint="look at the files it names, then delete it"
        ) from error
    return steps


def _sweep(folders: Iterable[Path]) -> None:
    """Remove what a killed writer left beside; a minute spares one that is at work now."""
    for folder in folders:
        for beside in folder.glob(f".*{UNFINISHED}"):
            with suppress(FileNotFoundError):
                if time.time() - beside.stat().st_mtime > _STALE:
                    beside.unlink()


def _discard(root: Path, steps: Sequence[_Step], made: Sequence[Path]) -> None:
    for step in steps:
        if step.beside is not None:
            (root / step.beside).unlink(missing_ok=True)
    for folder in reversed(made):
        folder.rmdir()


def _make_folders(folder: Path) -> list[Path]:
    """Make `folder` and what is above it; returns what was made, outermost first."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir()
    return missing[::-1]


def _has(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


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
