"""A throw-away repository that sees another one's objects: what is written there is a trial."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from patchkit.gitcmd.diffs import objects_directory
from patchkit.gitcmd.repository import Repository, borrow_objects


@contextmanager
def overlay(*repositories: Repository) -> Iterator[Repository]:
    """A bare repository with all objects of others; gone at the end of the block."""
    with TemporaryDirectory(prefix="patchkit-") as folder:
        git_dir = Path(folder)
        (git_dir / "refs").mkdir()
        (git_dir / "HEAD").write_bytes(b"ref: refs/heads/none\n")
        borrow_objects(git_dir, map(objects_directory, repositories))
        yield Repository(git_dir)
