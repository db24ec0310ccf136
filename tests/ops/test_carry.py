"""`patchkit carry`: any repository, files in and files out, nothing else touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.errors import ExitCode
from tests.support.commands import Ran, run
from tests.support.repos import Upstream, git_in, make_patch, tree_files

LINES = [f"line {number}" for number in range(1, 13)]


def text(**changed: str) -> str:
    return "".join(f"{changed.get(f'l{n}', line)}\n" for n, line in enumerate(LINES, 1))


ONE = make_patch({"f": text(), "gone": "x\n"}, {"f": text(l3="three"), "gone": None}, subject="One")
TWO = make_patch({"f": text(l3="three")}, {"f": text(l3="three", l9="nine")}, subject="Two")


@pytest.fixture
def bases(upstream: Upstream) -> tuple[str, str]:
    old = upstream.commit({"f": text(), "gone": "x\n"})
    return old, upstream.commit({"f": "top\n" + text(l9="changed")})


@pytest.fixture
def series(tmp_path: Path) -> Path:
    folder = tmp_path / "patches"
    folder.mkdir()
    (folder / "one.patch").write_bytes(ONE)
    (folder / "two.patch").write_bytes(TWO)
    (folder / "series").write_text("one.patch  # first\ntwo.patch\n")
    return folder / "series"


def test_the_written_patch_applies_on_the_new_base(
    upstream: Upstream, bases: tuple[str, str], series: Path, tmp_path: Path
) -> None:
    """And on the old one it is as it was; in an ordinary repository as well."""
    words = ("--patch", str(series.parent / "one.patch"), "--json")
    report = carry(upstream, bases, *words, "--output", "out").ok().json
    assert (tmp_path / "out/tree/f").read_text() == "top\n" + text(l3="three", l9="changed")
    clone = tmp_path / "clone"
    git_in(tmp_path, "clone", "-q", str(upstream.path), str(clone))
    git_in(clone, "apply", "--index", str(tmp_path / "out/one.patch"))
    assert git_in(clone, "write-tree").decode().strip() == report["tree"]
    assert carry(Upstream(clone), bases, *words).ok().json["tree"] == report["tree"]
    assert tree_files(clone, "HEAD")["f"] == ("top\n" + text(l9="changed")).encode()
    carry(upstream, (bases[0], bases[0]), "--patch", str(series), "--output", "same").ok()
    assert (tmp_path / "same/one.patch").read_bytes() == ONE
    assert (tmp_path / "same/two.patch").read_bytes() == TWO


def test_wishes_that_cannot_be_met(
    upstream: Upstream, bases: tuple[str, str], series: Path, tmp_path: Path
) -> None:
    words = ("--patch", str(series))
    carry(Upstream(tmp_path), bases, *words).ends(2, "not a git repository")
    carry(upstream, ("0" * 40, bases[1]), *words).ends(2, "no such commit")
    carry(upstream, bases, *("--patch", str(series.parent / "one.patch")) * 2).ends(
        2, "is given twice"
    )
    carry(upstream, bases, *words, "--output", str(series.parent)).ends(2, "is not empty")
    carry(upstream, bases, "--patch", "missing.patch").ends(2, "no such file")
    for data in (b"\xff\xfe", b"gitdir: /nowhere\n"):
        (tmp_path / ".git").write_bytes(data)
        carry(Upstream(tmp_path), bases, *words).ends(2, "is not a git repository")


def carry(upstream: Upstream, bases: tuple[str, str], *words: str) -> Ran:
    old, new = bases
    return run("carry", "--git", str(upstream.path), "--base", old, "--to", new, *words)


def test_a_series_is_carried_into_a_folder(
    upstream: Upstream, bases: tuple[str, str], series: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    before = sorted(upstream.path.rglob("*"))
    ran = carry(upstream, bases, "--patch", str(series), "--output", "out", "--json").ends(3)
    assert [each["status"] for each in ran.json["patches"]] == ["merged", "conflicted"]
    assert ran.json["conflicts"] == ["f"]
    assert [path.name for path in out.glob("*.patch")] == ["one.patch"]
    assert (out / "conflicts.txt").read_text() == "f\n"
    assert (out / "deleted.txt").read_text() == "gone\n"
    assert not (out / "tree" / "f").exists()
    assert b"=======\nnine\n>>>>>>> two.patch: Two\n" in (out / "conflicts" / "f").read_bytes()
    assert sorted(upstream.path.rglob("*")) == before
    series.write_text("# nothing yet\n")
    empty = carry(upstream, bases, "--patch", str(series), "--json").ok().json
    assert (empty["patches"], empty["tree"]) == ([], upstream.tree(bases[1]))


def test_a_merger_is_asked_for_a_file_in_conflict(
    upstream: Upstream, bases: tuple[str, str], series: Path, tmp_path: Path
) -> None:
    merger = (
        """f=sed -i -e '/^|||||||/,/^===/d' -e '/^<<<<<<< /d' -e '/^>>>>>>> /d' $PATCHKIT_RESULT"""
    )
    words = ("--patch", str(series), "--output", "out")
    carry(upstream, bases, *words, "--run", merger).ok()
    assert (tmp_path / "out/tree/f").read_text() == "top\n" + text(l3="three", l9="changed\nnine")


def test_a_conflict_is_left_in_place_of_a_merge_to_look_at(
    upstream: Upstream, tmp_path: Path
) -> None:
    (tmp_path / "one.patch").write_bytes(ONE)
    old = upstream.commit({"f": text(), "gone": "x\n"})
    bases = old, upstream.commit({"f": text(l2="two"), "gone": "x\n"})
    carry(upstream, bases, "--patch", "one.patch").ok()
    carry(upstream, bases, "--patch", "one.patch", "--no-fuzz").ends(ExitCode.HALTED)


def test_folders_are_taken_off_the_paths(upstream: Upstream, tmp_path: Path) -> None:
    before, after = {"src/f": text()}, {"src/f": text(l3="three")}
    (tmp_path / "deep.patch").write_bytes(make_patch(before, after, subject="Deep"))
    base = upstream.commit({"f": text()})
    carry(upstream, (base, base), "--patch", "deep.patch").ends(ExitCode.HALTED)
    carry(upstream, (base, base), "--patch", "deep.patch", "--strip", "2").ok()


def test_the_difference_to_the_patch_before_is_printed(
    upstream: Upstream, series: Path, tmp_path: Path
) -> None:
    old = upstream.commit({"f": text(), "gone": "x\n"})
    bases = old, upstream.commit({"f": text(l1="first"), "gone": "x\n"})
    words = ("--patch", str(series.parent / "one.patch"))
    difference = "- line 1\n+ first\n"
    assert difference not in carry(upstream, bases, *words).ok().out
    carry(upstream, bases, *words, "--diff").ok().shows(difference)
    assert "@@" not in carry(upstream, (old, old), *words, "--diff").ok().out


@pytest.mark.parametrize(
    ("first", "order"), [("auto", "12"), ("upstream", "12"), ("patch", "21"), ("merge", "21")]
)
def test_the_side_that_comes_first_is_chosen(
    upstream: Upstream, tmp_path: Path, first: str, order: str
) -> None:
    """By an option, or by the way: from a near ancestor upstream is merged into a branch."""
    base = {"f": "a\nb\n"}
    (tmp_path / "p.patch").write_bytes(make_patch(base, {"f": "a\ntwo\nb\n"}, subject="P"))
    old = upstream.commit(base)
    bases = old, upstream.commit({"f": "a\none\nb\n"}, parents=(old,) if first == "merge" else ())
    words = ("--order", first) if first in ("upstream", "patch") else ()
    carry(upstream, bases, "--patch", "p.patch", *words, "--output", "out")
    lines = {"12": "a\none\ntwo\nb\n", "21": "a\ntwo\none\nb\n"}
    assert (tmp_path / "out" / "tree" / "f").read_text() == lines[order]
