"""A checkout that holds a conflict: what it waits for, and going there, on, or back.

What it waits for is a commit behind a ref of its own, which moves in one transaction with the
branch: after a kill both are there, or none. Its tree has the state as text, the worktree as
patchkit made it, and all that may be needed to go back; its parents keep the commits alive.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from patchkit.errors import Problem, SurroundingsError
from patchkit.gitcmd.object_reader import ObjectReader, reading, write_objects
from patchkit.model.decoding import from_builtins
from patchkit.model.objects import (
    FILE_MODE,
    TREE_MODE,
    CommitId,
    GitObject,
    TreeEntry,
    TreeId,
    Treeish,
    make_object,
    make_tree,
    own_commit,
)
from patchkit.model.text import with_article
from patchkit.model.tree import Tree
from patchkit.workspace.changes import rows_of
from patchkit.workspace.checkout import HALT_REF, Checkout
from patchkit.workspace.contents import contents_at, full_path
from patchkit.workspace.move import Moved, move_checkout, require_free, settle
from patchkit.workspace.recover import abandon
from patchkit.workspace.save import (
    only_staged,
    read_worktree,
    rows_beyond,
    save_work,
    staged_id,
)
from patchkit.workspace.state import BUMP, IMPORT, Held, Place, Snapshot

_VERSION = 3


class Halt(Struct, frozen=True):
    """What a checkout waits for.

    `place` is the checkout as patchkit left it. `left` is where it was when the step before was
    done with, as the user had it, and `previous` that step; the first one came from `before`, a
    clean stack. `data` is what the command that stopped wants to know again.
    """

    place: Place
    before: Place
    data: Mapping[str, Any]
    previous: CommitId | None = None
    left: Place | None = None
    commit: CommitId = CommitId("")  # in which this is recorded; "" before it is


def read_halt(checkout: Checkout, commit: CommitId | None = None) -> Halt | None:
    """What the checkout waits for, or what an earlier step did (`commit`); None for nothing."""
    repository = checkout.repository
    if commit is None:
        halted = repository.ref(HALT_REF)
        if halted is None:
            return None
        commit = CommitId(halted)
    with reading(repository) as reader:
        tree = reader.tree(reader.root(commit))
        state = tree.get("state.json")
        text = json.loads(reader.blob(state.oid)) if state is not None else {}
    if text.pop("version", None) != _VERSION:
        raise SurroundingsError(
            Problem(
                "the conflict in the checkout was put there by another version of patchkit",
                str(checkout.path),
                "finish it with that version",
            )
        )
    return replace(from_builtins(text, Halt), commit=commit)


def halt_objects(halt: Halt) -> list[GitObject]:
    """The objects that record a halt, its commit last; what they name must be there already."""
    text = {"version": _VERSION, **to_builtins(replace(halt, commit=CommitId("")))}
    state = make_object("blob", json.dumps(text, indent=1, sort_keys=True).encode("ascii"))
    places = [each for each in (halt.place, halt.left) if each is not None]
    entries = {"state.json": TreeEntry(FILE_MODE, state.oid)}
    for number, place in enumerate(places):
        entries[f"worktree-{number}"] = TreeEntry(TREE_MODE, place.files)
        # only blobs: a submodule's commit is nobody's to keep
        for mode, oid, _ in (row.split(" ") for rows in place.index.values() for row in rows):
            if mode != "160000":
                entries[f"side-{oid}"] = TreeEntry(FILE_MODE, oid)
    tree = make_tree(entries)
    parents = [halt.place.tip, halt.before.tip, *([halt.previous] if halt.previous else [])]
    what = with_article(IMPORT if halt.data.get("imported") else BUMP)
    message = f"patchkit: {what} that waits"
    # the same state gives the same commit
    commit = own_commit(TreeId(tree.oid), dict.fromkeys(parents), message, when=0)
    return [state, tree, commit]


class Work(Struct, frozen=True):
    """What a checkout that holds a conflict has in it now.

    `place` is where it is, its files as git records them. `held` is the same for the next move,
    which may replace it: what is not in `place` is in a ref of `saved`.
    """

    place: Place
    held: Held
    saved: str = ""


def work_of(checkout: Checkout, snapshot: Snapshot, halt: Halt, when: int, *, save: bool) -> Work:
    """What was done to a conflict; with `save` it is kept under a ref, if anything was done.

    So it is in any case where git would not record the very bytes. `when`, in seconds since the
    epoch, names the ref.
    """
    like = halt.place.files
    try:
        # what goes into a patch is what git shows; what is saved is all there is
        worktree = read_worktree(checkout, like, recording=True, hidden=save)
        held = Held(worktree.tree, worktree.recorded, rows=halt.place.index)
        saved = ""
        staged = staged_id(checkout)
        if worktree.lossy or (save and _is_work(checkout, snapshot, halt, held)):
            saved = save_work(checkout, snapshot, worktree, in_the_way=(), when=when)
            held = replace(held, staged=staged)
        rows = rows_beyond(checkout, worktree.recorded)
        return Work(
            Place(halt.place.base, halt.place.tip, TreeId(worktree.recorded), rows),
            held,
            saved,
        )
    finally:
        abandon(checkout)


def worktree_tree(checkout: Checkout, like: Treeish) -> TreeId:
    """The tree of the tracked files as they are on disk, and nothing else left of reading it."""
    try:
        return read_worktree(checkout, like).tree
    finally:
        abandon(checkout)


def _is_work(checkout: Checkout, snapshot: Snapshot, halt: Halt, held: Held) -> bool:
    """Whether files, index or commits are other ones than patchkit made them."""
    like = halt.place.files
    committed = snapshot.head != halt.place.tip
    return (
        committed or held.tree != like or bool(only_staged(checkout, snapshot.head, held, like, ()))
    )


def go_to(
    checkout: Checkout,
    snapshot: Snapshot,
    place: Place,
    halt: Halt | None = None,
    *,
    held: Held | None,
    when: int,
) -> Moved:
    """Bring the checkout to a place, and let it wait for `halt`, or for nothing.

    Where `held` is None no file changes: what it holds beyond the place's tip are edits.
    All objects of the place are in the checkout. All or nothing, unless the process is killed.
    Raises SurroundingsError if an untracked file is in the way, or a file is not as `held` says.
    """
    if held is None:
        return settle(checkout, snapshot, replace(place, files=TreeId("")), when=when)
    commit = None
    if halt is not None:
        objects = halt_objects(halt)
        write_objects(checkout.repository, objects)
        commit = objects[-1].oid
    changes = require_free(checkout, place, held)
    return move_checkout(checkout, snapshot, place, held, when=when, changes=changes, halt=commit)


def unsettled(checkout: Checkout, halt: Halt, marked: Collection[str]) -> dict[str, list[int]]:
    """The paths whose conflict still stands, with the lines of a file that are markers still.

    Of a path that is not `marked`, only `git add` or `git rm` says that a person looked at it.
    """
    # imported here: whoever only moves a checkout merges nothing
    from patchkit.model.merging.regions import leftover_markers  # noqa: PLC0415

    rows = rows_of(checkout.repository, checkout.git_dir / "index")
    found: dict[str, list[int]] = {}
    with reading(checkout.repository) as reader:
        offered = Tree(reader, halt.place.files)
        for path, sides in halt.place.index.items():
            if path in marked:
                entry, now = offered.entry(path), _text_at(checkout, path)
                if now is not None and entry is not None:
                    lines = leftover_markers(reader.blob(entry.oid), _texts(reader, sides), now)
                    if lines:
                        found[path] = list(lines)
            elif any(not row.endswith(" 0") for row in rows.get(path, ())):
                found[path] = []
    return found


def _texts(reader: ObjectReader, rows: Sequence[str]) -> tuple[bytes, bytes, bytes]:
    """The base, upstream's file and the patch's, of the rows of a path in conflict."""
    stages = {stage: oid for _, oid, stage in (row.split(" ") for row in rows)}
    base, upstream, patch = (
        reader.blob(stages[stage]) if stage in stages else b"" for stage in ("1", "2", "3")
    )
    return base, upstream, patch


def _text_at(checkout: Checkout, path: str) -> bytes | None:
    """A regular file of the worktree; None for anything else."""
    now = contents_at(checkout.path, path)
    return full_path(checkout.path, path).read_bytes() if now and now.is_regular else None
