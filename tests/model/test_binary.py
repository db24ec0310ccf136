"""Payloads of binary patches that lie, and deltas; sound ones are compared with git elsewhere."""

from __future__ import annotations

import zlib
from base64 import b85encode

import pytest

from patchkit.model.diff_parse import BadPayloadError, apply_delta, read_binary_hunk


def payload(data: bytes, letter: bytes = b"") -> bytes:
    """One line of at most 52 bytes, deflated."""
    packed = zlib.compress(data)
    size = len(packed)
    mark = letter or (b"%c" % (64 + size if size < 27 else 70 + size))
    return mark + b85encode(packed.ljust(-(-size // 4) * 4, b"\0")) + b"\n"


def read(*lines: bytes) -> tuple[bytes, int] | None:
    found = read_binary_hunk(lines, 0)
    return found and (found[0].data, found[1])


def test_a_sound_one_is_read() -> None:
    assert read(b"literal 3\n", payload(b"abc"), b"\n", b"x") == (b"abc", 3)
    long = bytes(range(40))
    assert read(b"delta 40\r\n", payload(long), b"\n") == (long, 3)
    assert read(b"text 3\n", payload(b"abc"), b"\n") is None
    assert read() is None


@pytest.mark.parametrize(
    ("lines", "at", "what"),
    [
        ((b"literal\n", b"\n"), 0, "without a length"),
        ((b"literal x\n", b"\n"), 0, "without a length"),
        ((b"literal -1\n", b"\n"), 0, "without a length"),
        ((b"literal %d\n" % 10**18, b"\n"), 0, "without a length"),
        ((b"literal 3\n", payload(b"abc")), 1, "not closed"),
        ((b"literal 3\n", payload(b"abc"), payload(b"abc", b"?"), b"\n"), 2, "wrong length"),
        ((b"literal 3\n", payload(b"abc", b"Z"), b"\n"), 1, "wrong length"),
        ((b"literal 3\n", payload(b"abc")[:-2] + b"\n", b"\n"), 1, "wrong length"),
        ((b"literal 3\n", b"?\n", b"\n"), 1, "wrong length"),
        ((b"literal 3\n", payload(b"abc")[:-1] + b"0\n", b"\n"), 1, "wrong length"),
        ((b"literal 3\n", b"\n"), 0, "cannot be inflated|does not inflate"),
        ((b"literal 3\n", payload(b"abc").replace(b"c", b'"'), b"\n"), 1, "not base-85"),
        ((b"literal 3\n", b"D" + b85encode(b"oops") + b"\n", b"\n"), 0, "cannot be inflated"),
        ((b"literal 2\n", payload(b"abc"), b"\n"), 0, "does not inflate to the 2 bytes"),
        ((b"literal 4\n", payload(b"abc"), b"\n"), 0, "does not inflate to the 4 bytes"),
    ],
)
def test_one_that_lies_is_refused_at_its_line(lines: tuple[bytes, ...], at: int, what: str) -> None:
    with pytest.raises(BadPayloadError, match=what) as error:
        read_binary_hunk(lines, 0)
    assert error.value.index == at


SOURCE = bytes(range(256)) * 300  # more than the longest copy


@pytest.mark.parametrize(
    ("delta", "target"),
    [
        (b"\x03abc", b"abc"),
        (b"\x90\x05", SOURCE[:5]),
        (b"\x91\x02\x05", SOURCE[2:7]),
        (b"\xb3\x02\x01\x05\x01", SOURCE[258:519]),
        (b"\x80", SOURCE[:0x10000]),
        (b"\x01a\x90\x01\x01b", b"a\x00b"),
        (b"\x93\xff\x2b\x05", SOURCE[0x2BFF : 0x2BFF + 5]),
    ],
)
def test_a_delta_copies_and_inserts(delta: bytes, target: bytes) -> None:
    head = varint(len(SOURCE))
    assert apply_delta(SOURCE, head + varint(len(target)) + delta) == target
    assert apply_delta(SOURCE, head + varint(len(target) + 1) + delta) is None
    assert apply_delta(SOURCE[1:], head + varint(len(target)) + delta) is None
    assert apply_delta(SOURCE, head + varint(len(target)) + delta[:-1]) is None or delta == b"\x80"


@pytest.mark.parametrize(
    "delta", [b"\x00", b"\x04abc", b"\x94\x02\x05", b"\xb1\xff", b"", b"\x9f\0\0\0\x01\x01"]
)
def test_a_delta_that_reaches_beyond_is_refused(delta: bytes) -> None:
    for size in (0, 1, 3, 5):
        answer = apply_delta(SOURCE, varint(len(SOURCE)) + varint(size) + delta)
        assert answer is None or (delta, size) == (b"", 0)


def test_a_copy_ends_at_the_last_byte() -> None:
    assert apply_delta(b"abc", b"\x03\x02\x91\x01\x02") == b"bc"
    assert apply_delta(b"abc", b"\x03\x03\x91\x01\x03") is None
    assert apply_delta(b"abc", b"\x03") is None
    assert apply_delta(b"abc", b"\x83") is None


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
