"""Look at a worktree that is not patchkit's, without writing anything into its repository."""

from __future__ import annotations

import shutil
from pathlib import Path

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
    """The tree of the tracked files as they are on disk; new objects go to `trial`."""
    index = trial.git_dir / "index"
    own = repository.git_dir / "index"
    if own.exists():
        shutil.copyfile(own, index)
    extra = {
        "GIT_INDEX_FILE": str(index),
        "GIT_OBJECT_DIRECTORY": str(trial.git_dir / "objects"),
    }
    git_dir, work_tree = repository.git_dir, repository.work_tree
    update = ["add", "--update", "--", "."]
    run_sealed(update, git_dir=git_dir, work_tree=work_tree, extra=extra)
    done = run_sealed(["write-tree"], git_dir=git_dir, work_tree=work_tree, extra=extra)
    return done.out.decode().strip()
