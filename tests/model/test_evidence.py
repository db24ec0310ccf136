"""Which lines tell that two changes are the same one."""

from __future__ import annotations

import pytest

from patchkit.model.evidence import evidence

TRIVIAL = (b"fi", b"  }", b"else:", b"else", b'if [ -n "$1" ]; then', b"return None", b"pass", b"")


@pytest.mark.parametrize("line", TRIVIAL)
def test_what_any_file_may_have_is_no_evidence(line: bytes) -> None:
    assert evidence([line]) == []


@pytest.mark.parametrize("line", [b"return two", b"\tlimit = 7\n", b"# ours", "größer".encode()])
def test_words_of_its_own_are_evidence(line: bytes) -> None:
    assert evidence([*TRIVIAL, line, line], b"another text\n") == [line.strip()]


def test_what_either_text_has_over_and_over_is_none() -> None:
    rare, often = b"  check(length)\n", b"  go(on)\n"
    assert evidence([often, rare], rare, 5 * often) == [b"check(length)", b"go(on)"]
    for texts in ((6 * often, b""), (b"", 6 * often), (b"go(on)\n\tgo(on)\r\n" + 4 * often,)):
        assert evidence([often, rare], *texts) == [b"check(length)"]
    # a longer line that has it in it is another one
    for longer in (b"  go(on), and on\n", b"x go(on)\n", b"go(on) go(on)\n", b"\r\x0bgo(on) y\n"):
        assert evidence([often], 6 * longer + b"go(on)") == [b"go(on)"]
