"""What carrying makes of the kinds of file changes, against real histories."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.carry.came_through import carried_files
from patchkit.carry import CarryReport, carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.gitcmd.commit_history import Between
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.repository import Repository
from patchkit.model.mail import parse_patch
from patchkit.model.objects import CommitId
from patchkit.model.outcome import Certainty, FileResult, Status
from patchkit.stack.build import SeriesPatch
from tests.support.repos import Files, Symlink, Upstream, executable, make_patch

TEXT = "".join(f"def function_{number}():\n    return {number}\n\n" for number in range(12))


def carry(
    upstream: Upstream,
    old: str,
    new: str,
    *patches: bytes,
    careful: bool = False,
    patch_first: bool = False,
) -> CarryReport:
    repository = Repository(upstream.path)
    bases = read_base(repository, CommitId(old)), read_base(repository, CommitId(new))
    series = [
        SeriesPatch(f"{number}.patch", parse_patch(data, name="x"))
        for number, data in enumerate(patches)
    ]
    with reading(repository) as reader:
        past = Between(repository, CommitId(old), CommitId(new))
        options = CarryOptions(past=past, careful=careful, patch_first=patch_first)
        return carry_stack(reader, *bases, series, options)


def files_of(
    upstream: Upstream, report: CarryReport, name: str = "0.patch"
) -> dict[str, bytes | None]:
    """What came through of a patch."""
    with reading(Repository(upstream.path)) as reader:
        return carried_files(report, reader, name)


def only_file(report: CarryReport) -> FileResult:
    (outcome,) = report.outcomes
    (file,) = outcome.files
    return file


PATCH = make_patch({"f.py": TEXT}, {"f.py": TEXT.replace("return 5", "return 50")})
PATCHED = TEXT.replace("return 5", "return 50").encode()


def test_the_commit_that_made_a_part_of_the_change_is_named(upstream: Upstream) -> None:
    more = "return 5\n    audit_everything(value)\n"
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": TEXT.replace("return 5\n", more)}, "Audit")
    whole = TEXT.replace("return 5\n", f"{more}    report_everything(value)\n")
    report = carry(upstream, old, new, make_patch({"f.py": TEXT}, {"f.py": whole}))
    file = only_file(report)
    assert file.status is Status.CONFLICTED
    assert file.reasons == (
        f"1 of 2 added lines are upstream ({new[:10]} Audit), as in its line 18",
        f"line 18: both sides change the same lines ({new[:10]} Audit)",
    )


def test_lines_that_upstream_spaces_otherwise_are_known_as_well(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    theirs = TEXT.replace("return 5\n", "return 5\n    audit_everything( value )\n")
    new = upstream.commit({"f.py": theirs}, "Audit")
    ours = TEXT.replace("return 5\n", "return 5\n    audit_everything(value)\n    report(value)\n")
    file = only_file(carry(upstream, old, new, make_patch({"f.py": TEXT}, {"f.py": ours})))
    said = f"1 of 2 added lines are upstream ({new[:10]} Audit), as in its line 18"
    assert any(each.startswith(said) for each in file.reasons)


def test_what_holds_at_several_places_is_said_once(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    theirs = TEXT.replace("return 2\n", "return two\n").replace("return 7\n", "return seven\n")
    new = upstream.commit({"f.py": theirs}, "Count")
    ours = TEXT.replace("return 2\n", "return 20\n").replace("return 7\n", "return 70\n")
    file = only_file(carry(upstream, old, new, make_patch({"f.py": TEXT}, {"f.py": ours})))
    assert file.reasons == (f"lines 8, 23: both sides change the same lines ({new[:10]} Count)",)


def test_beside_an_edit_of_upstream_s_it_is_flagged(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": TEXT.replace("function_5()", "function_5(value)")}, "Rename")
    report = carry(upstream, old, new, PATCH)
    file = only_file(report)
    assert (file.status, file.certainty) == (Status.MERGED, Certainty.SURE)
    assert file.reasons == (
        "lines 16-17 (16-17 as patched): upstream changed adjacent lines "
        f"({new[:10]} Rename): see that both hold",
    )
    assert report.clean
    assert files_of(upstream, report)["f.py"] == PATCHED.replace(
        b"function_5()", b"function_5(value)"
    )


@pytest.mark.parametrize(
    ("theirs", "ours", "is_absorbed"),
    [
        ("", "", True),  # what it removes stood here, and is gone
        ("    if True:\n        measure(five)\n", "", False),  # it stands here still, deeper
        ("    measure(five, six)\n", "    measure(five)  # it\n", False),  # words of a line
    ],
)
def test_absorbed_is_what_upstream_did_by_lines(
    upstream: Upstream, theirs: str, ours: str, *, is_absorbed: bool
) -> None:
    text = TEXT.replace("return 5\n", "measure(five)\n")
    old = upstream.commit({"f": text})
    here = text.replace("    measure(five)\n", f"{theirs}    more(value)\n")
    patch = make_patch({"f": text}, {"f": text.replace("    measure(five)\n", ours)})
    file = only_file(carry(upstream, old, upstream.commit({"f": here}), patch))
    assert (file.status is Status.ABSORBED) is is_absorbed


def test_what_follows_moved_code_is_proposed(upstream: Upstream) -> None:
    """Both places are named, and the merge is there to be taken."""
    block = TEXT[TEXT.index("def function_5") : TEXT.index("def function_6")]
    own = TEXT.replace("    return 5\n", "    return 5\n    done(5)\n")
    moved = TEXT.replace(block, "class Other:\n    pass\n\n") + block
    old, new = upstream.commit({"f": TEXT}), upstream.commit({"f": moved}, "Move it")
    report = carry(upstream, old, new, make_patch({"f": TEXT}, {"f": own}))
    file, (conflict,) = only_file(report), report.conflicts["0.patch"]
    assert file.status is Status.CONFLICTED
    assert file.reasons[0].startswith("lines 16-17 (16-18 as patched): upstream moved its context")
    assert f" to line 39 ({new[:10]} Move it)" in file.reasons[0]
    assert conflict.proposal is not None
    assert conflict.proposal.payload.decode() == moved.replace(
        "return 5\n", "return 5\n    done(5)\n"
    )


def test_careful_leaves_it_in_conflict(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": TEXT.replace("function_5()", "function_5(value)")})
    report = carry(upstream, old, new, PATCH, careful=True)
    assert only_file(report).status is Status.CONFLICTED
    assert not report.clean
    assert files_of(upstream, report) == {}
    (conflict,) = report.conflicts["0.patch"]
    assert conflict.marked is not None
    assert b"<<<<<<< upstream" in conflict.marked
    assert b"    return 50\n>>>>>>> 0.patch" in conflict.marked


def test_a_renamed_file_is_followed(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT, "other": "x"})
    new = upstream.commit({"f.py": None, "lib/g.py": "# more\n" + TEXT})
    report = carry(upstream, old, new, PATCH)
    file = only_file(report)
    assert (file.status, file.carried_to, file.clashes) == (Status.MERGED, "lib/g.py", ())
    assert file.offsets == (1,)
    assert f"upstream renamed f.py to lib/g.py ({new[:10]} Change files)" in file.reasons
    assert files_of(upstream, report) == {"lib/g.py": b"# more\n" + PATCHED}


def test_a_mode_of_upstream_s_does_not_keep_a_change_from_being_absorbed(
    upstream: Upstream,
) -> None:
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": executable(PATCHED.decode() + "# more\n")})
    assert only_file(carry(upstream, old, new, PATCH)).status is Status.ABSORBED


def test_a_conflict_names_the_commit_that_took_its_line(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": TEXT.replace("def function_5():\n", "")}, "Cut")
    patch = make_patch({"f.py": TEXT}, {"f.py": TEXT.replace("function_5()", "function_5(value)")})
    file = only_file(carry(upstream, old, new, patch))
    assert file.reasons == (f"line 16: both sides change the same lines ({new[:10]} Cut)",)


def test_what_was_odd_on_the_old_base_stays_so(upstream: Upstream) -> None:
    odd = PATCH.replace(b"@@ def function_4", b"@@ def other").replace(b"index 8", b"index 9")
    old = upstream.commit({"f.py": TEXT})
    file = only_file(carry(upstream, old, upstream.commit({"f.py": None, "g.py": TEXT}), odd))
    assert (file.review, file.certainty) == (True, Certainty.LOOK)
    assert file.status is Status.MERGED


def test_a_chain_of_renames_that_git_cannot_see_at_once(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    half = TEXT.replace("return 1", "result = 1").replace("def function", "def first_function")
    upstream.commit({"f.py": None, "g.py": TEXT})
    upstream.commit({"g.py": half})
    upstream.commit({"g.py": None, "h.py": half})
    new = upstream.commit({"h.py": half.replace("_function", "_operation").replace("result", "r")})
    assert Between(Repository(upstream.path), old, new).renamed("f.py") == "h.py"


def test_files_of_a_renamed_folder(upstream: Upstream) -> None:
    before: Files = {f"old/{name}.py": TEXT.replace("function", name) for name in "abc"}
    after: Files = {path.replace("old/", "new/"): text for path, text in before.items()}
    old = upstream.commit(before)
    new = upstream.commit({**after, **dict.fromkeys(before)})
    report = carry(upstream, old, new, make_patch({}, {"old/d.py": "x = 1\n"}))
    file = only_file(report)
    assert (file.status, file.carried_to, file.review) == (Status.MERGED, "new/d.py", True)
    assert files_of(upstream, report) == {"new/d.py": b"x = 1\n"}


def test_a_deleted_file_is_explained(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT, "x": "x"})
    new = upstream.commit({"f.py": None}, "Drop the functions")
    file = only_file(carry(upstream, old, new, PATCH))
    assert file.status is Status.CONFLICTED
    assert "Drop the functions" in file.reasons[0]
    deleting = make_patch({"f.py": TEXT}, {"f.py": None})
    gone = carry(upstream, old, new, deleting)
    assert gone.outcomes[0].status is Status.ABSORBED
    changed = upstream.commit({"f.py": TEXT + "# more\n"}, "Add more", parents=(old,))
    (reason,) = only_file(carry(upstream, old, changed, deleting)).reasons
    assert reason.endswith(f"upstream changed it ({changed[:10]} Add more)")


def test_an_absorbed_change_names_the_commit(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    upstream.commit({"f.py": PATCHED.decode()}, "Return fifty (#12)")
    new = upstream.commit({"g.py": "x\n"})
    file = only_file(carry(upstream, old, new, PATCH))
    assert file.status is Status.ABSORBED
    assert "Return fifty (#12)" in file.reasons[0]


def test_a_hunk_that_upstream_has_leaves_the_patch(upstream: Upstream) -> None:
    two = TEXT.replace("return 5", "return 50").replace("return 9", "return 90")
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": PATCHED.decode()})
    report = carry(upstream, old, new, make_patch({"f.py": TEXT}, {"f.py": two}))
    assert report.outcomes[0].status is Status.MERGED
    assert files_of(upstream, report)["f.py"] == two.encode()


def test_the_mode_and_the_text_are_merged_apart(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": executable(TEXT.replace("return 9", "return 99"))})
    report = carry(upstream, old, new, PATCH)
    assert report.clean
    patch = make_patch({"f.py": TEXT}, {"f.py": executable(TEXT)})
    report = carry(upstream, old, new, patch)
    assert report.outcomes[0].status is Status.ABSORBED


@pytest.mark.parametrize(
    ("upstream_has", "status"),
    [(b"\0old", Status.UNCHANGED), (b"\0new", Status.ABSORBED), (b"\0x", Status.CONFLICTED)],
)
def test_binary_files_are_taken_whole_or_not(
    upstream: Upstream, upstream_has: bytes, status: Status
) -> None:
    old = upstream.commit({"b": b"\0old"})
    new = upstream.commit({"b": upstream_has, "x": "x"})
    report = carry(upstream, old, new, make_patch({"b": b"\0old"}, {"b": b"\0new"}))
    assert report.outcomes[0].status is status


@pytest.mark.parametrize(
    ("before", "here", "after"),
    [
        (Symlink("one"), "one", Symlink("two")),
        (Symlink("one"), Symlink("three"), "one"),
        ("one", Symlink("one"), "two"),
        (Symlink("one"), Symlink("two"), Symlink("three")),
        (Symlink("a\nb\nc\nd\ne"), Symlink("A\nb\nc\nd\ne"), Symlink("a\nb\nc\nd\nE")),
    ],
)
def test_a_link_is_never_merged(
    upstream: Upstream, before: str | Symlink, here: str | Symlink, after: str | Symlink
) -> None:
    """Nor is a file that one side makes a link of, or the other way round."""
    old = upstream.commit({"f": before})
    new = upstream.commit({"f": here})
    report = carry(upstream, old, new, make_patch({"f": before}, {"f": after}))
    assert report.outcomes[0].status is Status.CONFLICTED
    assert report.stack.commit == new


def test_a_folder_or_a_file_in_the_way_is_a_conflict(upstream: Upstream) -> None:
    """Upstream has d/e where the patch makes d, and a file g where it makes g/n."""
    old = upstream.commit({"f": "x\n"})
    new = upstream.commit({"d/e": "x\n", "g": "x\n"})
    patch = make_patch({"f": "x\n"}, {"f": "y\n", "d": "d\n", "g/n": "n\n"})
    report = carry(upstream, old, new, patch)
    (outcome,) = report.outcomes
    assert outcome.status is Status.CONFLICTED
    failed = {f.path: f.reasons for f in outcome.files if f.status is Status.CONFLICTED}
    assert failed.pop("g/n") == ("upstream has a file there already",)
    assert not failed  # d comes when the rest is put in its place
    assert report.stack.commit == new
    alone = carry(upstream, old, new, make_patch({"f": "x\n"}, {"f": "y\n", "d": "d\n"}))
    (outcome,) = alone.outcomes
    (told,) = (f for f in outcome.files if f.status is Status.CONFLICTED)
    assert told.path == "d"
    assert told.reasons


def test_a_file_that_both_add(upstream: Upstream) -> None:
    old = upstream.commit({"x": "x"})
    new = upstream.commit({"f.py": "upstream's\n"})
    file = only_file(carry(upstream, old, new, make_patch({}, {"f.py": "ours\n"})))
    assert file.status is Status.CONFLICTED
    same = carry(upstream, old, new, make_patch({}, {"f.py": "upstream's\n"}))
    assert same.outcomes[0].status is Status.ABSORBED


def test_a_rename_by_the_patch_takes_upstream_s_edits_along(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": TEXT.replace("return 9", "return 99")})
    patch = make_patch({"f.py": TEXT}, {"f.py": None, "g.py": PATCHED.decode()})
    report = carry(upstream, old, new, patch)
    assert report.clean
    expected = PATCHED.replace(b"return 9\n", b"return 99\n")
    assert files_of(upstream, report) == {"f.py": None, "g.py": expected}


def test_the_next_patch_builds_on_the_carried_one(upstream: Upstream) -> None:
    later = PATCHED.decode().replace("return 50", "return 500")
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": "import os\n" + TEXT.replace("function_5()", "function_5(v)")})
    report = carry(
        upstream, old, new, PATCH, make_patch({"f.py": PATCHED.decode()}, {"f.py": later})
    )
    assert [each.status.applies for each in report.outcomes] == [True, True]
    assert (
        files_of(upstream, report, "1.patch")["f.py"]
        == b"import os\n" + later.replace("function_5()", "function_5(v)").encode()
    )


def test_a_patch_that_never_applied_says_so(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT.replace("return 5", "return five")})
    report = carry(upstream, old, old, PATCH)
    assert only_file(report).status is Status.CONFLICTED
    assert "does not apply on the old base" in only_file(report).reasons[0]
    upon = make_patch({"f.py": PATCHED.decode()}, {"f.py": PATCHED.decode() + "# more\n"})
    one, two = carry(upstream, old, old, PATCH, upon.replace(b" 11\n", b" 11 \n")).outcomes
    assert (one.status, two.status) == (Status.CONFLICTED, Status.WAITING)
    assert two.files[0].waits_for == ("0.patch",)


def test_unsafe_paths_are_refused(upstream: Upstream, tmp_path: Path) -> None:
    old = upstream.commit({"f.py": TEXT})
    patch = make_patch({}, {"inside": "x\n"}).replace(b"inside", b"../outside")
    report = carry(upstream, old, old, patch)
    assert report.outcomes[0].status is Status.CONFLICTED
    assert not (tmp_path / "outside").exists()


def test_all_objects_of_the_stack_are_at_hand(upstream: Upstream) -> None:
    old = upstream.commit({"lib/f.py": TEXT})
    new = upstream.commit({"lib/f.py": "import os\n" + TEXT})
    patch = make_patch({"lib/f.py": TEXT}, {"lib/f.py": PATCHED.decode()})
    report = carry(upstream, old, new, patch)
    repository = Repository(upstream.path)
    write_objects(repository, report.stack.objects)
    assert upstream.files(report.stack.commit)["lib/f.py"] == b"import os\n" + PATCHED


_CUTS = [TEXT.index("def function_4"), TEXT.index("def function_8")]
PARTS = TEXT[: _CUTS[0]], TEXT[_CUTS[0] : _CUTS[1]], TEXT[_CUTS[1] :]


def test_code_that_went_to_other_files_is_a_conflict_that_names_the_commit(
    upstream: Upstream,
) -> None:
    """Functions 4 to 7 of f.py go to another file, then all that is left."""
    old = upstream.commit({"f.py": TEXT})
    moved = upstream.commit({"f.py": PARTS[0] + PARTS[2], "home.py": PARTS[1]}, "Move")
    rest = {f"{n}.py": "x = 1\n" * 99 + part for n, part in zip("ac", PARTS[::2], strict=True)}
    gone = upstream.commit({"f.py": None, **rest}, "Take f apart")
    patch = make_patch({"f.py": TEXT}, {"f.py": TEXT.replace("return 5", "return 50")})
    report = carry(upstream, old, moved, patch)
    (file,) = report.outcomes[0].files
    assert file.status is Status.CONFLICTED
    assert f"({moved[:10]} Move)" in file.reasons[0]
    assert b"<<<<<<< upstream" in (report.conflicts["0.patch"][0].marked or b"")
    (file,) = carry(upstream, old, gone, patch).outcomes[0].files
    assert file.status is Status.CONFLICTED
    assert file.reasons == (f"upstream deleted the file ({gone[:10]} Take f apart)",)


def test_the_twin_of_what_upstream_rewrote_is_another_place(upstream: Upstream) -> None:
    """The patch changes the first of two like pieces; upstream made the first one anew."""
    piece = "".join(f"    step_{number}(value)\n" for number in range(7))
    text = f"def one():\n{piece}\n\ndef two():\n{piece}"
    old = upstream.commit({"f.py": text})
    anew = piece.replace("step_3(value)", "step_3(other)")
    upstream_text = f"def one():\n{anew}\n\ndef two():\n{piece}"
    new = upstream.commit({"f.py": upstream_text})
    own = text.replace("step_3(value)", "step_3(value, 1)", 1)
    report = carry(upstream, old, new, make_patch({"f.py": text}, {"f.py": own}))
    assert report.outcomes[0].status is Status.CONFLICTED
    assert report.stack.commit == new


@pytest.mark.parametrize(
    ("patch_first", "merged"), [(False, b"a\none\ntwo\nb\n"), (True, b"a\ntwo\none\nb\n")]
)
def test_of_two_insertions_at_one_point_the_asked_side_comes_first(
    upstream: Upstream, patch_first: bool, merged: bytes
) -> None:
    patch = make_patch({"f": "a\nb\n"}, {"f": "a\ntwo\nb\n"})
    old = upstream.commit({"f": "a\nb\n"})
    new = upstream.commit({"f": "a\none\nb\n"})
    report = carry(upstream, old, new, patch, patch_first=patch_first)
    assert files_of(upstream, report) == {"f": merged}


@pytest.mark.parametrize("held", [False, True])
def test_a_key_that_both_sides_add_is_for_a_person(upstream: Upstream, held: bool) -> None:
    """Unless a side has such a mapping itself."""
    text = "one:\n  a: 1\ntwo:\n  b: 2\n" + "three: {c: 3, c: 4}\n" * held
    theirs, own = (text.replace("  a: 1\n", f"  a: 1\n  {key}") for key in ("b: 5\n", "c: 6\n"))
    old, new = upstream.commit({"f.yaml": text}), upstream.commit({"f.yaml": theirs})
    for side, twice in ((own, False), (own.replace("  c: 6", "  d: 7\n  b: 6"), True)):
        report = carry(upstream, old, new, make_patch({"f.yaml": text}, {"f.yaml": side}))
        file = only_file(report)
        assert (file.status is Status.CONFLICTED) == twice
        assert ("would define a name twice" in " ".join(file.reasons)) == twice


def test_a_name_that_is_gone_is_said_where_it_is_used_with_the_commit(upstream: Upstream) -> None:
    text = "# how to pick\nfrom tools import pick\n\n" + TEXT
    old = upstream.commit({"f.py": text})
    theirs = text.replace("import pick", "import choose").replace("how to", "what to")
    new = upstream.commit({"f.py": theirs}, "Choose")
    ours = text.replace("    return 5\n", "    return pick(5)\n")
    file = only_file(carry(upstream, old, new, make_patch({"f.py": text}, {"f.py": ours})))
    line = ours.splitlines().index("    return pick(5)") + 1
    used, by = f"line {line} uses `pick`, which", f"({new[:10]} Choose)"
    assert file.reasons == (
        f"{used} upstream's file does not use {by}: see that it is there by that name",
        f"{used} nothing in the merged file defines {by}: define it",
    )


def test_a_hunk_that_upstream_has_elsewhere_is_said_with_its_line(upstream: Upstream) -> None:
    guard = "    guard_of_both_sides(5)\n"
    theirs, ours = (TEXT.replace(at, f"{guard}{at}") for at in ("    return 9\n", "    return 2\n"))
    ours = ours.replace("    return 5\n", "    one(5)\n    two(5)\n    return 50\n")
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": theirs}, "Guard")
    file = only_file(carry(upstream, old, new, make_patch({"f.py": TEXT}, {"f.py": ours})))
    line = theirs.splitlines().index(guard.rstrip("\n")) + 1
    what = f"a hunk adds `{guard.strip()}`, as line {line} upstream does ({new[:10]} Guard)"
    assert file.reasons == (f"{what}: see if it is wanted",)


def test_an_older_branch_names_the_commit_that_it_lacks(upstream: Upstream) -> None:
    """The patch was made beside a line that the branch has in an older form."""
    first = upstream.commit({"f.py": TEXT})
    theirs = TEXT.replace("function_5()", "function_5(value)")
    old = upstream.commit({"f.py": theirs}, "Take a value")
    new = upstream.commit({"g.py": TEXT}, "Branch off", branch="stable", parents=(first,))
    patch = make_patch({"f.py": theirs}, {"f.py": theirs.replace("return 5", "return 50")})
    file = only_file(carry(upstream, old, new, patch))
    assert (file.certainty, file.review) == (Certainty.SURE, False)
    assert f"adjacent lines (without {old[:10]} Take a value): see" in file.reasons[0]
