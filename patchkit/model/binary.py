"""The payload of a `GIT binary patch`: base-85 lines, deflated, a literal or a delta.

The format is git's (gitformat-patch is silent about it, `git apply` is the oracle): a line
`literal SIZE` or `delta SIZE`, lines of a length letter and base-85 groups, an empty line.
"""

from __future__ import annotations

import zlib
from base64 import b85decode
from collections.abc import Sequence

from patchkit.model.patch import BinaryHunk, BinaryMethod

_SHORTEST_DELTA = 4  # of bytes; git takes no shorter one
_DIGITS = 18  # of a length; no file has more bytes


class BadPayloadError(ValueError):
    """A payload that cannot be decoded; `index` is the offending line's place in the sequence."""

    def __init__(self, index: int, what: str) -> None:
        super().__init__(what)
        self.index = index


def read_binary_hunk(lines: Sequence[bytes], start: int) -> tuple[BinaryHunk, int] | None:
    """The binary hunk that begins at `lines[start]` and the index of the first line after it.

    None if no such hunk begins there; BadPayloadError if one does and cannot be decoded. Lines
    keep their newline.
    """
    head = lines[start] if start < len(lines) else b""
    method, _, number = head.rstrip(b"\r\n").partition(b" ")
    if method not in (b"literal", b"delta"):
        return None
    if not number.isdigit() or len(number) > _DIGITS:
        raise BadPayloadError(start, "binary hunk without a length")
    end = start + 1
    while end < len(lines) and lines[end] != b"\n":
        end += 1
    if end == len(lines):
        raise BadPayloadError(end - 1, "binary hunk is not closed by an empty line")
    size = int(number)
    data = _inflate(_decode_lines(lines, start + 1, end), size, start)
    return BinaryHunk(BinaryMethod(method.decode()), size, data), end + 1


def apply_delta(source: bytes, delta: bytes) -> bytes | None:
    """The target that `delta` makes of `source`; None if it does not fit (git's pack delta)."""
    if len(delta) < _SHORTEST_DELTA:
        return None
    try:
        expected, position = _varint(delta, 0)
        size, position = _varint(delta, position)
        if expected != len(source):
            return None
        target = b"".join(_delta_pieces(source, delta, position))
    except (IndexError, ValueError):
        return None
    return target if len(target) == size else None


def _decode_lines(lines: Sequence[bytes], start: int, end: int) -> bytes:
    chunks = []
    for index in range(start, end):
        text = lines[index].rstrip(b"\n")
        size = _line_size(text[:1])
        # five characters carry four bytes; at most three bytes of the last group are filler
        if not size or len(text) % 5 != 1 or (len(text) - 1) // 5 != (size + 3) // 4:
            raise BadPayloadError(index, "binary line of a wrong length")
        try:
            chunks.append(b85decode(text[1:])[:size])
        except ValueError:
            raise BadPayloadError(index, "binary line is not base-85") from None
    return b"".join(chunks)


def _line_size(letter: bytes) -> int:
    if b"A" <= letter <= b"Z":
        return letter[0] - ord("A") + 1
    if b"a" <= letter <= b"z":
        return letter[0] - ord("a") + 27
    return 0


def _inflate(data: bytes, size: int, line: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        # one byte more than promised is enough to see that it is too long
        result = inflater.decompress(data, size + 1)
    except zlib.error:
        raise BadPayloadError(line, "binary hunk cannot be inflated") from None
    if len(result) != size or not inflater.eof:
        raise BadPayloadError(line, f"binary hunk does not inflate to the {size} bytes it promises")
    return result


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, position


def _delta_pieces(source: bytes, delta: bytes, position: int) -> list[bytes]:
    pieces = []
    while position < len(delta):
        command = delta[position]
        position += 1
        if command & 0x80:
            offset, position = _copy_field(delta, position, command, 4)
            size, position = _copy_field(delta, position, command >> 4, 3)
            size = size or 0x10000
            if offset + size > len(source):
                raise ValueError("copies from beyond the source")
            pieces.append(source[offset : offset + size])
        elif command and position + command <= len(delta):
            pieces.append(delta[position : position + command])
            position += command
        else:
            raise ValueError("reserved or cut-off command")
    return pieces


def _copy_field(delta: bytes, position: int, flags: int, width: int) -> tuple[int, int]:
    value = 0
    for byte in range(width):
        if flags >> byte & 1:
            value |= delta[position] << 8 * byte
            position += 1
    return value, position
