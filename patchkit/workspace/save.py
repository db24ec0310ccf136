"""What of the user's is in a checkout: read it, byte for byte, and keep it under a ref.

The bytes that are saved are those on disk, whatever attributes and settings say: what git makes of
line ends, keywords and filtered files on their way into a commit cannot always be undone.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from patchkit.disk.files import files_in
from patchkit.gitcmd.object_reader import ObjectReader, reading, write_objects
from patchkit.gitcmd.repository import ZERO, RefChange, Repository
from patchkit.gitcmd.trees import add_paths, tree_changes, unfiltered, write_tracked
from patchkit.model.objects import (
    EMPTY_TREE,
    SUBMODULE_MODE,
    CommitId,
    GitObject,
    TreeEntry,
    TreeId,
    Treeish,
    decode_path,
    own_commit,
)
from patchkit.model.tree import Tree
from patchkit.workspace.changes import (
    checked_out_forms,
    entry_rows,
    hidden_files,
    recorded_blobs,
    rows_of,
    set_rows,
)
from patchkit.workspace.checkout import BRANCH, SAVED_REFS, Checkout
from patchkit.workspace.contents import (
    LINK,
    Contents,
    blob_at,
    blob_id,
    contents_at,
    fits,
    kind_of,
)
from patchkit.workspace.journal import move_folder
from patchkit.workspace.state import OPERATION_FILES, Held, Rows, Snapshot

_NOTHING = blob_id(b"")

# Commits that only an unfinished operation knows of: file in the git directory -> name for the ref.
_HEADS = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge/autostash": "autostash",
    "rebase-apply/autostash": "autostash",
}


class Worktree(Struct, frozen=True):
    """The tracked files of a worktree as they are on disk, in a tree and an index of it.

    Their blobs are the bytes on disk, or where a checkout of a blob that patchkit put there gives
    these bytes that blob. `recorded` is the tree that a commit of them has, `lossy` whether a
    checkout of that gives other bytes.
    """

    tree: TreeId
    index: Path
    recorded: TreeId = TreeId("")
    lossy: bool = False


def read_worktree(
    checkout: Checkout, like: Treeish, *, recording: bool = False, hidden: bool = True
) -> Worktree:
    """Write the tracked files as they are on disk to the repository, leaving its index alone.

    `like` is the tree that patchkit put there last. Without `recording` nothing is said of what
    git records, and no filter of the user's need work. Without `hidden` a file that git was told
    not to look at counts as it is in `like`.
    """
    folder = move_folder(checkout.own_folder)
    folder.mkdir(parents=True, exist_ok=True)
    # of a git that was not let tidy up; we hold the checkout
    for left in files_in(folder, "*.lock"):
        left.unlink(missing_ok=True)
    repository, index = checkout.repository, folder / "worktree.index"
    view = unfiltered(repository, folder / "unfiltered.git")
    tree = write_tracked(repository, index, view)
    if not hidden:
        tree = _without_hidden(checkout, index, like, tree)
    now = {
        change.path: change.new_file.oid
        for change in tree_changes(repository, like, tree)
        if change.new_file is not None and kind_of(change.new_file.mode) != LINK
    }
    recorded = recorded_blobs(repository, list(now))
    converted = [path for path, oid in now.items() if recorded.get(path) != oid]
    if not converted:
        return Worktree(tree, index, tree)
    same = _unedited(checkout, like, converted)
    set_rows(repository, index, {path: entry_rows(entry) for path, entry in same.items()})
    tree = _tree(checkout, index)
    edited = [path for path in converted if path not in same]
    if not edited or not recording:
        return Worktree(tree, index, TreeId("") if edited else tree)
    return Worktree(tree, index, *_recorded(checkout, index, edited))


def _without_hidden(checkout: Checkout, index: Path, like: Treeish, tree: TreeId) -> TreeId:
    """The tree with the files as `like` has them that git was told not to look at."""
    repository = checkout.repository
    before = {each.path: each.old_file for each in tree_changes(repository, like, tree)}
    unseen = hidden_files(repository, list(before)) if before else frozenset()
    if not unseen:
        return tree
    set_rows(repository, index, {path: entry_rows(before[path]) for path in sorted(unseen)})
    return _tree(checkout, index)


def _unedited(checkout: Checkout, like: Treeish, paths: Sequence[str]) -> dict[str, TreeEntry]:
    """The entries that `like` has of those paths whose bytes on disk are a checkout of it."""
    with reading(checkout.repository) as reader:
        tree = Tree(reader, reader.root(like))
        entries = {path: entry for path in paths if (entry := tree.entry(path)) is not None}
    forms = checked_out_forms(checkout.repository, _form_folder(checkout), like, list(entries))
    return {
        path: entry
        for path, entry in entries.items()
        if forms.get(path) == contents_at(checkout.path, path)
    }


def _recorded(checkout: Checkout, index: Path, paths: Sequence[str]) -> tuple[TreeId, bool]:
    """The tree with these paths as git records them; whether a checkout of it is another file."""
    repository, recorded = checkout.repository, index.with_name("recorded.index")
    shutil.copyfile(index, recorded)
    own = rows_of(repository, checkout.git_dir / "index")
    # what git makes of line ends depends on what its index has there
    set_rows(repository, recorded, {path: own[path] for path in paths if path in own})
    add_paths(repository, recorded, paths)
    tree = _tree(checkout, recorded)
    forms = checked_out_forms(repository, _form_folder(checkout), tree, paths)
    lossy = any(forms.get(path) != contents_at(checkout.path, path) for path in paths)
    return tree, lossy


def _form_folder(checkout: Checkout) -> Path:
    return move_folder(checkout.own_folder) / "form"


def save_work(
    checkout: Checkout,
    snapshot: Snapshot,
    worktree: Worktree,
    *,
    in_the_way: Sequence[str],
    when: int,
    parents: Sequence[CommitId] = (),
) -> str:
    """Put HEAD, the index and the worktree with its untracked files under a new ref: its name.

    `in_the_way` are paths to save although they may be ignored; `when` is in seconds since the
    epoch. The commit has the shape of a stash; `parents` are commits to keep with it.
    """
    commit = _commit(checkout, snapshot, _everything(checkout, worktree, in_the_way), when, parents)
    ref = free_saved_ref(checkout, when)
    changes = [RefChange(ref, commit, ZERO)]
    changes += [
        RefChange(f"{ref}-{name}", oid, ZERO) for name, oid in _other_heads(checkout, snapshot)
    ]
    _make_refs(checkout, changes)
    return ref


def save_commit(checkout: Checkout, commit: CommitId, when: int) -> str:
    """Keep a commit under a ref of its own, and return that."""
    ref = free_saved_ref(checkout, when)
    _make_refs(checkout, [RefChange(ref, commit, ZERO)])
    return ref


def save_index(checkout: Checkout, snapshot: Snapshot, when: int) -> str:
    """Keep what the index says under a ref of its own, and return that."""
    subject = "Saved by patchkit: what was staged"
    return save_commit(checkout, _index_commit(checkout, snapshot, subject, when), when)


def save_files(checkout: Checkout, files: Mapping[str, Path], when: int) -> str:
    """Keep files that lie elsewhere as what they are at those paths; the ref that has them."""
    written: list[GitObject] = []
    tree = Tree(ObjectReader(checkout.repository), EMPTY_TREE)
    for path, place in files.items():
        entry, blob = blob_at(place)
        written.append(blob)
        tree = tree.put(path, entry)
    message = "Saved by patchkit: written while it was replaced"
    commit = own_commit(tree.write(written), (), message, when=when)
    write_objects(checkout.repository, [*written, commit])
    return save_commit(checkout, CommitId(commit.oid), when)


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


def rows_beyond(checkout: Checkout, commit: str) -> dict[str, tuple[str, ...]]:
    """What the index says that a commit does not: path -> its rows, none for what it lacks."""
    repository, index = checkout.repository, checkout.git_dir / "index"
    if not index.exists():
        return {}
    out = repository.git("diff-index", "--cached", "--raw", "-z", "--no-renames", commit, "--").out
    if not out:
        return {}
    rows = rows_of(repository, index)
    return {path: tuple(rows.get(path, ())) for path in decode_path(out).split("\0")[1::2]}


def staged_id(checkout: Checkout) -> str:
    """What tells the contents of one index from another's, whatever it knows of files on disk."""
    index = checkout.git_dir / "index"
    if not index.exists():
        return ""
    listing = checkout.repository.git("ls-files", "--stage", "-z").out
    return sha256(listing).hexdigest()


def only_staged(
    checkout: Checkout, head: CommitId | None, held: Held, target: Treeish, replaced: Iterable[str]
) -> list[str]:
    """The paths of which the index holds what is nowhere else: in no tree, no row, not on disk.

    `target` is the tree to come, `replaced` are the paths whose file goes.
    """
    repository, index = checkout.repository, checkout.git_dir / "index"
    if not index.exists():
        return []
    tree = head or EMPTY_TREE  # which git knows without having it
    out = repository.git("diff-index", "--cached", "--raw", "-z", "--no-renames", tree, "--").out
    if not out:
        return []
    trees = [each for each in (head, target, held.tree, held.recorded) if each]
    changed = set(decode_path(out).split("\0")[1::2])
    rows = {path: each for path, each in rows_of(repository, index).items() if path in changed}
    with reading(repository) as reader:
        known = [Tree(reader, reader.root(each)) for each in dict.fromkeys(trees)]
        left = {
            path: [
                row
                for row in each
                if row not in held.rows.get(path, ()) and not _is_in(known, path, row)
            ]
            for path, each in rows.items()
        }
    left = {path: each for path, each in left.items() if each}
    return _not_on_disk(checkout, left, frozenset(replaced))


def _is_in(trees: Sequence[Tree], path: str, row: str) -> bool:
    mode, oid, _ = row.split(" ")
    return any(
        entry is not None and (f"{entry.mode:06o}", entry.oid) == (mode, oid)
        for entry in (tree.entry(path) for tree in trees)
    )


def _not_on_disk(checkout: Checkout, rows: Rows, replaced: frozenset[str]) -> list[str]:
    """The paths whose rows are not what is on disk there, and stays."""
    staying = [path for path in rows if path not in replaced]
    actual = {path: contents_at(checkout.path, path) for path in staying}
    regular = [path for path, now in actual.items() if now is not None and now.is_regular]
    recorded = recorded_blobs(checkout.repository, regular)
    return [
        path
        for path, each in rows.items()
        if not all(_stays(row, actual.get(path), recorded.get(path)) for row in each)
    ]


def _stays(row: str, now: Contents | None, recorded: str | None) -> bool:
    """Whether what a row of an index names is on disk there, or no file at all."""
    mode, oid, _ = row.split(" ")
    if now is None or int(mode, 8) == SUBMODULE_MODE:
        return int(mode, 8) == SUBMODULE_MODE
    # nothing is what `git add --intent-to-add` notes
    return oid == _NOTHING or (oid in (now.oid, recorded) and fits(now, int(mode, 8)))


def _everything(checkout: Checkout, worktree: Worktree, in_the_way: Sequence[str]) -> TreeId:
    """The tree of all files on disk that are not ignored, or are in the way."""
    index = worktree.index.with_name("everything.index")
    shutil.copyfile(worktree.index, index)
    repository = checkout.repository
    view = unfiltered(repository, worktree.index.with_name("unfiltered.git"))
    before = rows_of(repository, index)
    view.git("add", "--all", "--", ".", index=index)
    after = rows_of(repository, index)
    # a tracked file was there already, as what tells whether it was edited
    other = {path: rows for path, rows in before.items() if after.get(path) != rows}
    set_rows(repository, index, other)
    add_paths(view, index, in_the_way)
    return _tree(checkout, index)


def _tree(checkout: Checkout, index: Path) -> TreeId:
    # There is no file of the worktree below the index: git would run filters on those that are
    # as young as it. Blobs that nobody has are in the tree all the same.
    beside = Repository(checkout.git_dir, index.parent)
    done = beside.git("write-tree", "--missing-ok", index=index)
    return TreeId(done.out.decode().strip())


def _commit(
    checkout: Checkout, snapshot: Snapshot, tree: TreeId, when: int, others: Sequence[CommitId]
) -> CommitId:
    parents = [snapshot.head] if snapshot.head else []
    subject = f"Saved by patchkit: {snapshot.state.value}"
    index = _index_commit(checkout, snapshot, f"{subject}, the index", when, others=others)
    work = own_commit(tree, [*parents, index], subject, when=when)
    write_objects(checkout.repository, [work])
    return CommitId(work.oid)


def _index_commit(
    checkout: Checkout,
    snapshot: Snapshot,
    message: str,
    when: int,
    *,
    others: Sequence[CommitId] = (),
) -> CommitId:
    """A commit of what the user's index says; `others` are commits to keep with it.

    Of a path in conflict it has one side; all of them are in a parent, as 1/path, 2/path, 3/path.
    """
    repository = checkout.repository
    parents = [snapshot.head] if snapshot.head else []
    written: list[GitObject] = []
    index, copy = checkout.git_dir / "index", move_folder(checkout.own_folder) / "staged.index"
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.unlink(missing_ok=True)
    if index.exists():
        shutil.copyfile(index, copy)
    listed = rows_of(repository, copy)
    sides = {path: rows for path, rows in listed.items() if not rows[0].endswith(" 0")}
    if sides:
        tree = _sides(checkout, sides, written)
        written.append(own_commit(tree, (), f"{message}, all sides", when=when))
        parents.append(CommitId(written[-1].oid))
        set_rows(repository, copy, {path: [_one_side(rows)] for path, rows in sides.items()})
    parents += [each for each in others if each not in parents]
    tree = _tree(checkout, copy)
    commit = own_commit(tree, parents, message, when=when)
    write_objects(repository, [*written, commit])
    return CommitId(commit.oid)


def _sides(checkout: Checkout, sides: Rows, written: list[GitObject]) -> TreeId:
    tree = Tree(ObjectReader(checkout.repository), EMPTY_TREE)
    for path, rows in sides.items():
        for mode, oid, stage in (row.split(" ") for row in rows):
            tree = tree.put(f"{stage}/{path}", TreeEntry(int(mode, 8), oid))
    return tree.write(written)


def _one_side(rows: Sequence[str]) -> str:
    """Of the rows of a path in conflict the user's own, as one without a conflict."""
    stages = {row.rpartition(" ")[2]: row.rpartition(" ")[0] for row in rows}
    return next(f"{stages[stage]} 0" for stage in "231" if stage in stages)


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


def free_saved_ref(checkout: Checkout, when: int) -> str:
    """A name for work that is saved now; `when` is in seconds since the epoch."""
    taken = checkout.repository.refs(SAVED_REFS)
    first = SAVED_REFS + stamp(when)
    ref, number = first, 1
    while ref in taken:
        number += 1
        ref = f"{first}-{number}"
    return ref


def _make_refs(checkout: Checkout, changes: Sequence[RefChange]) -> None:
    names = [change.name for change in changes]
    checkout.repository.free_refs(names)  # of the same second, by a run that was killed
    try:
        checkout.repository.update_refs(changes, reason="patchkit: save")
    except BaseException:
        checkout.repository.free_refs(names)  # ^C ends that git, too; no later run has these names
        raise
