"""Our three-way merge against git's own: same regions, same bytes."""

from __future__ import annotations

import random

import pytest

from patchkit.gitcmd.process import git_version
from patchkit.model.diff_parse import split_lines
from patchkit.model.merging.merge import merge_file
from patchkit.model.merging.regions import (
    Labels,
    MergeEdit,
    compare_three,
    conflict_text,
    edited,
)
from tests.support.repos import Upstream

WORDS = ["alpha\n", "beta\n", "gamma\n", "delta\n", "\n", "    x = 1\n", "    return\n", "}\n"]


def ours(base: bytes, upstream: bytes, patch: bytes) -> bytes | None:
    three = compare_three(split_lines(base), split_lines(upstream), split_lines(patch))
    texts = [region.settled for region in three.regions]
    return None if None in texts else three.assemble([text or () for text in texts])


def varied(lines: list[str], chance: random.Random) -> list[str]:
    lines = list(lines)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines) + 1)
        gone = chance.choice([0, 0, 1, 2])
        lines[at : at + gone] = chance.choices(WORDS, k=chance.randint(0, 3))
    return lines


def test_touching_changes_conflict_and_equal_ones_do_not() -> None:
    base = b"a\nb\nc\nd\n"
    assert ours(base, b"A\nb\nc\nd\n", b"a\nb\nc\nD\n") == b"A\nb\nc\nD\n"
    assert ours(base, b"a\nB\nc\nd\n", b"a\nb\nC\nd\n") is None
    assert ours(base, b"a\nB\nc\nd\n", b"a\nB\nc\nd\n") == b"a\nB\nc\nd\n"


@pytest.mark.skipif(git_version() < (2, 38), reason="git merge-tree --write-tree")
def test_law_as_git_merges(upstream: Upstream) -> None:
    chance = random.Random(7)
    texts: dict[str, dict[str, str]] = {"base": {}, "upstream": {}, "patch": {}}
    for number in range(120):
        name, lines = f"f{number}", chance.choices(WORDS, k=chance.randint(0, 25))
        texts["base"][name] = "".join(lines) or "x\n"
        for side in ("upstream", "patch"):
            texts[side][name] = "".join(varied(lines, chance)) or "x\n"
    base = upstream.commit(texts["base"], branch="base")
    tips = [upstream.commit(texts[s], branch=s, parents=(base,)) for s in ("upstream", "patch")]
    out = upstream.git("merge-tree", "--write-tree", "-z", "--name-only", *tips, accept=(0, 1))
    tree, *rest = out.split(b"\0")
    clashing = set(rest[: rest.index(b"")])
    merged_files = upstream.files(tree.decode())
    assert len(texts["base"]) > len(clashing) > 5
    for name in texts["base"]:
        merged = ours(*(texts[side][name].encode() for side in ("base", "upstream", "patch")))
        assert (merged is None) == (name.encode() in clashing), name
        assert merged is None or merged == merged_files[name], name


def test_edits_may_touch_each_other_and_the_first_line_and_not_meet() -> None:
    one, other = MergeEdit(0, 1, (b"1\n",)), MergeEdit(1, 1, (b"2\n",))
    assert edited([b"a\n", b"b\n"], [other, one]) == [b"1\n", b"2\n", b"b\n"]
    assert edited([b"a\n", b"b\n"], [MergeEdit(0, 2, ()), other]) is None


def test_lines_that_both_sides_have_at_the_edges_of_a_conflict_are_no_part_of_it() -> None:
    base = [b"a\n", b"b\n"]
    upstream, patch = ([b"x\n", word, b"y\n", b"z"] for word in (b"one\n", b"two\n"))
    text = conflict_text(compare_three(base, upstream, patch), Labels()).decode()
    markers = "<<<<<<< upstream\none\n||||||| base\na\nb\n=======\ntwo\n>>>>>>> patch\n"
    assert text == f"x\n{markers}y\nz"
    text = conflict_text(compare_three([b"a"], [b"x\n", b"b"], [b"c"]), Labels()).decode()
    assert text == "<<<<<<< upstream\nx\nb\n||||||| base\na\n=======\nc\n>>>>>>> patch\n"


def test_law_markers_stand_where_git_s_zdiff3_puts_them(upstream: Upstream) -> None:
    if git_version() < (2, 35):
        pytest.skip("git merge-file --zdiff3")
    chance = random.Random(3)
    names = ("ours", "base", "theirs")
    for number in range(24):
        # lines of their own: git merge-file compares by another algorithm, which comes to the same
        lines = [f"line {each}\n".encode() for each in range(9)]
        at, kept = chance.randrange(9), [b"both %d\n" % each for each in range(chance.randrange(5))]
        cut = chance.randint(0, len(kept))
        ours, theirs = (
            [*lines[:at], *kept[:cut], word, *kept[cut:], *lines[at + 2 :]]
            for word in (b"ours\n", b"theirs\n")
        )
        folder = upstream.path / str(number)
        folder.mkdir()
        for name, text in zip(names, (ours, lines, theirs), strict=True):
            (folder / name).write_bytes(b"".join(text))
        labels = [word for name in names for word in ("-L", name)]
        files = [str(folder / name) for name in names]
        out = upstream.git("merge-file", "-p", "--zdiff3", *labels, *files, accept=(1,))
        assert conflict_text(compare_three(lines, ours, theirs), Labels(*names)) == out


@pytest.mark.skipif(git_version() < (2, 38), reason="git merge-tree --write-tree")
@pytest.mark.parametrize(("place", "binary"), [(7999, True), (8000, False)])
def test_a_file_is_binary_where_git_says_so(upstream: Upstream, place: int, binary: bool) -> None:
    base = b"a\nb\nc\nd\n".ljust(place, b"x") + b"\0\n"
    sides = base.replace(b"a", b"A"), base.replace(b"d", b"D")
    commit = upstream.commit({"f": base}, branch="base")
    tips = [
        upstream.commit({"f": side}, branch=str(n), parents=(commit,))
        for n, side in enumerate(sides)
    ]
    out = upstream.git("merge-tree", "--write-tree", *tips, accept=(0, 1)).decode()
    merged = merge_file("f", base, *sides)
    assert (merged is None) == ("CONFLICT" in out) == binary
    assert merged is None or merged.data == upstream.files(out.split()[0])["f"]
