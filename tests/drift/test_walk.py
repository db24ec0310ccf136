from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from patchkit.errors import ExitCode
from patchkit.gitcmd.repository import Repository
from patchkit.model.outcome import Reason, Status
from tests.drift.lines import BASE, Branch, by, edit, numbered, states
from tests.ops.test_another_scope import ALPHA, OLD, PATCHED, a_class, a_file
from tests.support.repos import make_patch

pytestmark = pytest.mark.slow


def test_a_break_that_is_reverted_and_one_that_lasts(branch: Branch) -> None:
    commit = branch.upstream.commit
    commit({"b.py": "y\n"}, "Something else")
    broke = branch.becomes("Rework it (#12)", l5="theirs")
    mended = branch.becomes('Revert "Rework it (#12)" (#13)')
    commit({"b.py": "z\n"}, "Something else again")
    good = commit({"a.py": "new\n" + BASE}, "A line above")
    last = commit({"a.py": "new\n" + numbered(l6="other")}, "Rework it again (#20)")
    commit({"b.py": "end\n"}, "The end")

    found = branch.look()

    (patch,) = found.patches
    assert (found.exit_code, found.commits, found.touching) == (ExitCode.FINDING, 7, 4)
    assert (patch.at_pin, patch.status, patch.hunks) == (Status.UNCHANGED, Status.CONFLICTED, 1)
    assert (by(patch.broken_by), by(patch.last_good)) == (last, good)
    assert patch.broken_by is not None
    assert patch.broken_by.request == 20
    first, second = patch.breaks
    assert (by(first.by), by(first.mended), first.reverted) == (broke, mended, True)
    assert (second.mended, second.reverted) == (None, False)
    assert [
        (*state, each.last) for state, each in zip(states(patch), patch.intervals, strict=True)
    ] == [
        ("unchanged", 0, 1),
        ("merged", 2, 2),
        ("unchanged", 3, 4),
        ("shifted", 5, 5),
        ("conflicted", 6, 7),
    ]
    assert patch.risk is not None
    assert patch.risk.commits == 4
    assert patch.explanation is not None
    assert patch.explanation.files[0].hunks[0].mismatches[0].found == (b"other\n",)


@pytest.mark.parametrize("seconds", ["99999999999999", "0", ""])
def test_a_commit_may_name_any_date(branch: Branch, seconds: str) -> None:
    upstream = branch.upstream
    commit = upstream.git("cat-file", "commit", branch.becomes(l6="x"))
    odd = re.sub(rb"(?m)^(committer .*>) .*", rb"\1 " + seconds.encode() + b" +0000", commit)
    write = ("hash-object", "-t", "commit", "-w", "--literally", "--stdin")
    upstream.branch("main", upstream.git(*write, stdin=odd).decode().strip())

    patch = branch.patch()

    assert patch.broken_by is not None
    assert patch.broken_by.date[:4] in ("9999", "1970")
    assert patch.days is not None


@pytest.mark.parametrize(("line", "named"), [("ours", True), ("}", False), ("fi", False)])
def test_single_hunks_that_upstream_makes_are_named(
    branch: Branch, line: str, *, named: bool
) -> None:
    branch.patches = {"ours.patch": edit("a.py", BASE, l6=line, l20="also ours")}
    took = branch.becomes("Half of it", l6=line)
    branch.becomes("And against the other half", l6=line, l21="x")

    patch = branch.patch()

    assert patch.status is Status.CONFLICTED
    assert (patch.fate, patch.fate_by and by(patch.fate_by)) == (
        ("landed in part", took) if named else ("", None)
    )
    assert by(patch.broken_by) == took


def test_a_pin_on_another_branch_is_seen_from_where_they_part(branch: Branch) -> None:
    fork, upstream = branch.pin, branch.upstream
    branch.pin = upstream.commit({"c.py": "x\n"}, "Only here", branch="release", parents=(fork,))
    broke = branch.becomes("Break", l6="theirs")

    found = branch.look()

    assert (found.fork, found.on_branch, found.commits) == (fork, False, 1)
    assert by(found.patches[0].broken_by) == broke


def test_a_patch_that_fits_only_for_a_while(branch: Branch) -> None:
    upstream = branch.upstream
    fork = upstream.commit({"a.py": "nothing\n"})
    branch.pin = upstream.commit({"a.py": BASE}, branch="release", parents=(fork,))
    fits = branch.becomes("There now")
    broke = branch.becomes("Gone again", l6="theirs")

    first, second = branch.patch().breaks

    assert (first.by, by(first.mended), by(second.by)) == (None, fits, broke)


def test_a_merge_is_opened(branch: Branch) -> None:
    """It counts as one step of the line; told is the commit inside that did it."""
    upstream, pin = branch.upstream, branch.pin
    upstream.commit({"a.py": numbered(l12="far")}, "Far away", branch="side", parents=(pin,))
    did = upstream.commit({"a.py": numbered(l6="theirs")}, "Did it", branch="side")
    side = upstream.commit({"b.py": "y\n"}, "Elsewhere", branch="side")
    files = {"a.py": numbered(l6="theirs"), "b.py": "y\n"}
    merge = upstream.commit(files, "Merge pull request #5 from x/side", parents=(pin, side))

    found = branch.look()

    (patch,) = found.patches
    assert (found.commits, patch.broken_by) == (1, patch.since)
    assert patch.since is not None
    assert patch.since.via is not None
    assert (patch.since.commit, patch.since.subject) == (did, "Did it")
    assert (patch.since.via.commit, patch.since.via.request) == (merge, 5)
    assert patch.since.date == patch.since.via.date
    assert patch.forecast is not None
    (file,) = patch.forecast.files
    assert f"({did[:10]} Did it)" in file.reasons[0]


def test_what_is_said_of_a_state_is_of_the_commit_that_began_it(branch: Branch) -> None:
    """First stopped applying by one commit, and in conflict by another one."""
    branch.becomes("Break it", l6="theirs")
    branch.becomes('Revert "Break it"')
    near = branch.becomes("Near", l4="near")
    same = branch.becomes("The same line", l4="near", l6="other")
    branch.becomes("Far", l4="near", l6="other", l12="far")

    patch = branch.patch()

    assert (patch.status, by(patch.since)) == (Status.CONFLICTED, same)
    assert (by(patch.broken_by), patch.stopped_earlier) == (near, True)
    assert patch.explanation is not None
    found = [m.found for h in patch.explanation.files[0].hunks for m in h.mismatches]
    assert (b"other\n",) in found
    steps = ["unchanged", "conflicted", "unchanged", "merged", "conflicted"]
    assert states(patch) == [(state, number) for number, state in enumerate(steps)]


def test_a_patch_that_fails_because_another_does_waits_for_it(branch: Branch) -> None:
    """Each is broken by the commit that touches its own lines, and counted by itself."""
    both = {"a.py": numbered(l6="ours"), "b.py": numbered(l6="ours")}
    branch.patches = {
        "1-base.patch": make_patch({"a.py": BASE, "b.py": BASE}, both),
        "2-on-it.patch": edit("b.py", numbered(l6="ours"), ours="ours again", l11="mine"),
        "3-new.patch": make_patch({}, {"c.py": "ours\n"}),
    }
    first = branch.becomes("Break the base patch", l6="theirs")
    branch.upstream.commit({"n": "1\n"}, "Something else")
    own = branch.upstream.commit({"b.py": numbered(l11="theirs")}, "Break what is on it, too")

    one, two, three = branch.look(to=first).patches
    assert (one.status, by(one.since)) == (Status.CONFLICTED, first)
    assert (two.status, two.waits_for, two.days) == (Status.WAITING, ("1-base.patch",), None)
    assert (two.broken_by, two.breaks, two.explanation) == (None, (), None)
    assert three.status is Status.UNCHANGED

    one, two, three = branch.look().patches
    assert (one.status, by(one.since)) == (Status.CONFLICTED, first)
    assert [state for state, _ in states(two)] == ["unchanged", "waiting", "conflicted"]
    assert (two.waits_for, by(two.since), by(two.broken_by)) == ((), own, own)
    assert two.explanation is not None
    (file,) = two.explanation.files
    assert [m.found for m in file.hunks[0].mismatches] == [(b"theirs\n",)]
    assert [each.path for each in two.intervals[-1].faults] == ["b.py"]


def test_a_renamed_file_is_found_again(branch: Branch) -> None:
    files = {"a.py": None, "lib/moved.py": numbered(l12="last"), "b.py": "x\n"}
    broke = branch.upstream.commit(files, "Move it")

    patch = branch.patch()

    assert by(patch.broken_by) == broke
    assert patch.explanation is not None
    (file,) = patch.explanation.files
    assert (file.reason, [move.path for move in file.moves]) == (Reason.MISSING, ["lib/moved.py"])


def test_a_file_of_ours_that_upstream_adds(branch: Branch) -> None:
    files = {"lib/new.py": "ours\n", "lib/same.py": "the same\n"}
    branch.patches = {path: make_patch({}, {path: text}) for path, text in files.items()}
    broke = branch.upstream.commit({**files, "lib/new.py": "theirs\n"}, "Add them")

    new, equal = branch.look().patches

    assert (new.status, by(new.broken_by)) == (Status.CONFLICTED, broke)
    assert (equal.status, by(equal.absorbed_by)) == (Status.ABSORBED, broke)


def test_a_break_that_was_mended_is_seen(branch: Branch) -> None:
    branch.project.component("demo", branch.upstream, branch.pin, branch.patches)
    broke = branch.becomes("Break", l6="theirs")
    branch.becomes("Mend")
    branch.upstream.commit({"n": "1\n"}, "Go on")
    branch.project.run("drift", "--to", "main").ok().shows(broke[:10])


def test_a_walk_is_kept_for_its_tip_and_its_series(branch: Branch) -> None:
    cache = branch.project.root / "cache"
    for number in range(5):
        branch.becomes(f"Step {number}", l12=f"v{number}")
    branch.look()
    branch.becomes("Break", l6="theirs")
    found = branch.look()
    assert found.patches[0].explanation is not None
    # it is believed as long as it is whole: nothing else of the cache's memory is read
    for kind in ("verdicts", "trials"):
        shutil.rmtree(cache / kind)
    assert branch.look() == found
    assert not (cache / "verdicts").exists()
    shutil.rmtree(cache / "walks")
    assert branch.look() == found

    mended = branch.becomes("Mend")
    other = branch.look()
    assert (other.tip and other.tip.commit, other.patches[0].is_broken) == (mended, False)
    branch.patches = {"ours.patch": edit("a.py", BASE, l12="ours")}
    assert branch.look().patches != other.patches
    assert len(list((cache / "walks").iterdir())) == 3


@pytest.mark.parametrize("harm", ["cut", "flip", "empty"])
def test_a_damaged_memory_is_not_believed(branch: Branch, harm: str) -> None:
    cache = branch.project.root / "cache"
    branch.becomes("Break", l6="theirs")
    right = branch.look()
    (walk,) = (cache / "walks").iterdir()
    whole = walk.read_bytes()
    _harm(walk, harm)
    assert (branch.look(), walk.read_bytes()) == (right, whole)

    (verdicts,) = (cache / "verdicts").iterdir()
    _harm(verdicts, harm)
    branch.upstream.commit({"b.py": "x\n"}, "More")
    found = branch.look()
    assert (found.commits, found.patches[0].broken_by) == (2, right.patches[0].broken_by)


def _harm(memory: Path, how: str) -> None:
    data = memory.read_bytes()
    assert b"conflicted" in data
    harmed = {
        "cut": data[: len(data) // 2],
        "flip": data.replace(b"conflicted", b"unchanged "),
        "empty": b"",
    }
    memory.write_bytes(harmed[how])


def test_a_walk_that_lacked_a_file_is_not_kept(branch: Branch) -> None:
    branch.becomes("Break", l6="theirs")
    branch.look()
    cache = branch.project.root / "cache"
    shutil.rmtree(cache / "walks")
    (repository,) = (cache / "histories").iterdir()
    (repository / "patchkit-absent").write_text("0" * 40 + "\n")

    branch.look()

    assert not (cache / "walks").exists()


def test_a_branch_that_was_rewritten_is_walked_anew(branch: Branch) -> None:
    def looks() -> tuple[ExitCode, int, Status]:
        found = branch.look()
        return found.exit_code, found.commits, found.patches[0].status

    assert looks() == (ExitCode.OK, 0, Status.UNCHANGED)
    branch.becomes("Break", l6="theirs")
    assert looks() == (ExitCode.FINDING, 1, Status.CONFLICTED)
    branch.upstream.branch("main", branch.pin)
    branch.upstream.commit({"b.py": "x\n"}, "Another history")
    assert looks() == (ExitCode.OK, 1, Status.UNCHANGED)


def test_offline_sees_the_branch_as_it_was(branch: Branch) -> None:
    branch.becomes("Break", l6="theirs")
    nothing = branch.look(offline=True)
    assert nothing.exit_code is ExitCode.ENVIRONMENT
    assert "not in the cache" in nothing.problems[0].what
    online = branch.look()
    shutil.rmtree(branch.upstream.path)
    assert branch.look(offline=True) == online


def test_a_history_comes_without_files_and_stays_out_of_the_bases(branch: Branch) -> None:
    branch.upstream.git("config", "uploadpack.allowFilter", "true")
    branch.pin = branch.upstream.commit({"big.bin": "x" * 50_000})
    branch.becomes("Break", l6="theirs")
    branch.look()
    cache = branch.project.root / "cache"
    (repository,) = (cache / "histories").iterdir()
    arguments = ["cat-file", "--batch-all-objects", "--batch-check"]
    listed = Repository(repository).git(*arguments).out.decode()
    kinds = [row.split()[1:] for row in listed.splitlines()]
    assert max(int(size) for kind, size in kinds if kind == "blob") < 1000
    assert not (cache / "repos").exists()


def test_a_branch_that_is_none_says_what_to_do(branch: Branch) -> None:
    branch.upstream.commit({"a.py": BASE}, branch="gh-pages", parents=())
    for track, what in (
        ("nowhere", "has no branch or tag nowhere"),
        ("gh-pages", f"gh-pages has no common ancestor with the pin {branch.pin}"),
    ):
        found = branch.look(track=track)
        (problem,) = found.problems
        assert found.exit_code is ExitCode.BAD_INPUT
        assert what in problem.what
    assert problem.hint == "correct `track`, or `branch`"


def test_a_pattern_means_the_highest_version(branch: Branch) -> None:
    upstream = branch.upstream
    upstream.tag("v0.9.1", branch.pin)
    broke = branch.becomes("Break", l6="theirs")
    upstream.tag("v0.10.0", broke)
    branch.becomes("Mended, not yet released")
    upstream.tag("v0.11.0rc1", upstream.commit({"b.py": "x\n"}))
    tip = branch.look(track="v0.*").tip
    assert tip is not None
    assert tip.commit == broke


def test_a_second_walk_has_what_patches_made_in_the_first(branch: Branch) -> None:
    """It asks more of a patch that applies to a twin of its class, on the same verdicts."""
    both = {"a.py": OLD, "b.py": BASE}
    branch.pin = branch.upstream.commit(both)
    ours = {"a.py": PATCHED, "b.py": numbered(l6="ours")}
    added = {**ours, "b.py": numbered(l6="ours", l10="two")}
    branch.patches = {"one.patch": make_patch(both, ours), "two.patch": make_patch(ours, added)}
    twins = a_file(ALPHA, a_class("Zeta"), a_class("Yota"))
    branch.upstream.commit({"a.py": twins}, "Have two for Beta")
    broke = branch.upstream.commit({"b.py": numbered(l10="theirs")}, "Break the second")

    first, second = branch.look().patches

    assert (first.status, second.status) == (Status.MERGED, Status.CONFLICTED)
    assert by(second.broken_by) == broke
    assert second.explanation is not None


def test_a_walk_whose_clash_is_not_known_is_not_kept(branch: Branch) -> None:
    """A folder that the explanation reads, and nothing else, is gone from the cache."""
    root, upstream = branch.project.root, branch.upstream
    branch.pin = upstream.commit({"other/b.py": "x\n"})
    upstream.commit({"a.py": None}, "Take it away")
    right = branch.look()
    assert right.patches[0].explanation is not None
    shutil.rmtree(root / "cache" / "walks")
    (folder,) = (root / "cache" / "histories").iterdir()
    lost = upstream.git("rev-parse", f"{branch.pin}:other").decode().strip()
    packs = folder / "objects" / "pack"
    shutil.copytree(packs, root / "packs")
    _without(folder, lost)

    found = branch.patch()

    assert (found.is_broken, found.explanation) == (True, None)
    shutil.rmtree(packs)
    (root / "packs").rename(packs)
    assert branch.look() == right


def _without(folder: Path, lost: str) -> None:
    """Pack all objects of a repository again but one."""
    repository = Repository(folder)
    rows = repository.git("cat-file", "--batch-all-objects", "--batch-check").out.splitlines()
    kept = b"".join(row[:40] + b"\n" for row in rows if row[:40] != lost.encode())
    pack = repository.git("pack-objects", "--stdout", stdin=kept).out
    shutil.rmtree(folder / "objects" / "pack")
    (folder / "objects" / "pack").mkdir()
    repository.git("index-pack", "--stdin", stdin=pack)
