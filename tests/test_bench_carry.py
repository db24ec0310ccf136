"""The carry benchmark on a small history of its own: it must be able to say right, order, wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.carry.calibrate import main as calibrate
from bench.carry.cases import Case, read_cases
from bench.carry.debian import UnavailableError, cases_of, read_release
from bench.carry.grading import (
    Grade,
    Whole,
    grade,
    grade_whole,
    interval,
    language,
    languages,
)
from bench.carry.mine import main as mine_cases
from bench.carry.run import Tally, has_most, main
from bench.carry.strategies import careful, patchkit, strategies
from patchkit.gitcmd.repository import init_repository
from patchkit.model.mail import parse_patch
from patchkit.model.objects import make_object
from patchkit.model.outcome import Certainty
from tests.support.archives import Content, make_tar
from tests.support.projects import write_files
from tests.support.repos import Upstream, make_patch

BASE = b"one\ntwo\nthree\nfour\n"
UPSTREAM = b"one\nTWO\nthree\nup\nfour\n"
#: What each becomes where the third line is changed, and in another file.
OURS, TRUTH = (text.replace(b"three", b"THREE") for text in (BASE, UPSTREAM))
PICKED, PICKED_TRUTH = (text.replace(b"three", b"3") for text in (BASE, UPSTREAM))


@pytest.fixture
def mirrors(upstream: Upstream, tmp_path: Path) -> Path:
    """A folder of mirrors, with upstream as that of some/where."""
    folder = tmp_path / "mirrors"
    (folder / "some+where").mkdir(parents=True)
    (folder / "some+where" / "repo").symlink_to(upstream.path)
    return folder


@pytest.fixture
def mine(mirrors: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """Mines cases from upstream's history, with these options."""

    def mined(*options: str) -> dict[str, Any]:
        mine_cases(["some/where", "--mirrors", str(mirrors), *options])
        return dict(json.loads(capsys.readouterr().out))

    return mined


def _cases(folder: Path, listed: object, mirrors: Path, subset: str) -> Iterator[Case]:
    """The cases of a list, of which none is missing."""
    file = folder / "cases.json"
    file.write_text(json.dumps(listed))
    for number, case in enumerate(read_cases(file, [mirrors], folder / "work", subset)):
        assert isinstance(case, Case), number
        yield case


def _tally(cases: Iterable[Case]) -> Tally:
    """What the engine makes of them."""
    tally = Tally()
    for case in cases:
        tally.add(case, patchkit(case), 1.0)
    return tally


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (b"one\nTWO\nTHREE\nup\nfour\n", Grade.RIGHT),
        (b"one\nTWO\nTHREE \n\nup\nfour\n", Grade.SPACING),
        (b"one\nTWO\n THREE\nup\nfour\n", Grade.WRONG),
        (b"one\nTWO\nup\nTHREE\nfour\n", Grade.ORDER),
        (b"one\nTWO\nTHREE\nup\nfour\nmore\n", Grade.WRONG),
        (b"THREE\none\nTWO\nup\nfour\n", Grade.WRONG),
        (b"one\ntwo\nTHREE\nup\nfour\n", Grade.WRONG),
        (None, Grade.WRONG),
    ],
)
def test_grades(result: bytes | None, expected: Grade) -> None:
    truth = b"one\nTWO\nTHREE\nup\nfour\n"
    assert grade(BASE, UPSTREAM, truth, result) is expected


def test_a_whole_patch_is_as_good_as_its_worst_file() -> None:
    right, order, wrong = ((each, False) for each in (Grade.RIGHT, Grade.ORDER, Grade.WRONG))
    assert grade_whole([right]) is Whole.RIGHT
    assert grade_whole([right, order]) is Whole.LINES
    assert grade_whole([right, order, (Grade.CONFLICT, False)]) is Whole.FLAGGED
    assert grade_whole([right, wrong]) is Whole.FLAGGED
    assert grade_whole([wrong, (Grade.WRONG, True)]) is Whole.SILENT


def test_languages_are_told_by_endings() -> None:
    paths = ("a/b.py", "x.cpp", "y.H", "z.yml", "Makefile", "run.sh", "a.sh/b")
    found = [language(each) for each in paths]
    assert found == ["Python", "C++", "C", "YAML", "others", "shell", "others"]
    assert languages(found) == ["all", "Python", "C", "C++", "shell", "YAML", "others"]


def test_a_case_is_carried_and_graded(
    upstream: Upstream, mirrors: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = upstream.commit({"f": BASE})
    change = upstream.commit({"f": OURS})
    moved = upstream.commit({"f": UPSTREAM}, parents=(base,))
    upstream.branch("keep", change)
    upstream.commit({"f": TRUTH}, parents=(moved,))
    file = {"path": "f", "cls": "pure", "hard": True, "truth": make_object("blob", TRUTH).oid}
    facts = {"id": "x", "kind": "rebase", "repo": "x", "A": change, "A_base": base}
    listed = {**facts, "B_base": moved, "files": [file]}
    gone = {**listed, "id": "y", "repo": "y"}
    cases = tmp_path / "cases.json"
    known = {"x": "some+where", "y": "no+where"}
    cases.write_text(json.dumps({"mirrors": known, "cases": [listed, gone]}))
    case, missing = read_cases(cases, [mirrors], tmp_path / "work", "hard")
    assert isinstance(case, Case)
    assert missing == "y: no clone of no+where"
    (row,) = _tally([case]).files
    assert (row.grade, row.language) == (Grade.RIGHT, "others")
    assert row.outcome is not None
    assert row.outcome.certainty is Certainty.LOOK
    assert careful(case).files == {}
    for name in ("git apply", "git merge-tree"):
        strategy = strategies()[name]
        assert isinstance(strategy, str) or strategy(case).files == {}
    case.reader.close()
    # all ways in one run, with what became of each file; the first folder has no such clone
    files = tmp_path / "files.json"
    words = ["--mirrors", str(tmp_path), str(mirrors), "--subset", "each", "--files", str(files)]
    main([str(cases), *words, "--strategy", "patchkit", "--strategy", "git apply"])
    skipped, head, _, table = capsys.readouterr().out.splitlines()
    assert skipped == f"skipped: {missing}"
    assert head.startswith("|  | files | patchkit | order |")
    assert table == "| cases, hard | 1 | 100.0% | 0.0% | 0.0% | 0.0% | 0.0% | 0.0% (0.0%) |"
    (one,) = json.loads(files.read_text())
    assert one["grades"] == {"patchkit": "right", "git apply": "conflict"}
    assert one["flagged"]


def test_cases_are_mined_from_a_history(
    upstream: Upstream,
    mirrors: Path,
    mine: Callable[..., dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A merge that was settled by hand, a change that was picked, landed, and reverted later."""
    base = upstream.commit({"f": BASE, "g": BASE, "h": b"x\n"})
    side = upstream.commit({"f": OURS}, parents=(base,))
    change = upstream.commit({"g": PICKED}, parents=(base,))
    moved = upstream.commit({"f": UPSTREAM, "g": BASE, "h": b"y\n"}, parents=(base,))
    upstream.branch("merged", upstream.commit({"f": TRUTH}, parents=(moved, side)))
    other = upstream.commit({"f": BASE, "g": UPSTREAM, "h": b"x\n"}, parents=(base,))
    picked = f"Pick\u2028a line\n\n(cherry picked from commit {change})"
    pick = upstream.commit({"g": PICKED_TRUTH}, picked, parents=(other,))
    upstream.branch("picked", pick)
    last = upstream.commit({"g": PICKED + b"end\n"}, parents=(change,))
    undone = upstream.commit({"g": BASE + b"end\n"}, f"Undo\n\nThis reverts commit {change}.")
    upstream.branch("main", undone)
    mined = mine("--clean", "1")
    assert mined["mirrors"] == {"where": "some+where"}
    rows = {
        (case["kind"], case["A"], case["B_base"], file["path"], file["cls"], file["hard"])
        for case in mined["cases"]
        for file in case["files"]
    }
    assert rows == {
        ("merges", side, moved, "f", "pure", True),
        ("picks", change, other, "g", "pure", True),
        ("reverts", base, last, "g", "pure", False),
        ("landed", pick, change, "g", "landed", True),
    }
    tally = _tally(_cases(tmp_path, mined, mirrors, "any"))
    assert [each.grade for each in tally.files] == [Grade.RIGHT] * 4
    assert len(tally.patches) == 4
    calibrate([str(tmp_path / "cases.json"), "--mirrors", str(mirrors)])
    printed = capsys.readouterr().out
    assert "| picks | look | 1 | 100.0% | 21%-100% | 0 | 0 | 1 | 100.0% |" in printed
    assert (
        "| all | git clean, nothing said | 1 | 100.0% | 21%-100% | 0 | 0 | 1 | 100.0% |" in printed
    )


@pytest.mark.slow
def test_a_merge_into_the_branch_is_told_from_one_into_upstream(
    upstream: Upstream, mirrors: Path, mine: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    """Both sides insert at one point: the first parent's lines come first, as between markers."""
    branch, up, into_branch, into_upstream = (
        BASE.replace(b"three", added + b"three")
        for added in (b"branch\n", b"up\n", b"branch\nup\n", b"up\nbranch\n")
    )
    base = upstream.commit({"f": BASE, "h": b"x\n"})
    side = upstream.commit({"f": branch}, parents=(base,))
    moved = upstream.commit({"f": up, "h": b"y\n"}, parents=(base,))
    upstream.branch("a", upstream.commit({"f": into_branch, "h": b"y\n"}, parents=(side, moved)))
    upstream.branch("b", upstream.commit({"f": into_upstream, "h": b"y\n"}, parents=(moved, side)))
    found = set()
    for seed in range(9):  # each file is taken once: which merge comes first differs
        folder = tmp_path / f"of {seed}"
        folder.mkdir()
        mined = mine("--kind", "merges", f"--seed={seed}")
        for case in _cases(folder, mined, mirrors, "hard"):
            found.add(case.merges)
            assert [each.grade for each in _tally([case]).files] == [Grade.RIGHT]
    assert found == {True, False}


def test_a_change_that_the_new_base_has_by_the_same_commit_was_not_rebased(
    upstream: Upstream, mine: Callable[..., dict[str, Any]]
) -> None:
    def written(when: int, data: bytes, parent: str) -> str:
        """A commit of one author and date, committed some time later."""
        who = "Ann <ann@example.com>"
        head = f"author {who} 1700000000 +0000\ncommitter {who} {when} +0000\n".encode()
        return upstream.fast_import({"f": data}, "Change it", f"at-{when}", (parent,), head)

    base = upstream.commit({"f": BASE})
    change = written(1700000001, OURS, base)
    moved = upstream.commit({"f": UPSTREAM}, parents=(base,))
    rebased = written(1700000002, TRUTH, moved)
    after = upstream.commit({"f": TRUTH + b"end\n"}, parents=(rebased,))
    written(1700000003, TRUTH.replace(b"THREE", b"3 again") + b"end\n", after)
    mined = mine("--kind", "rebases", "--clean", "1")
    assert [(case["A"], case["B"]) for case in mined["cases"]] == [(change, rebased)]


def _diff(old: bytes, new: bytes) -> bytes:
    """A patch of line 3 of a file of four lines or five, in the form of quilt."""
    before, after = old.splitlines(), new.splitlines()
    body = [
        b" " + a if a == b else b"-" + a + b"\n+" + b for a, b in zip(before, after, strict=True)
    ]
    count = len(before)
    return b"--- a/f\n+++ b/f\n@@ -1,%d +1,%d @@\n%s\n" % (count, count, b"\n".join(body))


def test_two_releases_of_debian_become_cases(tmp_path: Path) -> None:
    """One is kept under another number, one is given up, one does not apply and is left out."""
    taken = BASE.replace(b"two", b"TWO")
    series = {
        "old": (BASE, ["01_three.patch", "odd.patch", "02-taken.patch"]),
        "new": (UPSTREAM, ["07_three.patch"]),
    }
    patches = {
        "01_three.patch": _diff(BASE, OURS),
        "02-taken.patch": _diff(OURS, taken.replace(b"three", b"THREE")),
        "07_three.patch": _diff(UPSTREAM, TRUTH),
        "odd.patch": _diff(UPSTREAM, TRUTH),
    }
    repository = init_repository(tmp_path / "debian+x" / "repo")
    releases = []
    for side, (text, names) in series.items():
        listed: dict[str, Content] = {f"debian/patches/{name}": patches[name] for name in names}
        listed["debian/patches/series"] = "# ours\n" + "\n".join(names)
        archives = {"orig": make_tar({"x-1/f": text}), "debian": make_tar(listed)}
        write_files(tmp_path / side, {f"x_1.{n}.tar.gz": data for n, data in archives.items()})
        releases.append(read_release(tmp_path / side, repository))
    old, new = releases
    assert (old.left_out, new.left_out) == (("odd.patch",), ())
    cases = list(cases_of("x", repository, old, new.named_as(old)))
    found = [(each["id"], each["group"], each["files"][0]["cls"]) for each in cases]
    assert found == [("x-01_three.patch", "kept", "pure"), ("x-02-taken.patch", "gone", "dropped")]
    tally, others = Tally(), Tally()
    gnu = strategies()["patch, fuzz 2"]
    for case in _cases(tmp_path, {"mirrors": {"x": "debian+x"}, "cases": cases}, tmp_path, "whole"):
        tally.add(case, patchkit(case), 1.0)
        if not isinstance(gnu, str):
            others.add(case, gnu(case), 1.0)
    assert [each.grade for each in tally.files] == [Grade.RIGHT] * 2
    # a patch without git's headers is whole for GNU patch, too
    assert [each.grade for each in others.files] in ([], [Grade.RIGHT, Grade.CONFLICT])


def test_a_source_package_without_patches_of_its_own_is_said_to_be_none(tmp_path: Path) -> None:
    write_files(tmp_path, {"x_1.tar.gz": make_tar({"x-1/f": BASE})})
    with pytest.raises(UnavailableError, match="no package of one archive and a folder debian/"):
        read_release(tmp_path, init_repository(tmp_path / "repo"))


def test_an_interval_is_wide_where_files_are_few() -> None:
    assert [round(each, 3) for each in interval(8, 10)] == [0.49, 0.943]
    assert [round(each, 3) for each in interval(800, 1000)] == [0.774, 0.824]
    assert interval(0, 5)[0] == pytest.approx(0)


def test_a_file_that_upstream_has_nearly_whole_is_told() -> None:
    lines = [b"%d = %d;\n" % (number, number) for number in range(10)]
    diff = make_patch({"f": BASE}, {"f": BASE + b"".join(lines)})
    change = parse_patch(diff, name="x").changes[0]
    assert has_most(BASE, BASE + b"  ".join(lines), change.hunks)
    assert has_most(BASE, BASE + b"".join(lines[1:]), change.hunks)
    assert not has_most(BASE, BASE + b"".join(lines[2:]), change.hunks)
    assert not has_most(BASE + b"".join(lines), BASE + b"".join(lines), change.hunks)
    assert not has_most(BASE, BASE, ())
