"""Move a checkout from one commit to another: the one way in which its files are replaced.

The caller says what of the checkout's is in a commit or saved (`Held`), and only that is replaced:
each file is compared once more as it is taken out of its place, and so is the index, once git's
lock on it is held. Anything beyond it stops the move, with everything as it was; what only the
index holds is saved.

Everything new is written inside the git directory first; then the journal; then each file changes
places with what is there, the index is replaced, and the refs change in one transaction. A failure
on the way puts all back. What a kill leaves is finished by the next run, see `recover.py`.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec import Struct

from patchkit.errors import PatchkitError, Problem, SurroundingsError, expected
from patchkit.gitcmd.trees import tree_changes
from patchkit.model.objects import Treeish
from patchkit.model.tree import TreeChange
from patchkit.workspace.changes import (
    absent_objects,
    forget_files,
    forms,
    hidden_files,
    leave_out,
    left_out_files,
    obstacles,
    prepare_index,
    set_rows,
    stage,
    tracked_files,
    unlike,
)
from patchkit.workspace.checkout import BRANCH, Checkout
from patchkit.workspace.contents import (
    FOLDER,
    Contents,
    contents_at,
    files_below,
    require_distinct,
    require_steady,
)
from patchkit.workspace.journal import Journal, MoveStep, move_folder, read_journal, write_journal
from patchkit.workspace.put_files import (
    ChangedMeanwhileError,
    changed_meanwhile,
    put_back,
    put_in_place,
)
from patchkit.workspace.recover import (
    clean_up,
    free_refs,
    hold_index,
    index_id,
    put_folders_back,
    put_index_back,
    record,
    refs_untouched,
    save_late,
)
from patchkit.workspace.state import Held, Place, Snapshot, index_mark


class Moved(Struct, frozen=True):
    """How many files were written or removed, and which were left out: no server has their blob.

    `saved` are refs with what only the index had, and what was written while it was replaced.
    """

    changed: int  # files written or removed
    left_out: tuple[str, ...]
    saved: tuple[str, ...] = ()


class NotHeldError(ChangedMeanwhileError):
    """Files of the checkout are not what its caller knows them to be: nothing was changed.

    They were saved meanwhile, or git does not show that they are edited.
    """

    def __init__(self, paths: Sequence[str], *problems: Problem) -> None:
        super().__init__(*problems)
        self.paths = tuple(paths)


def move_checkout(
    checkout: Checkout,
    snapshot: Snapshot,
    target: Place,
    held: Held,
    *,
    when: int,
    changes: Sequence[TreeChange] | None = None,
    halt: str | None = None,
) -> Moved:
    """Bring worktree, index and refs to the target. All or nothing, unless the process is killed.

    The target's objects are in the checkout. Of a snapshot without edits `held` is the tree of its
    head. `when`, in seconds since the epoch, names what is saved. `changes` are those between the
    two trees, where the caller knows them; `halt` is the commit of what the checkout waits for
    then. Raises NotHeldError or ChangedMeanwhileError if a file is not as it should be, with
    everything as it was.
    """
    tree = target.tree
    if changes is None:
        changes = tree_changes(checkout.repository, held.tree, tree)
    folder = move_folder(checkout.own_folder)
    try:
        _make_room(checkout, folder)
        require_distinct(checkout.repository, tree)
        require_steady(checkout.repository, [change.path for change in changes])
        hold_index(checkout)
        start = checkout.git_dir / "index"
        prepare_index(checkout.repository, start, folder / "index", tree)
        changes = [*changes, *_restyled(checkout, start, changes)]
        absent, sparse = _stage(checkout, changes)
        leave_out(checkout.repository, folder / "index", absent)
        steps = _steps(checkout, changes, [*absent, *sparse], held)
        set_rows(checkout.repository, folder / "index", target.index)
        saved = _save_staged(checkout, snapshot, held, tree=tree, steps=steps, when=when)
        journal = _journal(checkout, snapshot, target, halt, changes=changes, steps=steps)
        write_journal(checkout.own_folder, journal)
    except BaseException:
        clean_up(checkout)
        raise
    late = _carry_out(checkout, journal, when)
    return Moved(len(steps), tuple(absent), (*saved, *late))


def settle(checkout: Checkout, snapshot: Snapshot, target: Place, *, when: int) -> Moved:
    """Make the target what the checkout is at, without touching a file: it names none.

    What the worktree holds beyond it becomes an uncommitted edit, a staged new file untracked. The
    caller holds `locked(checkout)`, and no merge or rebase waits there.
    """
    return move_checkout(checkout, snapshot, target, Held(target.tip), when=when, changes=())


def _save_staged(
    checkout: Checkout,
    snapshot: Snapshot,
    held: Held,
    *,
    tree: Treeish,
    steps: Sequence[MoveStep],
    when: int,
) -> tuple[str, ...]:
    """Keep what only the index has, which git cannot change any more; the ref of it, if any."""
    clean = not snapshot.edited and not snapshot.operation
    if clean and snapshot.index == index_mark(checkout):
        return ()
    from patchkit.workspace.save import only_staged, save_index, staged_id  # noqa: PLC0415 (edits)

    if held.staged:
        if staged_id(checkout) != held.staged:
            raise changed_meanwhile("the index")
        return ()
    if only_staged(checkout, snapshot.head, held, tree, [step.path for step in steps]):
        return (save_index(checkout, snapshot, when),)
    return ()


def _make_room(checkout: Checkout, folder: Path) -> None:
    """Begin with nothing that a run left which was killed before its journal, or just after it."""
    if folder.exists() and read_journal(checkout.own_folder) is None:
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)


def _carry_out(checkout: Checkout, journal: Journal, when: int) -> tuple[str, ...]:
    """Do what a journal says; all is put back if a step fails. Returns refs of what was saved."""
    folder = move_folder(checkout.own_folder)
    try:
        put_in_place(checkout.path, folder, journal.steps)
        record(checkout, journal)
    except BaseException as error:
        if saved := _undo(checkout, journal, when, error):
            what = f"what was written while it was replaced is kept as {', '.join(saved)}"
            problems = [Problem(what)]
            if isinstance(error, OSError | PatchkitError):  # else a signal, or a bug
                problems[:0] = expected(error).problems
            raise ChangedMeanwhileError(*problems) from error
        raise
    saved = save_late(checkout, journal, when)
    clean_up(checkout)
    return saved


def _undo(
    checkout: Checkout, journal: Journal, when: int, reason: BaseException
) -> tuple[str, ...]:
    """Put all back after a failure, for `reason`. Returns refs of what was saved.

    The journal goes only once all is as it was. It stays, for the next command to finish the move,
    where a ref has moved, from where there is no way back, and where the way back fails as well;
    SurroundingsError says so, unless a signal or a bug is the reason.
    """
    folder = move_folder(checkout.own_folder)
    failures: tuple[Problem, ...] = ()
    try:
        if refs_untouched(checkout, journal):
            put_back(checkout.path, folder, journal.steps)
            put_folders_back(checkout, journal)
            free_refs(checkout)
            saved = save_late(checkout, journal, when)
            put_index_back(checkout, journal)  # last: without its index no move can be finished
            clean_up(checkout)
            return saved
    except (OSError, PatchkitError) as error:
        failures = expected(error).problems
    if not isinstance(reason, OSError | PatchkitError):
        return ()  # a signal, or a bug
    what = f"{checkout.path} is half-way between two stacks, and locked for git"
    hint = "fix what is reported above, then run the command again: it finishes the move"
    problems = dict.fromkeys((*expected(reason).problems, *failures, Problem(what, hint=hint)))
    raise SurroundingsError(*problems) from reason


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
        present = sorted(marked - set(sparse))
        leave_out(checkout.repository, folder / "index", present, absent=False)
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
    held: Held,
) -> list[MoveStep]:
    """The files that have to move; those to come are staged but for the `absent` ones."""
    folder, saved = move_folder(checkout.own_folder), held.in_the_way
    coming = [c.path for c in changes if c.new_file is not None and c.path not in absent]
    staged = {path: contents_at(folder / "new", path) for path in coming}
    tracked = {change.path for change in changes if change.old_file is not None}
    paths = [c.path for c in changes if c.old_file is not None or c.new_file is not None]
    paths += [path for path in saved if path not in staged and path not in tracked]
    known = tracked | saved.keys()
    actual = {path: _old(checkout, path, known) for path in paths}
    steps = [MoveStep(path, actual[path], staged.get(path)) for path in paths]
    steps = [step for step in steps if step.old != step.new]
    _require_held(checkout, changes, steps, held)
    same_blob = {change.path for change in changes if change.old == change.new}
    restyled = [step.path for step in steps if step.path in same_blob]
    forget_files(checkout.repository, folder / "index", restyled)
    return steps


def _require_held(
    checkout: Checkout, changes: Sequence[TreeChange], steps: Sequence[MoveStep], held: Held
) -> None:
    """NotHeldError unless what is about to be replaced is in a commit, or was saved just so."""
    actual = {step.path: step.old for step in steps}
    tracked = {c.path: c.old_file for c in changes if c.old_file is not None and c.path in actual}
    trial = move_folder(checkout.own_folder) / "form"
    others = unlike(checkout.repository, held.tree, tracked, actual, trial)
    others += [
        path
        for path, contents in actual.items()
        if path not in tracked and contents is not None and held.in_the_way.get(path) != contents
    ]
    # where git read a file once more, for its filters, that must be what the journal says
    others += [
        path
        for path, contents in actual.items()
        if contents is not None
        and path in tracked
        and contents.oid != tracked[path].oid
        and contents_at(checkout.path, path) != contents
    ]
    if others:
        raise not_held(checkout, others)


def require_free(checkout: Checkout, target: Place, held: Held) -> Sequence[TreeChange]:
    """The changes that lead to a place; SurroundingsError if an untracked file is in the way."""
    changes = tree_changes(checkout.repository, held.tree, target.tree)
    if blocks := obstacles(checkout.path, changes):
        what = f"untracked and in the way: {', '.join(blocks)}"
        raise SurroundingsError(Problem(what, str(checkout.path), "move it away"))
    return changes


def require_held(checkout: Checkout, target: Place, held: Held) -> None:
    """NotHeldError if a move to the target would be stopped by what the checkout's files hold.

    SurroundingsError if an untracked file is in the way.
    """
    changes = require_free(checkout, target, held)
    known = {change.path for change in changes if change.old_file is not None}
    actual = {path: _old(checkout, path, known) for path in known}
    try:
        _require_held(checkout, changes, [MoveStep(*each, None) for each in actual.items()], held)
    finally:
        clean_up(checkout)


def not_held(checkout: Checkout, paths: Sequence[str]) -> NotHeldError:
    """The error for files that are not what they should be: changed, or hidden from git."""
    found = dict.fromkeys(paths)
    hidden = hidden_files(checkout.repository, list(found))
    git = f"git -C {shlex.quote(str(checkout.path))}"
    problems = []
    for path in found:
        if path in hidden:
            what = f"{path} is edited, and git is set to ignore the edit"
            name = shlex.quote(path)
            hint = f"{git} update-index --no-assume-unchanged --no-skip-worktree {name}"
            problems.append(Problem(what, hint=f"{hint}  shows the edit to git"))
        else:
            what = f"{path} was changed while patchkit worked on it, or git does not show the edit"
            hint = f"run the command again; where git shows no edit: touch the file, {git} status"
            problems.append(Problem(what, hint=hint))
    return NotHeldError(tuple(found), *problems)


def _old(checkout: Checkout, path: str, tracked: Collection[str]) -> Contents | None:
    old = contents_at(checkout.path, path)
    if old is not None and old.kind == FOLDER:
        # a folder of tracked files goes when they go, by steps of their own
        below = files_below(checkout.path, path)
        return None if all(each in tracked for each in below) else old
    return old


def _journal(
    checkout: Checkout,
    snapshot: Snapshot,
    target: Place,
    halt: str | None,
    *,
    changes: Sequence[TreeChange],
    steps: Sequence[MoveStep],
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
        halt=halt,
        halt_before=snapshot.halt,
        steps=tuple(steps),
        folders=tuple(c.path for c in changes if c.new is not None and c.new_file is None),
        dropped=tuple(c.path for c in changes if c.old is not None and c.old_file is None),
    )
