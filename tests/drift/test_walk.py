from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from patchkit.errors import ExitCode
from patchkit.gitcmd.repository import Repository
from patchkit.model.outcome import Reason, Status
from tests.drift.lines import edit, look, numbered
from tests.ops.test_another_scope import ALPHA, OLD, PATCHED, a_class, a_file
from tests.support.projects import Project
from tests.support.repos import Upstream, make_patch

pytestmark = pytest.mark.slow

BASE = numbered()
OURS = edit("a.py", BASE, l6="ours")


def test_a_break_that_is_reverted_and_one_that_lasts(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE, "other.py": "x\n"}, "Start")
    upstream.commit({"other.py": "y\n"}, "Something else")
    broke = upstream.commit({"a.py": numbered(l5="theirs")}, "Rework it (#12)")
    mended = upstream.commit({"a.py": BASE}, 'Revert "Rework it (#12)" (#13)')
    upstream.commit({"other.py": "z\n"}, "Something else again")
    good = upstream.commit({"a.py": "new\n" + BASE}, "A line above")
    last = upstream.commit({"a.py": "new\n" + numbered(l6="other")}, "Rework it again (#20)")
    upstream.commit({"other.py": "end\n"}, "The end")

    found = look(project, upstream, pin, {"ours.patch": OURS})

    (patch,) = found.patches
    assert (found.exit_code, found.commits, found.touching) == (ExitCode.FINDING, 7, 4)
    assert (patch.at_pin, patch.status, patch.hunks) == (Status.UNCHANGED, Status.CONFLICTED, 1)
    assert patch.broken_by is not None
    assert patch.last_good is not None
    assert (patch.broken_by.commit, patch.broken_by.request) == (last, 20)
    assert patch.last_good.commit == good
    first, second = patch.breaks
    assert first.by is not None
    assert first.mended is not None
    assert (first.by.commit, first.mended.commit, first.reverted) == (broke, mended, True)
    assert (second.mended, second.reverted) == (None, False)
    states = [(each.status.value, each.first, each.last) for each in patch.intervals]
    assert states == [
        ("unchanged", 0, 1),
        ("merged", 2, 2),
        ("unchanged", 3, 4),
        ("shifted", 5, 5),
        ("conflicted", 6, 7),
    ]
    assert patch.risk is not None
    assert [(each.path, each.commits) for each in patch.risk.files] == [("a.py", 4)]
    assert patch.explanation is not None
    assert patch.explanation.files[0].hunks[0].mismatches[0].found == (b"other\n",)


@pytest.mark.parametrize("seconds", ["99999999999999", "0", ""])
def test_a_commit_may_name_any_date(project: Project, upstream: Upstream, seconds: str) -> None:
    pin = upstream.commit({"a.py": BASE}, "Start")
    commit = upstream.git("cat-file", "commit", upstream.commit({"a.py": numbered(l6="x")}, "X"))
    odd = re.sub(rb"(?m)^(committer .*>) .*", rb"\1 " + seconds.encode() + b" +0000", commit)
    write = ("hash-object", "-t", "commit", "-w", "--literally", "--stdin")
    upstream.branch("main", upstream.git(*write, stdin=odd).decode().strip())

    (patch,) = look(project, upstream, pin, {"ours.patch": OURS}).patches

    assert patch.broken_by is not None
    assert patch.broken_by.date[:4] in ("9999", "1970")
    assert patch.days is not None


def test_a_later_patch_is_judged_on_what_the_earlier_one_gives(
    project: Project, upstream: Upstream
) -> None:
    pin = upstream.commit({"a.py": BASE})
    second = edit("a.py", numbered(l6="ours"), ours="ours again")
    upstream.commit({"a.py": numbered(l12="theirs")}, "Far away")
    broke = upstream.commit({"a.py": numbered(l4="theirs", l12="theirs")}, "Near")

    found = look(project, upstream, pin, {"one.patch": OURS, "two.patch": second})

    assert [each.status for each in found.patches] == [Status.MERGED, Status.MERGED]
    assert [each.broken_by and each.broken_by.commit for each in found.patches] == [broke, broke]
    assert [len(each.intervals) for each in found.patches] == [2, 2]


def test_what_upstream_makes_as_well_is_absorbed(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": numbered(l1="first")}, "Something")
    took = upstream.commit({"a.py": numbered(l1="first", l6="ours")}, "The same (!7)")
    upstream.commit({"a.py": "more\n" * 9 + numbered(l1="first", l6="ours")}, "Lines above")

    (patch,) = look(project, upstream, pin, {"ours.patch": OURS}).patches

    assert patch.status is Status.ABSORBED
    assert patch.absorbed_by is not None
    assert (patch.absorbed_by.commit, patch.absorbed_by.request) == (took, 7)
    assert patch.breaks == ()


@pytest.mark.parametrize(("line", "named"), [("ours", True), ("}", False), ("fi", False)])
def test_single_hunks_that_upstream_makes_are_named(
    project: Project, upstream: Upstream, line: str, *, named: bool
) -> None:
    base = numbered(40)
    pin = upstream.commit({"a.py": base})
    ours = edit("a.py", base, l6=line, l30="also ours")
    took = upstream.commit({"a.py": numbered(40, l6=line)}, "Half of it")
    upstream.commit({"a.py": numbered(40, l6=line, l31="x")}, "And against the other half")

    (patch,) = look(project, upstream, pin, {"ours.patch": ours}).patches

    assert patch.status is Status.CONFLICTED
    absorbed = [(each.hunk, each.by and each.by.commit) for each in patch.absorbed]
    assert absorbed == ([(1, took)] if named else [])
    assert patch.broken_by is not None
    assert patch.broken_by.commit == took


def test_a_pin_on_another_branch_is_seen_from_where_they_part(
    project: Project, upstream: Upstream
) -> None:
    fork = upstream.commit({"a.py": BASE})
    pin = upstream.commit({"b.py": "x\n"}, "Only here", branch="release", parents=(fork,))
    broke = upstream.commit({"a.py": numbered(l6="theirs")}, "Break", parents=(fork,))

    found = look(project, upstream, pin, {"ours.patch": OURS})

    assert (found.fork, found.on_branch, found.commits) == (fork, False, 1)
    assert found.patches[0].broken_by is not None
    assert found.patches[0].broken_by.commit == broke


def test_a_patch_that_fits_only_for_a_while(project: Project, upstream: Upstream) -> None:
    fork = upstream.commit({"a.py": "nothing\n"})
    pin = upstream.commit({"a.py": BASE}, branch="release", parents=(fork,))
    fits = upstream.commit({"a.py": BASE}, "There now", parents=(fork,))
    broke = upstream.commit({"a.py": numbered(l6="theirs")}, "Gone again")

    (patch,) = look(project, upstream, pin, {"ours.patch": OURS}).patches

    first, second = patch.breaks
    assert (first.by, first.mended and first.mended.commit) == (None, fits)
    assert second.by is not None
    assert second.by.commit == broke


def test_a_merge_is_opened(project: Project, upstream: Upstream) -> None:
    """It counts as one step of the line; told is the commit inside that did it."""
    pin = upstream.commit({"a.py": BASE, "b.py": "x\n"})
    side = upstream.commit({"a.py": numbered(l12="far")}, "Far away", branch="side")
    did = upstream.commit({"a.py": numbered(l6="theirs")}, "Did it", branch="side", parents=(side,))
    side = upstream.commit({"b.py": "y\n"}, "Elsewhere", branch="side", parents=(did,))
    files = {"a.py": numbered(l6="theirs"), "b.py": "y\n"}
    merge = upstream.commit(files, "Merge pull request #5 from x/side", parents=(pin, side))

    found = look(project, upstream, pin, {"ours.patch": OURS})

    assert found.commits == 1
    (patch,) = found.patches
    assert patch.since is not None
    assert patch.since.via is not None
    assert (patch.since.commit, patch.since.subject) == (did, "Did it")
    assert (patch.since.via.commit, patch.since.via.request) == (merge, 5)
    assert patch.since.date == patch.since.via.date
    assert patch.broken_by == patch.since
    assert patch.forecast is not None
    (file,) = patch.forecast.files
    assert f"({did[:10]} Did it)" in file.reasons[0]


def test_what_a_merge_itself_did_is_told_of_it(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE, "b.py": "x\n"})
    side = upstream.commit({"b.py": "y\n"}, "Elsewhere", branch="side")
    files = {"a.py": numbered(l6="theirs"), "b.py": "y\n"}
    merge = upstream.commit(files, "Merge side, and more", parents=(pin, side))

    (patch,) = look(project, upstream, pin, {"ours.patch": OURS}).patches

    assert patch.since is not None
    assert (patch.since.commit, patch.since.via) == (merge, None)


def test_what_is_said_of_a_state_is_of_the_commit_that_began_it(
    project: Project, upstream: Upstream
) -> None:
    """First stopped applying by one commit, and in conflict by another one."""
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": numbered(l6="theirs")}, "Break it")
    upstream.commit({"a.py": BASE}, 'Revert "Break it"')
    near = upstream.commit({"a.py": numbered(l4="near")}, "Near")
    same = upstream.commit({"a.py": numbered(l4="near", l6="other")}, "The same line")
    upstream.commit({"a.py": numbered(l4="near", l6="other", l12="far")}, "Far")

    (patch,) = look(project, upstream, pin, {"ours.patch": OURS}).patches

    assert (patch.status, patch.since and patch.since.commit) == (Status.CONFLICTED, same)
    assert (patch.broken_by and patch.broken_by.commit) == near
    assert patch.stopped_earlier
    assert patch.explanation is not None
    found = [m.found for h in patch.explanation.files[0].hunks for m in h.mismatches]
    assert (b"other\n",) in found
    states = [(each.status.value, each.first) for each in patch.intervals]
    assert states == [
        ("unchanged", 0),
        ("conflicted", 1),
        ("unchanged", 2),
        ("merged", 3),
        ("conflicted", 4),
    ]


def test_a_patch_that_fails_because_another_does_waits_for_it(
    project: Project, upstream: Upstream
) -> None:
    """Each is broken by the commit that touches its own lines, and counted by itself."""
    pin = upstream.commit({"a.py": BASE, "b.py": BASE})
    base = make_patch(
        {"a.py": BASE, "b.py": BASE}, {"a.py": numbered(l6="ours"), "b.py": numbered(l6="ours")}
    )
    on_it = edit("b.py", numbered(l6="ours"), ours="ours again", l11="mine")
    new = make_patch({}, {"c.py": "ours\n"})
    first = upstream.commit({"a.py": numbered(l6="theirs")}, "Break the base patch")
    upstream.commit({"n": "1\n"}, "Something else")
    own = upstream.commit({"b.py": numbered(l11="theirs")}, "Break what is on it, too")
    patches = {"1-base.patch": base, "2-on-it.patch": on_it, "3-new.patch": new}

    later = look(project, upstream, pin, patches, to=first)
    found = look(project, upstream, pin, patches)

    one, two, three = later.patches
    assert (one.status, one.since and one.since.commit) == (Status.CONFLICTED, first)
    assert (two.status, two.waits_for) == (Status.WAITING, ("1-base.patch",))
    assert (two.broken_by, two.days) == (None, None)
    assert (two.broken_by, two.breaks, two.explanation) == (None, (), None)
    assert three.status is Status.UNCHANGED
    one, two, three = found.patches
    assert (one.status, one.since and one.since.commit) == (Status.CONFLICTED, first)
    assert [each.status.value for each in two.intervals] == ["unchanged", "waiting", "conflicted"]
    assert (two.status, two.waits_for) == (Status.CONFLICTED, ())
    assert (two.since and two.since.commit) == (two.broken_by and two.broken_by.commit) == own
    assert two.explanation is not None
    (file,) = two.explanation.files
    assert [m.found for m in file.hunks[0].mismatches] == [(b"theirs\n",)]
    assert [each.path for each in two.intervals[-1].faults] == ["b.py"]


def test_a_renamed_file_is_found_again(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    body = numbered(l12="last")
    broke = upstream.commit({"a.py": None, "lib/moved.py": body, "b.py": "x\n"}, "Move it")

    (patch,) = look(project, upstream, pin, {"ours.patch": OURS}).patches

    assert patch.broken_by is not None
    assert patch.broken_by.commit == broke
    assert patch.explanation is not None
    (file,) = patch.explanation.files
    assert (file.reason, [move.path for move in file.moves]) == (Reason.MISSING, ["lib/moved.py"])


def test_a_file_of_ours_that_upstream_adds(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    ours = make_patch({}, {"lib/new.py": "ours\n"})
    same = make_patch({}, {"lib/same.py": "the same\n"})
    broke = upstream.commit({"lib/new.py": "theirs\n", "lib/same.py": "the same\n"}, "Add them")

    new, equal = look(project, upstream, pin, {"new.patch": ours, "same.patch": same}).patches

    assert new.broken_by is not None
    assert (new.status, new.broken_by.commit) == (Status.CONFLICTED, broke)
    assert (equal.status, equal.absorbed_by and equal.absorbed_by.commit) == (
        Status.ABSORBED,
        broke,
    )


def test_nothing_new_upstream(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    found = look(project, upstream, pin, {"ours.patch": OURS})
    assert (found.exit_code, found.commits) == (ExitCode.OK, 0)
    assert found.patches[0].status is Status.UNCHANGED


def test_a_break_that_was_mended_is_seen(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    project.component("demo", upstream, pin, {"ours.patch": OURS})
    broke = upstream.commit({"a.py": numbered(l6="theirs")}, "Break")
    upstream.commit({"a.py": BASE}, "Mend")
    upstream.commit({"n": "1\n"}, "Go on")
    assert broke[:10] in project.run("drift", "--to", "main").ok().out


def test_the_next_report_is_the_same_without_what_was_kept(
    project: Project, upstream: Upstream
) -> None:
    pin = upstream.commit({"a.py": BASE})
    for number in range(5):
        upstream.commit({"a.py": numbered(l12=f"v{number}")}, f"Step {number}")
    look(project, upstream, pin, {"ours.patch": OURS})
    upstream.commit({"a.py": numbered(l6="theirs")}, "Break")
    again = look(project, upstream, pin, {"ours.patch": OURS})
    shutil.rmtree(project.root / "cache" / "verdicts")
    shutil.rmtree(project.root / "cache" / "trials")
    shutil.rmtree(project.root / "cache" / "walks")
    assert look(project, upstream, pin, {"ours.patch": OURS}) == again


@pytest.mark.parametrize("harm", ["cut", "flip", "empty"])
def test_a_damaged_memory_is_not_believed(project: Project, upstream: Upstream, harm: str) -> None:
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": numbered(l6="theirs")}, "Break")
    right = look(project, upstream, pin, {"ours.patch": OURS})
    (memory,) = (project.root / "cache" / "verdicts").iterdir()
    _harm(memory, harm)
    upstream.commit({"b.py": "x\n"}, "More")

    found = look(project, upstream, pin, {"ours.patch": OURS})

    assert found.commits == 2
    assert found.patches[0].broken_by == right.patches[0].broken_by


@pytest.mark.parametrize("harm", ["cut", "flip", "empty"])
def test_a_walk_is_kept_and_a_damaged_one_is_made_again(
    project: Project, upstream: Upstream, harm: str
) -> None:
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": numbered(l6="theirs")}, "Break")
    first = look(project, upstream, pin, {"ours.patch": OURS})
    assert first.patches[0].explanation is not None
    (kept,) = (project.root / "cache" / "walks").iterdir()
    whole = kept.read_bytes()

    # it is believed as long as it is whole: nothing else of the cache's memory is read
    for kind in ("verdicts", "trials"):
        shutil.rmtree(project.root / "cache" / kind)
    assert look(project, upstream, pin, {"ours.patch": OURS}) == first
    assert not (project.root / "cache" / "verdicts").exists()

    _harm(kept, harm)
    assert look(project, upstream, pin, {"ours.patch": OURS}) == first
    assert kept.read_bytes() == whole

    # another tip, another walk; and another series
    mended = upstream.commit({"a.py": BASE}, "Mend")
    found = look(project, upstream, pin, {"ours.patch": OURS})
    assert (found.tip and found.tip.commit, found.patches[0].is_broken) == (mended, False)
    other = edit("a.py", BASE, l12="ours")
    assert look(project, upstream, pin, {"ours.patch": other}).patches != found.patches
    assert len(list((project.root / "cache" / "walks").iterdir())) == 3


def test_a_walk_that_lacked_a_file_is_not_kept(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": numbered(l6="theirs")}, "Break")
    look(project, upstream, pin, {"ours.patch": OURS})
    shutil.rmtree(project.root / "cache" / "walks")
    (repository,) = (project.root / "cache" / "histories").iterdir()
    (repository / "patchkit-absent").write_text("0" * 40 + "\n")

    look(project, upstream, pin, {"ours.patch": OURS})

    assert not (project.root / "cache" / "walks").exists()


def _harm(memory: Path, how: str) -> None:
    data = memory.read_bytes()
    if how == "cut":
        memory.write_bytes(data[: len(data) // 2])
    elif how == "flip":
        assert b"conflicted" in data
        memory.write_bytes(data.replace(b"conflicted", b"unchanged "))
    else:
        memory.write_bytes(b"")


def test_a_branch_that_was_rewritten_is_walked_anew(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": numbered(l6="theirs")}, "Break")
    look(project, upstream, pin, {"ours.patch": OURS})
    upstream.branch("main", pin)
    upstream.commit({"b.py": "x\n"}, "Another history")

    found = look(project, upstream, pin, {"ours.patch": OURS})

    assert (found.exit_code, found.commits, len(found.patches[0].breaks)) == (ExitCode.OK, 1, 0)


def test_offline_sees_the_branch_as_it_was(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": numbered(l6="theirs")}, "Break")
    nothing = look(project, upstream, pin, {"ours.patch": OURS}, offline=True)
    assert nothing.exit_code is ExitCode.ENVIRONMENT
    assert "not in the cache" in nothing.problems[0].what
    online = look(project, upstream, pin, {"ours.patch": OURS})
    shutil.rmtree(upstream.path)
    assert look(project, upstream, pin, {"ours.patch": OURS}, offline=True) == online


def test_a_history_comes_without_files_and_stays_out_of_the_bases(
    project: Project, upstream: Upstream
) -> None:
    upstream.git("config", "uploadpack.allowFilter", "true")
    pin = upstream.commit({"a.py": BASE, "big.bin": "x" * 50_000})
    upstream.commit({"a.py": numbered(l6="theirs")}, "Break")
    look(project, upstream, pin, {"ours.patch": OURS})
    (repository,) = (project.root / "cache" / "histories").iterdir()
    arguments = ["cat-file", "--batch-all-objects", "--batch-check"]
    listed = Repository(repository).git(*arguments).out.decode()
    kinds = [row.split()[1:] for row in listed.splitlines()]
    assert max(int(size) for kind, size in kinds if kind == "blob") < 1000
    assert not (project.root / "cache" / "repos").exists()


def test_a_component_without_a_branch_says_what_to_do(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    found = look(project, upstream, pin, {"ours.patch": OURS}, track="nowhere")
    assert found.exit_code is ExitCode.BAD_INPUT
    assert "has no branch or tag nowhere" in found.problems[0].what


def test_a_branch_that_has_nothing_in_common_with_the_pin_is_none(
    project: Project, upstream: Upstream
) -> None:
    pin = upstream.commit({"a.py": BASE})
    upstream.commit({"a.py": BASE}, branch="gh-pages", parents=())
    found = look(project, upstream, pin, {"ours.patch": OURS}, track="gh-pages")
    assert found.exit_code is ExitCode.BAD_INPUT
    (problem,) = found.problems
    assert problem.what == f"gh-pages has no common ancestor with the pin {pin}"
    assert problem.hint == "correct `track`"


def test_a_pattern_means_the_highest_version(project: Project, upstream: Upstream) -> None:
    pin = upstream.commit({"a.py": BASE})
    upstream.tag("v0.9.1", pin)
    broke = upstream.commit({"a.py": numbered(l6="theirs")}, "Break")
    upstream.tag("v0.10.0", broke)
    upstream.commit({"a.py": BASE}, "Mended, not yet released")
    upstream.tag("v0.11.0rc1", upstream.commit({"b.py": "x\n"}))

    found = look(project, upstream, pin, {"ours.patch": OURS}, track="v0.*")

    assert found.tip is not None
    assert found.tip.commit == broke


def test_a_second_walk_has_what_patches_made_in_the_first(
    project: Project, upstream: Upstream
) -> None:
    """It asks more of a patch that applies to a twin of its class, on the same verdicts."""
    both = {"a.py": OLD, "b.py": BASE}
    pin = upstream.commit(both)
    ours = {"a.py": PATCHED, "b.py": numbered(l6="ours")}
    one = make_patch(both, ours, subject="Change both")
    two = make_patch(ours, {**ours, "b.py": numbered(l6="ours", l10="two")}, subject="Add to it")
    twins = a_file(ALPHA, a_class("Zeta"), a_class("Yota"))
    upstream.commit({"a.py": twins}, "Have two for Beta")
    upstream.commit({"b.py": numbered(l10="theirs")}, "Break the second")

    first, second = look(project, upstream, pin, {"one.patch": one, "two.patch": two}).patches

    assert (first.status, second.status) == (Status.MERGED, Status.CONFLICTED)
    assert second.broken_by is not None
    assert second.broken_by.subject == "Break the second"
    assert second.explanation is not None


def test_a_walk_whose_clash_is_not_known_is_not_kept(project: Project, upstream: Upstream) -> None:
    """A folder that the explanation reads, and nothing else, is gone from the cache."""
    pin = upstream.commit({"a.py": BASE, "other/b.py": "x\n"})
    upstream.commit({"a.py": None}, "Take it away")
    right = look(project, upstream, pin, {"ours.patch": OURS})
    assert right.patches[0].explanation is not None
    shutil.rmtree(project.root / "cache" / "walks")
    (folder,) = (project.root / "cache" / "histories").iterdir()
    lost = upstream.git("rev-parse", f"{pin}:other").decode().strip()
    packs = folder / "objects" / "pack"
    shutil.copytree(packs, project.root / "packs")
    _without(folder, lost)

    found = look(project, upstream, pin, {"ours.patch": OURS})

    assert (found.patches[0].is_broken, found.patches[0].explanation) == (True, None)
    shutil.rmtree(packs)
    (project.root / "packs").rename(packs)
    assert look(project, upstream, pin, {"ours.patch": OURS}) == right


def _without(folder: Path, lost: str) -> None:
    """Pack all objects of a repository again but one."""
    repository = Repository(folder)
    rows = repository.git("cat-file", "--batch-all-objects", "--batch-check").out.splitlines()
    kept = b"".join(row[:40] + b"\n" for row in rows if row[:40] != lost.encode())
    pack = repository.git("pack-objects", "--stdout", stdin=kept).out
    shutil.rmtree(folder / "objects" / "pack")
    (folder / "objects" / "pack").mkdir()
    repository.git("index-pack", "--stdin", stdin=pack)
