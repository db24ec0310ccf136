"""Break bytes the way that finds mistakes: cut, repeat, move, put in what has a meaning."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

#: What has a meaning in none of the formats, or in all.
ODD = (
    *(b"", b"\0", b"\r", b"\n", b"\r\n", b"\n\n", b"\t", b" ", b"\xff", b"\xc3", b"\xef\xbb\xbf"),
    *(b"-1", b"0", b"9" * 30, b"9" * 5000, "\u00b2".encode(), "\u2028".encode(), "\u202e".encode()),
    *(b"../", b"/", b"\\", b".git/", b'"', b"'", b"\x1b[31m", b"A" * 300),
)


def damaged(random: Random, data: bytes, words: Sequence[bytes], others: Sequence[bytes]) -> bytes:
    """The data with one to six changes; `words` have a meaning here, `others` are like `data`."""
    for _ in range(random.choice([1, 1, 2, 3, 6])):
        change = random.choice([_cut, _repeated, _moved, _flipped, _lines_swapped])
        if random.random() < 0.5:
            data = _filled(random, data, random.choice([*words, *ODD]))
        elif random.random() < 0.15:
            data = _spliced(random, data, random.choice(others))
        else:
            data = change(random, data)
    return data


def _range(random: Random, data: bytes) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    length = random.choice([1, 2, 8, 60, len(data)])
    return start, min(len(data), start + random.randrange(length + 1))


def _cut(random: Random, data: bytes) -> bytes:
    start, end = _range(random, data)
    return data[:start] + data[end:]


def _repeated(random: Random, data: bytes) -> bytes:
    start, end = _range(random, data)
    return data[:end] + data[start:end] * random.choice([1, 1, 2, 50]) + data[end:]


def _moved(random: Random, data: bytes) -> bytes:
    start, end = _range(random, data)
    rest = data[:start] + data[end:]
    place = random.randrange(len(rest) + 1)
    return rest[:place] + data[start:end] + rest[place:]


def _flipped(random: Random, data: bytes) -> bytes:
    if not data:
        return b"x"
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]


def _lines_swapped(random: Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _filled(random: Random, data: bytes, word: bytes) -> bytes:
    start, end = _range(random, data)
    end = random.choice([start, start, min(end, start + 8)])
    return data[:start] + word + data[end:]


def _spliced(random: Random, data: bytes, other: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]
