"""An unpacked archive as a commit: the same archive gives the same id on every machine.

Author, committer and date are fixed, the message says what was unpacked. Every file is kept, also
PKG-INFO and the like: what the base holds is what a user of the archive has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from patchkit.gitcmd.objects import write_objects
from patchkit.gitcmd.repository import Repository
from patchkit.model.objects import (
    TREE_MODE,
    GitObject,
    TreeEntry,
    make_commit,
    make_object,
    make_tree,
)
from patchkit.model.patch import Identity
from patchkit.sources.unpacking import Member, unpack

# The date is the oldest that a zip archive can hold; any would do, but it may never change.
_MAKER = Identity("patchkit", "patchkit@localhost", "315532800 +0000")


def commit_archive(archive: Path, message: str, repository: Repository) -> str:
    """Write the archive's files as a commit without parents; its id. On disk: one pack, no ref."""
    objects = list(_objects(unpack(archive)))
    tree = objects[-1].oid
    commit = make_commit(tree=tree, parents=(), author=_MAKER, committer=_MAKER, message=message)
    write_objects(repository, [*objects, commit])
    return commit.oid


def _objects(members: Iterable[Member]) -> Iterator[GitObject]:
    """Blobs, then trees from the leaves up; the root tree is the last."""
    folders: dict[str, dict[str, TreeEntry]] = {"": {}}
    for member in members:
        blob = make_object("blob", member.data)
        yield blob
        folder, _, name = member.path.rpartition("/")
        _folder(folders, folder)[name] = TreeEntry(member.mode, blob.oid)
    for path in sorted(folders, key=lambda path: path.count("/") if path else -1, reverse=True):
        tree = make_tree(folders[path])
        yield tree
        if path:
            above, _, name = path.rpartition("/")
            folders[above][name] = TreeEntry(TREE_MODE, tree.oid)


def _folder(folders: dict[str, dict[str, TreeEntry]], path: str) -> dict[str, TreeEntry]:
    """The entries of a folder, which is made with all above it."""
    if path not in folders:
        folders[path] = {}
        _folder(folders, path.rpartition("/")[0])
    return folders[path]
