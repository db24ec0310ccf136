"""Objects as the bytes of a pack and of its index, as git's gitformat-pack describes them.

Written here and not by `git index-pack`, because the ids are known already: for a stack of 200
patches that process takes as long as applying them. An object that resembles an earlier one of the
same pack (`GitObject.like`: what stood at its path before) is stored as a difference to it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Collection
from hashlib import sha1

from msgspec import Struct, field

from patchkit.model.objects import GitObject

_KINDS = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_OFFSET_DELTA = 6

#: How many differences may have to be put together to read an object; git's own limit.
_DEPTH = 50

_MAX_COPY = 0xFFFFFF
_MAX_INSERT = 0x7F
_LARGE = 1 << 31
_SMALL = 512
_STORED_BLOCK = 0xFFFF


class Pack(Struct, frozen=True):
    """A pack, its index, and the name that git would give them."""

    name: str
    data: bytes
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
    offset: int
    payload: bytes
    crc: int
    depth: int


class _Writer(Struct):
    chunks: list[bytes] = field(default_factory=list)
    size: int = 0
    written: dict[str, _Written] = field(default_factory=dict)

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
    """A delta: the common beginning, what is new, the common end; None if that saves little."""
    head = _common_prefix(source, target)
    tail = _common_suffix(source[head:], target[head:])
    middle = target[head : len(target) - tail]
    if len(middle) * 2 > len(target):
        return None
    parts = [_size(len(source)), _size(len(target)), *_copies(0, head)]
    for start in range(0, len(middle), _MAX_INSERT):
        piece = middle[start : start + _MAX_INSERT]
        parts.append(bytes([len(piece)]) + piece)
    parts += _copies(len(source) - tail, tail)
    return b"".join(parts)


def _size(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _copies(offset: int, size: int) -> list[bytes]:
    parts = []
    for start in range(offset, offset + size, _MAX_COPY):
        length = min(_MAX_COPY, offset + size - start)
        numbers = struct.pack("<L", start) + struct.pack("<L", length)[:3]
        flags = sum(1 << bit for bit, byte in enumerate(numbers) if byte)
        parts.append(bytes([0x80 | flags]) + numbers.replace(b"\x00", b""))
    return parts


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
