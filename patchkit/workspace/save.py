"""Save whatever of the user's is in a checkout under a ref, before --force goes over it."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from msgspec import Struct

from patchkit.gitcmd.objects import write_objects
from patchkit.gitcmd.process import GitFailureError
from patchkit.gitcmd.repository import ZERO, RefChange
from patchkit.gitcmd.worktree import write_tracked
from patchkit.model.objects import encode_path, make_commit
from patchkit.model.patch import Identity
from patchkit.workspace.checkout import BRANCH, SAVED_REFS, Checkout
from patchkit.workspace.journal import move_folder
from patchkit.workspace.state import OPERATION_FILES, Snapshot

_WHO = ("patchkit", "patchkit@localhost")

# Commits that only an unfinished operation knows of: file in the git directory -> name for the ref.
_HEADS = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge/autostash": "autostash",
    "rebase-apply/autostash": "autostash",
}


class Saved(Struct, frozen=True):
    """Saved work: the ref that holds it, and the shell command that brings it back."""

    ref: str
    restore: str


class Worktree(Struct, frozen=True):
    """The tracked files of a worktree as they are on disk: a tree, and an index of it."""

    tree: str
    index: Path


def read_worktree(checkout: Checkout) -> Worktree:
    """Write the tracked files as they are on disk to the repository, leaving the index alone."""
    folder = move_folder(checkout.own_folder)
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("*.lock"):  # of a git that was not let tidy up; we hold the checkout
        left.unlink(missing_ok=True)
    index = folder / "worktree.index"
    return Worktree(write_tracked(checkout.repository, index), index)


def save_work(
    checkout: Checkout,
    snapshot: Snapshot,
    worktree: Worktree,
    *,
    in_the_way: Sequence[str],
    when: int,
) -> Saved:
    """Put HEAD, the index and the worktree with its untracked files under a ref of their own.

    `in_the_way` are paths to save although they may be ignored; `when` is in seconds since the
    epoch. The commit has the shape of a stash, so that `git stash apply` takes it.
    """
    commit = _commit(checkout, snapshot, _everything(checkout, worktree, in_the_way), when)
    ref = free_saved_ref(snapshot, when)
    changes = [RefChange(ref, commit, ZERO)]
    changes += [
        RefChange(f"{ref}-{name}", oid, ZERO) for name, oid in _other_heads(checkout, snapshot)
    ]
    # of the same second, by a run that was killed
    checkout.repository.free_refs(change.name for change in changes)
    checkout.repository.update_refs(changes, reason="patchkit: save before --force")
    return Saved(ref, _restore(checkout, snapshot, ref))


def stamp(when: int) -> str:
    """Seconds since the epoch as they are written in names: 20260102T030405Z."""
    return datetime.fromtimestamp(when, timezone.utc).strftime("%Y%m%dT%H%M%SZ")


def end_operation(checkout: Checkout, ref: str) -> None:
    """Make git forget a rebase or merge that waits; its files are kept in the git directory."""
    kept = checkout.own_folder / "saved" / ref.removeprefix(SAVED_REFS)
    for name in OPERATION_FILES:
        if (checkout.git_dir / name).exists():
            kept.mkdir(parents=True, exist_ok=True)
            (checkout.git_dir / name).rename(kept / name)


def _everything(checkout: Checkout, worktree: Worktree, in_the_way: Sequence[str]) -> str:
    """The tree of all files on disk that are not ignored, or are in the way."""
    index = worktree.index.with_name("everything.index")
    shutil.copyfile(worktree.index, index)
    repository = checkout.repository
    repository.git("add", "--all", "--", ".", index=index)
    if in_the_way:
        repository.git(
            "--literal-pathspecs",
            "add",
            "--force",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
            stdin=b"".join(encode_path(path) + b"\0" for path in in_the_way),
            index=index,
        )
    return _tree(checkout, index)


def _tree(checkout: Checkout, index: Path) -> str:
    # blobs that nobody has are in the tree all the same
    done = checkout.repository.git("write-tree", "--missing-ok", index=index)
    return done.out.decode().strip()


def _commit(checkout: Checkout, snapshot: Snapshot, tree: str, when: int) -> str:
    who = Identity(*_WHO, date=f"{when} +0000")
    parents = [snapshot.head] if snapshot.head else []
    subject = f"Saved by patchkit: {snapshot.state.value}"
    index_tree = _index_tree(checkout)
    index = make_commit(
        tree=index_tree or tree,
        parents=parents,
        author=who,
        committer=who,
        message=f"{subject}, the index",
    )
    work = make_commit(
        tree=tree,
        parents=[*parents, index.oid],
        author=who,
        committer=who,
        message=subject,
    )
    write_objects(checkout.repository, [index, work])
    return work.oid


def _index_tree(checkout: Checkout) -> str | None:
    """The tree of the user's index; None while it has unmerged paths."""
    index = checkout.git_dir / "index"
    if not index.exists():
        return None
    copy = move_folder(checkout.own_folder) / "staged.index"
    shutil.copyfile(index, copy)
    try:
        return _tree(checkout, copy)
    except GitFailureError:
        return None


def _other_heads(checkout: Checkout, snapshot: Snapshot) -> list[tuple[str, str]]:
    """(name, commit) of what HEAD does not lead to: the branch during a rebase, a merge's side."""
    found = {}
    branch = checkout.repository.resolve(BRANCH)
    if branch is not None and branch not in (snapshot.head, snapshot.applied, snapshot.base):
        found["branch"] = branch
    for file, name in _HEADS.items():
        path = checkout.git_dir / file
        if path.is_file():
            found[name] = path.read_text().split()[0]
    return list(found.items())


def free_saved_ref(snapshot: Snapshot, when: int) -> str:
    """A name for work that is saved now; `when` is in seconds since the epoch."""
    first = SAVED_REFS + stamp(when)
    ref, number = first, 1
    while ref in snapshot.saved:
        number += 1
        ref = f"{first}-{number}"
    return ref


def _restore(checkout: Checkout, snapshot: Snapshot, ref: str) -> str:
    git = f"git -C {shlex.quote(str(checkout.path))}"
    if snapshot.head in (snapshot.base, snapshot.applied):
        return f"{git} stash apply {ref}"
    return f"{git} switch --create saved-work {ref}"
