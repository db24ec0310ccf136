"""What is in a worktree, as git would record it or as the bytes on disk; its index stays."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from patchkit.gitcmd.diffs import objects_directory
from patchkit.gitcmd.process import run_sealed
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import encode_path


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


def write_tracked(
    repository: Repository,
    index: Path,
    *,
    objects: Path | None = None,
    through: Repository | None = None,
) -> str:
    """Write the tracked files as they are on disk, whatever the own index says of them.

    Makes `index` a new index of them, and returns their tree; new objects go to the folder
    `objects`, or to the repository itself. `through` is a view of it (`unfiltered`) to add them by.
    """
    git = _Git(repository, index, objects, through)
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


def add_all(repository: Repository, index: Path, through: Repository) -> None:
    """Add all files that are not ignored to an index, by a view of the repository."""
    _Git(repository, index, None, through)("add", "--all", "--", ".")


def add_paths(
    repository: Repository, index: Path, paths: Iterable[str], through: Repository | None = None
) -> None:
    """Add files to an index, ignored ones as well; `through` is a view of the repository."""
    given = b"".join(encode_path(path) + b"\0" for path in paths)
    if given:
        options = ("add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
        _Git(repository, index, None, through)("--literal-pathspecs", *options, stdin=given)


def unfiltered(repository: Repository, folder: Path) -> Repository:
    """A view of a repository in which no attribute holds: what is added are the bytes on disk.

    On disk: a git directory in `folder`, anew; what is written by it goes to the repository.
    """
    if folder.exists():
        shutil.rmtree(folder)
    (folder / "refs").mkdir(parents=True)
    (folder / "info").mkdir()
    (folder / "HEAD").write_bytes(b"ref: refs/heads/none\n")
    (folder / "info" / "attributes").write_bytes(_NO_CONVERSION)
    exclude = repository.git_dir / "info" / "exclude"
    if exclude.is_file():
        shutil.copyfile(exclude, folder / "info" / "exclude")
    # what the file system can hold, and nothing else of the repository's own settings
    kept = (
        "config",
        "--local",
        "--bool",
        "--get-regexp",
        r"^core\.(filemode|symlinks|ignorecase)$",
    )
    rows = repository.git(*kept, accept=(0, 1)).out.decode().split("\n")[:-1]
    lines = (f"\t{name.partition('.')[2]} = {value}\n" for name, _, value in map(_words, rows))
    (folder / "config").write_text("[core]\n\tautocrlf = false\n" + "".join(lines))
    return Repository(folder, repository.work_tree)


_NO_CONVERSION = b"* -text -crlf -eol -ident -filter !working-tree-encoding\n"


def _words(row: str) -> tuple[str, str, str]:
    return row.partition(" ")


def _absent(repository: Repository, entry: bytes) -> list[bytes]:
    """The path of a row if it is not meant to be on disk: nobody has it, or a sparse checkout."""
    path = entry.split(b"\t", 1)[1]
    place = Path(repository.work_tree or "") / os.fsdecode(path)
    return [] if os.path.lexists(place) else [path + b"\0"]


class _Git(Struct, frozen=True):
    """Runs git in `repository`, or a view of it, with another index and object folder."""

    repository: Repository
    index: Path
    objects: Path | None
    through: Repository | None = None

    def __call__(self, *args: str, stdin: bytes = b"") -> bytes:
        extra = {"GIT_INDEX_FILE": str(self.index)}
        objects = self.objects
        if objects is None and self.through is not None:
            objects = objects_directory(self.repository)
        if objects is not None:
            extra["GIT_OBJECT_DIRECTORY"] = str(objects)
        git_dir, work_tree = (self.through or self.repository).git_dir, self.repository.work_tree
        return run_sealed(args, git_dir=git_dir, work_tree=work_tree, stdin=stdin, extra=extra).out

    def own(self, *args: str) -> bytes:
        """The same with the repository's own index."""
        return self.repository.git(*args).out
