"""What lint finds in a patch file, and that it finds nothing in a good one."""

from __future__ import annotations

import pytest

from patchkit.model.finding import Severity
from patchkit.model.lint import lint_patch
from patchkit.model.mail import parse_patch
from tests.support.repos import Content, make_patch

TEXT = "".join(f"line {n}\n" for n in range(1, 21))
SHOUTED = TEXT.replace("line 9", "LINE 9")
BODY = "Because it has to be.\n\nUpstream-Status: Pending"


def good(before: Content = TEXT, after: Content = SHOUTED) -> bytes:
    return make_patch({"a.py": before}, {"a.py": after}, body=BODY)


def found(data: bytes, *, ours: bool = True) -> dict[str, tuple[Severity, str, str]]:
    file = parse_patch(data, name="x.patch")
    findings = lint_patch(file, name="x.patch", ours=ours)
    return {each.code: (each.severity, each.where, each.what) for each in findings}


def test_nothing_in_a_good_patch() -> None:
    assert found(good()) == {}


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../up.py", "a/../b", ".git/config", "x/.GIT/hooks/y", "git~1/config"]
)
def test_unsafe_paths_are_errors_whoever_wrote_them(path: str) -> None:
    data = (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\n"
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    ).encode()
    severity, where, what = found(data, ours=False)["unsafe-path"]
    assert severity is Severity.ERROR
    assert where == "x.patch:1"
    assert what.startswith(f"{path}: ")


def test_change_of_type_is_no_second_change() -> None:
    delete = make_patch({"a": "x\n"}, {"a": None}, subject=None)
    add = make_patch({}, {"a": "y\n"}, subject=None)
    assert found(delete + add, ours=False) == {}


def test_lines_beyond_the_counts() -> None:
    """git applies the patch without these lines, and says nothing."""
    data = good()
    start = data.index(b"@@ ")
    end = data.index(b" @@", start)
    cut = data[:start] + b"@@ -6,6 +6,6" + data[end:]
    severity, where, what = found(cut, ours=False)["stray-lines"]
    assert severity is Severity.ERROR
    assert what.startswith("1 line beyond")
    assert cut.splitlines()[int(where.partition(":")[2]) - 1] == b" line 12"


def test_lines_beyond_the_counts_of_a_patch_without_folders() -> None:
    data = b"--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n d\n"
    findings = lint_patch(parse_patch(data, name="x", strip=0), name="x", ours=False)
    assert [(each.code, each.where) for each in findings] == [("stray-lines", "x:7")]


def test_carriage_returns_in_a_file_without() -> None:
    data = good(TEXT, TEXT.replace("line 9\n", "line 9\r\n"))
    severity, where, what = found(data)["carriage-return"]
    number = data.splitlines().index(b"+line 9") + 1 if b"+line 9" in data.splitlines() else 0
    assert severity is Severity.WARNING
    assert what.startswith("a.py: 1 added line in CRLF")
    assert where.startswith("x.patch:")
    assert number in (0, int(where.partition(":")[2]))


def test_file_that_has_carriage_returns_throughout_may() -> None:
    text = TEXT.replace("\n", "\r\n")
    assert "carriage-return" not in found(good(text, text.replace("line 9", "LINE 9")))


def test_blanks_in_added_lines() -> None:
    data = good(TEXT, TEXT.replace("line 9\n", "line 9  \nx\n"))
    severity, where, what = found(data)["trailing-blanks"]
    assert severity is Severity.NOTE
    assert data.splitlines()[int(where.partition(":")[2]) - 1] == b"+line 9  "
    assert what == "a.py: 1 added line with blanks at the end"


def test_raw_diff_has_no_header() -> None:
    data = make_patch({"a.py": TEXT}, {"a.py": TEXT + "more\n"}, subject=None)
    assert found(data)["no-header"][0] is Severity.WARNING
    assert found(data, ours=False) == {}  # somebody else's, not ours to change


@pytest.mark.parametrize(
    ("data", "code", "word"),
    [
        (good().replace(b"From: Ann Author <ann@example.com>\n", b""), "header-author", "author"),
        (
            good().replace(b"Subject: Change files", b"Subject: " + b"x" * 73),
            "header-subject",
            "73",
        ),
        (good().replace(b"Because it has to be.\n\n", b""), "header-reason", "reason"),
        (good().replace(b"Status: Pending", b"Status: Perhaps"), "upstream-status", "Perhaps"),
        (good().replace(b"Upstream-Status: Pending", b"So."), "upstream-status", "no Upstream"),
    ],
)
def test_header(data: bytes, code: str, word: str) -> None:
    findings = found(data)
    assert list(findings) == [code]
    assert word in findings[code][2]


def test_every_status_of_yocto_is_known() -> None:
    data = good().replace(b"Pending", b"Inappropriate [only for our hardware]")
    assert found(data) == {}


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (good() + b"-- \n2.39.5\n", "signature"),
        (
            b"From: A <a@b.c>\nSubject: s\n\nwhy\n\nUpstream-Status: Pending\n---\n"
            b" a.py | 2 +-\n 1 file changed, 1 insertion(+)\n\n" + good()[good().index(b"diff") :],
            "diffstat",
        ),
        (
            good()[: good().index(b"diff")]
            + b"--- a/a.py\n+++ b/a.py\n"
            + good()[good().index(b"@@") :],
            "`diff --git`",
        ),
    ],
)
def test_other_than_canonical_form(data: bytes, word: str) -> None:
    severity, _, what = found(data)["not-canonical"]
    assert severity is Severity.STYLE
    assert word in what


def test_abbreviated_index_lines() -> None:
    lines = good().splitlines(keepends=True)
    short = [b"index 1234567..89abcde 100644\n" if x[:6] == b"index " else x for x in lines]
    severity, where, what = found(b"".join(short))["not-canonical"]
    assert (severity, what) == (
        Severity.STYLE,
        "not in canonical form: abbreviated index lines",
    )
    assert short[int(where.partition(":")[2]) - 1].startswith(b"index 1234567")
