"""The carry benchmark on a small history of its own: it must be able to say right, order, wrong."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from bench.carry.calibrate import fit, said
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
from tests.support.repos import Upstream, make_patch

BASE = b"one\ntwo\nthree\nfour\n"
UPSTREAM = b"one\nTWO\nthree\nup\nfour\n"


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
    upstream: Upstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror = tmp_path / "mirrors" / "some+where"
    mirror.mkdir(parents=True)
    base = upstream.commit({"f": BASE})
    change = upstream.commit({"f": BASE.replace(b"three", b"THREE")})
    moved = upstream.commit({"f": UPSTREAM}, parents=(base,))
    upstream.branch("keep", change)
    (mirror / "repo").symlink_to(upstream.path)
    truth = UPSTREAM.replace(b"three", b"THREE")
    upstream.commit({"f": truth}, parents=(moved,))
    file = {"path": "f", "cls": "pure", "hard": True, "truth": make_object("blob", truth).oid}
    facts = {"id": "x", "kind": "rebase", "repo": "x", "A": change, "A_base": base}
    listed = {**facts, "B_base": moved, "files": [file]}
    gone = {**listed, "id": "y", "repo": "y"}
    cases = tmp_path / "cases.json"
    mirrors = {"x": "some+where", "y": "no+where"}
    cases.write_text(json.dumps({"mirrors": mirrors, "cases": [listed, gone]}))
    case, missing = read_cases(cases, [tmp_path / "mirrors"], tmp_path / "work", "hard")
    assert isinstance(case, Case)
    assert missing == "y: no clone of no+where"
    tally = Tally()
    tally.add(case, patchkit(case), 1.0)
    (row,) = tally.files
    assert (row.grade, row.language) == (Grade.RIGHT, "others")
    assert row.outcome is not None
    assert row.outcome.review
    assert careful(case).files == {}
    for name in ("git apply", "git merge-tree"):
        strategy = strategies()[name]
        assert isinstance(strategy, str) or strategy(case).files == {}
    case.reader.close()
    # all ways in one run, with what became of each file; the first folder has no such clone
    folders = [str(tmp_path), str(tmp_path / "mirrors")]
    files = tmp_path / "files.json"
    words = [str(cases), "--mirrors", *folders, "--subset", "each", "--files", str(files)]
    main([*words, "--strategy", "patchkit", "--strategy", "git apply"])
    skipped, head, _, table = capsys.readouterr().out.splitlines()
    assert skipped == f"skipped: {missing}"
    assert head.startswith("|  | files | patchkit | order |")
    assert table == "| cases, hard | 1 | 100.0% | 0.0% | 0.0% | 0.0% | 0.0% | 0.0% (0.0%) |"
    (one,) = json.loads(files.read_text())
    assert one["grades"] == {"patchkit": "right", "git apply": "conflict"}
    assert one["flagged"]


def test_cases_are_mined_from_a_history(
    upstream: Upstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A merge that was settled by hand, a change that was picked, landed, and reverted later."""
    (tmp_path / "some+where").mkdir()
    (tmp_path / "some+where" / "repo").symlink_to(upstream.path)
    base = upstream.commit({"f": BASE, "g": BASE, "h": b"x\n"})
    side = upstream.commit({"f": BASE.replace(b"three", b"THREE")}, parents=(base,))
    change = upstream.commit({"g": BASE.replace(b"three", b"3")}, parents=(base,))
    merged = UPSTREAM.replace(b"three", b"THREE")
    moved = upstream.commit({"f": UPSTREAM, "g": BASE, "h": b"y\n"}, parents=(base,))
    upstream.branch("merged", upstream.commit({"f": merged}, parents=(moved, side)))
    other = upstream.commit({"f": BASE, "g": UPSTREAM, "h": b"x\n"}, parents=(base,))
    picked = f"Pick\u2028a line\n\n(cherry picked from commit {change})"
    pick = upstream.commit({"g": UPSTREAM.replace(b"three", b"3")}, picked, parents=(other,))
    upstream.branch("picked", pick)
    last = upstream.commit({"g": BASE.replace(b"three", b"3") + b"end\n"}, parents=(change,))
    undone = upstream.commit({"g": BASE + b"end\n"}, f"Undo\n\nThis reverts commit {change}.")
    upstream.branch("main", undone)
    mine_cases(["some/where", "--mirrors", str(tmp_path), "--clean", "1"])
    mined = json.loads(capsys.readouterr().out)
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
    cases = tmp_path / "cases.json"
    cases.write_text(json.dumps(mined))
    tally = Tally()
    for case in read_cases(cases, [tmp_path], tmp_path / "work", "any"):
        assert isinstance(case, Case)
        tally.add(case, patchkit(case), 1.0)
    assert [each.grade for each in tally.files] == [Grade.RIGHT] * 4
    assert len(tally.patches) == 4
    again = tmp_path / "again.json"
    again.write_text(json.dumps(mined))
    calibrate([str(cases), "--test", str(again), "--mirrors", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "lines: 3 files of 1 histories" in printed
    assert "lines, other histories: 3 files" in printed
    assert "lines, each history by a table of the others: 3 files" in printed
    calibrate(["--test", str(again), "--mirrors", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "lines, other histories: 3 files\n" in printed
    assert " 86%    100%  " in printed.partition("bytes")[0]  # by the table of the engine


@pytest.mark.slow
def test_a_merge_into_the_branch_is_told_from_one_into_upstream(
    upstream: Upstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both sides insert at one point: the first parent's lines come first, as between markers."""
    (tmp_path / "some+where").mkdir()
    (tmp_path / "some+where" / "repo").symlink_to(upstream.path)
    base = upstream.commit({"f": BASE, "h": b"x\n"})
    side = upstream.commit({"f": BASE.replace(b"three", b"branch\nthree")}, parents=(base,))
    moved = upstream.commit(
        {"f": BASE.replace(b"three", b"up\nthree"), "h": b"y\n"}, parents=(base,)
    )
    into_branch = BASE.replace(b"three", b"branch\nup\nthree")
    into_upstream = BASE.replace(b"three", b"up\nbranch\nthree")
    upstream.branch("a", upstream.commit({"f": into_branch, "h": b"y\n"}, parents=(side, moved)))
    upstream.branch("b", upstream.commit({"f": into_upstream, "h": b"y\n"}, parents=(moved, side)))
    cases = tmp_path / "cases.json"
    found = []
    for seed in range(9):  # each file is taken once: which merge comes first differs
        mine_cases(["some/where", "--mirrors", str(tmp_path), "--kind", "merges", f"--seed={seed}"])
        cases.write_text(capsys.readouterr().out)
        tally = Tally()
        for case in read_cases(cases, [tmp_path], tmp_path / f"work{seed}", "hard"):
            assert isinstance(case, Case)
            found.append(case.merges)
            tally.add(case, patchkit(case), 1.0)
        assert [each.grade for each in tally.files] == [Grade.RIGHT] * len(tally.files)
    assert set(found) == {True, False}


def test_a_change_that_the_new_base_has_by_the_same_commit_was_not_rebased(
    upstream: Upstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "some+where").mkdir()
    (tmp_path / "some+where" / "repo").symlink_to(upstream.path)

    def written(when: int, data: bytes, parent: str) -> str:
        """A commit of one author and date, committed some time later."""
        who = "Ann <ann@example.com>"
        head = f"author {who} 1700000000 +0000\ncommitter {who} {when} +0000\n".encode()
        return upstream.fast_import({"f": data}, "Change it", f"at-{when}", (parent,), head)

    base = upstream.commit({"f": BASE})
    changed = BASE.replace(b"three", b"3")
    change = written(1700000001, changed, base)
    moved = upstream.commit({"f": UPSTREAM}, parents=(base,))
    rebased = written(1700000002, UPSTREAM.replace(b"three", b"3"), moved)
    later = UPSTREAM.replace(b"three", b"3") + b"end\n"
    after = upstream.commit({"f": later}, parents=(rebased,))
    written(1700000003, later.replace(b"3", b"3 again"), after)
    mine_cases(["some/where", "--mirrors", str(tmp_path), "--kind", "rebases", "--clean", "1"])
    mined = json.loads(capsys.readouterr().out)
    assert [(case["A"], case["B"]) for case in mined["cases"]] == [(change, rebased)]


def _archive(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


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
    changed = {side: text.replace(b"three", b"THREE") for side, (text, _) in series.items()}
    patches = {
        "01_three.patch": _diff(BASE, changed["old"]),
        "02-taken.patch": _diff(changed["old"], taken.replace(b"three", b"THREE")),
        "07_three.patch": _diff(UPSTREAM, changed["new"]),
        "odd.patch": _diff(UPSTREAM, changed["new"]),
    }
    repository = init_repository(tmp_path / "debian+x" / "repo")
    releases = []
    for side, (text, names) in series.items():
        folder = tmp_path / side
        folder.mkdir()
        _archive(folder / "x_1.orig.tar.gz", {"x-1/f": text})
        listed = {"debian/patches/series": b"# ours\n" + "\n".join(names).encode()}
        listed |= {f"debian/patches/{name}": patches[name] for name in names}
        _archive(folder / "x_1-1.debian.tar.gz", listed)
        releases.append(read_release(folder, repository))
    old, new = releases
    assert (old.left_out, new.left_out) == (("odd.patch",), ())
    cases = list(cases_of("x", repository, old, new.named_as(old)))
    found = [(each["id"], each["group"], each["files"][0]["cls"]) for each in cases]
    assert found == [("x-01_three.patch", "kept", "pure"), ("x-02-taken.patch", "gone", "dropped")]
    listed_cases = tmp_path / "cases.json"
    listed_cases.write_text(json.dumps({"mirrors": {"x": "debian+x"}, "cases": cases}))
    tally, others = Tally(), Tally()
    gnu = strategies()["patch, fuzz 2"]
    for case in read_cases(listed_cases, [tmp_path], tmp_path / "work", "whole"):
        assert isinstance(case, Case)
        tally.add(case, patchkit(case), 1.0)
        if not isinstance(gnu, str):
            others.add(case, gnu(case), 1.0)
    assert [each.grade for each in tally.files] == [Grade.RIGHT] * 2
    # a patch without git's headers is whole for GNU patch, too
    assert [each.grade for each in others.files] in ([], [Grade.RIGHT, Grade.CONFLICT])


def test_a_source_package_without_patches_of_its_own_is_said_to_be_none(tmp_path: Path) -> None:
    _archive(tmp_path / "x_1.tar.gz", {"x-1/f": BASE})
    with pytest.raises(UnavailableError, match="no package of one archive and a folder debian/"):
        read_release(tmp_path, init_repository(tmp_path / "repo"))


def test_shares_rise_with_the_score_and_steps_are_of_many_files() -> None:
    """Two scores whose shares fall are one step; a step of few files joins the nearer one."""
    right = {0.2: 30, 0.4: 150, 0.5: 120, 0.55: 18, 0.9: 285}
    files = {0.2: 300, 0.4: 300, 0.5: 300, 0.55: 30, 0.9: 300}
    points = [(s, number < right[s], 1.0) for s, count in files.items() for number in range(count)]
    steps = fit(points)
    found = [(each.least, each.most, each.files, round(each.share, 2)) for each in steps]
    assert found == [(0.2, 0.2, 300, 0.1), (0.4, 0.55, 630, 0.46), (0.9, 0.9, 300, 0.95)]
    assert [round(said(steps, score), 2) for score in (0.1, 0.3, 0.55, 1.0)] == [
        *(0.1, 0.46, 0.46, 0.95)
    ]


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
