"""A tree of git objects that is edited by path: reads what it must, rebuilds what changed.

Edits are persistent: each gives a new Tree and leaves the old one as it was, so that a patch that
fails half-way costs nothing. Folders are read from the object store when a path leads into them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Protocol

from msgspec import Struct

from patchkit.model.objects import (
    EMPTY_TREE,
    SYMLINK_MODE,
    GitObject,
    TreeEntry,
    decode_path,
    encode_path,
    make_object,
)

# One row of a tree object: octal mode, name, NUL, 20 bytes of id
_ROW = re.compile(rb"([0-7]+ ([^\x00]+)\x00.{20})", re.DOTALL)
# the second as some old tools wrote it
_FOLDER_MARKS = (b"40000 ", b"040000 ")


class ObjectSource(Protocol):
    """Where objects come from: a repository's reader, or a dict in a test."""

    def read(self, oid: str, kind: str) -> bytes:
        """The payload of an object of that kind."""

    def read_many(self, oids: Collection[str], kind: str) -> Iterator[tuple[str, bytes]]:
        """(id, payload) of many objects of one kind, in their order."""


class ObstructedError(Exception):
    """A path that cannot be put: `by` is the file in the way, or the folder that stands there."""

    def __init__(self, path: str, by: str) -> None:
        super().__init__(f"{by} is in the way of {path}")
        self.path = path
        self.by = by


class _Folder(Struct):
    """A folder; never changed once another folder or a Tree refers to it.

    `rows` maps a name to its row in the tree object; a name whose folder is open is in `open`, and
    its row counts only while that folder has an id. `like` is the folder that it was made from.
    """

    rows: dict[bytes, bytes]
    open: dict[bytes, _Folder]
    oid: str | None
    sorted: bool = True
    like: str | None = None

    def copy(self) -> _Folder:
        like = self.oid if self.oid is not None else self.like
        return _Folder(dict(self.rows), dict(self.open), None, self.sorted, like)


class Tree:
    """A tree and its edits so far; `write` gives it an id."""

    __slots__ = ("_root", "_source")

    def __init__(self, source: ObjectSource, oid: str) -> None:
        self._source = source
        self._root = _load(source, oid)

    def entry(self, path: str) -> TreeEntry | None:
        """What stands at `path`: a file, symlink or submodule; None for a folder or nothing."""
        *folders, name = encode_path(path).split(b"/")
        folder: _Folder | None = self._root
        for part in folders:
            folder = self._enter(folder, part)
            if folder is None:
                return None
        row = folder.rows.get(name) if folder else None
        return None if row is None or row.startswith(_FOLDER_MARKS) else _entry(row)

    def symlink_above(self, path: str) -> str | None:
        """The folder on the way to `path` that is in truth a symlink; None if there is none."""
        at = self.leaf_above(path)
        return at[0] if at is not None and at[1].mode == SYMLINK_MODE else None

    def leaf_above(self, path: str) -> tuple[str, TreeEntry] | None:
        """The file, symlink or submodule that stands where `path` needs a folder, if any."""
        parts = encode_path(path).split(b"/")
        folder: _Folder | None = self._root
        for depth, part in enumerate(parts[:-1], 1):
            row = folder.rows.get(part) if folder else None
            if row is None:
                return None
            if not row.startswith(_FOLDER_MARKS):
                return decode_path(b"/".join(parts[:depth])), _entry(row)
            folder = self._enter(folder, part)
        return None

    def put(self, path: str, entry: TreeEntry) -> Tree:
        """A tree with `entry` at `path`; ObstructedError if a file or a folder is in the way."""
        parts = encode_path(path).split(b"/")
        row = b"%o %s\x00%s" % (entry.mode, parts[-1], bytes.fromhex(entry.oid))
        return self._with(self._put(self._root, parts, 0, row, path))

    def remove(self, path: str) -> Tree:
        """A tree without the file at `path`, nor the folders that it leaves empty."""
        parts = encode_path(path).split(b"/")
        return self._with(self._remove(self._root, parts, 0) or _Folder({}, {}, EMPTY_TREE))

    def write(self, written: list[GitObject]) -> str:
        """The tree's id; the objects that are new since it was read are appended to `written`."""
        return _write(self._root, written)

    def _with(self, root: _Folder) -> Tree:
        tree = object.__new__(Tree)
        tree._source = self._source
        tree._root = root
        return tree

    def _enter(self, folder: _Folder | None, name: bytes) -> _Folder | None:
        if folder is None:
            return None
        found = folder.open.get(name)
        if found is not None:
            return found
        row = folder.rows.get(name)
        if row is None or not row.startswith(_FOLDER_MARKS):
            return None
        found = _load(self._source, row[-20:].hex())
        folder.open[name] = found  # a cache: what the folder contains does not change by it
        return found

    def _put(
        self, folder: _Folder | None, parts: list[bytes], depth: int, row: bytes, path: str
    ) -> _Folder:
        new = folder.copy() if folder else _Folder({}, {}, None)
        name = parts[depth]
        known = new.rows.get(name)
        is_folder = known is not None and known.startswith(_FOLDER_MARKS)
        if depth == len(parts) - 1:
            if is_folder:
                raise ObstructedError(path, path + "/")
            new.rows[name] = row
        else:
            if known is not None and not is_folder:
                raise ObstructedError(path, decode_path(b"/".join(parts[: depth + 1])))
            new.open[name] = self._put(self._enter(folder, name), parts, depth + 1, row, path)
            if known is None:
                new.rows[name] = _FOLDER_MARKS[0]
        new.sorted = new.sorted and known is not None
        return new

    def _remove(self, folder: _Folder, parts: list[bytes], depth: int) -> _Folder | None:
        name = parts[depth]
        new = folder.copy()
        if depth < len(parts) - 1:
            below = self._enter(folder, name)
            if below is None:
                return folder
            rest = self._remove(below, parts, depth + 1)
            if rest is not None:
                new.open[name] = rest
                return new
        new.rows.pop(name, None)
        new.open.pop(name, None)
        return new if new.rows else None


def _load(source: ObjectSource, oid: str) -> _Folder:
    if oid == EMPTY_TREE:
        return _Folder({}, {}, oid)
    payload = source.read(oid, "tree")
    return _Folder({name: row for row, name in _ROW.findall(payload)}, {}, oid)


def _write(folder: _Folder, written: list[GitObject]) -> str:
    if folder.oid is not None:
        return folder.oid
    for name, below in folder.open.items():
        if below.oid is None:
            folder.rows[name] = b"40000 %s\x00%s" % (name, bytes.fromhex(_write(below, written)))
    if not folder.sorted:
        folder.rows = dict(sorted(folder.rows.items(), key=_order))
        folder.sorted = True
    made = make_object("tree", b"".join(folder.rows.values()), folder.like)
    written.append(made)
    folder.oid = made.oid
    return made.oid


def _order(item: tuple[bytes, bytes]) -> bytes:
    # git compares a folder's name as if it ended in "/"
    name, row = item
    return name + b"/" if row.startswith(_FOLDER_MARKS) else name


def _entry(row: bytes) -> TreeEntry:
    return TreeEntry(int(row[: row.index(b" ")], 8), row[-20:].hex())
