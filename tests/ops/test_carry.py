"""`patchkit carry`: any repository, files in and files out, nothing else touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.errors import ExitCode, UsageError
from patchkit.model.outcome import Status
from patchkit.ops.carry import CarryWish, PlainCarryReport, Precedence, carry_patches
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


def carried(
    upstream: Upstream, bases: tuple[str, str], series: Path, out: Path
) -> PlainCarryReport:
    return carry_patches(upstream.path, CarryWish(*bases, (series,), out=out))


def test_what_is_written(
    upstream: Upstream, bases: tuple[str, str], series: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    before = sorted(upstream.path.rglob("*"))
    report = carried(upstream, bases, series, out)
    assert report.exit_code is ExitCode.HALTED
    assert [each.status for each in report.patches] == [Status.MERGED, Status.CONFLICTED]
    assert report.conflicts == ("f",)
    assert [path.name for path in out.glob("*.patch")] == ["one.patch"]
    assert (out / "conflicts.txt").read_text() == "f\n"
    assert (out / "deleted.txt").read_text() == "gone\n"
    assert not (out / "tree" / "f").exists()
    assert b"=======\nnine\n>>>>>>> two.patch: Two\n" in (out / "conflicts" / "f").read_bytes()
    assert sorted(upstream.path.rglob("*")) == before


def test_a_difference_shows_what_a_patch_does_now(upstream: Upstream, series: Path) -> None:
    bases = (
        upstream.commit({"f": text(), "gone": "x\n"}),
        upstream.commit({"f": text(l1="l1"), "gone": "x\n"}),
    )
    wish = CarryWish(*bases, patches=(series.parent / "one.patch",), diff=True)
    report = carry_patches(upstream.path, wish)
    (change,) = report.changes.values()
    assert b"line 1\n" in change
    assert b"l1\n" in change
    assert not carry_patches(upstream.path, CarryWish(*bases, patches=wish.patches)).changes
    same = CarryWish(bases[0], bases[0], patches=wish.patches, diff=True)
    assert not any(carry_patches(upstream.path, same).changes.values())


def test_the_written_patch_applies_on_the_new_base(
    upstream: Upstream, bases: tuple[str, str], series: Path, tmp_path: Path
) -> None:
    series.write_text("one.patch\n")
    report = carried(upstream, bases, series, tmp_path / "out")
    assert report.exit_code is ExitCode.OK
    assert (tmp_path / "out/tree/f").read_text() == "top\n" + text(l3="three", l9="changed")
    clone = tmp_path / "clone"
    git_in(tmp_path, "clone", "-q", str(upstream.path), str(clone))
    git_in(clone, "apply", "--index", str(tmp_path / "out/one.patch"))
    assert git_in(clone, "write-tree").decode().strip() == report.tree
    # an ordinary repository does as well
    again = carry_patches(clone, CarryWish(*bases, patches=(series.parent / "one.patch",)))
    assert again.tree == report.tree
    assert tree_files(clone, "HEAD")["f"] == ("top\n" + text(l9="changed")).encode()


def test_onto_the_same_base_the_files_come_back(
    upstream: Upstream, bases: tuple[str, str], series: Path, tmp_path: Path
) -> None:
    report = carried(upstream, (bases[0], bases[0]), series, tmp_path / "out")
    assert {each.status for each in report.patches} == {Status.UNCHANGED}
    assert (tmp_path / "out/one.patch").read_bytes() == ONE
    assert (tmp_path / "out/two.patch").read_bytes() == TWO


def test_an_empty_series_is_carried(
    upstream: Upstream, bases: tuple[str, str], series: Path, tmp_path: Path
) -> None:
    series.write_text("# nothing yet\n")
    report = carried(upstream, bases, series, tmp_path / "out")
    assert report.patches == ()
    assert report.tree == upstream.tree(bases[1])


def test_wishes_that_cannot_be_met(
    upstream: Upstream, bases: tuple[str, str], series: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="not a git repository"):
        carry_patches(tmp_path, CarryWish(*bases, (series,)))
    with pytest.raises(UsageError, match="no such commit"):
        carry_patches(upstream.path, CarryWish("0" * 40, bases[1], (series,)))
    with pytest.raises(UsageError, match="is given twice"):
        patch = series.parent / "one.patch"
        carry_patches(upstream.path, CarryWish(*bases, patches=(patch, patch)))
    with pytest.raises(UsageError, match="is not empty"):
        carried(upstream, bases, series, series.parent)
    with pytest.raises(UsageError, match="no such file"):
        carry_patches(upstream.path, CarryWish(*bases, patches=(tmp_path / "missing.patch",)))


def test_a_git_file_that_names_nothing(tmp_path: Path, series: Path) -> None:
    for text in (b"\xff\xfe", b"gitdir: /nowhere\n"):
        (tmp_path / ".git").write_bytes(text)
        with pytest.raises(UsageError, match="is not a git repository"):
            carry_patches(tmp_path, CarryWish("a", "b", (series,)))


@pytest.mark.parametrize(
    ("first", "order"), [("auto", "12"), ("upstream", "12"), ("patch", "21"), ("merge", "21")]
)
def test_whose_lines_come_first(upstream: Upstream, tmp_path: Path, first: str, order: str) -> None:
    base = {"f": "a\nb\n"}
    patch = tmp_path / "p.patch"
    patch.write_bytes(make_patch(base, {"f": "a\ntwo\nb\n"}, subject="P"))
    old = upstream.commit(base)
    # from a near ancestor upstream is merged into a branch
    parents = (old,) if first == "merge" else ()
    new = upstream.commit({"f": "a\none\nb\n"}, parents=parents)
    side = Precedence.AUTO if first == "merge" else Precedence(first)
    wish = CarryWish(old, new, (patch,), out=tmp_path / "out", first=side)
    carry_patches(upstream.path, wish)
    lines = {"12": "a\none\ntwo\nb\n", "21": "a\ntwo\none\nb\n"}
    assert (tmp_path / "out" / "tree" / "f").read_text() == lines[order]


def carry(upstream: Upstream, bases: tuple[str, str], *words: str) -> Ran:
    old, new = bases
    return run("carry", "--git", str(upstream.path), "--base", old, "--to", new, *words)


def test_a_series_is_carried_into_a_folder(
    upstream: Upstream, bases: tuple[str, str], series: Path, tmp_path: Path
) -> None:
    words = ("--patch", str(series), "--output")
    carry(upstream, bases, *words, "out").ends(ExitCode.HALTED)
    assert [path.name for path in (tmp_path / "out").glob("*.patch")] == ["one.patch"]
    assert (tmp_path / "out" / "deleted.txt").read_text() == "gone\n"


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
    assert "- line 1\n+ first\n" not in carry(upstream, bases, *words).ok().out
    carry(upstream, bases, *words, "--diff").ok().shows("- line 1\n+ first\n")


@pytest.mark.parametrize(("side", "order"), [("upstream", "12"), ("patch", "21")])
def test_the_side_that_comes_first_is_chosen(
    upstream: Upstream, tmp_path: Path, side: str, order: str
) -> None:
    base = {"f": "a\nb\n"}
    (tmp_path / "p.patch").write_bytes(make_patch(base, {"f": "a\ntwo\nb\n"}, subject="P"))
    bases = upstream.commit(base), upstream.commit({"f": "a\none\nb\n"}, parents=())
    carry(upstream, bases, "--patch", "p.patch", "--order", side, "--output", "out")
    lines = {"12": "a\none\ntwo\nb\n", "21": "a\ntwo\none\nb\n"}
    assert (tmp_path / "out" / "tree" / "f").read_text() == lines[order]
