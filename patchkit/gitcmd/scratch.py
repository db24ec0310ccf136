"""Throw-away repositories: one that sees another's objects, where what is written is a trial; and
one in which a fetch is built before its packs move over.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from patchkit.disk.files import files_in, scratch_folder
from patchkit.errors import SurroundingsError
from patchkit.gitcmd.repository import Repository, borrow_objects, init_repository
from patchkit.gitcmd.trees import objects_directory
from patchkit.model.objects import CommitId


@contextmanager
def overlay(*repositories: Repository) -> Iterator[Repository]:
    """A bare repository with all objects of others; gone at the end of the block."""
    with scratch_folder() as git_dir:
        (git_dir / "refs").mkdir()
        (git_dir / "HEAD").write_bytes(b"ref: refs/heads/none\n")
        borrow_objects(git_dir, map(objects_directory, repositories))
        yield Repository(git_dir)


# A fetch is built in a repository beside the real one, then its packs move over. Whatever a fetch
# does to its repository, and whatever an orphaned git process goes on doing after patchkit was
# killed, happens to a throw-away neighbour. The real one changes by renames only: packs first, then
# `shallow`; the ref that calls it whole is the caller's to write last.


# The index is what makes git see a pack, so it comes last.
_COMMIT = re.compile(r"[0-9a-f]{40}")
_PACK_FILES = (".pack", ".rev", ".promisor", ".idx")

_STALE = 24 * 60 * 60  # seconds; no fetch takes as long


@contextmanager
def staging(target: Repository, folder: Path) -> Iterator[Repository]:
    """A bare throw-away repository below `folder` that can read the target's objects."""
    folder.mkdir(parents=True, exist_ok=True)
    work = folder / f"{target.git_dir.stem}-{os.urandom(8).hex()}"  # named before a signal can come
    try:
        work.mkdir(mode=0o700)
        stage = init_repository(work / "stage.git")
        # each git that fetches looks through what is borrowed
        if target.exists and files_in(target.git_dir / "objects" / "pack", "*.idx"):
            borrow_objects(stage.git_dir, [target.git_dir / "objects"])
            if shallow_commits(target.git_dir):
                shutil.copyfile(target.git_dir / "shallow", stage.git_dir / "shallow")
        yield stage
    finally:
        shutil.rmtree(work, ignore_errors=True)


def adopt(stage: Repository, target: Repository) -> None:
    """Move the packs and the shallow commits of `stage` into `target`, which others may be reading.

    Both must be on one file system.
    """
    if any(len(folder.name) == 2 for folder in (stage.git_dir / "objects").iterdir()):
        stage.git("repack", "-d", "-l", "-q")  # over dumb HTTP, git brings single objects
    into = target.git_dir / "objects" / "pack"
    into.mkdir(parents=True, exist_ok=True)
    for pack in files_in(stage.git_dir / "objects" / "pack", "pack-*.pack"):
        for ending in _PACK_FILES:
            part = pack.with_suffix(ending)
            if part.exists():
                part.replace(into / part.name)
    add_shallow_commits(target.git_dir, shallow_commits(stage.git_dir))


def discard(repository: Repository, folder: Path) -> None:
    """Take a repository away, in one rename, for good."""
    if repository.git_dir.exists():
        folder.mkdir(parents=True, exist_ok=True)
        grave = folder / f"discarded-{os.urandom(8).hex()}"
        grave.mkdir(mode=0o700)
        repository.git_dir.replace(grave / "repository.git")
        shutil.rmtree(grave, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what killed fetches left in `folder` a day ago or longer."""
    for left in folder.glob("*"):
        with suppress(FileNotFoundError):
            if left.stat().st_mtime < time.time() - _STALE:
                shutil.rmtree(left, ignore_errors=True)


def link_packs(source: Repository, git_dir: Path) -> None:
    """Give the repository at `git_dir` all packs of `source`: hard links, copies across devices.

    Packs that it has already stay; it needs nothing of `source` afterwards.
    """
    into = git_dir / "objects" / "pack"
    into.mkdir(parents=True, exist_ok=True)
    for pack in files_in(source.git_dir / "objects" / "pack", "pack-*.idx"):
        for ending in _PACK_FILES:
            part = pack.with_suffix(ending)
            if part.exists() and not (into / part.name).exists():
                _link(part, into / part.name)


def shallow_commits(git_dir: Path) -> frozenset[CommitId]:
    """The commits whose parents the repository does not have by intention."""
    try:
        text = (git_dir / "shallow").read_bytes().decode("ascii", "replace")
    except FileNotFoundError:
        return frozenset()
    found = frozenset(CommitId(each) for each in text.split())
    if not all(_COMMIT.fullmatch(each) for each in found):
        hint = "if it is the cache's: patchkit fetch --verify"
        raise SurroundingsError(f"{git_dir / 'shallow'} is damaged", hint=hint)
    return found


def add_shallow_commits(git_dir: Path, commits: frozenset[CommitId]) -> None:
    """Mark further commits as shallow; by one rename, nothing written if all are there."""
    have = shallow_commits(git_dir)
    if commits <= have:
        return
    draft = git_dir / f"shallow.{os.getpid()}.patchkit"
    try:
        draft.write_text("".join(f"{commit}\n" for commit in sorted(have | commits)))
        draft.replace(git_dir / "shallow")
    finally:
        draft.unlink(missing_ok=True)


def _link(source: Path, target: Path) -> None:
    draft = target.with_name(f"tmp_{os.getpid()}_{target.name}")
    try:
        os.link(source, draft)
    except OSError:  # another device, or a file system without hard links
        shutil.copyfile(source, draft)
        shutil.copymode(source, draft)
    draft.replace(target)
