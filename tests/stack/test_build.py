from __future__ import annotations

import random
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.errors import BadInputError
from patchkit.gitcmd.object_reader import reading, write_objects
from patchkit.gitcmd.process import sealed_environment
from patchkit.gitcmd.repository import Repository
from patchkit.gitcmd.trees import tree_changes
from patchkit.model.mail import add_patch_trailer, parse_patch, split_patch_trailer
from patchkit.model.objects import CommitId, TreeEntry, TreeId, make_object
from patchkit.model.outcome import Certainty, Preimage, Reason, Status
from patchkit.model.tree import Overlay
from patchkit.stack.build import (
    Base,
    SeriesPatch,
    Stack,
    StackBuilder,
    build_stack,
    parse_commit,
    patch_changes,
    read_stack,
)
from tests.support.repos import Files, Submodule, Symlink, Upstream, executable, git_in, make_patch

NUMBERED = "".join(f"line {number}\n" for number in range(1, 41))


def base_of(upstream: Upstream, commit: str) -> Base:
    return Base(CommitId(commit), TreeId(upstream.tree(commit)), "1700000060 +0000")


def patch(name: str, data: bytes, **where: str | int) -> SeriesPatch:
    file = parse_patch(data, name=name)
    return SeriesPatch(name, file, **where)  # type: ignore[arg-type]


def stack_on(upstream: Upstream, commit: str, *patches: SeriesPatch, **options: bool) -> Stack:
    base = base_of(upstream, commit)
    with reading(Repository(upstream.path)) as reader:
        return build_stack(reader, base, patches, **options)


def edited(old: str, new: str, text: str = NUMBERED) -> str:
    assert old in text
    return text.replace(old, new)


def test_one_commit_per_patch(upstream: Upstream) -> None:
    commit = upstream.commit({"f": "a\n", "d/g": "g\n"})
    one = make_patch({"f": "a\n"}, {"f": "b\n"}, subject="First", body="Why.")
    two = make_patch({"d/g": "g\n"}, {"d/g": None, "d/h": executable("h\n")}, subject=None)
    stack = stack_on(upstream, commit, patch("one.patch", one), patch("two.patch", two))
    assert stack.clean
    write_objects(Repository(upstream.path), stack.objects)
    assert upstream.git("fsck", "--strict", "--no-dangling") == b""
    assert upstream.files(stack.commit) == {"f": b"b\n", "d/h": b"h\n"}
    shown = upstream.git(
        "log", "--reverse", "--format=%an %ae %at|%cn %ce %ct|%B%x00", stack.commit
    )
    assert shown.decode().split("\0\n")[1:-1] == [
        "Ann Author ann@example.com 1700042400|patchkit patchkit@localhost 1700042400|"
        "First\n\nWhy.\n\nPatchkit-Patch: one.patch\n",
        "patchkit patchkit@localhost 1700000060|patchkit patchkit@localhost 1700000060|"
        "two\n\nPatchkit-Patch: two.patch\n",
    ]


def test_ids_are_the_same_everywhere(upstream: Upstream) -> None:
    commit = upstream.commit({"f": "a\n"})
    data = make_patch({"f": "a\n"}, {"f": "b\n"})
    stack = stack_on(upstream, commit, patch("one.patch", data))
    assert stack.commit == "91f960cf0c536d92f98da05eba615412cef90701"
    assert stack_on(upstream, commit, patch("one.patch", data)) == stack


def test_a_stack_reads_back_as_it_was_built(upstream: Upstream) -> None:
    commit = upstream.commit({"f": "a\n"})
    one = make_patch({"f": "a\n"}, {"f": "b\n"}, subject="Ünï", body="x\n\nSigned-off-by: A <a@b>")
    two = make_patch({"f": "b\n"}, {"f": "c\n"}, subject=None)
    stack = stack_on(upstream, commit, patch("one.patch", one), patch("two.patch", two))
    repository = Repository(upstream.path)
    write_objects(repository, stack.objects)
    commits = read_stack(repository, commit, stack.commit)
    assert [(each.patch, each.message) for each in commits] == [
        ("one.patch", "Ünï\n\nx\n\nSigned-off-by: A <a@b>"),
        ("two.patch", "two"),
    ]
    assert [each.id for each in commits] == [outcome.commit for outcome in stack.outcomes]
    assert [each.parent for each in commits] == [commit, commits[0].id]
    assert commits[0].author.date == "1700042400 +0000"
    assert commits[1].tree == stack.tree
    assert read_stack(repository, commit, commit) == ()
    upstream.git("branch", "stack", stack.commit)
    assert read_stack(repository, commit, "stack") == commits


def test_a_commit_s_author_ends_where_git_says() -> None:
    head = b"tree 1\nparent 2\nauthor A <a <b@c> 1 +0000\ncommitter C <c@c> 1 +0000\n\n"
    author = parse_commit("3", head + b"x\n").author
    assert (author.name, author.email, author.date) == ("A", "a <b@c", "1 +0000")


@pytest.mark.parametrize(
    ("encoding", "subject"), [(b"latin-1", "é"), (b"utf-8", "\udce9"), (b"no-such", "\udce9")]
)
def test_a_message_is_read_in_its_encoding_or_kept_as_bytes(encoding: bytes, subject: str) -> None:
    head = b"tree 1\nparent 2\nauthor A <a> 1 +0000\ncommitter C <c> 1 +0000\nencoding "
    assert parse_commit("3", head + encoding + b"\n\n\xe9\n\nmore\n").subject == subject


def test_a_branch_that_is_no_stack_is_refused(upstream: Upstream) -> None:
    base = upstream.commit({"f": "a\n"})
    other = upstream.commit({"g": "a\n"}, branch="side", parents=(base,))
    merge = upstream.commit({"f": "b\n"}, parents=(base, other))
    repository = Repository(upstream.path)
    with pytest.raises(BadInputError, match=f"commit {merge} is a merge"):
        read_stack(repository, base, merge)
    alone = upstream.commit({"f": "a\n"}, "alone", branch="alone", parents=())
    for tip in (base, alone):
        with pytest.raises(BadInputError, match=f"{tip} is not built on the base {other}"):
            read_stack(repository, other, tip)


def test_an_offset_is_told(upstream: Upstream) -> None:
    commit = upstream.commit({"f": "new\n" * 3 + NUMBERED})
    data = make_patch({"f": NUMBERED}, {"f": edited("line 20\n", "")})
    (outcome,) = stack_on(upstream, commit, patch("one.patch", data)).outcomes
    assert (outcome.status, outcome.files[0].offsets) == (Status.SHIFTED, (3,))
    assert outcome.files[0].preimage is Preimage.DIFFERS
    assert outcome.made_for_another_base


def test_every_hunk_that_does_not_fit_is_told(upstream: Upstream) -> None:
    commit = upstream.commit(
        {"f": edited("line 5\n", "five\n", edited("line 35\n", "x\n")), "g": ""}
    )
    after = edited("line 6\n", "", edited("line 20\n", "twenty\n", edited("line 36\n", "")))
    data = make_patch({"f": NUMBERED}, {"f": after, "g": "new\n"})
    stack = stack_on(upstream, commit, patch("one.patch", data))
    assert (stack.commit, stack.objects, stack.clean) == (commit, (), False)
    first, last, exists = stack.outcomes[0].clashes
    assert (first.path, first.reason, first.hunk) == ("f", Reason.CONTEXT, 1)
    assert data.splitlines()[first.line - 1].startswith(b"@@ -3,7 +3,6 @@")
    assert first.expected[2] == b"line 5\n"
    assert (first.found_at, first.found[2]) == (3, b"five\n")
    assert (last.hunk, last.found[2]) == (3, b"x\n")
    assert (exists.path, exists.reason) == ("g", Reason.EXISTS)


def test_patches_after_a_conflict(upstream: Upstream) -> None:
    commit = upstream.commit({"f": "a\n", "g": "a\n"})
    bad = patch("bad.patch", make_patch({"f": "x\n"}, {"f": "b\n"}))
    good = patch("good.patch", make_patch({"g": "a\n"}, {"g": "b\n"}))
    tried = stack_on(upstream, commit, bad, good)
    assert [each.status for each in tried.outcomes] == [Status.CONFLICTED, Status.UNCHANGED]
    assert not tried.clean


def test_an_empty_patch_makes_no_commit(upstream: Upstream) -> None:
    commit = upstream.commit({"f": "a\n"})
    stack = stack_on(upstream, commit, patch("none.patch", b"Subject: nothing\n\nyet\n"))
    assert (stack.commit, stack.outcomes[0].status, stack.clean) == (commit, Status.EMPTY, True)


def test_a_commit_is_sound_whatever_the_header_says(upstream: Upstream) -> None:
    commit = upstream.commit({"f": "a\n"})
    diff = make_patch({"f": "a\n"}, {"f": "b\n"}, subject=None)
    for head in (
        b"From: <>\nDate: Fri, 21 Nov 1930 11:00:00 +0100\nSubject: x\n\n",
        b'From: "a\nb" <a@b>\nDate: never\nSubject:\n\n',
        b"From: =?utf-8?q?a=0A=3Cb=3E?= <a b@c>\nSubject: =?utf-8?q?a=00b=0Ac?=\n\n\x00\n",
    ):
        stack = stack_on(upstream, commit, patch("x.patch", head + diff))
        write_objects(Repository(upstream.path), stack.objects)
        assert upstream.git("fsck", "--strict", "--no-dangling", stack.commit) == b""


def test_paths_are_stripped_and_moved(upstream: Upstream) -> None:
    commit = upstream.commit({"python/d/f": "a\n"})
    data = make_patch({"x/d/f": "a\n"}, {"x/d/f": None, "x/d/g": "a\n"})
    stack = stack_on(upstream, commit, patch("one.patch", data, strip=2, subdirectory="python"))
    write_objects(Repository(upstream.path), stack.objects)
    assert upstream.files(stack.commit) == {"python/d/g": b"a\n"}
    assert stack.outcomes[0].files[0].path == "python/d/g"
    added, gone = make_patch({}, {"f": "a\n"}), make_patch({"f": "a\n"}, {"f": None})
    for data, names in ((added, (None, "python/f")), (gone, ("python/f", None))):
        (change,) = patch_changes(patch("x.patch", data, subdirectory="python"))
        assert (change.old_path, change.new_path) == names


def test_what_a_strip_level_refuses_is_told_with_its_line() -> None:
    data = b"Subject: two lines\n\n--- a/d/f\n+++ b/d/f\n@@ -1 +1 @@\n-a\n+b\n"
    with pytest.raises(BadInputError, match=r"^x\.patch:3: header names no file"):
        patch_changes(patch("x.patch", data, strip=3))


def test_a_patch_upon_one_that_was_made_otherwise(upstream: Upstream) -> None:
    """What a recipe writes is in no repository yet when the next patch changes it."""
    commit = upstream.commit({"f": "a\n"})
    one = patch("one.patch", make_patch({"f": "a\n"}, {"f": "b\n"}))
    two = patch("two.patch", make_patch({"f": "b\n"}, {"f": "c\n"}))
    plain = stack_on(upstream, commit, one, two)
    with reading(Repository(upstream.path)) as reader:
        builder = StackBuilder(reader, base_of(upstream, commit))
        blob = make_object("blob", b"b\n")
        tree = builder.tree.put("f", TreeEntry(0o100644, blob.oid))
        placed = builder.place(one, tree, [blob])
        stack = builder.finish([placed, builder.push(two)])
        upon = StackBuilder(Overlay(reader, [blob]), base_of(upstream, commit), tree)
        assert upon.push(two).status.applies
    assert [(each.path, each.patches) for each in stack.files] == [("f", (one.name, two.name))]
    assert (stack.clean, stack.commit) == (True, plain.commit)
    assert placed.commit == plain.outcomes[0].commit


def test_a_submodule_that_is_not_there_moves_on(upstream: Upstream) -> None:
    commit = upstream.commit({"f": "a\n", "m": Submodule("1" * 40)})
    data = (
        b"diff --git a/m b/m\nindex 1111111..2222222 160000\n--- a/m\n+++ b/m\n@@ -1 +1 @@\n"
        b"-Subproject commit " + b"1" * 40 + b"\n+Subproject commit " + b"2" * 40 + b"\n"
    )
    stack = stack_on(upstream, commit, patch("m.patch", data))
    assert stack.clean
    write_objects(Repository(upstream.path), stack.objects)
    assert upstream.git("rev-parse", f"{stack.commit}:m").decode().strip() == "2" * 40


@pytest.mark.parametrize(
    ("files", "diff", "reason"),
    [
        ({}, b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", Reason.MISSING),
        ({}, b"--- /dev/null\n+++ b/../f\n@@ -0,0 +1 @@\n+b\n", Reason.UNSAFE),
        ({}, b"--- /dev/null\n+++ b/.GIT/f\n@@ -0,0 +1 @@\n+b\n", Reason.UNSAFE),
        ({}, b"--- /dev/null\n+++ b//f\n@@ -0,0 +1 @@\n+b\n", Reason.UNSAFE),
        ({"d": Symlink("e")}, b"--- /dev/null\n+++ b/d/f\n@@ -0,0 +1 @@\n+b\n", Reason.UNSAFE),
        ({"d": "file"}, b"--- /dev/null\n+++ b/d/f\n@@ -0,0 +1 @@\n+b\n", Reason.EXISTS),
        ({"f/d": "file"}, b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+b\n", Reason.EXISTS),
        (
            {"f": Symlink("a")},
            b"diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
            Reason.MODE,
        ),
        (
            {"f": "a"},
            b"diff --git a/f b/f\nindex 1..2\nBinary files a/f and b/f differ\n",
            Reason.BINARY,
        ),
        (
            {"f": "a\nb\n"},
            b"diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n",
            Reason.CONTEXT,
        ),
    ],
)
def test_why_a_patch_is_refused(
    upstream: Upstream, files: dict[str, str], diff: bytes, reason: Reason
) -> None:
    commit = upstream.commit({"other": "x", **files})
    (outcome,) = stack_on(upstream, commit, patch("x.patch", diff)).outcomes
    (clash,) = outcome.clashes
    assert clash.reason is reason
    assert [each.status for each in outcome.files] == [Status.CONFLICTED]
    tree = upstream.git("rev-parse", f"{commit}^{{tree}}").decode().strip()
    upstream.git("read-tree", tree)
    done = subprocess.run(
        ["git", "apply", "--cached"],
        cwd=upstream.path,
        env=sealed_environment(),
        input=diff,
        capture_output=True,
        check=False,
    )
    assert done.returncode, "git takes what we refuse"


def test_a_hunk_that_names_another_function_is_for_review(upstream: Upstream) -> None:
    old = "".join(f"def f{n}():\n    a\n    b\n    c{n}\n    d\n    e\n" for n in range(3))
    data = make_patch({"f.py": old}, {"f.py": old.replace("c2", "c3")})
    commit = upstream.commit({"f.py": old + "# more\n"})
    for section, told in ((b"f1", (False, None)), (b"f0", (True, Certainty.LOOK))):
        odd = patch("odd.patch", data.replace(b"@@ def f1", b"@@ def " + section))
        ((file,),) = (each.files for each in stack_on(upstream, commit, odd).outcomes)
        assert (file.review, file.certainty) == told


def test_a_file_may_make_way_for_a_folder(upstream: Upstream) -> None:
    commit = upstream.commit({"d": "file\n", "e/f": "x\n"})
    data = make_patch(
        {"d": "file\n", "e/f": "x\n"}, {"d": None, "d/g": "n\n", "e/f": None, "e": "y\n"}
    )
    stack = stack_on(upstream, commit, patch("swap.patch", data))
    write_objects(Repository(upstream.path), stack.objects)
    assert upstream.files(stack.commit) == {"d/g": b"n\n", "e": b"y\n"}


MESSAGES = st.lists(
    st.sampled_from(["text", "", "Signed-off-by: A <a@b>", "x: y", "Patchkit", "  set in", "#"]),
    min_size=1,
    max_size=6,
).map(lambda lines: "\n".join(lines).strip("\n") or "text")


@given(MESSAGES)
def test_law_the_trailer_comes_off_again(message: str) -> None:
    with_trailer = add_patch_trailer(message, "a.patch")
    assert with_trailer.endswith("\nPatchkit-Patch: a.patch")
    assert split_patch_trailer(with_trailer) == (message, "a.patch")
    assert split_patch_trailer(message) == (message, None)
    assert add_patch_trailer(with_trailer, "b.patch") == add_patch_trailer(message, "b.patch")


def test_git_sees_the_trailer_as_one(tmp_path: Path) -> None:
    for message in ("one", "one\n\ntwo", "one\n\nA: b", "a: b"):
        text = add_patch_trailer(message, "x.patch").encode()
        out = git_in(tmp_path, "interpret-trailers", "--parse", stdin=text)
        assert out.splitlines()[-1] == b"Patchkit-Patch: x.patch"


_PATHS = ("f", "f.a", "f-a", "d/f", "d.f", "d/e/f", "d/e.f", "g")


def _some_files(dice: random.Random) -> Files:
    """Files at some of these paths; none stands where another needs a folder."""
    chosen = [path for path in _PATHS if dice.random() < 0.6]
    texts = [dice.choice(("1\n", "2\n", "3\n")) for _ in chosen]
    return {
        p: executable(t) if dice.random() < 0.3 else t for p, t in zip(chosen, texts, strict=True)
    }


@pytest.mark.parametrize("seed", range(8))
def test_what_a_stack_says_it_changes_is_what_git_finds(seed: int, upstream: Upstream) -> None:
    dice = random.Random(seed)
    states = [{"keep": "k\n", **_some_files(dice)} for _ in range(4)]
    commit = upstream.commit(states[0])
    patches = [
        patch(f"{number}.patch", make_patch(old, {**dict.fromkeys(old), **new}))
        for number, (old, new) in enumerate(pairwise(states))
        if old != new
    ]
    repository = Repository(upstream.path)
    with reading(repository) as reader:
        builder = StackBuilder(reader, base_of(upstream, commit))
        stack = builder.build(patches)
        assert stack.clean
        changes = builder.changes(patches)
    write_objects(repository, stack.objects)
    assert list(changes) == tree_changes(repository, stack.base.tree, stack.tree)


def test_a_mode_of_an_old_tool_is_the_one_that_git_takes_it_for(upstream: Upstream) -> None:
    commit = upstream.commit({"f": "1\n"})
    blob = upstream.git("rev-parse", f"{commit}:f").decode().strip()
    row = b"100664 f\0" + bytes.fromhex(blob)
    literally = ("hash-object", "-t", "tree", "-w", "--literally", "--stdin")
    tree = git_in(upstream.path, *literally, stdin=row).decode().strip()
    base = Base(CommitId(commit), TreeId(tree), "1700000060 +0000")
    series = [patch("a.patch", make_patch({"f": "1\n"}, {"f": "2\n"}))]
    with reading(Repository(upstream.path)) as reader:
        builder = StackBuilder(reader, base)
        assert builder.build(series).clean
        (changed,) = builder.changes(series)
    assert changed.old == TreeEntry(0o100644, blob)
