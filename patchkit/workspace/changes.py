"""The files that a checkout changes on its way from one tree to another: which paths differ, what
of the user's is in the way, and the new files in the form that they have in a worktree.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.process import GitFailureError
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import (
    SUBMODULE_MODE,
    TreeEntry,
    Treeish,
    decode_path,
    encode_path,
)
from patchkit.model.tree import TreeChange
from patchkit.workspace.contents import (
    FOLDER,
    LINK,
    SPECIAL,
    Contents,
    blocking_parent,
    contents_at,
    files_below,
    full_path,
    is_set,
    is_there,
    kind_of,
)


def absent_objects(repository: Repository, oids: Iterable[str]) -> frozenset[str]:
    """Which of the objects the repository does not have (some servers have lost a few blobs)."""
    # a move of plain files asks not
    from patchkit.gitcmd.first_parent import missing_objects  # noqa: PLC0415
    from patchkit.gitcmd.scratch import overlay  # noqa: PLC0415

    # asked of the repository itself, git would try to fetch them
    with overlay(repository) as trial:
        return missing_objects(trial, oids)


def obstacles(root: Path, changes: Sequence[TreeChange]) -> list[str]:
    """What of the user's stands where the new tree has a file: untracked or ignored files.

    A path is relative to `root`; a folder that is in the way ends in "/".
    """
    tracked = {change.path for change in changes if change.old_file is not None}
    found: dict[str, None] = {}
    for change in changes:
        if change.new is None or change.path in tracked:
            continue
        parent = blocking_parent(root, change.path)
        if parent is not None:
            if parent not in tracked:
                found[parent] = None
        elif change.new_file is not None and _is_taken(root, change, tracked):
            actual = contents_at(root, change.path)
            folder = actual is not None and actual.kind == FOLDER
            found[change.path + "/" * folder] = None
    return list(found)


def _is_taken(root: Path, change: TreeChange, tracked: set[str]) -> bool:
    actual = contents_at(root, change.path)
    if actual is None:
        return False
    if actual.kind == FOLDER:
        # a folder of tracked files that go makes room by itself
        return any(path not in tracked for path in files_below(root, change.path))
    return actual.kind == SPECIAL or change.new is None or actual.oid != change.new.oid


# Bring the files of a tree into the form that they have in a worktree, in a folder beside it.
#
# Git does the writing, with the attributes of the tree itself: line ends, encodings, filters,
# modes and symbolic links come out as in a fresh checkout.


# What `git checkout` goes by when it writes a file.
_FORM = ("text", "crlf", "eol", "ident", "filter", "working-tree-encoding")


def prepare_index(repository: Repository, start: Path, index: Path, tree: Treeish) -> None:
    """Make `index` an index of `tree` that keeps what `start` knows of files that stay."""
    if start != index and start.exists():
        shutil.copy2(start, index)  # with its time, by which git knows what to look at again
    # files on disk have no say, nor has what the index says of them
    _index_git(repository, index, "read-tree", "-i", "--reset", tree)


def leave_out(
    repository: Repository, index: Path, paths: Sequence[str], *, absent: bool = True
) -> None:
    """Mark paths whose blob nobody has: they are in the commit, and not in the worktree.

    With `absent` False that mark is taken off.
    """
    if paths:
        mark = "--skip-worktree" if absent else "--no-skip-worktree"
        _index_git(repository, index, "update-index", mark, "-z", "--stdin", paths=paths)


def left_out_files(repository: Repository, index: Path) -> frozenset[str]:
    """The paths of an index that are marked as not in the worktree."""
    rows = decode_path(_index_git(repository, index, "ls-files", "-t", "-z")).split("\0")
    return frozenset(row[2:] for row in rows if row.startswith("S "))


def hidden_files(repository: Repository, paths: Sequence[str]) -> frozenset[str]:
    """Those of the paths that the own index marks as not to be looked at."""
    command = ("--literal-pathspecs", "ls-files", "-v", "-z", "--", *paths)
    rows = decode_path(repository.git(*command).out).split("\0")
    return frozenset(row[2:] for row in rows if row[:1].islower() or row.startswith("S "))


def stage(repository: Repository, index: Path, folder: Path, paths: Sequence[str]) -> None:
    """Write files of an index below `folder`, at their paths."""
    folder.mkdir(exist_ok=True)
    # The folder is the worktree, so that attributes come from it or else from the index, never
    # from the worktree as it is now.
    there = Repository(repository.git_dir, folder)
    _index_git(there, index, "checkout-index", "--force", "--quiet", "-z", "--stdin", paths=paths)
    for path in paths:
        if not is_there(full_path(folder, path)):
            raise SurroundingsError(f"git did not write {path}")


def forget_files(repository: Repository, index: Path, paths: Sequence[str]) -> None:
    """Forget what an index knows of files on disk: their bytes change, their blobs do not.

    Git takes a file of another size for edited without reading it.
    """
    if paths:
        rows = rows_of(repository, index)
        set_rows(repository, index, {path: rows[path] for path in paths})


def set_rows(repository: Repository, index: Path, rows: Mapping[str, Sequence[str]]) -> None:
    """Give paths of an index other rows ("mode id stage"), several for a conflict, or none."""
    if rows:
        given = [f"0 {'0' * 40}\t{path}" for path in rows]
        given += [f"{row}\t{path}" for path, each in rows.items() for row in each]
        _index_git(repository, index, "update-index", "-z", "--index-info", paths=given)


def entry_rows(entry: TreeEntry | None) -> tuple[str, ...]:
    """The rows of an index that has an entry of a tree, or none."""
    return (f"{entry.mode:06o} {entry.oid} 0",) if entry is not None else ()


def rows_of(repository: Repository, index: Path) -> dict[str, list[str]]:
    """Path -> its rows in an index ("mode id stage")."""
    found: dict[str, list[str]] = {}
    out = _index_git(repository, index, "ls-files", "--stage", "-z")
    for row in decode_path(out).split("\0")[:-1]:
        head, path = row.split("\t", 1)
        found.setdefault(path, []).append(head)
    return found


def tracked_files(repository: Repository, index: Path) -> dict[str, TreeEntry]:
    """Every file and symbolic link of an index."""
    found = {}
    for path, rows in rows_of(repository, index).items():
        mode, oid, _ = rows[0].split(" ")
        if int(mode, 8) != SUBMODULE_MODE:
            found[path] = TreeEntry(int(mode, 8), oid)
    return found


def forms(
    repository: Repository, index: Path, paths: Sequence[str], *, cached: bool
) -> dict[str, tuple[str, ...]]:
    """Path -> what attributes say of the form of a file in a worktree.

    `cached`: as the index has the attributes, whatever the worktree's files say.
    """
    mode = ("--cached",) if cached else ()
    command = ("check-attr", "-z", "--stdin", *mode, *_FORM)
    fields = decode_path(_index_git(repository, index, *command, paths=paths)).split("\0")
    step = 3 * len(_FORM)  # path, attribute, value
    return {
        fields[at]: tuple(fields[at + 2 : at + step : 3]) for at in range(0, len(fields) - 1, step)
    }


def refresh_index(repository: Repository, index: Path) -> None:
    """Note in an index which files on disk it stands for, so that git need not read them again."""
    # of a git that was killed with us; nobody else knows this file
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
    repository.git("update-index", "-q", "--refresh", accept=(0, 1), index=index)


def unlike(
    repository: Repository,
    tree: Treeish,
    expected: Mapping[str, TreeEntry],
    actual: Mapping[str, Contents | None],
    folder: Path,
) -> list[str]:
    """The paths at which there is something else than what a checkout of `tree` puts there.

    Asked of the bytes on disk: git goes by the time and the size of a file, and its index may say
    that it is not to look. `expected` are entries of the tree, `actual` is what is there; a path
    where nothing is has nothing to lose. `folder` is for trials.
    """
    modes = not is_set(repository, "filemode", "false|no|off|0")
    doubtful: dict[str, Contents] = {}
    found = []
    for path, entry in expected.items():
        now = actual.get(path)
        if now is None:
            continue
        kind = kind_of(entry.mode)
        if now.kind != kind and (modes or kind == LINK or not now.is_regular):
            found.append(path)
        elif now.oid != entry.oid:
            doubtful |= {path: now} if now.is_regular else {}
            found += [] if now.is_regular else [path]
    if doubtful:
        recorded = recorded_blobs(repository, list(doubtful))
        # else it is another file in any case, and need not be written out
        alike = [path for path in doubtful if recorded.get(path) == expected[path].oid]
        forms = checked_out_forms(repository, folder, tree, alike)
        found += [
            path
            for path, now in doubtful.items()
            if path not in forms or forms[path].oid != now.oid
        ]
    return found


def recorded_blobs(repository: Repository, paths: Sequence[str]) -> dict[str, str]:
    """Path -> the blob that git would record of a file, line ends and filters seen to.

    Empty where a filter fails.
    """
    if not paths:
        return {}
    rows = b"".join(_quoted(path) + b"\n" for path in paths)
    try:
        out = repository.git("hash-object", "--stdin-paths", stdin=rows).out
    except GitFailureError:
        return {}
    return dict(zip(paths, out.decode().split(), strict=True))


def checked_out_forms(
    repository: Repository, folder: Path, tree: Treeish, paths: Sequence[str]
) -> dict[str, Contents]:
    """Path -> what a checkout of `tree` has there; not those that cannot be fetched.

    Written below `folder`, which is gone afterwards.
    """
    if not paths:
        return {}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    index = folder / "index"
    try:
        _index_git(repository, index, "read-tree", tree)
        with suppress(SurroundingsError):
            stage(repository, index, folder / "files", paths)
        found = {path: contents_at(folder / "files", path) for path in paths}
        return {path: contents for path, contents in found.items() if contents is not None}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _index_git(repository: Repository, index: Path, *args: str, paths: Sequence[str] = ()) -> bytes:
    stdin = b"".join(encode_path(path) + b"\0" for path in paths)
    return repository.git(*args, stdin=stdin, index=index).out


def _quoted(path: str) -> bytes:
    return b'"' + b"".join(b"\\%03o" % byte for byte in encode_path(path)) + b'"'
