"""Put the files of a move in place, one rename each, and put the old ones back if it fails."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from patchkit.errors import Problem, SurroundingsError
from patchkit.workspace.contents import (
    FOLDER,
    Contents,
    contents_at,
    contents_of,
    full_path,
    is_there,
)
from patchkit.workspace.journal import Step


class ChangedMeanwhileError(SurroundingsError):
    """Somebody wrote to a path while it was being replaced; their bytes are kept."""


def changed_meanwhile(path: str) -> ChangedMeanwhileError:
    """The error for a path that somebody wrote to."""
    return ChangedMeanwhileError(
        Problem(f"{path} was changed while patchkit worked on it", hint="run the command again")
    )


def put_in_place(root: Path, folder: Path, steps: Sequence[Step]) -> None:
    """Make every step's path hold its new contents; steps that are done already are left alone.

    `folder` is the move's: contents come from its `new/`, what they replace goes to its `old/`.
    Raises ChangedMeanwhileError at a path that holds neither its old nor its new contents.
    """
    (folder / "old").mkdir(exist_ok=True)
    numbered = list(enumerate(steps))
    # what goes makes room: a file may follow a folder of that name, or the other way round
    for number, step in [each for each in numbered if each[1].new is None]:
        _do(root, folder, number, step)
    for number, step in [each for each in numbered if each[1].new is not None]:
        _do(root, folder, number, step)


def put_back(root: Path, folder: Path, steps: Sequence[Step]) -> None:
    """Undo `put_in_place`, wherever it stopped."""
    numbered = list(enumerate(steps))
    for number, step in reversed(numbered):
        if step.new is not None and (step.old is None or is_there(_kept(folder, number))):
            _take_away(root, folder, step)
    for number, step in reversed(numbered):
        kept = _kept(folder, number)
        # what somebody wrote here since stays; the old contents are in a commit
        if is_there(kept) and _is_known(step, contents_at(root, step.path), kept):
            target = full_path(root, step.path)
            _clear_folder(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            kept.rename(target)


def strangers(root: Path, folder: Path, steps: Iterable[Step]) -> list[str]:
    """The paths that hold neither their old nor their new contents: written by somebody else."""
    return [
        step.path
        for number, step in enumerate(steps)
        if not _is_known(step, contents_at(root, step.path), _kept(folder, number))
    ]


def make_folder(root: Path, path: str) -> None:
    """Make an empty folder for a submodule, if there is none."""
    full_path(root, path).mkdir(parents=True, exist_ok=True)


def remove_empty_folder(root: Path, path: str) -> None:
    """Remove a folder and its parents up to `root`, as far as they are empty."""
    while path:
        try:
            full_path(root, path).rmdir()
        except OSError:
            return
        path = path.rpartition("/")[0]


def _do(root: Path, folder: Path, number: int, step: Step) -> None:
    actual = contents_at(root, step.path)
    kept = _kept(folder, number)
    if _stands(actual, step.new):
        return
    if not _is_known(step, actual, kept):
        raise changed_meanwhile(step.path)
    if step.old is not None and actual is not None:
        by_link = step.new is not None and actual.kind != FOLDER
        _keep(full_path(root, step.path), kept, by_link=by_link)
        if contents_of(kept) != step.old:
            raise changed_meanwhile(step.path)
    if step.new is None:
        remove_empty_folder(root, step.path.rpartition("/")[0])
    else:
        _bring(root, folder, step)


def _bring(root: Path, folder: Path, step: Step) -> None:
    new, target = full_path(folder / "new", step.path), full_path(root, step.path)
    try:
        new.rename(target)
    except (FileNotFoundError, IsADirectoryError):  # no folder for it, or one in its place
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear_folder(target)
        new.rename(target)


def _keep(target: Path, kept: Path, *, by_link: bool) -> None:
    """Let `kept` name what stands at `target`; by a second link, so that it is never absent."""
    if is_there(kept):
        kept.unlink()
    if by_link:
        try:
            os.link(target, kept, follow_symlinks=False)
        except OSError:
            pass  # a file system without hard links
        else:
            return
    target.rename(kept)


def _take_away(root: Path, folder: Path, step: Step) -> None:
    """Move new contents from their place back to the move's folder."""
    if contents_at(root, step.path) == step.new:
        back = full_path(folder / "new", step.path)
        back.parent.mkdir(parents=True, exist_ok=True)
        full_path(root, step.path).rename(back)
    remove_empty_folder(root, step.path.rpartition("/")[0])


def _clear_folder(place: Path) -> None:
    """Remove a folder in which there is no file; OSError if there is one."""
    if place.is_dir() and not place.is_symlink():
        for each in place.iterdir():
            _clear_folder(each)
        place.rmdir()


def _stands(actual: Contents | None, wanted: Contents | None) -> bool:
    """Whether the wanted contents are there; a folder counts as nothing: git has no folders."""
    if wanted is None:
        return actual is None or actual.kind == FOLDER
    return actual == wanted


def _is_known(step: Step, actual: Contents | None, kept: Path) -> bool:
    if _stands(actual, step.new) or _stands(actual, step.old):
        return True
    # between taking the old away and bringing the new
    return actual is None and is_there(kept)


def _kept(folder: Path, number: int) -> Path:
    return folder / "old" / str(number)


def discard(folder: Path) -> None:
    """Remove what is left of a move's folder: copies of what is elsewhere by now."""
    shutil.rmtree(folder, ignore_errors=True)
