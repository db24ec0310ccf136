"""Git's objects as bytes: how a blob, a tree and a commit are written, what their ids are, and how
they stand in a pack.

The rules are git's object format (gitformat-pack, git-hash-object); SHA-1 repositories only.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from hashlib import sha1
from typing import AnyStr, NewType, TypeAlias

from msgspec import Struct, field

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

#: Where git writes an id and there is no object.
NO_OBJECT = "0" * 40


class GitObject(Struct, frozen=True):
    """An object to write: its kind ("blob", "tree", "commit"), id and payload.

    `like` is the id of an object that it resembles: stored together, it takes less room.
    """

    kind: str
    oid: str  # 40 hex digits
    payload: bytes  # without git's header
    like: str | None = None


class TreeEntry(Struct, frozen=True):
    """One name in a tree."""

    mode: int  # as git counts it: 0o100644
    oid: str  # of a blob, a tree or a submodule's commit


def make_object(kind: str, payload: bytes, like: str | None = None) -> GitObject:
    """The object of that kind with its id."""
    digest = sha1(b"%s %d\x00%s" % (kind.encode(), len(payload), payload), usedforsecurity=False)
    return GitObject(kind, digest.hexdigest(), payload, like)


def make_tree(entries: Mapping[str, TreeEntry]) -> GitObject:
    """A tree object; names are `str` with surrogateescape, in any order."""
    rows = sorted((_sort_key(name, entry.mode), name, entry) for name, entry in entries.items())
    payload = b"".join(
        b"%o %s\x00%s" % (entry.mode, encode_path(name), bytes.fromhex(entry.oid))
        for _, name, entry in rows
    )
    return make_object("tree", payload)


def parse_tree(payload: bytes) -> dict[str, TreeEntry]:
    """A tree object's entries, in its order."""
    entries: dict[str, TreeEntry] = {}
    position = 0
    while position < len(payload):
        space = payload.index(b" ", position)
        end = payload.index(b"\x00", space)
        oid = payload[end + 1 : end + 21].hex()
        entries[decode_path(payload[space + 1 : end])] = TreeEntry(
            int(payload[position:space], 8), oid
        )
        position = end + 21
    return entries


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
# long as applying them. An object that resembles an earlier one of the same pack (`GitObject.like`:
# what stood at its path before) is stored as a difference to it.


_KINDS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_OFFSET_DELTA = 6

#: How many differences may have to be put together to read an object; git's own limit.
_DEPTH = 50

_MAX_COPY = 0xFFFFFF
_MAX_INSERT = 0x7F
#: Bytes that are looked for in the other contents, and how much must differ for that.
_ANCHOR = 32
_WORTH_A_LOOK = 256
#: Below this two numbers are made of the bytes sooner than the first difference is found.
_SHORT = 4096
_LARGE = 1 << 31
_SMALL = 512
_STORED_BLOCK = 0xFFFF
_BYTES = [bytes([each]) for each in range(256)]
#: A digit for each byte: whether it is another one than 0.
_IS_THERE = b"0" + b"1" * 255


class Pack(Struct, frozen=True):
    """A pack, its index, and the name that git would give them."""

    name: str
    data: bytes  # the bytes of the .pack file
    index: bytes


def make_pack(objects: Collection[GitObject]) -> Pack:
    """A pack of `objects`, which have distinct ids; one that is `like` another comes after it."""
    writer = _Writer()
    writer.add(struct.pack(">4sLL", b"PACK", 2, len(objects)))
    for each in objects:
        writer.entry(each)
    body = b"".join(writer.chunks)
    digest = sha1(body, usedforsecurity=False)
    return Pack(digest.hexdigest(), body + digest.digest(), writer.index(digest.digest()))


class _Written(Struct):
    offset: int  # of its first byte in the pack
    payload: bytes  # without git's header
    crc: int  # CRC-32 of its bytes in the pack
    depth: int  # how many deltas lead to it: 0 is whole


class _Writer(Struct):
    chunks: list[bytes] = field(default_factory=list)  # the pack so far
    size: int = 0  # bytes of `chunks`
    written: dict[str, _Written] = field(default_factory=dict)  # by id

    def add(self, chunk: bytes) -> None:
        self.chunks.append(chunk)
        self.size += len(chunk)

    def entry(self, each: GitObject) -> None:
        base = self.written.get(each.like) if each.like is not None else None
        delta = _difference(base.payload, each.payload) if base and base.depth < _DEPTH else None
        if base is None or delta is None:
            head, data, depth = _header(_KINDS[each.kind], len(each.payload)), each.payload, 0
        else:
            head = _header(_OFFSET_DELTA, len(delta)) + _back(self.size - base.offset)
            data, depth = delta, base.depth + 1
        chunk = head + _deflate(data, each.kind)
        self.written[each.oid] = _Written(self.size, each.payload, zlib.crc32(chunk), depth)
        self.add(chunk)

    def index(self, pack_digest: bytes) -> bytes:
        rows = sorted((bytes.fromhex(oid), each) for oid, each in self.written.items())
        counts = [0] * 256
        for oid, _ in rows:
            counts[oid[0]] += 1
        total = 0
        for byte, count in enumerate(counts):
            total += count
            counts[byte] = total
        offsets, large = _offset_tables([each.offset for _, each in rows])
        body = b"".join(
            [
                b"\xfftOc",
                struct.pack(">L256L", 2, *counts),
                *(oid for oid, _ in rows),
                struct.pack(f">{len(rows)}L", *(each.crc for _, each in rows)),
                offsets,
                large,
                pack_digest,
            ]
        )
        return body + sha1(body, usedforsecurity=False).digest()


def _offset_tables(offsets: list[int]) -> tuple[bytes, bytes]:
    """31-bit offsets, and the 64-bit ones that those beyond 2 GiB point at."""
    large = [offset for offset in offsets if offset >= _LARGE]
    places = {offset: _LARGE | number for number, offset in enumerate(large)}
    small = [places.get(offset, offset) for offset in offsets]
    return struct.pack(f">{len(small)}L", *small), struct.pack(f">{len(large)}Q", *large)


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


def _back(distance: int) -> bytes:
    # 7 bits each, highest first, every continued number one less than it says
    encoded = bytearray([distance & 0x7F])
    while distance := distance >> 7:
        distance -= 1
        encoded.append(0x80 | distance & 0x7F)
    return bytes(reversed(encoded))


def _difference(source: bytes, target: bytes) -> bytes | None:
    """A delta: what `target` has in common with `source`, and what is new; None if that saves
    little.
    """
    head, tail = _common_ends(source, target)
    ends = len(source) - tail, len(target) - tail
    parts = [_size(len(source)), _size(len(target)), *_copies(0, head)]
    new = _compare(source[head : ends[0]], target[head : ends[1]], head, parts)
    if 2 * new > len(target):
        return None
    return b"".join([*parts, *_copies(ends[0], tail)])


def _compare(source: bytes, target: bytes, offset: int, parts: list[bytes]) -> int:
    """Add to a delta what makes `target` out of `source`, which begins at `offset`; how many bytes
    of it are new.

    A few bytes out of the middle are looked for; where they are found, all that is the same around
    them is copied, and what is left on either side is compared in the same way.
    """
    for part in (2, 1, 3) if len(target) > _WORTH_A_LOOK else ():
        at = len(target) * part // 4
        found = source.find(target[at : at + _ANCHOR])
        if found >= 0:
            back = _common_suffix(source[:found], target[:at])
            size = back + _common_prefix(source[found:], target[at:])
            here, there = found - back, at - back
            new = _compare(source[:here], target[:there], offset, parts)
            parts += _copies(offset + here, size)
            after = offset + here + size
            return new + _compare(source[here + size :], target[there + size :], after, parts)
    for start in range(0, len(target), _MAX_INSERT):
        piece = target[start : start + _MAX_INSERT]
        parts += (_BYTES[len(piece)], piece)
    return len(target)


@cache
def _size(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _copies(offset: int, size: int) -> list[bytes]:
    """What copies so many bytes: four of the offset, three of the size, but for those that are 0;
    the bits of the byte before them say which are there.
    """
    parts = []
    for start in range(offset, offset + size, _MAX_COPY):
        length = min(_MAX_COPY, offset + size - start)
        numbers = start.to_bytes(4, "little") + length.to_bytes(3, "little")
        flags = 0x80 | int(numbers[::-1].translate(_IS_THERE), 2)
        parts.append(_BYTES[flags] + numbers.replace(b"\x00", b""))
    return parts


def _common_ends(one: bytes, other: bytes) -> tuple[int, int]:
    """How many bytes are the same at the beginning, and of the rest at the end."""
    if len(one) == len(other) < _SHORT and one != other:  # as trees are: the first and last bit
        bits = int.from_bytes(one, "big") ^ int.from_bytes(other, "big")
        return len(one) - (bits.bit_length() + 7) // 8, ((bits & -bits).bit_length() - 1) // 8
    head = _common_prefix(one, other)
    return head, _common_suffix(one[head:], other[head:])


def _common_prefix(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    ends = len(one), len(other)
    while low < high:
        middle = (low + high + 1) // 2
        if one[ends[0] - middle : ends[0] - low] == other[ends[1] - middle : ends[1] - low]:
            low = middle
        else:
            high = middle - 1
    return low


# The commit that a stack sits on, as everything above the store needs to know it.


class Base(Struct, frozen=True):
    """A base commit; `date` is its committer's in git's raw form ("1700000000 +0100")."""

    commit: CommitId
    tree: TreeId  # of the commit
    date: str
