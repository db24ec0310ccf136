"""Look at a worktree that is not patchkit's, without writing anything into its repository."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from patchkit.gitcmd.process import run_sealed
from patchkit.gitcmd.repository import Repository


def git_folder(folder: Path) -> Path | None:
    """The git directory of the repository whose top folder, or bare folder, this is."""
    if not folder.is_dir():
        return None
    for candidate in (folder / ".git", folder):
        if (candidate / "HEAD").is_file() and (candidate / "objects").is_dir():
            return candidate.absolute()
    if not (folder / ".git").is_file():
        return None
    # a linked worktree or a submodule: its file says where
    done = run_sealed(["rev-parse", "--absolute-git-dir"], work_tree=folder.absolute())
    return Path(done.out.decode("utf-8", "surrogateescape").rstrip("\n"))


def tracked_tree(repository: Repository, trial: Repository) -> str:
    """The tree of the tracked files as they are on disk; all that is written goes to `trial`."""
    return write_tracked(repository, trial.git_dir / "index", objects=trial.git_dir / "objects")


def write_tracked(repository: Repository, index: Path, *, objects: Path | None = None) -> str:
    """Write the tracked files as they are on disk, whatever the own index says of them.

    Makes `index` a new index of them, and returns their tree; new objects go to the folder
    `objects`, or to the repository itself.
    """
    git = _Git(repository, index, objects)
    listing = git.own("ls-files", "-t", "--stage", "-z").split(b"\0")[:-1]
    rows = [row.split(b" ", 1) for row in listing]
    index.unlink(missing_ok=True)
    # in the own index, files may be marked not to be looked at
    git("update-index", "-z", "--index-info", stdin=b"".join(row[1] + b"\0" for row in rows))
    absent = [path for tag, entry in rows if tag == b"S" for path in _absent(repository, entry)]
    if absent:
        git("update-index", "--skip-worktree", "-z", "--stdin", stdin=b"".join(absent))
    git("add", "--update", "--", ".")
    # blobs that nobody has are in the tree all the same
    return git("write-tree", "--missing-ok").decode().strip()


def _absent(repository: Repository, entry: bytes) -> list[bytes]:
    """The path of a row if it is not meant to be on disk: nobody has it, or a sparse checkout."""
    path = entry.split(b"\t", 1)[1]
    place = Path(repository.work_tree or "") / os.fsdecode(path)
    return [] if os.path.lexists(place) else [path + b"\0"]


class _Git(Struct, frozen=True):
    """Runs git in `repository` with another index and object folder."""

    repository: Repository
    index: Path
    objects: Path | None

    def __call__(self, *args: str, stdin: bytes = b"") -> bytes:
        extra = {"GIT_INDEX_FILE": str(self.index)}
        if self.objects is not None:
            extra["GIT_OBJECT_DIRECTORY"] = str(self.objects)
        git_dir, work_tree = self.repository.git_dir, self.repository.work_tree
        return run_sealed(args, git_dir=git_dir, work_tree=work_tree, stdin=stdin, extra=extra).out

    def own(self, *args: str) -> bytes:
        """The same with the repository's own index."""
        return self.repository.git(*args).out
