"""A component's checkout: where it is, the names that patchkit gives to things in it, its lock, and
the note that says which manifest and upstream it was made for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from patchkit.disk.files import UNFINISHED, FileLock, replace_file
from patchkit.errors import SurroundingsError
from patchkit.gitcmd.repository import Repository
from patchkit.manifest.values import Component, Manifest
from patchkit.model.decoding import from_json
from patchkit.upstream.identity import upstream_key

# The note of what a checkout is for, as several manifests may share a workspace. It only chooses
# words, and keeps one manifest from turning another's checkout into one of a different upstream. A
# checkout without it is anybody's.


_FILE = "made-for.json"


class Purpose(Struct, frozen=True):
    """A manifest by its name, an upstream by its key (`upstream.identity.upstream_key`)."""

    manifest: str
    upstream: str

    def clashes(self, other: Purpose) -> bool:
        """Whether these are two manifests' checkouts of different upstreams.

        One manifest may change its mind about where a component comes from.
        """
        return self.manifest != other.manifest and self.upstream != other.upstream


def read_purpose(own_folder: Path) -> Purpose | None:
    """What a checkout was last made for; None if nobody noted it."""
    try:
        return from_json((own_folder / _FILE).read_bytes(), Purpose)
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return None


def write_purpose(own_folder: Path, purpose: Purpose | None) -> None:
    """Note what a checkout is made for; nothing is written if it says so already."""
    if purpose is None or read_purpose(own_folder) == purpose:
        return
    with suppress(SurroundingsError, OSError):  # a checkout is no worse without
        own_folder.mkdir(exist_ok=True)
        replace_file(own_folder / _FILE, msgspec.json.encode(purpose))


#: The branch that a checkout is on.
BRANCH = "refs/heads/patchkit"
#: The base commit of the stack that patchkit last made here.
BASE_REF = "refs/patchkit/base"
#: The tip of the stack as patchkit last made it.
APPLIED_REF = "refs/patchkit/applied"
#: What a bump or refresh waits for that stopped at a conflict; the checkout holds that conflict.
HALT_REF = "refs/patchkit/halt"
#: Work of the user's that --force moved out of the way: one ref for each time.
SAVED_REFS = "refs/patchkit/saved/"
#: The folder for what patchkit itself keeps: in a workspace (locks, half-built checkouts).
OWN_FOLDER = ".patchkit"

# How long to wait for another patchkit on the same checkout; it holds the lock for a few seconds.
_PATIENCE = 60.0


class Checkout(Struct, frozen=True):
    """The place of a component's checkout; nothing need be there yet. `path` is absolute.

    `purpose` is what it is to be, None if anything will do.
    """

    workspace: Path  # the folder that holds it
    path: Path
    name: str  # of the folder in it: the component's
    purpose: Purpose | None = None

    @property
    def git_dir(self) -> Path:
        """Its git directory."""
        return self.path / ".git"

    @property
    def repository(self) -> Repository:
        """Its repository."""
        return Repository(self.git_dir, self.path)

    @property
    def own_folder(self) -> Path:
        """Where patchkit keeps a journal and the files to move, inside the git directory."""
        return self.git_dir / "patchkit"

    @property
    def draft(self) -> Path:
        """Where the checkout is built before it is moved into place."""
        return self.workspace / OWN_FOLDER / f"{self.name}.new"


def checkout_of(workspace: Path, manifest: Manifest, component: Component) -> Checkout:
    """The checkout of a manifest's component in a workspace."""
    workspace = workspace.absolute()
    folder = component.checkout or component.name
    purpose = Purpose(manifest.name, upstream_key(component.source))
    return Checkout(workspace, workspace / folder, folder.replace("/", "+"), purpose)


def locked(checkout: Checkout) -> AbstractContextManager[None]:
    """Keep every other patchkit away from the checkout; SurroundingsError if one does not end.

    On disk: a lock file in the workspace, which stays.
    """
    lock = checkout.workspace / OWN_FOLDER / f"{checkout.name}.lock"
    return locked_file(lock, checkout.path)


@contextmanager
def locked_file(path: Path, what: Path) -> Iterator[None]:
    """Hold the lock file `path`, which guards `what`."""
    if path.parent.is_symlink():
        raise SurroundingsError(f"{path.parent} is a symbolic link", hint="delete it")
    _make_own_folder(path.parent)
    lock = FileLock(path)
    if not lock.acquire(_PATIENCE):
        raise SurroundingsError(
            f"{what} is locked by another patchkit",
            hint=f"wait for it to end, or find it with: fuser {path}",
        )
    try:
        yield
    finally:
        lock.release()


def _make_own_folder(folder: Path) -> None:
    """Make a workspace's own folder; a workspace that is new is one that git ignores.

    One that holds something already may be part of a project whose files git is to see.
    """
    workspace = folder.parent
    there = list(workspace.iterdir()) if workspace.exists() else []
    if all(each.name.endswith(UNFINISHED) for each in there):  # of a run that was killed right here
        workspace.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(workspace / ".gitignore"):
            replace_file(workspace / ".gitignore", b"*\n")
    folder.mkdir(exist_ok=True)
