"""Move a checkout from one commit to another so that a crash at any moment loses nothing.

Everything new is written inside the git directory first; then the journal; then each file is
renamed into place, the index is replaced, and the refs change in one transaction. A failure on the
way puts all back. What a kill leaves is finished by the next run, see `recover.py`.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.objects import write_objects
from patchkit.model.objects import GitObject
from patchkit.workspace.checkout import BRANCH, Checkout
from patchkit.workspace.contents import FOLDER, Contents, contents_at, files_below
from patchkit.workspace.folding import require_distinct, require_steady
from patchkit.workspace.indexlock import hold_index
from patchkit.workspace.journal import Journal, Step, move_folder, read_journal, write_journal
from patchkit.workspace.place import changed_meanwhile, put_back, put_in_place, remove_empty_folder
from patchkit.workspace.plan import TreeChange, absent_objects
from patchkit.workspace.record import (
    clean_up,
    free_refs,
    index_id,
    put_index_back,
    record,
    refs_untouched,
)
from patchkit.workspace.staging import (
    bring_in,
    edited_in_secret,
    forget_files,
    forms,
    leave_out,
    left_out_files,
    prepare_index,
    set_rows,
    stage,
    tracked_files,
)
from patchkit.workspace.state import Snapshot


class Target(Struct, frozen=True):
    """Where a move goes: `tip`, a stack on `base`. Their objects are in the checkout.

    With `halt`, the commit of what it waits for, the worktree gets `worktree` in place of the tip's
    tree, and of the index those paths that `index` names have other rows ("mode id stage").
    """

    base: str
    tip: str
    halt: str | None = None
    worktree: str | None = None
    index: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Moved(Struct, frozen=True):
    """How many files were written or removed, and which were left out: no server has their blob."""

    changed: int = 0
    left_out: tuple[str, ...] = ()


def move_checkout(
    checkout: Checkout,
    snapshot: Snapshot,
    target: Target,
    changes: Sequence[TreeChange],
    *,
    index: Path | None = None,
    saved: Mapping[str, Contents | None] | None = None,
) -> Moved:
    """Bring worktree, index and refs to the target. All or nothing, unless the process is killed.

    `changes` lead from what the worktree holds to the target's tree. `index` knows the files that
    stay (default: the checkout's). `saved` are untracked things in the way, which the caller has
    saved, with their contents then. Raises ChangedMeanwhileError if a file is not as it should be.
    """
    folder = move_folder(checkout.own_folder)
    try:
        _make_room(checkout, folder)
        require_distinct(checkout.repository, target.worktree or target.tip)
        require_steady(checkout.repository, [change.path for change in changes])
        hold_index(checkout)
        start = index or checkout.git_dir / "index"
        prepare_index(checkout.repository, start, folder / "index", target.worktree or target.tip)
        changes = [*changes, *_restyled(checkout, start, changes)]
        absent, sparse = _stage(checkout, changes)
        leave_out(checkout.repository, folder / "index", absent)
        steps = _steps(checkout, changes, [*absent, *sparse], saved or {})
        set_rows(checkout.repository, folder / "index", target.index)
        journal = _journal(checkout, snapshot, target, changes, steps)
        write_journal(checkout.own_folder, journal)
    except BaseException:
        clean_up(checkout)
        raise
    _carry_out(checkout, journal)
    return Moved(len(steps), tuple(absent))


def _make_room(checkout: Checkout, folder: Path) -> None:
    """Begin with nothing that a run left which was killed before its journal, or just after it.

    Only the indexes that the caller made for this move stay.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if read_journal(checkout.own_folder) is not None:
        return  # the caller has seen to it
    for left in folder.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        elif left.suffix != ".index":
            left.unlink()


def _carry_out(checkout: Checkout, journal: Journal) -> None:
    """Do what a journal says; all is put back if a step fails."""
    folder = move_folder(checkout.own_folder)
    try:
        put_in_place(checkout.path, folder, journal.steps)
        record(checkout, journal)
    except BaseException:
        # once a ref has moved there is no way back: the next run finishes it
        if refs_untouched(checkout, journal):
            put_back(checkout.path, folder, journal.steps)
            for path in journal.folders:
                remove_empty_folder(checkout.path, path)
            put_index_back(checkout)
            free_refs(checkout)
            clean_up(checkout)
        raise
    clean_up(checkout)


def _stage(checkout: Checkout, changes: Sequence[TreeChange]) -> tuple[list[str], list[str]]:
    """Write the files to come.

    Returns the paths whose contents no server has, and those that the user's sparse checkout
    leaves out.
    """
    folder = move_folder(checkout.own_folder)
    wanted = {each.path: each.new_file.oid for each in changes if each.new_file is not None}
    absent: list[str] = []
    sparse: list[str] = []
    try:
        stage(checkout.repository, folder / "index", folder / "new", list(wanted))
    except SurroundingsError:
        lost = absent_objects(checkout.repository, wanted.values())
        absent = [path for path, oid in wanted.items() if oid in lost]
        marked = left_out_files(checkout.repository, folder / "index") & wanted.keys() - set(absent)
        if not absent and not marked:
            raise
        sparse = [path for path in marked if contents_at(checkout.path, path) is None]
        bring_in(checkout.repository, folder / "index", sorted(marked - set(sparse)))
        coming = [path for path in wanted if path not in absent and path not in sparse]
        stage(checkout.repository, folder / "index", folder / "new", coming)
    return absent, sparse


def _restyled(checkout: Checkout, start: Path, changes: Sequence[TreeChange]) -> list[TreeChange]:
    """The other files on disk that attributes give another form than they may have now."""
    known = {change.path for change in changes}
    if not any(path.rpartition("/")[2] == ".gitattributes" for path in known):
        return []
    repository, index = checkout.repository, move_folder(checkout.own_folder) / "index"
    files = tracked_files(repository, index)
    paths = [path for path in files if path not in known]
    coming = forms(repository, index, paths, cached=True)
    # the file on disk may be edited, and then says little about when the others were written
    present = [forms(repository, start, paths, cached=each) for each in (True, False)]
    return [
        TreeChange(path, files[path], files[path])
        for path in paths
        if any(each[path] != coming[path] for each in present)
        and contents_at(checkout.path, path) is not None
    ]


def _steps(
    checkout: Checkout,
    changes: Sequence[TreeChange],
    absent: Collection[str],
    saved: Mapping[str, Contents | None],
) -> list[Step]:
    """The files that have to move; those to come are staged but for the `absent` ones."""
    folder = move_folder(checkout.own_folder)
    coming = [c.path for c in changes if c.new_file is not None and c.path not in absent]
    staged = {path: contents_at(folder / "new", path) for path in coming}
    tracked = {change.path for change in changes if change.old_file is not None}
    paths = [c.path for c in changes if c.old_file is not None or c.new_file is not None]
    paths += [path for path in saved if path not in staged and path not in tracked]
    actual = {path: _old(checkout, path, tracked) for path in paths}
    steps = [Step(path, actual[path], staged.get(path)) for path in paths]
    steps = [step for step in steps if step.old != step.new]
    _require_unchanged(checkout, changes, steps, saved)
    same_blob = {change.path for change in changes if change.old == change.new}
    restyled = [step.path for step in steps if step.path in same_blob]
    forget_files(checkout.repository, folder / "index", restyled)
    return steps


def _require_unchanged(
    checkout: Checkout,
    changes: Sequence[TreeChange],
    steps: Sequence[Step],
    saved: Mapping[str, Contents | None],
) -> None:
    """Raise unless what is about to be replaced is in a commit, or was saved just so."""
    tracked = {c.path: c.old_file.oid for c in changes if c.old_file is not None}
    actual = {step.path: step.old for step in steps}
    others = edited_in_secret(checkout.repository, changes, actual)
    others += [
        path
        for path, contents in actual.items()
        if path not in tracked and contents is not None and saved.get(path) != contents
    ]
    # where git read a file once more, for its filters, that must be what the journal says
    others += [
        path
        for path, contents in actual.items()
        if contents is not None
        and contents.oid != tracked.get(path, contents.oid)
        and contents_at(checkout.path, path) != contents
    ]
    if others:
        raise changed_meanwhile(others[0])


def _old(checkout: Checkout, path: str, tracked: set[str]) -> Contents | None:
    old = contents_at(checkout.path, path)
    if old is not None and old.kind == FOLDER:
        # a folder of tracked files goes when they go, by steps of their own
        below = files_below(checkout.path, path)
        return None if all(each in tracked for each in below) else old
    return old


def _journal(
    checkout: Checkout,
    snapshot: Snapshot,
    target: Target,
    changes: Sequence[TreeChange],
    steps: Sequence[Step],
) -> Journal:
    on_branch = snapshot.branch == BRANCH
    return Journal(
        head=snapshot.head,
        branch=snapshot.head if on_branch else checkout.repository.resolve(BRANCH),
        base_before=snapshot.base,
        applied=snapshot.applied,
        index=index_id(checkout),
        base=target.base,
        tip=target.tip,
        halt=target.halt,
        halt_before=snapshot.halt,
        steps=tuple(steps),
        folders=tuple(c.path for c in changes if c.new is not None and c.new_file is None),
        dropped=tuple(c.path for c in changes if c.old is not None and c.old_file is None),
    )


def settle(
    checkout: Checkout, snapshot: Snapshot, target: Target, objects: Sequence[GitObject] = ()
) -> None:
    """Make the target what the checkout is at, without touching a file; `objects` are new with it.

    What the worktree holds beyond it becomes an uncommitted edit, a staged new file untracked.
    The caller holds `locked(checkout)`, and no merge or rebase waits there.
    """
    write_objects(checkout.repository, objects)
    move_checkout(checkout, snapshot, target, ())
