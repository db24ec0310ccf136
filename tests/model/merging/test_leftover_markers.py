"""Markers of a conflict that somebody left in a file."""

from __future__ import annotations

from patchkit.model.merging.merge import merge_file
from patchkit.model.merging.regions import Labels, conflict_text, leftover_markers

HEADED = b"Title\n=======\none\ntwo\nthree\n\nNext\n=======\nfour\n"


def sides(
    base: bytes, upstream: tuple[bytes, bytes], patch: tuple[bytes, bytes]
) -> tuple[bytes, tuple[bytes, bytes, bytes]]:
    """The file with markers, and the files it was made of."""
    three = base, base.replace(*upstream), base.replace(*patch)
    merge = merge_file("a.rst", *three)
    assert merge is not None
    return conflict_text(merge.three, Labels()), three


def test_a_heading_is_no_marker() -> None:
    offered, three = sides(HEADED, (b"two\n", b"2\n"), (b"two\n", b"zwei\n"))
    assert leftover_markers(offered, three, offered) == (4, 6, 8, 10)
    assert leftover_markers(offered, three, HEADED) == ()
    assert leftover_markers(offered, three, HEADED.replace(b"two\n", b"2\n=======\nzwei\n")) == (
        2,
        5,
        10,
    )


def test_a_marker_in_the_place_of_a_heading() -> None:
    """As many as before, but one of them stands where only the conflict had one."""
    offered, three = sides(HEADED, (b"two\n", b"2\n"), (b"two\n", b"zwei\n"))
    edited = offered.replace(b"Title\n=======\n", b"Title\n")
    rows = [row for row in edited.split(b"\n") if row[:7] not in {b"<" * 7, b">" * 7, b"|" * 7}]
    assert leftover_markers(offered, three, b"\n".join(rows)) == (5,)


def test_headings_of_both_sides() -> None:
    offered, three = sides(HEADED, (b"two\n", b"Two\n=======\n"), (b"two\n", b"Zwei\n=======\n"))
    both = HEADED.replace(b"two\n", b"Two\n=======\nZwei\n=======\n")
    assert leftover_markers(offered, three, both) == ()
    assert 6 in leftover_markers(offered, three, both.replace(b"Zwei", b"=======\nZwei"))


def test_what_a_side_has_is_no_marker() -> None:
    base = b"one\n<<<<<<< HEAD\ntwo\n>>>>>>> topic\nthree\n"
    offered, three = sides(base, (b"two\n", b"2\n"), (b"two\n", b"zwei\n"))
    assert leftover_markers(offered, three, base.replace(b"two", b"2, zwei")) == ()
    assert leftover_markers(offered, three, base.replace(b"two", b"<<<<<<<\r")) == (3,)


def test_longer_and_shorter_ones_are_text() -> None:
    offered, three = sides(HEADED, (b"two\n", b"2\n"), (b"two\n", b"zwei\n"))
    text = HEADED.replace(b"two\n", b"========\n======\n>>>>>>>>\n<<<<<<<x\n")
    assert leftover_markers(offered, three, text) == ()
