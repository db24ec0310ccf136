"""What was done to a conflict, as git records it."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from patchkit.model.objects import CommitId, TreeId
from patchkit.workspace.save import read_worktree, staged_id
from patchkit.workspace.state import Place
from patchkit.workspace.waiting import Halt, go_to, halt_objects, unsettled, work_of, worktree_tree
from tests.workspace.bench import WHEN, Bench


@pytest.mark.parametrize(("ends", "lossy"), [("true", True), ("input", True), ("false", False)])
def test_what_git_makes_of_line_ends_goes_into_the_patch(
    bench: Bench, ends: str, lossy: bool
) -> None:
    stack = bench.stack()
    bench.enter(stack)
    bench.git("config", "core.autocrlf", ends)
    bench.write("a.py", "ONE\r\nmore\n")
    files = TreeId(bench.git("rev-parse", f"{stack.tip}^{{tree}}"))
    place = Place(stack.base, stack.tip, files)
    work = work_of(bench.checkout, bench.look(), Halt(place, place, {}), WHEN, save=False)
    recorded = b"ONE\nmore\n" if ends != "false" else b"ONE\r\nmore\n"
    assert bench.git("rev-parse", f"{work.place.files}:a.py") == bench.git(
        "hash-object", "--no-filters", "--stdin", stdin=recorded
    )
    assert bool(work.saved) == lossy
    assert work.held.staged == (staged_id(bench.checkout) if lossy else "")
    unread = read_worktree(bench.checkout, files)
    assert unread.recorded == ("" if lossy else unread.tree)


def test_where_no_file_moves_what_the_worktree_holds_is_an_edit(bench: Bench) -> None:
    stack = bench.stack()
    bench.enter(stack)
    bench.write("b.py", "mine\n")
    bench.git("commit", "-aqm", "mine")
    tip, base = CommitId(bench.git("rev-parse", "HEAD")), stack.base
    bench.write("b.py", "more\n")
    place = Place(base, tip, TreeId(bench.git("rev-parse", f"{base}^{{tree}}")))
    assert go_to(bench.checkout, bench.look(), place, held=None, when=WHEN).changed == 0
    there = bench.look()
    assert (there.head, there.applied, there.edited) == (tip, tip, ("b.py",))
    assert (bench.path / "b.py").read_text() == "more\n"


@pytest.mark.parametrize(("data", "what"), [({"imported": "x"}, "an import"), ({}, "a bump")])
def test_the_commit_of_a_halt_has_all_that_is_needed_to_go_back(
    data: dict[str, str], what: str
) -> None:
    base, tip, before, blob, last = (digit * 40 for digit in "12345")
    rows = (f"100644 {blob} 1", f"160000 {last} 2")
    place = Place(CommitId(base), CommitId(tip), TreeId(base), {"f": rows})
    earlier = Place(CommitId(base), CommitId(before), TreeId(base))
    *_, tree, commit = halt_objects(Halt(place, earlier, data, CommitId(last)))
    words = commit.payload.decode()
    assert words.endswith(f"\n\npatchkit: {what} that waits\n")
    assert re.findall("^parent (.*)$", words, re.MULTILINE) == [tip, before, last]
    names = re.findall(rb"(?:40000|100644) (.+?)\0", tree.payload)
    assert names == [b"side-%s" % blob.encode(), b"state.json", b"worktree-0"]


def test_a_file_with_markers_is_unsettled_until_they_go_or_it_does(bench: Bench) -> None:
    stack = bench.stack()
    bench.enter(stack)
    marked = "<<<<<<< upstream\n1\n||||||| base\n2\n=======\n3\n>>>>>>> patch\n"
    for path in (bench.write("b.py", marked), bench.write("new.py", marked)):
        place = Place(stack.base, stack.tip, worktree_tree(bench.checkout, stack.tip))
        halt = Halt(replace(place, index={"b.py": (), "new.py": ()}), place, {})
        told = unsettled(bench.checkout, halt, ["b.py", "new.py"])
        assert told[path.name] == [1, 3, 5, 7]
        path.unlink() if path.name == "b.py" else path.write_text("1\n3\n")
        assert path.name not in unsettled(bench.checkout, halt, ["b.py", "new.py"])
