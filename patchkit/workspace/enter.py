"""Bring a checkout to a stack, whatever state it is in: make it, move it, leave it, or refuse."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.pins import absent_blobs, bear_absent, paths_of
from patchkit.gitcmd.repository import ZERO, RefChange, Repository, init_repository
from patchkit.gitcmd.trees import tree_changes
from patchkit.model.objects import CommitId, GitObject, TreeId
from patchkit.model.tree import Tree, TreeChange
from patchkit.workspace.changes import absent_objects, leave_out, obstacles, refresh_index, unlike
from patchkit.workspace.checkout import (
    APPLIED_REF,
    BASE_REF,
    BRANCH,
    Checkout,
    locked,
    write_purpose,
)
from patchkit.workspace.contents import (
    SPECIAL,
    contents_at,
    files_below,
    free_name,
    is_there,
    require_distinct,
)
from patchkit.workspace.move import Moved, NotHeldError, move_checkout
from patchkit.workspace.recover import abandon, has_leftovers, recover
from patchkit.workspace.state import CheckoutState, Held, Place, Snapshot, index_mark, inspect

# Make a checkout: built in a folder of its own beside the place, then renamed there.


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


def create_checkout(checkout: Checkout, stack: Stacked, *, aside: Path | None) -> Moved:
    """Make a repository with all objects of the stack and its source, at the stack, in its place.

    What is there already is first renamed to `aside`, and back if that was in vain.

    On disk: all of it at once, by one rename; a half-built one is left in the workspace's own
    folder by a kill and removed by the next call.
    """
    draft = checkout.draft
    if draft.exists():
        shutil.rmtree(draft)
    try:
        draft.mkdir(parents=True)  # in here, as a signal may come between it and the next line
        repository = _new_repository(draft)
        bring_objects(stack.source, repository, stack.objects)
        require_distinct(repository, stack.tip)
        refs = {BRANCH: stack.tip, BASE_REF: stack.base, APPLIED_REF: stack.tip}
        made = [RefChange(name, oid, ZERO) for name, oid in refs.items()]
        repository.update_refs(made, reason="patchkit: first checkout")
        left_out = _write_files(repository, stack)
        _age(draft, time.time_ns() - _AGE)
        refresh_index(repository, repository.git_dir / "index")
        write_purpose(repository.git_dir / checkout.own_folder.name, checkout.purpose)
        count = _file_count(repository)
        checkout.path.parent.mkdir(parents=True, exist_ok=True)
        _put_in_place(draft, checkout.path, aside)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return Moved(count - len(left_out), left_out)


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
    # what looks at a checkout, or moves one along, has all of it
    from patchkit.gitcmd.scratch import (  # noqa: PLC0415
        add_shallow_commits,
        link_packs,
        shallow_commits,
    )

    # only commits that are new here: what the user made complete since stays complete
    shallow = shallow_commits(source.git_dir)
    if shallow and not repository.has_no_objects:
        shallow &= absent_objects(repository, shallow)
    add_shallow_commits(repository.git_dir, shallow)
    link_packs(source, repository.git_dir)
    bear_absent(repository, source)
    write_objects(repository, objects)


def _new_repository(path: Path) -> Repository:
    repository = init_repository(path / ".git", work_tree=path)
    with (path / ".git" / "config").open("a", encoding="ascii") as stream:
        stream.write(_CONFIG)
    return repository


def _write_files(repository: Repository, stack: Stacked) -> tuple[str, ...]:
    """Write all files and the index; the paths left out because no server has their blob."""
    absent = paths_of(repository, stack.tip, absent_blobs(stack.source))
    if not absent:
        repository.git("read-tree", "-u", "--reset", stack.tip)
        return ()
    index = repository.git_dir / "index"
    repository.git("read-tree", "--reset", stack.tip)
    leave_out(repository, index, absent)
    repository.git("checkout-index", "--all", "--force", "--quiet", "--index")
    return absent


def _age(draft: Path, then: int) -> None:
    """Date the files of a new checkout before its index.

    Whoever edits one makes it younger: an edit in the second of the index could be hidden else.
    """
    for folder, folders, files in os.walk(draft):
        if Path(folder) == draft:
            folders.remove(".git")
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for name in files + links:
            os.utime(Path(folder, name), ns=(then, then), follow_symlinks=False)


def _file_count(repository: Repository) -> int:
    with (repository.git_dir / "index").open("rb") as stream:
        return int.from_bytes(stream.read(12)[8:], "big")


class Action(str, Enum):
    """What became of a checkout."""

    CREATED = "created"
    MOVED = "moved"
    UNCHANGED = "unchanged"  # it was there already, nothing was touched
    REFUSED = "refused"  # work of the user's is in the way


class RefusalCause(str, Enum):
    """Why a checkout was left alone."""

    EDITED = "edited"  # tracked files with uncommitted changes
    EXTRA_COMMITS = "extra commits"  # commits of the user's
    CONFLICTED = "conflicted"  # an unfinished merge or the like
    OTHER_BRANCH = "other branch"  # another branch, or not patchkit's
    INTERRUPTED = "interrupted"  # changed since an apply was killed
    IN_THE_WAY = "in the way"  # untracked files where the stack has files
    UNSAVABLE = "unsavable"  # in the way, and no commit can hold it: a repository, a socket


class Refusal(Struct, frozen=True):
    """Why a checkout was left alone: the cause, and the paths or words that say more."""

    cause: RefusalCause
    detail: str = ""  # paths or words; "" for none
    paths: tuple[str, ...] = ()


class Entered(Struct, frozen=True):
    """What became of a checkout.

    `before` is what was found; `changed` counts the files written or removed; `left_out` are
    paths that no server has the contents of; `saved` is the ref where --force put the user's work,
    `also_saved` are refs with what came meanwhile or was in git's index only, `moved_aside` is the
    folder that it renamed because it was no checkout of patchkit's.
    """

    action: Action
    before: Snapshot
    changed: int = 0
    left_out: tuple[str, ...] = ()
    saved: str = ""
    also_saved: tuple[str, ...] = ()
    moved_aside: Path | None = None
    refusal: Refusal | None = None
    finished: bool = False  # a move that was killed earlier was finished first


class Stacked(Struct, frozen=True):
    """A stack to enter: its commits, the objects that are new with them, where the rest is."""

    base: CommitId  # the upstream commit
    tip: CommitId  # the last patch's commit
    objects: tuple[GitObject, ...]
    source: Repository  # has upstream's objects
    changes: tuple[TreeChange, ...] | None = None  # from base to tip, in git's order, if known
    # puts into the history from where the checkout goes; None where it cannot come back
    recording: Callable[[Place | None], AbstractContextManager[object]] = nullcontext

    @property
    def place(self) -> Place:
        """Where a checkout of it is."""
        return Place(self.base, self.tip)


class MovedMeanwhileError(SurroundingsError):
    """Another patchkit moved the checkout while this one made its stack: of what, is not known."""


def enter_stack(
    checkout: Checkout,
    stack: Stacked,
    *,
    when: int,
    force: bool = False,
    made_after: tuple[int, ...] | None = None,
) -> Entered:
    """Bring a checkout to a stack.

    Nothing of the user's is ever lost: it is refused over, or with `force` saved under a ref first.
    `when` names that ref, in seconds since the epoch. A checkout that is there already is not
    touched at all. `made_after` are the marks of the checkout from before the patches were read.
    Raises SurroundingsError; the checkout is then as it was. MovedMeanwhileError if it was moved
    since: to patches that are newer, perhaps.
    """
    marks = marks_of(checkout)
    before = inspect(checkout)
    if _is_there(before, stack) and not has_leftovers(checkout):
        write_purpose(checkout.own_folder, checkout.purpose)
        return Entered(Action.UNCHANGED, before)
    with locked(checkout):
        if marks_of(checkout) != marks:
            before = inspect(checkout)  # another patchkit was here meanwhile
        if made_after not in (None, marks_of(checkout)) and not _is_there(before, stack):
            raise MovedMeanwhileError(
                f"{checkout.path} was moved by another patchkit", hint="run the command again"
            )
        entered = _enter(checkout, stack, before, when=when, force=force)
        if entered.action is not Action.REFUSED:
            write_purpose(checkout.own_folder, checkout.purpose)
        return entered


def foresee(checkout: Checkout, stack: Stacked, *, force: bool = False) -> Entered:
    """What `enter_stack` would do, as far as can be told without writing anything."""
    before = inspect(checkout)
    if before.state is CheckoutState.ABSENT:
        return Entered(Action.CREATED, before)
    if _is_there(before, stack):
        return Entered(Action.UNCHANGED, before)
    refusal, changed = _refusal(before, stack), 0
    if before.state.movable and before.head is not None:
        refusal, changed = _foreseen(checkout, stack, before.head)
    if refusal is not None and (not force or refusal.cause is RefusalCause.UNSAVABLE):
        return _refused(before, refusal)
    created = before.state is CheckoutState.OTHER_BRANCH and not before.ours
    return Entered(Action.CREATED if created else Action.MOVED, before, changed)


def _foreseen(checkout: Checkout, stack: Stacked, head: CommitId) -> tuple[Refusal | None, int]:
    """What of the user's would be overwritten that the snapshot does not show, and how many files
    change. Told by objects that the checkout need not have yet.
    """
    from patchkit.gitcmd.scratch import overlay  # noqa: PLC0415 (a dry run)

    with overlay(checkout.repository, stack.source) as trial:
        write_objects(trial, stack.objects)
        changes = tree_changes(trial, head, stack.tip)
        files = {c.path: c.old_file for c in changes if c.old_file is not None}
        actual = {path: contents_at(checkout.path, path) for path in files}
        hidden = unlike(checkout.repository, head, files, actual, trial.git_dir / "form")
    return _hidden(hidden) if hidden else _in_the_way(checkout.path, changes), len(changes)


def _enter(
    checkout: Checkout, stack: Stacked, before: Snapshot, *, when: int, force: bool
) -> Entered:
    if before.state is CheckoutState.ABSENT:
        return _create(checkout, stack, before)
    if force and not before.ours:
        before = inspect(checkout)  # a git out of memory or descriptors may have seen no refs
    if not before.ours and before.state is CheckoutState.OTHER_BRANCH:
        refusal = _refusal(before, stack)
        return _replace(checkout, stack, before, when) if force else _refused(before, refusal)
    finished = before.state is CheckoutState.INTERRUPTED
    left_behind: tuple[str, ...] = ()
    left = recover(checkout)
    if left is not None:
        if not force:
            cause = RefusalCause.INTERRUPTED
            return _refused(before, Refusal(cause, before.detail, tuple(left)))
        left_behind = abandon(checkout)
    if finished:
        before = inspect(checkout)
    entered = _enter_ours(checkout, stack, before, when=when, force=force)
    return replace(entered, finished=finished, also_saved=(*left_behind, *entered.also_saved))


def marks_of(checkout: Checkout) -> tuple[int, ...]:
    """What changes whenever patchkit moves a checkout: its index is a new file then."""
    mark = index_mark(checkout)
    return (*mark, has_leftovers(checkout)) if mark else ()


def _create(
    checkout: Checkout, stack: Stacked, before: Snapshot, aside: Path | None = None
) -> Entered:
    with stack.recording(None):
        moved = create_checkout(checkout, stack, aside=aside)
    return Entered(Action.CREATED, before, moved.changed, moved.left_out)


def _replace(checkout: Checkout, stack: Stacked, before: Snapshot, when: int) -> Entered:
    """Rename what is no checkout of ours, and make one in its place."""
    from patchkit.workspace.save import stamp  # noqa: PLC0415 (for what is the user's)

    aside = free_name(checkout.path.with_name(f"{checkout.path.name}.saved-{stamp(when)}"))
    return replace(_create(checkout, stack, before, aside), moved_aside=aside)


def _enter_ours(
    checkout: Checkout, stack: Stacked, before: Snapshot, *, when: int, force: bool
) -> Entered:
    if _is_there(before, stack):
        return Entered(Action.UNCHANGED, before)  # another patchkit was faster
    refusal = _refusal(before, stack)
    if refusal is not None and not force:
        return _refused(before, refusal)
    _bring(checkout, stack, before)
    if refusal is None:
        assert before.head is not None
        known = stack.changes if before.head == stack.base else None
        changes = known or tree_changes(checkout.repository, before.head, stack.tip)
        refusal = _in_the_way(checkout.path, changes)
        if refusal is None:
            held = Held(before.head)
            start = Place(before.base or stack.base, before.head)
            try:
                with stack.recording(start):
                    moved = move_checkout(
                        checkout, before, stack.place, held, when=when, changes=changes
                    )
            except NotHeldError as error:
                refusal = _hidden(error.paths)
            else:
                return _moved(before, moved)
    if not force:
        return _refused(before, refusal)
    return _save_and_move(checkout, stack, before, when)


def _save_and_move(checkout: Checkout, stack: Stacked, before: Snapshot, when: int) -> Entered:
    from patchkit.workspace.save import (  # noqa: PLC0415 (for what is the user's)
        end_operation,
        read_worktree,
        save_work,
        staged_id,
    )

    try:
        worktree = read_worktree(checkout, before.head or stack.base)
        changes = tree_changes(checkout.repository, worktree.tree, stack.tip)
        refusal = _in_the_way(checkout.path, changes)
        if refusal is not None and refusal.cause is RefusalCause.UNSAVABLE:
            abandon(checkout)
            return _refused(before, refusal)
        blocks = refusal.paths if refusal is not None else ()
        files = [path for each in blocks for path in _files_of(checkout.path, each)]
        in_the_way = {path: contents_at(checkout.path, path) for path in files}
        staged = staged_id(checkout)
        kept = [before.halt] if before.halt is not None else []
        saved = save_work(checkout, before, worktree, in_the_way=files, when=when, parents=kept)
        start = _edited_place(checkout, before, saved, worktree.tree, files)
    except BaseException:
        abandon(checkout)
        raise
    held = Held(worktree.tree, in_the_way=in_the_way, staged=staged)
    with stack.recording(start):
        moved = move_checkout(checkout, before, stack.place, held, when=when, changes=changes)
    end_operation(checkout, saved)
    return replace(_moved(before, moved), saved=saved)


def _edited_place(
    checkout: Checkout, before: Snapshot, saved: str, tree: TreeId, in_the_way: Sequence[str]
) -> Place | None:
    """Where a checkout with work in it is, to come back to: own commits are edits then.

    None where a rebase, another branch or the like could not come back.
    """
    from patchkit.workspace.save import rows_beyond  # noqa: PLC0415 (for what is the user's)

    tips = {CheckoutState.EDITED: before.head, CheckoutState.EXTRA_COMMITS: before.applied}
    tip = tips.get(before.state)
    if tip is None or before.base is None:
        return None
    written: list[GitObject] = []
    with reading(checkout.repository) as reader:
        files, kept = Tree(reader, tree), Tree(reader, reader.root(TreeId(saved)))
        for path in in_the_way:
            entry = kept.entry(path)
            files = files.put(path, entry) if entry is not None else files
        oid = files.write(written)
    write_objects(checkout.repository, written)
    return Place(before.base, tip, oid, rows_beyond(checkout, tip))


def _moved(before: Snapshot, moved: Moved) -> Entered:
    return Entered(Action.MOVED, before, moved.changed, moved.left_out, also_saved=moved.saved)


def _bring(checkout: Checkout, stack: Stacked, before: Snapshot) -> None:
    """Make sure that the stack's commits and all that they need are in the checkout."""
    if before.base == stack.base:  # a ref keeps it there, with all that it needs
        write_objects(checkout.repository, stack.objects)
        return
    bring_objects(stack.source, checkout.repository, stack.objects)


def _is_there(before: Snapshot, stack: Stacked) -> bool:
    return (
        before.state in (CheckoutState.UNPATCHED, CheckoutState.APPLIED)
        and before.head == before.applied == stack.tip
        and before.base == stack.base
    )


def _refused(before: Snapshot, refusal: Refusal | None) -> Entered:
    return Entered(Action.REFUSED, before, refusal=refusal)


def _refusal(before: Snapshot, stack: Stacked) -> Refusal | None:
    """What of the user's stands against moving, as far as the snapshot shows it."""
    if before.state.movable or before.state is CheckoutState.INTERRUPTED:
        return None
    if (
        before.state is CheckoutState.EXTRA_COMMITS
        and before.head == stack.tip
        and not before.edited
    ):
        return None  # the very stack: a refresh was killed before it moved the refs
    return Refusal(RefusalCause(before.state.value), before.detail, before.edited)


def _hidden(paths: Sequence[str]) -> Refusal:
    return Refusal(RefusalCause.EDITED, "git does not show it", tuple(paths))


def _in_the_way(root: Path, changes: Sequence[TreeChange]) -> Refusal | None:
    blocks = obstacles(root, changes)
    if lost := [path for path in blocks if _cannot_be_saved(root, path)]:
        return Refusal(RefusalCause.UNSAVABLE, paths=tuple(lost))
    return Refusal(RefusalCause.IN_THE_WAY, paths=tuple(blocks)) if blocks else None


def _files_of(root: Path, path: str) -> list[str]:
    """The files that an obstacle is: itself, or all that are in a folder ("path/")."""
    return files_below(root, path.rstrip("/")) if path.endswith("/") else [path]


def _cannot_be_saved(root: Path, path: str) -> bool:
    """Whether no commit can hold what is there: a repository of its own, a socket."""
    found = ((each, contents_at(root, each)) for each in _files_of(root, path))
    return any(
        "/.git/" in f"/{each}/" or (now is not None and now.kind == SPECIAL) for each, now in found
    )
