"""The commits of submodules, as the index of the repository has them that a folder is in.

Sealed, as every git that we depend on: nothing of the repository's own runs, no hook and no filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from patchkit.disk.files import JOURNAL
from patchkit.errors import Problem, SurroundingsError
from patchkit.gitcmd.repository import Repository

_GITLINK = "160000"


def staged_gitlink(root: Path, path: str) -> str:
    """The commit of the submodule at `path` below `root`, "" if none is there or it is merged."""
    if (place := _place(root, path)) is None:
        return ""
    repository, name = place
    rows = repository.git("--literal-pathspecs", "ls-files", "-s", "-z", "--", name).out
    found = [row.split() for row in rows.decode("utf-8", "surrogateescape").split("\0") if row]
    return found[0][1] if len(found) == 1 and found[0][0] == _GITLINK else ""


def _stage(root: Path, commits: Mapping[str, str]) -> None:
    """Have the index say other commits at these paths, all or none: what else is staged, and all
    files, stay.
    """
    rows: list[str] = []
    for path, commit in commits.items():
        place = _place(root, path)
        assert place is not None, "it was read there"
        repository, name = place
        rows += ("--cacheinfo", f"{_GITLINK},{commit},{name}")
    done = repository.git("update-index", *rows, accept=(0, 1, 128))
    if done.code:  # most often another git that holds the lock, which its first line says
        said = done.message.partition("\n")[0].removeprefix("fatal: ")
        hint = "if no other git is running, remove that file" if "index.lock" in said else ""
        what = f"git's index cannot be written: {said}"
        raise SurroundingsError(Problem(what, ", ".join(commits), hint))


@contextmanager
def gitlinks_staged(root: Path, gitlinks: Mapping[str, tuple[str, str]]) -> Iterator[None]:
    """Have the index say the second commit of each submodule; the first if the block fails.

    The block is the one rename that publishes a journal (see `disk.transaction`): what writes, and
    may find the disk full, comes before it.
    """
    try:
        if gitlinks:
            _stage(root, {path: new for path, (_, new) in gitlinks.items()})
        yield
    except BaseException:
        done = {
            path: old
            for path, (old, new) in gitlinks.items()
            if staged_gitlink(root, path) == new and not (root / JOURNAL).exists()
        }
        if done:
            _stage(root, done)
        raise


def _place(root: Path, path: str) -> tuple[Repository, str] | None:
    """The repository that a folder is in, if it is in one, and what it calls a path below that."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            name = (root / path).relative_to(folder).as_posix()
            return Repository(folder / ".git", folder), name
    return None
