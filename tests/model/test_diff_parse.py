from __future__ import annotations

import pytest

from patchkit.errors import BadInputError
from patchkit.model.diff_parse import parse_diff, read_diff, split_lines
from patchkit.model.objects import EMPTY_TREE
from patchkit.model.patch import BinaryMethod, FileChange, Kind
from tests.model.oracle import git_diff, git_verdict, refused_on_purpose

GIT = b"diff --git a/f b/f\nindex 1234567..89abcde 100644\n--- a/f\n+++ b/f\n"

NEW_F = b"diff --git a/f b/f\nnew file mode 100644\n"


def only(data: bytes, strip: int = 1) -> FileChange:
    (change,) = parse_diff(data, strip=strip)
    return change


def problems(data: bytes, **options: int) -> list[str]:
    with pytest.raises(BadInputError) as caught:
        parse_diff(data, name="x.patch", **options)
    return [str(problem) for problem in caught.value.problems]


def test_a_modification() -> None:
    change = only(GIT + b"@@ -1,2 +1,3 @@ def f():\n a\n-b\n+c\n+d\n")
    assert (change.kind, change.old_path, change.new_path) == (Kind.MODIFY, "f", "f")
    assert (change.old_blob, change.new_blob, change.old_mode) == ("1234567", "89abcde", 0o100644)
    (hunk,) = change.hunks
    assert (hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count) == (1, 2, 1, 3)
    assert (hunk.section, hunk.line) == (b"def f():", 5)
    assert hunk.preimage == [b"a\n", b"b\n"]
    assert hunk.postimage == [b"a\n", b"c\n", b"d\n"]


def test_line_numbers_start_where_the_diff_does() -> None:
    change = parse_diff(b"text\n" + GIT + b"@@ -1 +1 @@\n-a\n+b\n", 10)[0]
    assert (change.line, change.hunks[0].line) == (11, 15)


@pytest.mark.parametrize(
    ("quoted", "path"),
    [
        (b"f g", "f g"),
        (b'"t\\tab"', "t\tab"),
        (b'"\\303\\251 \\"q\\" \\\\"', 'é "q" \\'),
        (b'"\\377"', "\udcff"),
    ],
)
def test_names(quoted: bytes, path: str) -> None:
    def on(side: bytes) -> bytes:
        return b'"' + side + quoted[1:] if quoted.startswith(b'"') else side + quoted

    head = b"diff --git " + on(b"a/") + b" " + on(b"b/") + b"\n"
    assert only(head + b"old mode 100644\nnew mode 100755\n").path == path
    assert only(head + b"deleted file mode 100644\nindex 1234567..0000000\n").old_path == path
    tab = b"" if quoted.startswith(b'"') else b"\t"
    lines = b"--- " + on(b"a/") + tab + b"\n+++ " + on(b"b/") + tab + b"\n@@ -1 +1 @@\n-a\n+b\n"
    assert only(head + lines).path == path
    assert only(lines).path == path


@pytest.mark.parametrize("path", ["f", "f g", "tab\tx", "é", 'q"', "a b/c d", "new\nline", "\\"])
def test_names_as_git_writes_them(path: str) -> None:
    file, other = {path: (0o100644, b"")}, {"other": (0o100644, b"x")}
    assert only(git_diff(other, {**file, **other})).new_path == path
    assert only(git_diff({path: (0o100644, b"a\n")}, {path: (0o100755, b"a\n")})).path == path
    moved = only(git_diff({path: (0o100644, b"a\n")}, {"z": (0o100644, b"a\n")}, "-M"))
    assert (moved.old_path, moved.new_path) == (path, "z")


def test_metadata_only() -> None:
    changes = parse_diff(
        b"diff --git a/m b/m\nold mode 100644\nnew mode 100755\n"
        b"diff --git a/r b/s\nsimilarity index 100%\nrename from r\nrename to s\n"
        b"diff --git a/c b/d\nsimilarity index 90%\ncopy from c\ncopy to d\n"
        b"diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n"
        b"diff --git a/g b/g\ndeleted file mode 100755\nindex e69de29..0000000\n"
    )
    assert [(each.kind, each.old_path, each.new_path) for each in changes] == [
        (Kind.MODIFY, "m", "m"),
        (Kind.RENAME, "r", "s"),
        (Kind.COPY, "c", "d"),
        (Kind.ADD, None, "e"),
        (Kind.DELETE, "g", None),
    ]
    assert (changes[0].old_mode, changes[0].new_mode) == (0o100644, 0o100755)
    assert (changes[4].old_mode, changes[4].new_mode) == (0o100755, None)


@pytest.mark.parametrize(
    ("old", "new", "strip", "kind", "path"),
    [
        (b"a/f", b"b/f", 1, Kind.MODIFY, "f"),
        (b"a/f\t2020-01-01 10:00:00", b"b/f\t2020-01-01 10:00:00.5 +0200", 1, Kind.MODIFY, "f"),
        (b"f.orig", b"f", 0, Kind.MODIFY, "f"),
        (b"a/old", b"b/renamed", 1, Kind.MODIFY, "renamed"),
        (b"a/b c", b"b/b c", 1, Kind.MODIFY, "b c"),
        (b"/dev/null", b"b/f", 1, Kind.ADD, "f"),
        (b"a/f", b"/dev/null", 1, Kind.DELETE, "f"),
        (b"a/f\t1970-01-01 01:00:00 +0100", b"b/f", 1, Kind.ADD, "f"),
        (b"a/f", b"b/f\t1969-12-31 19:00:00 -0500", 1, Kind.DELETE, "f"),
        (b"a/d//f", b"b/d//f", 1, Kind.MODIFY, "d/f"),
    ],
)
def test_plain_headers(old: bytes, new: bytes, strip: int, kind: Kind, path: str) -> None:
    body = {
        Kind.MODIFY: b"@@ -1 +1 @@\n-a\n+b\n",
        Kind.ADD: b"@@ -0,0 +1 @@\n+b\n",
        Kind.DELETE: b"@@ -1 +0,0 @@\n-b\n",
    }[kind]
    change = only(b"--- " + old + b"\n+++ " + new + b"\n" + body, strip)
    assert (change.kind, change.path, change.plain) == (kind, path, True)


def test_contents_that_look_like_headers() -> None:
    (hunk,) = only(
        GIT
        + b"@@ -1,4 +1,3 @@\n--- a/x\n-+++ b/x\n--- \n- @@ -1 +1 @@\n+++ b/y\n+-- \n+diff --git\n"
    ).hunks
    assert hunk.preimage == [b"-- a/x\n", b"+++ b/x\n", b"-- \n", b" @@ -1 +1 @@\n"]
    assert hunk.postimage == [b"++ b/y\n", b"-- \n", b"diff --git\n"]


def test_odd_line_ends_stay() -> None:
    (hunk,) = only(GIT + b"@@ -1,3 +1,3 @@\n a\rb\r\n-c\x0cd\x0b\n+\xc2\x85\n \x1c\n").hunks
    assert hunk.preimage == [b"a\rb\r\n", b"c\x0cd\x0b\n", b"\x1c\n"]


def test_no_newline_at_either_end() -> None:
    mark = b"\\ No newline at end of file\n"
    (hunk,) = only(GIT + b"@@ -1 +1 @@\n-a\n" + mark + b"+b\n" + mark).hunks
    assert (hunk.preimage, hunk.postimage) == ([b"a"], [b"b"])
    (hunk,) = only(GIT + b"@@ -1,2 +1,2 @@\n-a\n+b\n c\n\\ Kein Zeilenumbruch\n").hunks
    assert (hunk.preimage, hunk.postimage) == ([b"a\n", b"c"], [b"b\n", b"c"])
    (hunk,) = only(GIT + b"@@ -1 +1 @@\n-a\n\\ 123456789\n+b\n").hunks
    assert (hunk.preimage, hunk.postimage) == ([b"a"], [b"b\n"])


def test_an_empty_context_line_may_have_lost_its_blank() -> None:
    (hunk,) = only(GIT + b"@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n").hunks
    assert hunk.lines == (b" a\n", b" \n", b"-b\n", b"+c\n")


def test_text_between_changes_is_passed_over() -> None:
    one = GIT + b"@@ -1 +1 @@\n-a\n+b\n"
    assert len(parse_diff(b"text\n" + one + b"\n-- \n2.39\n\nFrom x\n" + one)) == 2


@pytest.mark.parametrize("options", [("--binary",), ("--binary", "--full-index")])
def test_binary_payloads(options: tuple[str, ...]) -> None:
    old, new = bytes(range(256)) * 9, bytes(range(256)) * 9 + b"\x00more"
    change = only(git_diff({"f": (0o100644, old)}, {"f": (0o100644, new)}, *options))
    assert change.binary is not None
    forward, reverse = change.binary
    assert reverse is not None
    assert {forward.method, reverse.method} <= set(BinaryMethod)
    added = only(
        git_diff({"g": (0o100644, b"")}, {"f": (0o100644, new), "g": (0o100644, b"")}, *options)
    )
    assert added.binary is not None
    assert added.binary[0].data == new


def test_binary_files_differ() -> None:
    change = only(git_diff({"f": (0o100644, b"\x00")}, {"f": (0o100644, b"\x00\x01")}))
    assert change.binary_differs


def test_a_submodule() -> None:
    change = only(
        git_diff({"sm": (0o160000, b"1" * 40)}, {"sm": (0o160000, b"2" * 40)}, "--full-index")
    )
    assert (change.old_mode, change.old_blob) == (0o160000, "1" * 40)
    assert change.hunks[0].postimage == [b"Subproject commit " + b"2" * 40 + b"\n"]


def test_strip_levels() -> None:
    change = only(b"diff --git x/y/z/f x/y/z/f\nold mode 100644\nnew mode 100755\n", 3)
    assert change.path == "f"
    moved = b"diff --git a/d/f b/e/f\nsimilarity index 100%\nrename from d/f\nrename to e/f\n"
    assert (only(moved, 2).old_path, only(moved, 0).new_path) == ("f", "e/f")
    plain = b"--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n"
    assert only(plain, 0).path == "f"
    assert problems(plain) == ["x.patch:1: header names no file once 1 leading folder is stripped"]


def test_wrong_counts_are_named_with_both_figures() -> None:
    short = b"@@ -1,7 +1,9 @@\n a\n b\n c\n-d\n+e\n+f\n+g\n h\n i\n"
    long = b"@@ -1,3 +1,3 @@\n a\n-b\n c\n d\n\\ No newline at end of file\n"
    assert problems(GIT + short + GIT + long + GIT + b"@@ -1 +1 @@\n-a\n+b\n") == [
        "x.patch:5: hunk at line 5 declares 7 old and 9 new lines, but has 6 and 8",
        "x.patch:19: hunk at line 19 declares 3 old and 3 new lines, but has 4 and 3",
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            GIT + b"@@ -1,2 +1,2 @@\n a\n-b\n+c",
            "5: hunk at line 5 lacks only the newline at its end",
        ),
        (GIT + b"@@ -1 +1 @@\n a\n", "5: hunk changes nothing"),
        (GIT + b"@@ -a +1 @@\n-a\n+b\n", "5: malformed @@ line"),
        (b"@@ -1 +1 @@\n-a\n+b\n", "1: hunk without a file header above it"),
        (GIT, "1: f: header without any change"),
        (b"diff --cc f\nindex 1,2..3\n", "1: combined diff of a merge commit"),
        (b"diff --git a/f b/f\nold mode 10x\n", "2: mode is not an octal number"),
        (
            NEW_F + b"--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+a\n",
            "3: expected /dev/null here, as the header says",
        ),
        (
            b"diff --git a/f b/f\n--- a/f\n+++ b/f\nrename from f\nnew file mode 100644\n",
            "1: header says both rename and add",
        ),
        (
            NEW_F + b"--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+a\n",
            "4: new name is not the one that the header gave",
        ),
        (
            NEW_F + b"--- /dev/null\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
            "1: new file depends on old contents",
        ),
        (b"--- a/f\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "1: deleted file still has contents"),
        (b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n", "3: hunk at line 3 declares 1 old and 1 new lines"),
        (
            b"diff --git a/f b/g\nold mode 100644\nnew mode 100755\n",
            "1: header names no file once 1 leading folder is stripped",
        ),
        (b"diff --git a/f b/f\nGIT binary patch\nliteral 1\nx\n", "1: header of a file"),
        (
            b"diff --git a/f b/f\n+++ b/f\n--- /dev/null\nnew file mode 100644\n",
            "1: header gives a new file an old name",
        ),
        (
            b"diff --git a/f b/f\n--- a/f\nnew file mode 100644\n--- /dev/null\n",
            "1: header gives a new file an old name",
        ),
        (
            b"diff --git a/f b/f\n+++ /dev/null\n--- a/f\ndeleted file mode 100644\n",
            "1: header gives a deleted file a new name",
        ),
        (
            b"diff --git a/f b/f\nindex 1..2\nGIT binary patch\nliteral 3\nA!!\n\n",
            "5: binary line of a wrong length",
        ),
        (
            b'diff --git a/f b/f\nindex 1..2\nGIT binary patch\nliteral 3\nAaaaa"\n\n',
            "5: binary line is not base-85",
        ),
        (
            b"diff --git a/f b/f\nindex 1..2\nGIT binary patch\nliteral 3\nDaaaaa\n\n",
            "4: binary hunk cannot be inflated",
        ),
        (b"diff --git a/f b/f\nindex 1..2\nGIT binary patch\nnothing\n", "3: binary patch without"),
    ],
)
def test_what_is_refused(data: bytes, said: str) -> None:
    more = GIT + b"@@ -1 +1 @@\n-a\n+b\n" if said.startswith("1: header of a") else b""
    (problem,) = problems(data + more)
    assert problem.startswith(f"x.patch:{said}")


def test_a_header_lends_no_other_its_name() -> None:
    bare = b"diff --git a/f b/f\n"
    mode = b"diff --git a/g b/g\nold mode 100644\nnew mode 100755\n"
    files = {"f": (0o100644, b""), "g": (0o100644, b"")}
    assert refused_on_purpose(bare + mode)
    assert git_verdict(files, bare + mode) == git_verdict(files, mode.replace(b"/g", b"/f"))


def test_a_deleted_file_with_a_new_name_is_not_guessed_at() -> None:
    files = {"f": (0o100644, b"a\n")}
    gone = b"+++ /dev/null\n--- a/f\ndeleted file mode 100644\n@@ -1 +0,0 @@\n-a\n"
    gone = b"diff --git a/f b/f\n" + gone
    again = NEW_F + b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+b\n"
    assert refused_on_purpose(gone)
    assert git_verdict(files, gone) == EMPTY_TREE
    assert git_verdict(files, gone + again) is None  # to git, the file is still there


def test_lines_beyond_the_counts_are_told() -> None:
    hunk = GIT + b"@@ -1 +1 @@\n-a\n+b\n"
    assert read_diff(split_lines(hunk + b"+c\n d\n" + hunk + b"\n-- \n2.39\n")).stray == (8, 9)
    assert read_diff(split_lines(hunk + b"\ntext\n+not here\n" + hunk)).stray == ()


def test_every_offence_is_reported() -> None:
    data = GIT + b"@@ -1,2 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-a\n@@ -20 +20 @@\n-a\n+b\n" + GIT
    assert [text.split(":")[1] for text in problems(data)] == ["5", "8", "13"]
