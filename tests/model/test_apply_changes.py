"""Patches whose file changes depend on each other, and payloads; all judged by `git apply`."""

from __future__ import annotations

import re

import pytest

from patchkit.model.apply_changes import Blobs, apply_changes
from patchkit.model.mail import parse_patch
from patchkit.model.objects import (
    EXECUTABLE_MODE,
    FILE_MODE,
    SUBMODULE_MODE,
    SYMLINK_MODE,
)
from patchkit.model.outcome import Clash, Preimage, Reason, Status
from patchkit.model.tree import Tree
from tests.model.oracle import Objects, apply_to, git_diff, git_verdict, our_verdict

Files = dict[str, tuple[int, bytes]]

TEXT = b"".join(b"%d\n" % number for number in range(20))
BASE: Files = {
    "a": (FILE_MODE, b"a\n"),
    "b": (FILE_MODE, b"b\n"),
    "d/c": (FILE_MODE, TEXT),
    "link": (SYMLINK_MODE, b"a"),
    "run": (EXECUTABLE_MODE, b"x\n"),
    "sm": (SUBMODULE_MODE, b"1" * 40),
    "empty": (FILE_MODE, b""),
    "blob": (FILE_MODE, bytes(range(256)) * 4),
    "crlf": (FILE_MODE, b"a\r\nb\r\n"),
}


def both(patch: bytes, files: Files | None = None) -> bool:
    """Whether the patch applies; asserts that git and we agree on it and on the tree."""
    target = BASE if files is None else files
    ours = our_verdict(target, patch)
    assert ours == git_verdict(target, patch)
    return ours is not None


def modify(path: str, old: str, new: str) -> bytes:
    name = path.encode()
    return b"diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n-%s\n+%s\n" % (
        *(name,) * 4,
        old.encode(),
        new.encode(),
    )


def move(kind: str, old: str, new: str) -> bytes:
    return (
        f"diff --git a/{old} b/{new}\nsimilarity index 100%\n{kind} from {old}\n{kind} to {new}\n"
    ).encode()


def delete(path: str, text: str) -> bytes:
    return (
        f"diff --git a/{path} b/{path}\ndeleted file mode 100644\n"
        f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{text}\n"
    ).encode()


def add(path: str, text: str, mode: str = "100644") -> bytes:
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\n"
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{text}\n"
    ).encode()


@pytest.mark.parametrize(
    ("patch", "applies"),
    [
        (modify("a", "a", "A") + modify("a", "A", "B"), True),
        (modify("a", "a", "A") + modify("a", "a", "B"), False),
        (move("rename", "a", "c") + modify("c", "a", "C"), True),
        (modify("a", "a", "A") + move("rename", "a", "c"), True),
        (move("rename", "a", "c") + modify("a", "a", "A"), False),
        (move("copy", "a", "c") + modify("a", "a", "A"), True),
        (modify("a", "a", "A") + move("copy", "a", "c"), True),
        (move("rename", "a", "b") + move("rename", "b", "a"), True),
        (move("rename", "a", "b"), False),
        (move("copy", "a", "b"), False),
        (move("copy", "a", "c"), True),
        (delete("b", "b") + move("rename", "a", "b"), True),
        (move("rename", "a", "b") + delete("b", "b"), False),
        (delete("a", "a") + add("a", "new"), True),
        (add("a", "new") + delete("a", "a"), False),
        (add("n", "1") + add("n", "2"), True),
        (add("n", "1") + modify("n", "1", "2"), True),
        (delete("a", "a") + add("a/x", "new"), True),
        (add("a/x", "new"), False),
        (add("d", "new"), False),
        (add("link/x", "new"), False),
        (delete("link", "a") + add("link/x", "new"), False),
        (add("n", "a", "120000") + add("n/x", "new"), False),
        (add("n", "a", "120000") + add("d/x", "new") + add("e/f/x", "new"), True),
        (add("e/n", "a", "120000") + add("e/x", "new"), True),
        (add("x", "a", "120777"), True),
        (add("x", "a", "100600"), True),
        (add("x", "a", "100645"), True),
        (add("x", "Subproject commit " + "3" * 40, "160000"), True),
        (add("x", "Subproject commit 3", "160000"), False),
        (add("x", "Subproject commit " + "z" * 40, "160000"), False),
        (modify("sm", "Subproject commit " + "1" * 40, "Subproject commit " + "2" * 40), True),
        (modify("sm", "Subproject commit " + "3" * 40, "Subproject commit " + "2" * 40), False),
        (modify("link", "a", "b"), False),
        (modify("crlf", "a\r", "b\r"), False),
        (b"diff --git a/run b/run\nold mode 100644\nnew mode 100755\n", True),
        (b"diff --git a/run b/run\nold mode 100755\nnew mode 100644\n", True),
        (b"diff --git a/a b/a\nold mode 100644\nnew mode 120000\n", False),
        (b"diff --git a/link b/link\nold mode 100644\nnew mode 100755\n", False),
        (b"diff --git a/empty b/empty\ndeleted file mode 100644\n", True),
        (b"diff --git a/a b/a\ndeleted file mode 100644\n", False),
        (b"diff --git a/empty b/empty\nnew file mode 100644\n", False),
        (b"diff --git a/void b/void\nnew file mode 100644\nindex 0000000..e69de29\n", True),
        (b"--- a/empty\n+++ b/empty\n@@ -0,0 +1 @@\n+x\n", True),
        (b"--- a/none\n+++ b/none\n@@ -0,0 +1 @@\n+x\n", True),
        (b"--- a/a\n+++ b/a\n@@ -0,0 +1 @@\n+x\n", False),
        (b"--- a/a\n+++ b/a\n@@ -1 +0,0 @@\n-a\n", True),
        (b"--- a/none\n+++ b/none\n@@ -1 +1,2 @@\n a\n+x\n", False),
        (add(".gitmodules", "a", "120000"), False),
        (add("d/GitMod~1", "a", "120000"), False),
        (add("d/gi7eba~1 .", "a", "120000"), False),
        (add("d/GitMod~1", "a"), True),
        (add(".git/x", "a"), False),
        (add("git~1/x", "a"), False),
        (add("x/.GIT . /y", "a"), False),
        (add("x/.gitx/y", "a"), True),
        (add("../x", "a"), False),
        (add("x/./y", "a"), False),
    ],
)
def test_as_git(patch: bytes, applies: bool) -> None:
    assert both(patch) is applies


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (BASE["blob"][1], BASE["blob"][1] + b"\x00more"),
        (BASE["blob"][1], b"\x00"),
        (b"", b"\x00"),
        (b"\x00" * 70000, b"\x00" * 70001),
    ],
)
def test_binary_changes(old: bytes, new: bytes, full: bool) -> None:
    options = ["--binary", "--full-index"] if full else ["--binary"]
    before, after = {"f": (FILE_MODE, old)}, {"f": (FILE_MODE, new)}
    patch = git_diff(before, after, *options)
    assert both(patch, before)
    assert not both(patch, {"f": (FILE_MODE, old + b"x")})
    added = git_diff({"g": before["f"]}, {"g": before["f"], "f": (FILE_MODE, new)}, *options)
    assert both(added, {"g": before["f"]})
    assert both(git_diff({"g": before["f"], **after}, {"g": before["f"]}, *options), after)


def test_a_binary_change_without_payload() -> None:
    before, after = {"f": (FILE_MODE, b"\x00")}, {"f": (FILE_MODE, b"\x00\x00")}
    assert not both(git_diff(before, after, "--full-index"), before)
    assert not both(git_diff(before, after), before)
    (outcome,) = apply_to(before, git_diff(before, after, "--full-index")).files
    assert outcome.clashes[0].reason is Reason.BINARY


@pytest.mark.parametrize("side", [0, 1])
def test_a_binary_change_with_a_short_id(side: int) -> None:
    before, after = {"f": (FILE_MODE, b"\x00")}, {"f": (FILE_MODE, b"\x00\x00")}
    patch = git_diff(before, after, "--binary")
    (ids,) = re.findall(rb"index (\w{40})\.\.(\w{40})", patch)
    assert both(patch, before)
    assert not both(patch.replace(ids[side], ids[side][:10]), before)


def test_a_terse_attempt_does_not_tell_what_stands_there() -> None:
    files, patch = {"d/c": BASE["d/c"]}, modify("d/c", "x", "y").replace(b"-1 +1", b"-3 +3")
    told, terse = (_clash(files, patch, terse=each) for each in (False, True))
    assert (told.expected, told.found, told.found_at) == ((b"x\n",), (b"2\n",), 3)
    assert (terse.expected, terse.found, terse.found_at) == ((), (), 0)


def _clash(files: Files, patch: bytes, *, terse: bool) -> Clash:
    objects = Objects()
    changes = parse_patch(patch, name="x").changes
    tree = Tree(objects, objects.tree(files))
    (outcome,) = apply_changes(tree, Blobs(objects), changes, terse=terse).files
    (clash,) = outcome.clashes
    return clash


NAMED: Files = dict.fromkeys(("x", "x y", "é", 'q"', "x x"), (FILE_MODE, b"x\n"))


@pytest.mark.parametrize(
    ("names", "applies"),
    [
        (rb'"a/\303\251" "b/\303\251"', True),
        (rb'"a/\303\251" "b/\303\250"', False),
        (rb'"a/x" "b/x"', True),
        (rb'"a/x" b/x', False),
        (rb'a/x "b/x"', True),
        (rb'a/x y "b/x y"', True),
        (rb'a/x "b/x y"', False),
        (rb'a/x "b/x', False),
        (rb'a/x y "b/x"', True),
        (rb'a/x "b/xx"', False),
        (rb'a/xx "b/x"', False),
        (rb'a/x"b/x"', False),
        (rb'"a/q\"" "b/q\""', True),
        (rb'"a/x" ', False),
        (rb'"a/x', False),
        (rb'"a/x" "b/x', False),
        (rb'"x" "x"', False),
        (rb"a/x b/x", True),
        (rb"a/x x b/x x", True),
        (rb"a/x y b/x y", True),
        (rb"a/x y b/x", True),
        (rb"a/x /x", False),
        (rb"/x b/x", False),
    ],
)
def test_names_that_only_the_first_line_tells(names: bytes, applies: bool) -> None:
    patch = b"diff --git %s\nold mode 100644\nnew mode 100755\n" % names
    assert both(patch, NAMED) is applies


@pytest.mark.parametrize(
    ("patch", "applies"),
    [
        (b"--- /dev/null\t1970-01-01 00:00:00 +0000\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", True),
        (b"--- /dev/null \n+++ b/n\n@@ -0,0 +1 @@\n+x\n", True),
        (b"--- /dev/nullify\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", True),
        (b"--- a/x\n+++ /dev/null\tnow\n@@ -1 +0,0 @@\n-x\n", True),
        (b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n", False),
        (b"--- a/x\n+++ b/x\n@@ -1 +1 @@", False),
    ],
)
def test_plain_diffs(patch: bytes, applies: bool) -> None:
    assert both(patch, NAMED) is applies


def test_names_that_macos_takes_for_git() -> None:
    # git minds them on macOS alone; a stack must be the same everywhere
    (outcome,) = apply_to(BASE, add(".g\u200cit/x", "a")).files
    assert outcome.clashes[0].reason is Reason.UNSAFE


@pytest.mark.parametrize(
    ("index", "preimage"),
    [
        (b"index 78981922613b2afb6025042ff6bd878ac1994e85..0000001\n", Preimage.MATCHES),
        (b"index 7898192..61780798 100644\n", Preimage.MATCHES),
        (b"index 7898193..61780798 100644\n", Preimage.DIFFERS),
        (b"index 7898192..61780798 100755\n", Preimage.MATCHES),
        (b"", Preimage.UNKNOWN),
        (b"index 789819z..61780798 100644\n", Preimage.UNKNOWN),
        (b"index 7898192..6178079z 100644\n", Preimage.UNKNOWN),
    ],
)
def test_the_blob_that_a_change_was_made_against(index: bytes, preimage: Preimage) -> None:
    patch = modify("a", "a", "b").replace(b"--- ", index + b"--- ", 1)
    assert both(patch)
    (outcome,) = apply_to(BASE, patch).files
    assert (outcome.preimage, outcome.status) == (preimage, Status.UNCHANGED)


def test_an_added_file_matches_where_there_is_none() -> None:
    patch = add("n", "1").replace(b"--- ", b"index 0000000..1234567\n--- ", 1)
    assert apply_to(BASE, patch).files[0].preimage is Preimage.MATCHES


@pytest.mark.parametrize("path", ["n/l/x", "n/l/deep/x"])
def test_nothing_is_written_through_a_symlink_that_the_same_patch_makes(path: str) -> None:
    for patch in (add("n/l", "a", "120000") + add(path, "x"), add(path, "x") + add("n/l", "a")):
        assert not both(patch)
    (_, outcome) = apply_to(BASE, add("n/l", "a", "120000") + add(path, "x")).files
    assert outcome.clashes[0].reason is Reason.UNSAFE
    assert outcome.clashes[0].detail == "n/l becomes a symlink by this patch"


@pytest.mark.parametrize(
    "patch",
    [delete(".git/x", "a"), modify(".git/x", "a", "b"), move("rename", ".git/x", "x")],
)
def test_a_path_of_gits_own_is_unsafe_whatever_is_done_to_it(patch: bytes) -> None:
    assert not both(patch)
    (outcome,) = apply_to(BASE, patch).files
    assert [clash.reason for clash in outcome.clashes] == [Reason.UNSAFE]


def test_a_file_that_holds_more_than_is_deleted_is_told() -> None:
    patch = b"diff --git a/d/c b/d/c\ndeleted file mode 100644\n"
    ((clash,),) = (outcome.clashes for outcome in apply_to(BASE, patch).files)
    assert (clash.reason, clash.found_at) == (Reason.CONTEXT, 1)
    assert clash.found == tuple(b"%d\n" % number for number in range(8))
    assert clash.detail == "the file to delete holds more than the patch removes"


@pytest.mark.parametrize(
    ("patch", "detail"),
    [
        (b"100644\nnew mode 120000\n", "the patch turns a file into a symlink in one step"),
        (b"120000\nnew mode 100644\n", "the patch expects a symlink, it is a file"),
        (b"160000\nnew mode 100644\n", "the patch expects a submodule, it is a file"),
    ],
)
def test_kinds_of_files_are_told_in_words(patch: bytes, detail: str) -> None:
    (outcome,) = apply_to(BASE, b"diff --git a/a b/a\nold mode " + patch).files
    assert [(each.reason, each.detail) for each in outcome.clashes] == [(Reason.MODE, detail)]
