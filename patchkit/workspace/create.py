"""Make a checkout: built in a folder of its own beside the place, then renamed there."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from patchkit.gitcmd.object_reader import write_objects
from patchkit.gitcmd.pins import bear_absent
from patchkit.gitcmd.process import GitFailureError
from patchkit.gitcmd.repository import ZERO, RefChange, Repository, init_repository
from patchkit.gitcmd.scratch import add_shallow_commits, link_packs, shallow_commits
from patchkit.model.objects import CommitId, GitObject, decode_path
from patchkit.workspace.changes import absent_objects, leave_out, refresh_index
from patchkit.workspace.checkout import APPLIED_REF, BASE_REF, BRANCH, Checkout, write_purpose
from patchkit.workspace.contents import is_there, require_distinct
from patchkit.workspace.move import Moved, MoveTarget

# How much older than its index a new file is, in nanoseconds; git compares whole seconds.
_AGE = 2_000_000_000

# What the user may have set otherwise for all repositories, and what would then make a checkout
# look edited. Identity, signing, hooks and the like are the user's affair.
_CONFIG = """\
[core]
\tautocrlf = false
\teol = lf
\tsafecrlf = false
\tsymlinks = true
\tsplitIndex = false
\tsparseCheckout = false
"""


def create_checkout(
    checkout: Checkout,
    source: Repository,
    target: MoveTarget,
    objects: tuple[GitObject, ...],
    *,
    aside: Path | None = None,
) -> Moved:
    """Make a repository with all objects of `source` and `objects`, at the target, in its place.

    What is there already is first renamed to `aside`, and back if that was in vain.

    On disk: all of it at once, by one rename; a half-built one is left in the workspace's own
    folder by a kill and removed by the next call.
    """
    draft = checkout.draft
    if draft.exists():
        shutil.rmtree(draft)
    draft.mkdir(parents=True)
    try:
        repository = _new_repository(draft)
        bring_objects(source, repository, objects)
        require_distinct(repository, target.tip)
        _point_refs(repository, target)
        left_out = _write_files(repository, target.tip)
        _age(draft)
        refresh_index(repository, repository.git_dir / "index")
        write_purpose(repository.git_dir / checkout.own_folder.name, checkout.purpose)
        count = _file_count(repository)
        checkout.path.parent.mkdir(parents=True, exist_ok=True)
        _put_in_place(draft, checkout.path, aside)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return Moved(count - len(left_out), tuple(left_out))


def _put_in_place(draft: Path, path: Path, aside: Path | None) -> None:
    if aside is None:
        draft.rename(path)
        return
    path.rename(aside)
    try:
        draft.rename(path)
    except BaseException:
        if not is_there(path):
            aside.rename(path)
        raise


def bring_objects(
    source: Repository, repository: Repository, objects: tuple[GitObject, ...]
) -> None:
    """Give a checkout everything that it needs: it must outlive the cache."""
    # only commits that are new here: what the user made complete since stays complete
    shallow = shallow_commits(source.git_dir)
    add_shallow_commits(repository.git_dir, shallow - _present(repository, shallow))
    link_packs(source, repository.git_dir)
    bear_absent(repository, source)
    write_objects(repository, objects)


def _new_repository(path: Path) -> Repository:
    repository = init_repository(path / ".git", work_tree=path)
    with (path / ".git" / "config").open("a", encoding="ascii") as stream:
        stream.write(_CONFIG)
    return repository


def _point_refs(repository: Repository, target: MoveTarget) -> None:
    refs = {BRANCH: target.tip, BASE_REF: target.base, APPLIED_REF: target.tip}
    repository.update_refs(
        [RefChange(name, oid, ZERO) for name, oid in refs.items()],
        reason="patchkit: first checkout",
    )


def _write_files(repository: Repository, tip: CommitId) -> list[str]:
    """Write all files and the index; returns the paths left out because their blob is nowhere."""
    try:
        repository.git("read-tree", "-u", "--reset", tip)
    except GitFailureError:
        absent = _absent_paths(repository, tip)
        if not absent:
            raise
    else:
        return []
    index = repository.git_dir / "index"
    repository.git("read-tree", "--reset", tip)
    leave_out(repository, index, absent)
    repository.git("checkout-index", "--all", "--force", "--quiet", "--index")
    return absent


def _age(draft: Path) -> None:
    """Date the files of a new checkout before its index.

    Git reads a file over and over if it is as young as the index: an edit might be hidden in the
    same second. Whoever edits one of these makes it younger than it is noted to be.
    """
    then = time.time_ns() - _AGE
    for folder, folders, files in os.walk(draft):
        if Path(folder) == draft:
            folders.remove(".git")
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for name in files + links:
            os.utime(Path(folder, name), ns=(then, then), follow_symlinks=False)


def _absent_paths(repository: Repository, tip: CommitId) -> list[str]:
    listing = repository.git("ls-tree", "-r", "-z", tip).out
    rows = [row.split("\t", 1) for row in decode_path(listing).split("\0")[:-1]]
    blobs = {path: head.split()[2] for head, path in rows if " blob " in head}
    absent = absent_objects(repository, blobs.values())
    return [path for path, oid in blobs.items() if oid in absent]


def _file_count(repository: Repository) -> int:
    return repository.git("ls-files", "-z").out.count(b"\0")


def _present(repository: Repository, commits: frozenset[str]) -> frozenset[str]:
    if not commits:
        return commits
    return commits - absent_objects(repository, commits)
