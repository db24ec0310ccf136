"""A tree of git objects that is edited by path: reads what it must, rebuilds what changed.

Edits are persistent: each gives a new Tree and leaves the old one as it was, so that a patch that
fails half-way costs nothing. Folders are read from the object store when a path leads into them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Protocol

from msgspec import Struct

from patchkit.model.names import DEEPEST, unsafe_path
from patchkit.model.objects import (
    EMPTY_TREE,
    EXECUTABLE_MODE,
    FILE_MODE,
    SUBMODULE_MODE,
    SYMLINK_MODE,
    GitObject,
    TreeEntry,
    TreeId,
    decode_path,
    encode_path,
    make_object,
)

#: More files than any upstream has; a few small objects may stand for more than fit a disk.
MOST_FILES = 2_000_000

# One row of a tree object: octal mode, name, NUL, 20 bytes of id
_ROW = re.compile(rb"([0-7]+ ([^\x00]+)\x00.{20})", re.DOTALL)
# the second as some old tools wrote it
_FOLDER_MARKS = (b"40000 ", b"040000 ")


class ObjectSource(Protocol):
    """Where objects come from: a repository's reader, or a dict in a test."""

    def read(self, oid: str, kind: str) -> bytes:
        """The payload of an object of that kind."""

    def read_many(self, oids: Collection[str], kind: str) -> Iterator[tuple[str, bytes]]:
        """(id, payload) of many objects of one kind, in their order.

        One by one, but where a source has a faster way.
        """
        return ((oid, self.read(oid, kind)) for oid in oids)


class ObstructedError(Exception):
    """A path that cannot be put: `by` is the file in the way, or the folder that is there."""

    def __init__(self, path: str, by: str) -> None:
        super().__init__(f"{by} is in the way of {path}")
        self.path = path
        self.by = by


class _Folder(Struct):
    """A folder; never changed once another folder or a Tree refers to it.

    `rows` maps a name to its row in the tree object; a name whose folder is open is in `open`, and
    its row counts only while that folder has an id.
    """

    rows: dict[bytes, bytes]
    open: dict[bytes, _Folder]
    oid: str | None  # None where it is not written yet
    sorted: bool = True  # `rows` are in git's order

    def copy(self) -> _Folder:
        return _Folder(dict(self.rows), dict(self.open), None, self.sorted)


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

    def write(self, written: list[GitObject]) -> TreeId:
        """The tree's id; the objects that are new since it was read are appended to `written`."""
        return TreeId(_write(self._root, written))

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


class TreeChange(Struct, frozen=True):
    """A path that differs between two trees; None where it is not in that tree."""

    path: str
    old: TreeEntry | None  # in the first tree
    new: TreeEntry | None  # in the second one

    @property
    def old_file(self) -> TreeEntry | None:
        """The old entry if it is a file or a symbolic link: what we may touch on disk."""
        return _file(self.old)

    @property
    def new_file(self) -> TreeEntry | None:
        """The new entry if it is a file or a symbolic link."""
        return _file(self.new)


def _file(entry: TreeEntry | None) -> TreeEntry | None:
    return None if entry is None or entry.mode == SUBMODULE_MODE else entry


def tree_differences(old: Tree, new: Tree, paths: Iterable[str]) -> tuple[TreeChange, ...]:
    """How two trees differ that differ at these paths alone, in git's order."""
    rows = [TreeChange(p, _as_git(old.entry(p)), _as_git(new.entry(p))) for p in set(paths)]
    changed = [each for each in rows if each.old != each.new]
    return tuple(sorted(changed, key=lambda each: encode_path(each.path)))


def _as_git(entry: TreeEntry | None) -> TreeEntry | None:
    """An entry with the mode that git takes an old tool's for."""
    if entry is None or entry.mode >> 12 != FILE_MODE >> 12:
        return entry
    return TreeEntry(EXECUTABLE_MODE if entry.mode & 0o100 else FILE_MODE, entry.oid)


def tree_fault(source: ObjectSource, oid: str) -> tuple[str, str] | None:
    """(path, what is wrong) of a tree that no checkout must have; None if it may be one.

    The names are those that `unsafe_path` refuses in patches. A tree object counts as often as it
    is referred to, and is read once: ten of ten bytes each may stand for any number of files.
    """
    known: dict[str, tuple[list[str], int]] = {EMPTY_TREE: ([], 0)}  # folders, number of files
    found_at = {oid: ""}
    level, total = Counter([oid]), 0  # the trees that are equally deep, and how often each is there
    for _ in range(DEEPEST + 1):
        for tree, payload in source.read_many(
            [each for each in level if each not in known], "tree"
        ):
            rows = _ROW.findall(payload)
            for row, name in rows:
                path = f"{found_at[tree]}{decode_path(name)}"
                fault = unsafe_path(path, int(row[: row.index(b" ")], 8))
                if fault is not None or b"/" in name:
                    return path, fault or "name with a slash"
            if len({name for _, name in rows}) < len(rows):
                return found_at[tree], "two entries of one name"
            folders = [(row, name) for row, name in rows if row.startswith(_FOLDER_MARKS)]
            known[tree] = [row[-20:].hex() for row, _ in folders], len(rows) - len(folders)
            for below, (_, name) in zip(known[tree][0], folders, strict=True):
                found_at.setdefault(below, f"{found_at[tree]}{decode_path(name)}/")
        deeper = Counter[str]()
        for tree, times in level.items():
            total += times * known[tree][1]
            for below in known[tree][0]:
                deeper[below] += times
        if total > MOST_FILES:
            return "", f"more than {MOST_FILES} files"
        if not deeper:
            return None
        level = deeper
    return "", f"more than {DEEPEST} folders in each other"


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
    made = make_object("tree", b"".join(folder.rows.values()))
    written.append(made)
    folder.oid = made.oid
    return made.oid


def _order(item: tuple[bytes, bytes]) -> bytes:
    # git compares a folder's name as if it ended in "/"
    name, row = item
    return name + b"/" if row.startswith(_FOLDER_MARKS) else name


def _entry(row: bytes) -> TreeEntry:
    return TreeEntry(int(row[: row.index(b" ")], 8), row[-20:].hex())


# A tree of a few files, held flat: for many small questions, each about a handful of paths.


class FewFiles(Tree):
    """Answers as a Tree of these files does; none stands in the way of another."""

    __slots__ = ("_files",)

    def __init__(self, source: ObjectSource, files: Mapping[str, TreeEntry]) -> None:
        self._source = source
        self._files = files

    def entry(self, path: str) -> TreeEntry | None:
        """See Tree."""
        return self._files.get(path)

    def leaf_above(self, path: str) -> tuple[str, TreeEntry] | None:
        """See Tree."""
        for folder in accumulate(path.split("/")[:-1], "{}/{}".format):
            if folder in self._files:
                return folder, self._files[folder]
        return None

    def put(self, path: str, entry: TreeEntry) -> FewFiles:
        """See Tree."""
        above = self.leaf_above(path)
        if above is not None:
            raise ObstructedError(path, above[0])
        if any(each.startswith(path + "/") for each in self._files):
            raise ObstructedError(path, path + "/")
        return type(self)(self._source, {**self._files, path: entry})

    def remove(self, path: str) -> FewFiles:
        """See Tree."""
        rest = {each: entry for each, entry in self._files.items() if each != path}
        return type(self)(self._source, rest)

    def write(self, written: list[GitObject]) -> TreeId:
        """An id that differs between any two states of these files; it is not the id of a tree."""
        rows = sorted((path, entry.mode, entry.oid) for path, entry in self._files.items())
        return TreeId(make_object("blob", repr(rows).encode()).oid)


# Objects that exist in memory only, in front of those of a repository.


class Overlay:
    """An ObjectSource of `objects`, and behind them of `source`."""

    def __init__(self, source: ObjectSource, objects: Iterable[GitObject]) -> None:
        self._source = source
        self._objects = {each.oid: each.payload for each in objects}

    def read(self, oid: str, kind: str) -> bytes:
        """See ObjectSource."""
        payload = self._objects.get(oid)
        return self._source.read(oid, kind) if payload is None else payload

    def read_many(self, oids: Collection[str], kind: str) -> Iterator[tuple[str, bytes]]:
        """See ObjectSource."""
        behind = dict(self._source.read_many([o for o in oids if o not in self._objects], kind))
        for oid in oids:
            yield oid, self._objects[oid] if oid in self._objects else behind[oid]
