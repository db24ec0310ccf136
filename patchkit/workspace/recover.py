"""The end of a move: index and refs follow the files, under git's own lock on the index; and after
a kill the move that a journal describes is finished, or found to be one that cannot be.

Every step may be done twice: it looks what is left to do. A path, the index or a ref that is
neither as the move found it nor as it puts it was changed by somebody else, and then stays.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from patchkit.errors import Problem, SurroundingsError
from patchkit.gitcmd.process import GitFailureError, NoAnswerError
from patchkit.gitcmd.repository import ZERO, RefChange
from patchkit.workspace.changes import refresh_index
from patchkit.workspace.checkout import (
    APPLIED_REF,
    BASE_REF,
    BRANCH,
    HALT_REF,
    Checkout,
)
from patchkit.workspace.contents import (
    blocking_parent,
    contents_at,
    contents_of,
    free_name,
    full_path,
)
from patchkit.workspace.journal import Journal, journal_path, move_folder, read_journal
from patchkit.workspace.put_files import (
    changed_meanwhile,
    exchanged,
    give_back_unknown,
    put_in_place,
    release,
    remove_empty_folder,
    strangers,
)

# Git's own lock on the index, held while files move.
#
# As long as `.git/index.lock` is there no `git add`, `commit` or `checkout` of the user's starts.
# Ours has contents that git never writes, so that one which a killed run left is known as ours.


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


# The last steps of a move, once its files are in place: index, refs, journal, in this order.
#
# Each function may be called again after a kill and then does what is left.


def record(checkout: Checkout, journal: Journal) -> None:
    """Make the checkout's git agree with the files: index, then refs, then HEAD."""
    for path in journal.dropped:
        remove_empty_folder(checkout.path, path)
    for path in journal.folders:
        full_path(checkout.path, path).mkdir(parents=True, exist_ok=True)
    _replace_index(checkout, journal)
    _move_refs(checkout, journal)


def put_folders_back(checkout: Checkout, journal: Journal) -> None:
    """Undo what a move does to the folders of submodules: without one, git shows an edit."""
    for path in journal.folders:
        remove_empty_folder(checkout.path, path)
    for path in journal.dropped:
        nothing = contents_at(checkout.path, path) is None
        if nothing and blocking_parent(checkout.path, path) is None:
            full_path(checkout.path, path).mkdir(parents=True, exist_ok=True)


def clean_up(checkout: Checkout) -> None:
    """Forget the move."""
    # The lock of the index goes first: a journal whose move is done is finished at no cost, a lock
    # without a journal would keep the user's git away.
    release_index(checkout)
    journal_path(checkout.own_folder).unlink(missing_ok=True)
    shutil.rmtree(move_folder(checkout.own_folder), ignore_errors=True)


def save_late(checkout: Checkout, journal: Journal, when: int) -> tuple[str, ...]:
    """Let go of what a move took out of the way.

    Returns the ref of what was written to it since, and the files to which programs that have it
    open still write. `when`, in seconds since the epoch, names them.
    """
    written, still_open = release(move_folder(checkout.own_folder), journal.steps)
    if not written and not still_open:
        return ()
    from patchkit.workspace.save import save_files, stamp  # noqa: PLC0415 (rarely is something)

    found = [save_files(checkout, written, when)] if written else []
    for path, place in still_open.items():
        kept = free_name(checkout.own_folder / "open" / f"{stamp(when)}-{Path(path).name}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        place.rename(kept)
        found.append(str(kept))
    return tuple(found)


def put_index_back(checkout: Checkout, journal: Journal) -> None:
    """Undo the replacement of the index, if it came to that; the new one waits again."""
    folder = move_folder(checkout.own_folder)
    before, new, index = folder / "index.before", folder / "index", checkout.git_dir / "index"
    if new.exists() or not index.exists():
        return
    if journal.index is None:
        index.replace(new)
    elif before.exists():
        # a kill in between leaves the new one as `before`, see `_replace_index`
        if exchanged(before, index):
            before.replace(new)
        else:
            before.replace(index)


def index_id(checkout: Checkout) -> str | None:
    """What tells one index from another: the id of its bytes; None if there is none."""
    contents = contents_of(checkout.git_dir / "index")
    return None if contents is None else contents.oid


def ref_changes(journal: Journal) -> list[RefChange]:
    """What a move does to refs; neither `old` nor `new` is None."""
    changes = [
        RefChange(BRANCH, journal.tip, journal.branch or ZERO),
        RefChange(BASE_REF, journal.base, journal.base_before or ZERO),
        RefChange(APPLIED_REF, journal.tip, journal.applied or ZERO),
    ]
    if journal.halt is not None or journal.halt_before is not None:
        changes.append(RefChange(HALT_REF, journal.halt or ZERO, journal.halt_before or ZERO))
    return changes


def refs_known(checkout: Checkout, journal: Journal) -> bool:
    """Whether every ref is where the move found it or where it puts it."""
    return all(_named(checkout, c) in (c.old, c.new) for c in ref_changes(journal))


def refs_untouched(checkout: Checkout, journal: Journal) -> bool:
    """Whether the move has surely changed no ref yet; somebody else may have."""
    changes = [c for c in ref_changes(journal) if c.old != c.new]
    return all(_named(checkout, c) != c.new for c in changes)


def free_refs(checkout: Checkout) -> None:
    """Remove the locks of a move's refs that a killed git left.

    Only while the index is locked: whoever commits needs both, so none of them is in use.
    """
    checkout.repository.free_refs(["HEAD", BRANCH, BASE_REF, APPLIED_REF, HALT_REF, "packed-refs"])


def _replace_index(checkout: Checkout, journal: Journal) -> None:
    folder = move_folder(checkout.own_folder)
    new, index, before = folder / "index", checkout.git_dir / "index", folder / "index.before"
    if not new.exists() and before.exists() and index_id(checkout) == journal.index:
        before.replace(new)  # `put_index_back` was killed
    if not new.exists():
        return
    refresh_index(checkout.repository, new)
    _copy(index, before)
    new.replace(index)


def _copy(index: Path, before: Path) -> None:
    if index.exists():
        draft = before.with_suffix(".draft")
        shutil.copy2(index, draft)  # with its time, by which git knows what to look at again
        draft.replace(before)


def _move_refs(checkout: Checkout, journal: Journal) -> None:
    changes = [each for each in ref_changes(journal) if each.old != each.new]
    try:
        _update_refs(checkout, changes)
    except (GitFailureError, NoAnswerError):
        if not refs_known(checkout, journal):
            raise changed_meanwhile("the branch") from None
        free_refs(checkout)
        # a move that was killed may have changed them already
        left = [each for each in changes if _named(checkout, each) != (each.new or ZERO)]
        _update_refs(checkout, left)


def _update_refs(checkout: Checkout, changes: Sequence[RefChange]) -> None:
    repository = checkout.repository
    if changes:
        repository.update_refs(changes, reason="patchkit: move to the stack")
    if (checkout.git_dir / "HEAD").read_text().strip() != f"ref: {BRANCH}":
        repository.git("symbolic-ref", "-m", "patchkit: move to the stack", "HEAD", BRANCH)


def _named(checkout: Checkout, change: RefChange) -> str:
    """What the ref of a change names now, ZERO if there is none."""
    return checkout.repository.ref(change.name) or ZERO


def has_leftovers(checkout: Checkout) -> bool:
    """Whether a run was killed while it moved the checkout, or before, or just after."""
    return move_folder(checkout.own_folder).exists()


def recover(checkout: Checkout) -> list[str] | None:
    """Finish a move that was killed, if there is one.

    Returns None if nothing stands half-way now. Else nothing was changed, and the answer is the
    paths that somebody wrote to since the kill; it is empty if refs or index were changed since.
    """
    journal = read_journal(checkout.own_folder)
    if journal is None:
        clean_up(checkout)  # killed before anything changed
        return None
    folder = move_folder(checkout.own_folder)
    give_back_unknown(checkout.path, folder, journal.steps)
    if found := strangers(checkout.path, folder, journal.steps):
        return found
    if _moved_elsewhere(checkout, journal):
        return []
    hold_index(checkout)
    free_refs(checkout)
    put_in_place(checkout.path, folder, journal.steps, again=True)
    record(checkout, journal)
    save_late(checkout, journal, int(time.time()))
    clean_up(checkout)
    return None


def abandon(checkout: Checkout) -> tuple[str, ...]:
    """Forget a move that was prepared or killed; the worktree stays as it is.

    Returns refs of what was written to files that it had taken out of the way.
    """
    journal = read_journal(checkout.own_folder)
    saved = save_late(checkout, journal, int(time.time())) if journal is not None else ()
    clean_up(checkout)
    return saved


def _moved_elsewhere(checkout: Checkout, journal: Journal) -> bool:
    """Whether somebody moved the refs or changed the index since the kill."""
    if not refs_known(checkout, journal):
        return True
    if checkout.repository.commit("HEAD") not in (journal.head, journal.tip):
        return True
    waiting = (move_folder(checkout.own_folder) / "index").exists()
    return waiting and index_id(checkout) != journal.index
