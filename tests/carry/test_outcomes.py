"""What is said of each carried file, and that a patch is never more certain than its worst file."""

from __future__ import annotations

import pytest

from patchkit.carry import carry_stack
from patchkit.carry.carried import CarryOptions
from patchkit.errors import FAILED_CHECKS, advice
from patchkit.gitcmd.object_reader import reading
from patchkit.gitcmd.pins import read_base
from patchkit.gitcmd.repository import Repository
from patchkit.model.mail import parse_patch
from patchkit.model.objects import TreeEntry
from patchkit.model.outcome import PatchResult, Status
from patchkit.model.resolution import Resolution
from patchkit.stack.build import SeriesPatch, StackBuilder
from tests.carry.test_carry_file import PATCH, PATCHED, TEXT, carry, files_of, only_file
from tests.support.repos import Files, Upstream, make_patch

BESIDE = TEXT.replace("function_5()", "function_5(value)")
CLASHING = TEXT.replace("return 5", "return five")
LATER = make_patch(
    {"f.py": PATCHED.decode()}, {"f.py": PATCHED.decode().replace("return 9", "return 90")}
)


def test_what_upstream_has_of_it_does_not_outweigh_a_conflict(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT, "g.py": TEXT})
    new = upstream.commit({"f.py": CLASHING, "g.py": PATCHED.decode()})
    both: Files = {"f.py": PATCHED.decode(), "g.py": PATCHED.decode()}
    report = carry(upstream, old, new, make_patch({"f.py": TEXT, "g.py": TEXT}, both))
    assert report.outcomes[0].status is Status.CONFLICTED
    assert report.stack.commit == new


def test_what_applies_as_it_is_is_certain(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    file = only_file(carry(upstream, old, upstream.commit({"f.py": TEXT + "# more\n"}), PATCH))
    assert (file.status, file.confidence, file.review) == (Status.UNCHANGED, 1.0, False)


def test_a_doubt_does_not_make_it_shifted(upstream: Upstream) -> None:
    """The patch calls what upstream renamed, in the same number of lines."""
    before = "import os\n" + TEXT
    patch = make_patch({"f.py": before}, {"f.py": before.replace("return 5", "return os.name")})
    old = upstream.commit({"f.py": before})
    new = upstream.commit({"f.py": before.replace("import os", "import re")})
    file = only_file(carry(upstream, old, new, patch))
    assert (file.status, file.review, file.offsets) == (Status.UNCHANGED, True, (0,))


def test_a_neighbour_that_was_rewritten_is_told(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    rewritten = TEXT.replace("def function_5():\n", "while True:\n    go(on)\n    stop = 1\n")
    file = only_file(carry(upstream, old, upstream.commit({"f.py": rewritten}), PATCH))
    where, what, proposed = file.reasons
    assert (
        where == "lands in no function (line 19), was made in function_5: see that it belongs there"
    )
    assert what.startswith("lines 16-19 (16-17 as patched): upstream changed adjacent")
    assert what.endswith(" Change files): see that both hold")
    assert proposed.startswith("a merge is proposed") and file.status is Status.CONFLICTED


def test_a_file_that_was_renamed_is_changed_and_deleted_there(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": None, "g.py": TEXT})
    file = only_file(carry(upstream, old, new, PATCH))
    assert (file.status, file.clashes) == (Status.MERGED, ())
    deleting = carry(upstream, old, new, make_patch({"f.py": TEXT}, {"f.py": None}))
    assert files_of(upstream, deleting) == {"g.py": None}
    file = only_file(deleting)
    assert (file.clashes, file.review) == ((), True)
    assert file.reasons == (f"upstream renamed f.py to g.py ({new[:10]} Change files)",)


def test_both_sides_rename_it_alike(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": None, "g.py": TEXT})
    patch = make_patch({"f.py": TEXT}, {"f.py": None, "g.py": PATCHED.decode()})
    report = carry(upstream, old, new, patch)
    assert files_of(upstream, report)["g.py"] == PATCHED
    file = only_file(report)
    assert (file.carried_to, file.reasons) == ("", ())


def test_a_rename_to_where_upstream_has_a_file_is_a_conflict(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"g.py": "upstream's\n"})
    patch = make_patch({"f.py": TEXT}, {"f.py": None, "g.py": PATCHED.decode()})
    report = carry(upstream, old, new, patch)
    file = only_file(report)
    assert (file.status, file.reasons) == (
        Status.CONFLICTED,
        ("upstream has a file there already",),
    )
    assert report.stack.commit == new


def test_a_patch_upon_one_that_never_applied_is_merged_all_the_same(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    never = make_patch({"g.py": "x\n"}, {"g.py": "y\n"})
    report = carry(upstream, old, upstream.commit({"f.py": BESIDE}), never, PATCH)
    assert [each.status for each in report.outcomes] == [Status.CONFLICTED, Status.MERGED]


def test_a_conflict_brings_what_a_checkout_needs_to_show_it(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": CLASHING})
    (file,) = carry(upstream, old, new, PATCH).conflicts["0.patch"]
    assert [blob.payload for blob in file.blobs] == [TEXT.encode(), PATCHED]
    before, here, after = file.sides
    assert before is not None and here is not None and after is not None
    assert (before.oid, after.oid) == tuple(blob.oid for blob in file.blobs)
    assert here.oid == upstream.git("rev-parse", f"{new}:f.py").decode().strip()


@pytest.mark.parametrize("kept", ["upstream's", "another"])
def test_a_remembered_resolution_settles_that_conflict(upstream: Upstream, kept: str) -> None:
    """The second patch conflicts in a file that the first one has changed on the new base."""
    old = upstream.commit({"f.py": TEXT, "f": "x\n"})
    new = upstream.commit({"f.py": BESIDE.replace("return 9", "return nine"), "f": "y\n"})
    (conflict,) = carry(upstream, old, new, PATCH, LATER).conflicts["1.patch"]
    here = conflict.sides[1]
    assert here is not None
    text = BESIDE.replace("return 9", "return nine").replace("return 5", "return 50")
    resolved = text.replace("nine", "ninety") if kept == "another" else text
    diff = make_patch({"f.py": text}, {"f.py": resolved}) if kept == "another" else b""
    oid = upstream.git("hash-object", "--stdin", stdin=resolved.encode()).decode().strip()
    changes = parse_patch(diff, name="x").changes
    resolution = Resolution(conflict.key, here, TreeEntry(here.mode, oid), changes, "r.resolution")
    repository = Repository(upstream.path)
    series = [
        SeriesPatch(f"{number}.patch", parse_patch(data, name="x"))
        for number, data in enumerate((PATCH, LATER))
    ]
    bases = read_base(repository, old), read_base(repository, new)
    with reading(repository) as reader:
        report = carry_stack(
            reader, *bases, series, CarryOptions(remembered={conflict.key: resolution})
        )
    second = report.outcomes[1]
    assert second.status is (Status.MERGED if kept == "another" else Status.ABSORBED)
    assert files_of(upstream, report, "1.patch") == {"f.py": resolved.encode()}
    (file,) = second.files
    assert (file.remembered, file.confidence) == ("r.resolution", 1.0)
    assert file.reasons == ("resolved as remembered in r.resolution",)


def test_a_generated_patch_is_taken_as_it_was_generated(upstream: Upstream) -> None:
    commit = upstream.commit({"f.py": TEXT})
    repository = Repository(upstream.path)
    base = read_base(repository, commit)
    said = PatchResult("0.patch", Status.REGENERATED)

    def generate(builder: StackBuilder, patch: SeriesPatch) -> PatchResult | None:
        return said if patch.name == "0.patch" else None

    series = [SeriesPatch(f"{number}.patch", parse_patch(PATCH, name="x")) for number in range(2)]
    with reading(repository) as reader:
        report = carry_stack(reader, base, base, series, CarryOptions(generate))
    assert report.outcomes[0] == said
    assert report.outcomes[1].status is not Status.REGENERATED


def test_a_deletion_is_not_upstreams_who_moved_the_file(upstream: Upstream) -> None:
    old = upstream.commit({"f.py": TEXT})
    new = upstream.commit({"f.py": None, "d/f.py": TEXT}, "Move the functions")
    origin = f"(cherry picked from commit {new})"
    patch = make_patch({"f.py": TEXT}, {"f.py": None}, body=origin)
    file = only_file(carry(upstream, old, new, patch))
    assert file.status is not Status.ABSORBED
    assert file.review
    assert file.reasons == (f"upstream renamed f.py to d/f.py ({new[:10]} Move the functions)",)


def test_a_class_renamed_by_the_patch_and_a_method_of_it_by_upstream(upstream: Upstream) -> None:
    body = "    def first_name(self):\n        a = 1\n        return self.name(a)\n"
    text = f"class Pool:\n    size = 1\n\n{body}"
    old = upstream.commit({"f.py": text})
    new = upstream.commit({"f.py": text.replace("first_name", "first_label")})
    ours = text.replace("class Pool:", "class Pools:").replace("self.name(", "self.names(")
    file = only_file(carry(upstream, old, new, make_patch({"f.py": text}, {"f.py": ours})))
    assert file.status in (Status.MERGED, Status.CONFLICTED)
    assert file.review or file.clashes


DEEP = "1 + " * 2000 + "1"
BOTH_INSERT = "def f(x):\n    alpha = read(x)\n    beta = write(alpha)\n    return beta\n"
#: What upstream adds where the patch adds a function of the same name.
ODD = {
    "nested deeper than Python's own dump goes": f"@deco({DEEP})\ndef f():\n    return 1\n",
    "brackets deeper than the parser goes": f"def f():\n    return {'(' * 300}1{')' * 300}\n",
    "a number of more digits than are read": f"def f():\n    return {'9' * 5000}\n",
    "half a surrogate pair": "def f():\n    return '\\ud800' \"\udc80\"\n",
    "an encoding that does not exist": "def f():\n    return 1  # coding: no-such\n",
}


@pytest.mark.parametrize("odd", ODD)
def test_a_check_that_fails_ends_no_stack(upstream: Upstream, odd: str) -> None:
    top = TEXT + "\n\n"
    old = upstream.commit({"f.py": top, "g.py": TEXT})
    there = (top + ODD[odd]).encode("utf-8", "surrogateescape")
    new = upstream.commit({"f.py": there, "g.py": TEXT})
    patches = [
        make_patch({"f.py": top}, {"f.py": top + BOTH_INSERT}),
        make_patch({"g.py": TEXT}, {"g.py": PATCHED.decode()}),
    ]
    FAILED_CHECKS.clear()
    one, other = carry(upstream, old, new, *patches).outcomes
    assert one.review or one.status is Status.CONFLICTED
    assert other.status is Status.UNCHANGED
    if "dump" in odd:
        (traceback,) = FAILED_CHECKS
        assert "RecursionError" in traceback
        assert one.files[0].reasons[-1] == "merged, the file could not be checked"
    FAILED_CHECKS.clear()


def test_only_an_answer_is_no_failed_check() -> None:
    FAILED_CHECKS.clear()
    assert advice(int, "3") == 3
    assert advice(int, "three") is advice(int, "three") is None
    (traceback,) = FAILED_CHECKS
    assert "ValueError" in traceback
    FAILED_CHECKS.clear()
    with pytest.raises(KeyboardInterrupt):
        advice(_interrupted)


def _interrupted() -> None:
    raise KeyboardInterrupt
