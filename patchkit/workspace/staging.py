"""Bring the files of a tree into the form that they have in a worktree, in a folder beside it.

Git does the writing, with the attributes of the tree itself: line ends, encodings, filters, modes
and symbolic links come out as in a fresh checkout.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from patchkit.errors import SurroundingsError
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import SUBMODULE_MODE, TreeEntry, decode_path, encode_path
from patchkit.workspace.contents import (
    EXECUTABLE,
    FILE,
    FOLDER,
    Contents,
    full_path,
    is_there,
)
from patchkit.workspace.plan import TreeChange

# What `git checkout` goes by when it writes a file.
_FORM = ("text", "crlf", "eol", "ident", "filter", "working-tree-encoding")


def prepare_index(repository: Repository, start: Path, index: Path, tree: str) -> None:
    """Make `index` an index of `tree` that keeps what `start` knows of files that stay."""
    if start != index and start.exists():
        shutil.copyfile(start, index)
    _index_git(repository, index, "read-tree", "--reset", tree)


def leave_out(repository: Repository, index: Path, paths: Sequence[str]) -> None:
    """Mark paths whose blob nobody has: they are in the commit, and not in the worktree."""
    _mark(repository, index, "--skip-worktree", paths)


def bring_in(repository: Repository, index: Path, paths: Sequence[str]) -> None:
    """Take that mark off paths."""
    _mark(repository, index, "--no-skip-worktree", paths)


def left_out_files(repository: Repository, index: Path) -> frozenset[str]:
    """The paths of an index that are marked as not in the worktree."""
    rows = decode_path(_index_git(repository, index, "ls-files", "-t", "-z")).split("\0")
    return frozenset(row[2:] for row in rows if row.startswith("S "))


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
        wanted = set(paths)
        listing = decode_path(_index_git(repository, index, "ls-files", "--stage", "-z"))
        rows = [row for row in listing.split("\0")[:-1] if row.split("\t", 1)[1] in wanted]
        _index_git(repository, index, "update-index", "-z", "--index-info", paths=rows)


def set_rows(repository: Repository, index: Path, rows: Mapping[str, Sequence[str]]) -> None:
    """Give paths of an index other rows ("mode id stage"), several for a conflict, or none."""
    if rows:
        given = [f"0 {'0' * 40}\t{path}" for path in rows]
        given += [f"{row}\t{path}" for path, each in rows.items() for row in each]
        _index_git(repository, index, "update-index", "-z", "--index-info", paths=given)


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
    out = _index_git(repository, index, "ls-files", "--stage", "-z")
    found = {}
    for row in decode_path(out).split("\0")[:-1]:
        head, path = row.split("\t", 1)
        mode, oid, _ = head.split(" ")
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


def edited_in_secret(
    repository: Repository, changes: Iterable[TreeChange], actual: Mapping[str, Contents | None]
) -> list[str]:
    """Paths whose bytes on disk are not those of the old tree, whatever git believes.

    Git goes by the time and the size of a file, and `--assume-unchanged` makes it blind. `actual`
    is what stands at the changes' paths; a path where nothing stands has nothing to lose.
    """
    doubtful: dict[str, str] = {}
    found = []
    for change in changes:
        there = actual.get(change.path)
        if change.old_file is None or there is None or there.oid == change.old_file.oid:
            continue
        if there.kind in (FILE, EXECUTABLE):
            doubtful[change.path] = change.old_file.oid
        elif there.kind != FOLDER:
            found.append(change.path)
    return found + _with_other_blob(repository, doubtful)


def _mark(repository: Repository, index: Path, mark: str, paths: Sequence[str]) -> None:
    if paths:
        _index_git(repository, index, "update-index", mark, "-z", "--stdin", paths=paths)


def _with_other_blob(repository: Repository, expected: dict[str, str]) -> list[str]:
    """The paths whose blob, line ends and filters seen to, is another one."""
    if not expected:
        return []
    rows = b"".join(_quoted(path) + b"\n" for path in expected)
    out = repository.git("hash-object", "--stdin-paths", stdin=rows).out.decode().split()
    pairs = zip(expected.items(), out, strict=True)
    return [path for (path, oid), actual in pairs if oid != actual]


def _index_git(repository: Repository, index: Path, *args: str, paths: Sequence[str] = ()) -> bytes:
    stdin = b"".join(encode_path(path) + b"\0" for path in paths)
    return repository.git(*args, stdin=stdin, index=index).out


def _quoted(path: str) -> bytes:
    return b'"' + b"".join(b"\\%03o" % byte for byte in encode_path(path)) + b'"'
