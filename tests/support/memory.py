"""Objects, bases and patches without a repository: for laws that need many examples."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff

from patchkit.model.mail import parse_patch
from patchkit.model.objects import (
    FILE_MODE,
    Base,
    CommitId,
    GitObject,
    TreeEntry,
    TreeId,
    make_object,
    make_tree,
)
from patchkit.model.tree import ObjectSource
from patchkit.stack.build import SeriesPatch


class Memory(ObjectSource):
    """Objects by id, as a reader of a repository gives them."""

    def __init__(self, *objects: GitObject) -> None:
        self.objects = {each.oid: each.payload for each in objects}

    def read(self, oid: str, kind: str) -> bytes:
        return self.objects[oid]


def memory_base(files: Mapping[str, str]) -> tuple[Memory, Base]:
    """A base of these files, all in the top folder."""
    blobs = {name: make_object("blob", text.encode()) for name, text in files.items()}
    tree = make_tree({name: TreeEntry(FILE_MODE, blob.oid) for name, blob in blobs.items()})
    return Memory(*blobs.values(), tree), Base(
        CommitId("0" * 40), TreeId(tree.oid), "1700000000 +0000"
    )


def plain_patch(path: str, before: str, after: str, *, name: str = "x.patch") -> SeriesPatch:
    """A patch of one file, without git's header lines; texts must end in a newline."""
    lines = unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return SeriesPatch(name, parse_patch("".join(lines).encode(), name=name))
