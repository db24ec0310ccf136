"""The end of a move, once its files are in place: submodule folders, index, refs, journal.

Each function may be called again after a kill and then does what is left.
"""

from __future__ import annotations

from pathlib import Path

from patchkit.gitcmd.process import GitFailureError
from patchkit.gitcmd.repository import ZERO, RefChange
from patchkit.model.objects import lines_of
from patchkit.workspace.checkout import APPLIED_REF, BASE_REF, BRANCH, HALT_REF, Checkout
from patchkit.workspace.contents import contents_of, free_name
from patchkit.workspace.indexlock import release_index
from patchkit.workspace.journal import Journal, journal_path, move_folder
from patchkit.workspace.place import (
    changed_meanwhile,
    discard,
    make_folder,
    release,
    remove_empty_folder,
)
from patchkit.workspace.save import save_files, stamp
from patchkit.workspace.staging import refresh_index


def record(checkout: Checkout, journal: Journal) -> None:
    """Make the checkout's git agree with the files: index, then refs, then HEAD."""
    for path in journal.dropped:
        remove_empty_folder(checkout.path, path)
    for path in journal.folders:
        make_folder(checkout.path, path)
    _replace_index(checkout)
    _move_refs(checkout, journal)


def clean_up(checkout: Checkout) -> None:
    """Forget the move."""
    # The lock of the index goes first: a journal whose move is done is finished at no cost, a lock
    # without a journal would keep the user's git away.
    release_index(checkout)
    journal_path(checkout.own_folder).unlink(missing_ok=True)
    discard(move_folder(checkout.own_folder))


def save_late(checkout: Checkout, journal: Journal, when: int) -> tuple[str, ...]:
    """Let go of what a move took out of the way.

    Returns the ref of what was written to it since, and the files to which programs that have it
    open still write. `when`, in seconds since the epoch, names them.
    """
    written, still_open = release(move_folder(checkout.own_folder), journal.steps)
    found = [save_files(checkout, written, when)] if written else []
    for path, place in still_open.items():
        kept = free_name(checkout.own_folder / "open" / f"{stamp(when)}-{Path(path).name}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        place.rename(kept)
        found.append(str(kept))
    return tuple(found)


def put_index_back(checkout: Checkout) -> None:
    """Undo the replacement of the index, if it came to that."""
    folder = move_folder(checkout.own_folder)
    before = folder / "index.before"
    if before.exists() and not (folder / "index").exists():
        before.replace(checkout.git_dir / "index")


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
    now = _refs(checkout)
    return all(now.get(c.name, ZERO) in (c.old, c.new) for c in ref_changes(journal))


def refs_untouched(checkout: Checkout, journal: Journal) -> bool:
    """Whether the move has changed no ref yet; somebody else may have."""
    now = _refs(checkout)
    return all(c.old == c.new or now.get(c.name, ZERO) != c.new for c in ref_changes(journal))


def free_refs(checkout: Checkout) -> None:
    """Remove the locks of refs that a killed git left.

    Only while the index is locked: whoever commits needs both, so none of them is in use.
    """
    names = ("HEAD", BRANCH, BASE_REF, APPLIED_REF, HALT_REF, "packed-refs")
    checkout.repository.free_refs(names)


def _replace_index(checkout: Checkout) -> None:
    folder = move_folder(checkout.own_folder)
    new, index = folder / "index", checkout.git_dir / "index"
    if not new.exists():
        return
    refresh_index(checkout.repository, new)
    _copy(index, folder / "index.before")
    new.replace(index)


def _copy(index: Path, before: Path) -> None:
    if index.exists():
        draft = before.with_suffix(".draft")
        draft.write_bytes(index.read_bytes())
        draft.replace(before)


def _move_refs(checkout: Checkout, journal: Journal) -> None:
    try:
        _update_refs(checkout, journal)
    except GitFailureError:
        if not refs_known(checkout, journal):
            raise changed_meanwhile("the branch") from None
        free_refs(checkout)
        _update_refs(checkout, journal)


def _update_refs(checkout: Checkout, journal: Journal) -> None:
    repository = checkout.repository
    now = _refs(checkout)
    # git lists nothing, without a word, where it cannot read the folder
    changes = [c for c in ref_changes(journal) if not now or now.get(c.name, ZERO) != c.new]
    if changes:
        repository.update_refs(changes, reason="patchkit: move to the stack")
    if (checkout.git_dir / "HEAD").read_text().strip() != f"ref: {BRANCH}":
        repository.git("symbolic-ref", "-m", "patchkit: move to the stack", "HEAD", BRANCH)


def _refs(checkout: Checkout) -> dict[str, str]:
    """Ref name -> commit of the refs that a move changes, as far as they are there."""
    names = (BRANCH, BASE_REF, APPLIED_REF, HALT_REF)
    out = checkout.repository.git("for-each-ref", "--format=%(refname) %(objectname)", *names).out
    return dict(row.split(" ") for row in lines_of(out.decode()))
