"""Git's objects as bytes: how a blob, a tree and a commit are written, what their ids are, and how
they stand in a pack.

The rules are git's object format (gitformat-pack, git-hash-object); SHA-1 repositories only.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from hashlib import sha1
from itertools import accumulate
from typing import AnyStr, NewType, TypeAlias

from msgspec import Struct

from patchkit.errors import BadInputError
from patchkit.model.patch import Identity

#: Ids of git objects, by kind: 40 lower-case hex digits. The type says which kind is meant.
CommitId = NewType("CommitId", str)
TreeId = NewType("TreeId", str)
#: What git takes where it wants a tree: the id of one, or of a commit that has it.
Treeish: TypeAlias = TreeId | CommitId

TREE_MODE = 0o040000
FILE_MODE = 0o100644
EXECUTABLE_MODE = 0o100755
SYMLINK_MODE = 0o120000
SUBMODULE_MODE = 0o160000
LONGEST_TARGET = 4095  # bytes of a symlink's, on Linux

EMPTY_TREE = TreeId("4b825dc642cb6eb9a060e54bf8d69288fbee4904")


class GitObject(Struct, frozen=True):
    """An object to write: its kind ("blob", "tree", "commit"), id and payload."""

    kind: str
    oid: str  # 40 hex digits
    payload: bytes  # without git's header


class TreeEntry(Struct, frozen=True):
    """One name in a tree."""

    mode: int  # as git counts it: 0o100644
    oid: str  # of a blob, a tree or a submodule's commit


def make_object(kind: str, payload: bytes) -> GitObject:
    """The object of that kind with its id."""
    digest = sha1(b"%s %d\x00%s" % (kind.encode(), len(payload), payload), usedforsecurity=False)
    return GitObject(kind, digest.hexdigest(), payload)


def make_tree(entries: Mapping[str, TreeEntry]) -> GitObject:
    """A tree object; names are `str` with surrogateescape, in any order."""
    rows = sorted((_sort_key(name, entry.mode), name, entry) for name, entry in entries.items())
    payload = b"".join(
        b"%o %s\x00%s" % (entry.mode, encode_path(name), bytes.fromhex(entry.oid))
        for _, name, entry in rows
    )
    return make_object("tree", payload)


_ROW = re.compile(rb"([0-7]+) ([^\x00]+)\x00(.{20})", re.DOTALL)


def parse_tree(payload: bytes) -> dict[str, TreeEntry]:
    """A tree object's entries, in its order."""
    return {
        decode_path(name): TreeEntry(int(mode, 8), oid.hex())
        for mode, name, oid in _ROW.findall(payload)
    }


def make_commit(
    *,
    tree: TreeId,
    parents: Iterable[CommitId],
    author: Identity,
    committer: Identity,
    message: str,
) -> GitObject:
    """A commit object; the message gets exactly one final newline."""
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    lines.append(f"author {_signature(author)}")
    lines.append(f"committer {_signature(committer)}")
    text = "\n".join(lines) + "\n\n" + message.rstrip("\n") + "\n"
    return make_object("commit", text.encode("utf-8", "surrogateescape"))


def own_commit(tree: TreeId, parents: Iterable[CommitId], message: str, *, when: int) -> GitObject:
    """A commit that patchkit makes for itself; `when` is in seconds since the epoch."""
    who = Identity("patchkit", "patchkit@localhost", f"{when} +0000")
    return make_commit(tree=tree, parents=parents, author=who, committer=who, message=message)


def lines_of(text: AnyStr) -> list[AnyStr]:
    """The lines of what others wrote, without their ends; only LF ends one.

    str.splitlines ends lines at U+2028, U+0085, form feeds and more, which names may have.
    """
    lines = text.split(b"\n") if isinstance(text, bytes) else text.split("\n")
    return lines if lines[-1] else lines[:-1]


def encode_path(path: str) -> bytes:
    """A path's bytes as git stores them."""
    return path.encode("utf-8", "surrogateescape")


def decode_path(data: bytes) -> str:
    """A path as text from which `encode_path` gives the same bytes."""
    return data.decode("utf-8", "surrogateescape")


def _signature(person: Identity) -> str:
    return f"{person.name} <{person.email}> {person.date}"


def _sort_key(name: str, mode: int) -> bytes:
    # git compares a folder's name as if it ended in "/"
    return encode_path(name) + (b"/" if mode == TREE_MODE else b"")


# Packs, as git's gitformat-pack describes them, with their index. Written here and not by `git
# index-pack`, because the ids are known already: for a stack of 200 patches that process takes as
# long as applying them. Every object is stored whole: to look for differences takes as long as to
# compress a source file, and `git gc` does it.


_KINDS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_LARGEST = 1 << 31  # bytes: offsets beyond are written in another way
_SMALL = 512
_STORED_BLOCK = 0xFFFF


class Pack(Struct, frozen=True):
    """A pack, its index, and the name that git would give them."""

    name: str
    data: bytes  # the bytes of the .pack file
    index: bytes


def make_pack(objects: Collection[GitObject]) -> Pack:
    """A pack of `objects`, which have distinct ids; BadInputError if it is larger than 2 GiB."""
    chunks = [struct.pack(">4sLL", b"PACK", 2, len(objects))]
    rows: list[tuple[bytes, int, int]] = []  # id, CRC-32, offset
    size = len(chunks[0])
    for each in objects:
        chunk = _header(_KINDS[each.kind], len(each.payload)) + _deflate(each.payload, each.kind)
        rows.append((bytes.fromhex(each.oid), zlib.crc32(chunk), size))
        chunks.append(chunk)
        size += len(chunk)
    if size >= _LARGEST:
        raise BadInputError(f"{size >> 20} MiB of new objects; at most {_LARGEST >> 20} are taken")
    body = b"".join(chunks)
    digest = sha1(body, usedforsecurity=False).digest()
    return Pack(digest.hex(), body + digest, _index(rows, digest))


def _index(rows: list[tuple[bytes, int, int]], pack_digest: bytes) -> bytes:
    rows.sort()
    ids, checksums, offsets = zip(*rows, strict=True) if rows else ((), (), ())
    counts = Counter(oid[0] for oid in ids)
    totals = accumulate(counts[byte] for byte in range(256))
    numbers = struct.pack(f">{2 * len(rows)}L", *checksums, *offsets)
    body = struct.pack(">4s257L", b"\xfftOc", 2, *totals) + b"".join(ids) + numbers + pack_digest
    return body + sha1(body, usedforsecurity=False).digest()


def _deflate(data: bytes, kind: str) -> bytes:
    # setting up zlib costs more than it saves on little, and ids in trees do not compress
    if len(data) > _SMALL and (kind != "tree" or len(data) > _STORED_BLOCK):
        return zlib.compress(data, 1)
    size = struct.pack("<HH", len(data), len(data) ^ 0xFFFF)
    return b"\x78\x01\x01" + size + data + struct.pack(">L", zlib.adler32(data))


@cache
def _header(kind: int, size: int) -> bytes:
    # 3 bits of kind and 4 of size in the first byte, then 7 bits of size each, lowest first
    byte = kind << 4 | size & 0x0F
    size >>= 4
    encoded = bytearray()
    while size:
        encoded.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    encoded.append(byte)
    return bytes(encoded)


# The commit that a stack sits on, as everything above the store needs to know it.


class Base(Struct, frozen=True):
    """A base commit; `date` is its committer's in git's raw form ("1700000000 +0100")."""

    commit: CommitId
    tree: TreeId  # of the commit
    date: str
