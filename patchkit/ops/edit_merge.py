"""Changes of a checkout's files, merged into other files than those they were made on.

So the edits of a checkout follow the patches that moved on under it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import ExitCode, PatchkitError, Problem
from patchkit.gitcmd.object_reader import ObjectReader, reading, write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import tree_changes
from patchkit.model.diff_parse import is_binary, split_lines
from patchkit.model.merging.regions import Labels, compare_three, conflict_text
from patchkit.model.objects import (
    SUBMODULE_MODE,
    SYMLINK_MODE,
    GitObject,
    TreeEntry,
    TreeId,
    make_object,
)
from patchkit.model.tree import ObstructedError, Tree, TreeChange
from patchkit.ops.undo import keep_commit
from patchkit.stack.build import Stack
from patchkit.stack.lockfile import Locks
from patchkit.workspace import Checkout, Snapshot
from patchkit.workspace.changes import entry_rows, obstacles
from patchkit.workspace.enter import bring_objects
from patchkit.workspace.move import move_checkout
from patchkit.workspace.operations import Operation, locks_made, recorded
from patchkit.workspace.save import rows_beyond
from patchkit.workspace.state import Held, Place
from patchkit.workspace.waiting import worktree_tree

_LABELS = Labels("the patches", "before", "your edits")


class EditMerge(Struct):
    """Changes, merged into a tree of what is on disk; `problems` are those that do not fit.

    A change that does not fit stands in the tree with conflict markers, and in `unmerged` as rows
    of git's index. Invariant: any other path gets either what the change made of it, where nothing
    else changed it, or git's own merge of three regular files without a conflict.
    """

    _reader: ObjectReader
    _written: list[GitObject]  # gets the objects of what was merged
    problems: list[Problem] = []
    unmerged: dict[str, tuple[str, ...]] = {}

    def all(self, tree: Tree, changes: Sequence[TreeChange]) -> Tree:
        """The tree with every change that fits."""
        for change in changes:
            now = tree.entry(change.path)
            if change.new is None and now is None:
                continue  # gone already
            try:
                tree = self._one(tree, change, now)
            except ObstructedError as error:
                self.problems.append(Problem(f"{error.by} is in the way", change.path))
        return tree

    def _one(self, tree: Tree, change: TreeChange, now: TreeEntry | None) -> Tree:
        path, old, new = change.path, change.old, change.new
        if now == old and new is None:
            return tree.remove(path)
        if new == now:
            return tree
        if now == old and new is not None:
            return tree.put(path, new)
        if old is None or new is None or now is None:
            self._refuse(change, now, "was changed, added or removed since in another way")
            # nothing of the user's may leave the disk
            return tree.put(path, new) if new is not None else tree
        return self._three_way(tree, change, (old, now, new))

    def _three_way(
        self, tree: Tree, change: TreeChange, sides: tuple[TreeEntry, TreeEntry, TreeEntry]
    ) -> Tree:
        old, now, new = sides
        modes = {each.mode for each in sides}
        special = modes & {SYMLINK_MODE, SUBMODULE_MODE} or len(modes) > 2
        texts = [] if special else [self._reader.blob(each.oid) for each in sides]
        if special or any(map(is_binary, texts)):
            self._refuse(change, now, "is not a text file on all sides")
            return tree.put(change.path, new)
        base, here, edited = map(split_lines, texts)
        three = compare_three(base, here, edited)
        if three.conflicts:
            lines = ", ".join(str(each.upstream_at + 1) for each in three.conflicts)
            self._refuse(change, now, f"has other changes at the same lines: {lines}")
        blob = make_object("blob", conflict_text(three, _LABELS))
        self._written.append(blob)
        mode = new.mode if now.mode == old.mode else now.mode
        return tree.put(change.path, TreeEntry(mode, blob.oid))

    def _refuse(self, change: TreeChange, now: TreeEntry | None, what: str) -> None:
        self.problems.append(Problem(what, change.path))
        rows = enumerate((change.old, now, change.new), 1)
        self.unmerged[change.path] = tuple(
            f"{each.mode:06o} {each.oid} {stage}" for stage, each in rows if each is not None
        )


class CannotMergeError(PatchkitError):
    """The changes do not fit what is there."""

    exit_code = ExitCode.FINDING


def merge_changes(
    checkout: Checkout, tree: str, changes: Sequence[TreeChange]
) -> tuple[TreeId, EditMerge]:
    """The tree with changes, written to the checkout's repository, and how they were merged."""
    written: list[GitObject] = []
    with reading(checkout.repository) as reader:
        merging = EditMerge(reader, written)
        made = TreeId(merging.all(Tree(reader, tree), changes).write(written))
    write_objects(checkout.repository, written)
    return made, merging


def follow_with_edits(
    checkout: Checkout,
    snapshot: Snapshot,
    stack: Stack,
    source: Repository,
    operation: Operation,
    *,
    locks: Locks,
    root: Path,
    when: int,
) -> tuple[Problem, ...]:
    """Bring a checkout to a stack, and merge what it has beyond its own one into the files there.

    Returns a problem for each file with a conflict: it has markers, or is unmerged in the index.
    Commits become edits, and stay under a ref. `undo` takes all of it back. On disk: all or
    nothing; CannotMergeError where a file cannot be at its place there. `source` has the base,
    `root` is the project; `when`, in seconds since the epoch, names refs. `operation` says what
    this is; `locks` are written next where the edits are in the patches already.
    """
    repository, base, head = checkout.repository, snapshot.base, snapshot.head
    assert base is not None
    assert head is not None
    assert snapshot.applied is not None
    bring_objects(source, repository, stack.objects)
    made_on = head if head == base else snapshot.applied
    worktree = worktree_tree(checkout, head)
    changes = tree_changes(repository, made_on, worktree)
    tree, merging = merge_changes(checkout, stack.tree, changes)
    stuck = [each for each in merging.problems if each.where not in merging.unmerged]
    if blocks := obstacles(checkout.path, tree_changes(repository, worktree, tree)):
        stuck.append(Problem(f"untracked and in the way: {', '.join(blocks)}", operation.component))
    if stuck:
        hint = "give it another name in the checkout, and run this again"
        raise CannotMergeError(*(replace(each, hint=hint) for each in stuck))
    if head not in (base, made_on) or snapshot.state.movable:
        keep_commit(checkout, head, when)
    after = (stack.base.commit, stack.commit)
    rows = _unstaged(repository, stack, tree) | merging.unmerged
    target = Place(*after, tree, rows)
    staged = {each.path: entry_rows(each.old) for each in changes if each.path in merging.unmerged}
    index = staged | rows_beyond(checkout, made_on)
    operation = replace(
        operation,
        before=Place(base, made_on, worktree, index),
        after=Place(*after, tree, merging.unmerged),
        locks=locks_made(root, locks) if tree == stack.tree else {},
    )
    with recorded(checkout, root, operation):
        move_checkout(checkout, snapshot, target, Held(worktree), when=when)
    return tuple(merging.problems)


def _unstaged(repository: Repository, stack: Stack, tree: TreeId) -> dict[str, tuple[str, ...]]:
    """The rows of an index in which files of `tree` are edits of the stack's, not staged."""
    changes = tree_changes(repository, stack.tree, tree)
    return {each.path: entry_rows(each.old_file) for each in changes if each.old_file is not None}
