"""After a kill: finish the move that a journal tells of, or find out that it cannot be finished."""

from __future__ import annotations

import time

from patchkit.workspace.checkout import Checkout
from patchkit.workspace.indexlock import hold_index, release_index
from patchkit.workspace.journal import Journal, move_folder, read_journal
from patchkit.workspace.place import discard, give_back_unknown, put_in_place, strangers
from patchkit.workspace.record import (
    clean_up,
    free_refs,
    index_id,
    record,
    refs_known,
    save_late,
)


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
        # killed before anything changed
        release_index(checkout)
        discard(move_folder(checkout.own_folder))
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
